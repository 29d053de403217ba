# SPDX-License-Identifier: GPL-2.0-or-later
"""Which tests may be skipped: those that lab/skips.toml lists with a reason, and no other."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from lab.errors import LabError
from lab.ktap import Case

LIST = Path(__file__).with_name("skips.toml")


@dataclass(frozen=True)
class Skip:
    """Cases that may be skipped."""

    part: str
    case: str  # a shell pattern
    why: str
    flavours: tuple[str, ...]  # none: all

    def covers(self, part: str, flavour: str) -> bool:
        return part == self.part and (not self.flavours or flavour in self.flavours)


def read(path: Path = LIST) -> list[Skip]:
    """The list, an entry for each pattern."""
    skips = []
    for number, entry in enumerate(tomllib.loads(path.read_text()).get("skip", []), 1):
        try:
            skips += [
                Skip(entry["part"], case, entry["why"], tuple(entry.get("flavours", ())))
                for case in entry["cases"]
            ]
        except KeyError as missing:
            raise LabError(f"{path}: entry {number} has no {missing}") from None
    return skips


def judge(part: str, flavour: str, cases: Iterable[Case], listed: Iterable[Skip]) -> list[Case]:
    """The cases, where a skip that is not listed has become a failure."""
    patterns = [skip.case for skip in listed if skip.covers(part, flavour)]

    def judged(case: Case) -> Case:
        children = [judged(child) for child in case.children]
        if case.skipped and not any(fnmatchcase(case.name, pattern) for pattern in patterns):
            why = f"skipped, but not in {LIST.name}: {case.why}"
            return replace(case, passed=False, skipped=False, why=why, children=children)
        return replace(case, children=children)

    return [judged(case) for case in cases]


def unused(part: str, flavour: str, cases: Iterable[Case], listed: Iterable[Skip]) -> list[Case]:
    """A failure for each entry that the cases of a whole run had no use for."""
    names = [leaf.name for case in cases for leaf in case.leaves() if leaf.skipped]
    return [
        Case(f"{LIST.name} lists no more than it has to", passed=False, why=skip.case)
        for skip in listed
        if skip.covers(part, flavour) and not any(fnmatchcase(name, skip.case) for name in names)
    ]
