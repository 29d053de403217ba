# SPDX-License-Identifier: GPL-2.0-or-later
"""Which tests get to a line of the kernel? Where it is changed the others need not run.

The files in question are compiled with gcov's counters, and each trial runs once on that kernel.
What its boot runs counts as well: without it the trial could not pass either.
"""

import difflib
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab import boot, build, console, flavours, ktap, paths, process, tests
from lab.build import Kernel
from lab.errors import LabError
from lab.source import Patch
from lab.trials import Trial

FLAVOUR = "gcov"
TRIAL_SECONDS = 30  # one, as a rule, two side by side
# What takes longer than on the kernel that counts, so many times and the start of a guest, hangs
LIMIT_SECONDS, LIMIT_TIMES = 30, 2


@dataclass(frozen=True)
class Counted:
    """What one trial ran of a file."""

    ran: Sequence[int]  # lines
    known: Sequence[int]  # lines with a counter
    functions: Sequence[tuple[int, int, bool]]  # first line, last line, whether it ran

    def gets_to(self, line: int, by_chance: bool) -> bool | None:
        """Whether it ran the line; if that has no counter, or by chance, anything of its function.

        None: nobody knows.
        """
        if line in self.known and (line in self.ran or not by_chance):
            return line in self.ran
        around = [each for each in self.functions if each[0] <= line <= each[1]]
        ran = any(
            ran or any(first <= number <= last for number in self.ran)
            for first, last, ran in around
        )
        return ran if around else None


@dataclass(frozen=True)
class Reached:
    """What one trial ran, and how long it took."""

    seconds: float
    files: Mapping[str, Counted]

    def may_get_to(self, file: str, lines: Iterable[int], by_chance: bool) -> bool:
        """Whether it runs one of the lines, or nobody knows."""
        counted = self.files.get(file)
        if counted is None:
            return True
        return any(counted.gets_to(line, by_chance) is not False for line in lines)


@dataclass(frozen=True)
class Reach:
    """What the trials ran, by their names."""

    reached: Mapping[str, Reached]

    def choose(self, trials: Iterable[Trial], file: str, lines: Sequence[int]) -> list[Trial]:
        """Those that may get to one of the lines: the quickest first, uncounted ones last."""

        def seconds(trial: Trial) -> float:
            reached = self.reached.get(trial.name)
            return reached.seconds if reached else float("inf")

        def may(trial: Trial) -> bool:
            reached = self.reached.get(trial.name)
            return reached is None or reached.may_get_to(file, lines, trial.by_chance)

        return sorted(filter(may, trials), key=seconds)

    def limit(self, trial: Trial) -> float | None:
        """Seconds after which it hangs, whatever else the machine does; None: nobody knows."""
        reached = self.reached.get(trial.name)
        return LIMIT_SECONDS + LIMIT_TIMES * reached.seconds if reached else None


def count(
    options: tests.Options, trials: Iterable[Trial], files: Iterable[str], content: str
) -> Reach:
    """Run each trial on a kernel that counts in these files; what is known is not run again.

    What is counted depends on `content`. Raises LabError if a trial fails: then every change would
    seem to be noticed.
    """
    sources = sorted(file for file in files if file.endswith(".c"))
    key = hashlib.sha256("\0".join((content, *sources)).encode()).hexdigest()[:24]
    folder = paths.cache() / "reach" / key
    folder.mkdir(parents=True, exist_ok=True)
    counted = [trial for trial in trials if trial.counted]
    if unknown := [trial for trial in counted if not _file(trial, folder).exists()]:
        kernel = build.build(FLAVOUR, more=(_counters(sources),))
        _count_all(unknown, tests.Context(options, kernel), folder)
    return Reach({trial.name: _read(_file(trial, folder)) for trial in counted})


def _count_all(unknown: Sequence[Trial], context: tests.Context, folder: Path) -> None:
    expected = TRIAL_SECONDS * len(unknown)
    with (
        console.progress("looking what tests get to", len(unknown), expected) as step,
        ThreadPoolExecutor(tests.WORKERS) as pool,
    ):
        pending = [pool.submit(_keep, trial, context, folder) for trial in unknown]
        try:
            for done in as_completed(pending):
                done.result()
                step.update(step.done + 1)
        except BaseException:
            process.abandon(pool, pending)
            raise


def _counters(files: Sequence[str]) -> Patch:
    """A patch behind the series that has these files counted."""
    tree = build.tree(flavours.find(FLAVOUR)).path
    diffs: list[str] = []
    for folder in sorted({Path(file).parent for file in files}):
        where = folder / "Makefile"
        before = (tree / where).read_text().splitlines(keepends=True)
        stems = [Path(file).stem for file in files if Path(file).parent == folder]
        after = [*(f"GCOV_PROFILE_{stem}.o := y\n" for stem in stems), *before]
        diffs += difflib.unified_diff(before, after, f"a/{where}", f"b/{where}")
    return Patch(Path("counters.patch"), "".join(diffs))


def _file(trial: Trial, folder: Path) -> Path:
    made_of = hashlib.sha256(repr(trial).encode()).hexdigest()[:8]
    name = re.sub(r"\W+", "-", trial.name)
    return folder / f"{name}-{made_of}.json"


def _keep(trial: Trial, context: tests.Context, folder: Path) -> None:
    file = _file(trial, folder)
    part = file.with_suffix(".part")
    part.write_text(json.dumps(asdict(_count(trial, context))))
    part.rename(file)


def _read(file: Path) -> Reached:
    told = json.loads(file.read_text())
    files = {name: Counted(**counted) for name, counted in told["files"].items()}
    return Reached(told["seconds"], files)


def _count(trial: Trial, context: tests.Context) -> Reached:
    with boot.scratch() as folder:
        counters = folder / "counters"
        start = time.monotonic()
        cases = trial.run(context, counters)
        seconds = time.monotonic() - start
        if failed := ktap.first_failure(cases):
            raise LabError(f"the kernel fails as it is: {trial.name}: {failed.name}", failed.why)
        files: dict[str, Counted] = {}
        for path in sorted(counters.rglob("*.gcda")):
            files |= read(context.kernel, path, counters)
    if not any(counted.ran for counted in files.values()):
        raise LabError(f"{trial.name} ran nothing that is counted")
    return Reached(seconds, files)


def read(kernel: Kernel, counters: Path, root: Path) -> dict[str, Counted]:
    """What gcov makes of the counters of one object, by the names of its sources.

    They lie below `root` at the whole path of the object.
    """
    notes = Path("/") / counters.relative_to(root).with_suffix(".gcno")
    shutil.copy(notes, counters.with_suffix(".gcno"))
    command = ["gcov", "--json-format", "--stdout", counters.name]
    failure = f"gcov cannot read {counters}"
    answer = process.run(command, cwd=counters.parent, failure=failure)
    if answer.stderr:  # such as notes that are not of these counters: all would seem not to run
        raise LabError(failure, answer.stderr)
    told = json.loads(answer.stdout)
    compiled_in = Path(told["current_working_directory"])
    source = (kernel.objects / "source").resolve()
    by_source = {}
    for file in told["files"]:
        name = os.path.relpath((compiled_in / file["file"]).resolve(), source)
        if name.endswith(".c"):  # a header's code is in objects without counters, too
            by_source[name] = _counted(file)
    return by_source


def _counted(file: Mapping[str, Any]) -> Counted:
    return Counted(
        sorted({line["line_number"] for line in file["lines"] if line["count"]}),
        sorted({line["line_number"] for line in file["lines"]}),
        [
            (each["start_line"], each["end_line"], bool(each["execution_count"]))
            for each in file["functions"]
        ],
    )
