# SPDX-License-Identifier: GPL-2.0-or-later
"""KTAP, the test format of KUnit and the kernel's selftests: parse, count."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lab.errors import LabError
from lab.kernellog import STAMP

RESULT = re.compile(r"(?P<indent> *)(?P<not>not )?ok (?P<number>\d+)(?: -)? ?(?P<rest>.*)")
PLAN = re.compile(r"(?P<indent> *)1\.\.(?P<count>\d+)\b")
PLAN_NAME = "(the plan)"
DIRECTIVE = re.compile(
    r"^(?P<name>.*?)\s*# (?P<word>SKIP|XFAIL|TODO|TIMEOUT)\b ?(?P<why>.*)$", re.I
)
CONDITION = re.compile(r"#ifdef (?P<symbol>CONFIG_\w+)$")
CASE = re.compile(r"\s*KUNIT_CASE\w*\((?P<name>\w+)")


@dataclass
class Case:
    """One result line, and the subtests told above it."""

    name: str
    passed: bool
    skipped: bool = False
    why: str = ""
    children: list["Case"] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def leaves(self) -> Iterable["Case"]:
        """The cases without subtests: what is counted. A failure no subtest explains counts too."""
        for child in self.children:
            yield from child.leaves()
        unexplained = not self.passed and all(
            leaf.passed for c in self.children for leaf in c.leaves()
        )
        if not self.children or unexplained:
            yield self


@dataclass(frozen=True)
class Summary:
    """Counts of leaves."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: "Summary") -> "Summary":
        return Summary(
            self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped
        )

    def __str__(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


def parse(text: str) -> list[Case]:
    """The top-level cases of a KTAP text, kernel time stamps and foreign lines allowed.

    A plan that was not fulfilled becomes a failed case: a program that dies half-way fails. So does
    one that had none: it may have told it at its end.
    """
    planned = False
    pending: dict[int, list[Case]] = {}
    plans: dict[int, int] = {}
    notes: list[str] = []
    for raw in text.splitlines():
        line = STAMP.sub("", raw.rstrip())
        if match := PLAN.match(line):
            depth = len(match["indent"])
            _close(pending, plans, depth + 1)
            plans[depth] = int(match["count"])
            planned = planned or not depth
        elif match := RESULT.fullmatch(line):
            depth = len(match["indent"])
            children = _close(pending, plans, depth + 1)
            pending.setdefault(depth, []).append(_case(match, children, notes))
            notes = []
        elif line.strip().startswith("# "):
            notes.append(line.strip()[2:])
    cases = _close(pending, plans, 0)
    if cases and not planned:
        cases.append(Case(PLAN_NAME, passed=False, why="there was none"))
    return cases


def _close(pending: dict[int, list[Case]], plans: dict[int, int], depth: int) -> list[Case]:
    """Take out everything at this depth and deeper, with a failure for each broken plan."""
    cases: list[Case] = []
    for level in sorted({*pending, *plans}, reverse=True):
        if level >= depth:
            reported = pending.pop(level, [])
            planned = plans.pop(level, len(reported))
            if planned != len(reported):
                why = f"{planned} tests were planned, {len(reported)} reported"
                reported.append(Case(PLAN_NAME, passed=False, why=why))
            cases += reported
    return cases


def _case(match: re.Match[str], children: list[Case], notes: list[str]) -> Case:
    name, word, why = match["rest"], "", ""
    if directive := DIRECTIVE.match(name):
        name, word, why = directive["name"], directive["word"].upper(), directive["why"]
    # what is to fail says nothing if it does: lab/skips.toml has to list it, as what is skipped
    skipped = word == "SKIP" or (bool(match["not"]) and word in ("XFAIL", "TODO"))
    passed = not match["not"] and word != "TIMEOUT"
    return Case(name or match["number"], passed or skipped, skipped, why, children, notes)


def declared(source: str, config: Mapping[str, str]) -> list[str]:
    """The cases that the C source of a KUnit suite has in a kernel of this configuration."""
    there: list[bool] = []
    names = []
    for line in source.splitlines():
        if match := CONDITION.match(line):
            there.append(config.get(match["symbol"]) == "y")
        elif line.startswith("#if"):
            raise LabError(f"a suite's condition is not read here: {line}; use #ifdef CONFIG_…")
        elif line.startswith("#else"):
            there.append(not there.pop())
        elif line.startswith("#endif"):
            there.pop()
        elif (match := CASE.match(line)) and all(there):
            names.append(match["name"])
    return names


def lacking(cases: Iterable[Case], suites: Mapping[str, Sequence[str]]) -> list[Case]:
    """A failure for each suite that did not run, and for each of its cases that did not."""
    ran = {case.name: {child.name for child in case.children} for case in cases}
    return [
        Case(f"the suite {suite} runs", passed=False, why="it did not")
        for suite in suites
        if suite not in ran
    ] + [
        Case(f"the suite {suite} runs {name}", passed=False, why="it did not")
        for suite, names in suites.items()
        for name in names
        if suite in ran and name not in ran[suite]
    ]


def any_failed(text: str) -> bool:
    """Does a line say so? The text need not be whole; what may fail does not count."""
    for raw in text.splitlines():
        match = RESULT.fullmatch(STAMP.sub("", raw.rstrip()))
        if match and match["not"] and not DIRECTIVE.match(match["rest"]):
            return True
    return False


def first_failure(cases: Iterable[Case]) -> Case | None:
    for case in cases:
        for leaf in case.leaves():
            if not leaf.passed:
                return leaf
    return None


def summary(cases: Iterable[Case]) -> Summary:
    """Count the leaves."""
    total = Summary()
    for case in cases:
        for leaf in case.leaves():
            total += Summary(
                passed=int(leaf.passed and not leaf.skipped),
                failed=int(not leaf.passed),
                skipped=int(leaf.skipped),
            )
    return total
