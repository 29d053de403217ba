# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports of data races in a kernel's log: which of them are ours.

Those are ours that are near a file of ours, a header too whose functions are inlined into others',
and those of an access in a line that a patch of ours changed.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path

from lab import console, paths, process
from lab.boot import BootResult
from lab.build import Kernel
from lab.kernellog import STAMP, find_report
from lab.ktap import Case

RULE = "=" * 60
TITLE = "BUG: KCSAN: "
FRAME = re.compile(r"^ (?:\? )?(\w[\w.]*)\+(0x[0-9a-f]+)/(0x[0-9a-f]+)")
# The scheduler looks at the flags of tasks that change them themselves, as stock reclaim does.
SCHEDULER = "kthread_is_per_cpu"
NEAR = 3  # frames of a stack: what we call inline or lend a buffer to is ours too


@dataclass(frozen=True)
class Frame:
    """Where a stack comes by: the address behind an instruction."""

    symbol: str
    offset: int
    size: int  # of the symbol
    depth: int  # 1: the access

    @property
    def function(self) -> str:
        """Its name in the source: compilers add .constprop.0, .isra.0, .part.0, .cold."""
        return self.symbol.partition(".")[0]


@dataclass(frozen=True)
class Place:
    """A line of the kernel's source."""

    file: str  # below the tree
    line: int


@dataclass(frozen=True)
class Race:
    """One report."""

    title: str
    frames: tuple[Frame, ...]  # the innermost of both stacks
    text: str

    @property
    def functions(self) -> set[str]:
        return {frame.function for frame in self.frames}


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
    frames = []
    depth = 0
    for line in text.splitlines():
        match = FRAME.match(line)
        depth = depth + 1 if match else 0
        if match and depth <= NEAR:
            frames.append(Frame(match[1], int(match[2], 16), int(match[3], 16), depth))
    return Race(title, tuple(frames), text)


def judge(kernel: Kernel, result: BootResult) -> tuple[BootResult, list[Case]]:
    """The result without its races; a failed case for each race of ours.

    Races of others are told, for the kernel has some that it lives with.
    """
    races, rest = split(result.console)
    if not races:
        return result, []
    ours = Ours(kernel, [frame for race in races for frame in race.frames])
    cases = []
    for race in races:
        if ours.has(race) and SCHEDULER not in race.functions:
            why = "a data race of ours"
            notes = race.text.splitlines()
            cases.append(Case(f"KCSAN: {race.title}", passed=False, why=why, notes=notes))
        else:
            console.say(f"note: KCSAN: {race.title}, which is not ours")
    return replace(result, console=rest, panic=find_report(rest)), cases


class Ours:
    """What of a kernel is this project's."""

    def __init__(self, kernel: Kernel, frames: Iterable[Frame]) -> None:
        self.tree = (kernel.objects / "source").resolve()  # kbuild's link
        self.places = places(kernel.objects / "vmlinux", self.tree, frames)

    def has(self, race: Race) -> bool:
        return any(map(self._passes, race.frames))

    def _passes(self, frame: Frame) -> bool:
        """Lines of a patch count where the access is: further out they call what others call too.

        An access is ours, too, if nobody knows where it is.
        """
        there = self.places[frame]
        if any((paths.KERNEL / "files" / place.file).exists() for place in there):
            return True
        if frame.depth > 1:
            return False
        return not there or any(place.line in changed(self.tree, place.file) for place in there)


def places(vmlinux: Path, tree: Path, frames: Iterable[Frame]) -> Mapping[Frame, list[Place]]:
    """The lines of the tree at each frame: of a function that is inlined there, and its callers."""
    starts = _starts(vmlinux)
    ends = dict(pairwise(sorted({start for several in starts.values() for start in several})))
    at: dict[Frame, list[int]] = {}
    for frame in dict.fromkeys(frames):
        named = starts.get(frame.symbol, [])
        # several static functions may have one name; the log tells the size up to the next symbol
        fits = [start for start in named if ends.get(start) == start + frame.size]
        at[frame] = [start + frame.offset - 1 for start in fits or named]
    lines = _lines(vmlinux, tree, {address for several in at.values() for address in several})
    return {
        frame: [place for address in several for place in lines[address]]
        for frame, several in at.items()
    }


def _starts(vmlinux: Path) -> dict[str, list[int]]:
    """The addresses of each symbol."""
    output = process.run(["nm", str(vmlinux)], failure=f"nm cannot read {vmlinux}").stdout
    starts: dict[str, list[int]] = {}
    for address, name in re.findall(r"^(\w+) \w (\S+)$", output, flags=re.M):
        starts.setdefault(name, []).append(int(address, 16))
    return starts


def _lines(vmlinux: Path, tree: Path, addresses: Iterable[int]) -> dict[int, list[Place]]:
    """What addr2line says of each address, as far as it is in the tree."""
    words = "\n".join(map(hex, addresses))
    command = ["addr2line", "--addresses", "--inlines", "-e", str(vmlinux)]
    output = process.run(command, input=f"{words}\n").stdout
    lines: dict[int, list[Place]] = {}
    several: list[Place] = []
    for line in output.splitlines():
        if re.fullmatch("0x[0-9a-f]+", line):
            several = lines.setdefault(int(line, 16), [])
        elif match := re.match(rf"{re.escape(str(tree))}/(.+):(\d+)", line):
            several.append(Place(os.path.normpath(match[1]), int(match[2])))
    return lines


@cache
def changed(tree: Path, file: str) -> frozenset[int]:
    """The lines of a file that are not so in the tree without the series, but for white space."""
    before, after = tree.with_name("pristine") / file, tree / file
    only_new = ("--unchanged-line-format=", "--old-line-format=", "--new-line-format=%dn\n")
    command = ["diff", "-w", "-N", *only_new, str(before), str(after)]
    return frozenset(map(int, process.run(command, check=False).stdout.split()))
