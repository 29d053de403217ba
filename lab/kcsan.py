# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports of data races in a kernel's log: which of them are in files of ours."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from lab import console, paths, process
from lab.boot import STAMP, BootResult, find_report
from lab.build import Kernel
from lab.ktap import Case

RULE = "=" * 60
TITLE = "BUG: KCSAN: "
FRAME = re.compile(r"^ (?:\? )?(\w[\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+")
# The scheduler looks at the flags of tasks that change them themselves, as stock reclaim does.
SCHEDULER = "kthread_is_per_cpu"
NEAR = 3  # frames of a stack: what we call inline or lend a buffer to is ours too


@dataclass(frozen=True)
class Race:
    """One report."""

    title: str
    functions: frozenset[str]  # the innermost of both stacks
    text: str


def split(log: str) -> tuple[list[Race], str]:
    """The races that a log reports, and the log without them."""
    races, rest = [], []
    report: list[str] | None = None
    for line in STAMP.sub("", log).splitlines():
        if report is None and line.startswith(RULE):
            report = []
        elif report is None:
            rest.append(line)
        elif line.startswith(RULE):
            text = "\n".join(report)
            if TITLE in text:
                races.append(_race(text))
            else:
                rest += report
            report = None
        else:
            report.append(line)
    return races, "\n".join(rest + (report or []))


def _race(text: str) -> Race:
    title = next(line for line in text.splitlines() if TITLE in line).partition(TITLE)[2]
    functions: set[str] = set()
    depth = 0
    for line in text.splitlines():
        match = FRAME.match(line)
        depth = depth + 1 if match else 0
        if match and depth <= NEAR:
            functions.add(_source_name(match[1]))
    return Race(title, frozenset(functions), text)


def _source_name(symbol: str) -> str:
    """The function's name in the source: compilers add .constprop.0, .isra.0, .part.0, .cold."""
    return symbol.partition(".")[0]


def judge(kernel: Kernel, result: BootResult) -> tuple[BootResult, list[Case]]:
    """The result without its races; a failed case for each race in a file of ours.

    Races of others are told, for the kernel has some that it lives with.
    """
    races, rest = split(result.console)
    if not races:
        return result, []
    ours = functions_of(objects(kernel))
    cases = []
    for race in races:
        if race.functions & ours and SCHEDULER not in race.functions:
            why = "a data race in a file of ours"
            notes = race.text.splitlines()
            cases.append(Case(f"KCSAN: {race.title}", passed=False, why=why, notes=notes))
        else:
            console.say(f"note: KCSAN: {race.title}, which is not ours")
    return replace(result, console=rest, panic=find_report(rest)), cases


def objects(kernel: Kernel) -> list[Path]:
    """The object files of this project's own source files, as far as they are configured."""
    root = paths.KERNEL / "files"
    names = (path.relative_to(root) for path in root.rglob("*.c"))
    candidates = (
        kernel.objects / name.with_suffix(".o") for name in names if name.parts[0] != "tools"
    )
    return [path for path in candidates if path.exists()]


def functions_of(files: Iterable[Path]) -> frozenset[str]:
    """The functions that these object files define."""
    names: set[str] = set()
    for path in files:
        output = process.run(["nm", str(path)], failure=f"nm cannot read {path}").stdout
        symbols = re.findall(r"^\w+ [tTwW] (\S+)$", output, flags=re.M)
        names |= {_source_name(name) for name in symbols}
    return frozenset(names)
