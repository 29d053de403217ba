# SPDX-License-Identifier: GPL-2.0-or-later
"""figures.toml: what the project promises, held against what was measured."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from lab import paths
from lab.errors import LabError
from lab.results import Figure, Result

FILE = paths.REPO / "figures.toml"
SLACK = 0.02  # share by which a figure may be worse than before


@dataclass(frozen=True)
class Promise:
    """One entry of figures.toml."""

    name: str
    text: str
    unit: str
    eval: str
    better: str  # "lower" or "higher"
    must: float | None = None
    aim: float | None = None
    why: str = ""  # it misses, if it does
    optional: bool = False  # there may be nothing that it is about

    def reached(self, limit: float | None, value: float | None) -> bool | None:
        if limit is None or value is None:
            return None
        return value <= limit if self.better == "lower" else value >= limit

    def worse(self, value: float | None, before: float | None) -> bool:
        """Is it worse than before, by more than a share that is nobody's, or gone?"""
        if value is None or before is None:
            return before is not None
        change = value - before if self.better == "lower" else before - value
        return change > SLACK * abs(before)

    def judge(self, value: float | None, *, taken: bool = False) -> Figure:
        """The figure; if its evaluation was taken and has no value of what must be, that is a miss.

        The value as it is: a stored one is judged again.
        """
        holds = self.reached(self.must, value)
        if taken and value is None and self.must is not None and not self.optional:
            holds = False
        return Figure(self.name, value, self.unit, self.must, self.aim, holds)


def read(path: Path = FILE) -> list[Promise]:
    try:
        entries = tomllib.loads(path.read_text())
        promises = [Promise(name, **entry) for name, entry in entries.items()]
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise LabError(f"{path.name}: {error}") from None
    for promise in promises:
        if promise.better not in ("lower", "higher"):
            raise LabError(f"{path.name}: {promise.name}: better is 'lower' or 'higher'")
    return promises


def judged(name: str, values: Mapping[str, float], promises: Sequence[Promise]) -> list[Figure]:
    """The figures of one evaluation, in the order of the file."""
    mine = [promise for promise in promises if promise.eval == name]
    unknown = set(values) - {promise.name for promise in mine}
    if unknown:
        raise LabError(f"figures.toml knows no figure {', '.join(sorted(unknown))} of {name}")
    return [promise.judge(values.get(promise.name), taken=True) for promise in mine]


@dataclass(frozen=True)
class Standing:
    """A promise with the latest figure for it."""

    promise: Promise
    figure: Figure
    taken: str | None  # None: never
    kernel: str | None
    before: float | None = None  # in an earlier run that it is held against

    @property
    def worse(self) -> bool:
        return self.promise.worse(self.figure.value, self.before)


def earlier(path: Path) -> dict[str, float]:
    """The values of an earlier run, by figure: the file has what `gcma figures --json` printed."""
    try:
        entries = json.loads(path.read_text())
        return {each["name"]: each["value"] for each in entries if each["value"] is not None}
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError):
        raise LabError(f"{path} is not what `gcma figures --json` prints") from None


def standings(
    promises: Sequence[Promise],
    results: Mapping[str, Result],
    before: Mapping[str, float] | None = None,
) -> list[Standing]:
    before = before or {}
    latest = []
    for promise in promises:
        result = results.get(promise.eval)
        values = {figure.name: figure.value for figure in result.figures} if result else {}
        # older than the promise: not taken
        figure = promise.judge(values.get(promise.name), taken=promise.name in values)
        kernel = ", ".join(result.kernels) if result else None
        taken = result.taken if result else None
        latest.append(Standing(promise, figure, taken, kernel, before.get(promise.name)))
    return latest


def verdict(standing: Standing) -> str:
    if standing.figure.holds is False:
        return "FAILS"
    if standing.figure.value is None:
        return "not taken"
    if standing.promise.reached(standing.promise.aim, standing.figure.value):
        return "aim"
    return "holds" if standing.figure.holds else ""


def wording(standing: Standing) -> str:
    """What the figure is; of one that misses also why, as far as that is known."""
    missed = standing.figure.holds is False and standing.promise.why
    return standing.promise.text + (f". Why not: {standing.promise.why}" if missed else "")


def number(value: float | None) -> str:
    """Readable, and never more digits than were measured."""
    if value is None:
        return "-"
    if abs(value) >= 1000 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:,.4g}"


def table(standings: Sequence[Standing]) -> Table:
    view = Table(title="figures")
    view.add_column("figure")
    view.add_column("what", overflow="fold")
    compared = any(standing.before is not None for standing in standings)
    for name in ("value", *(["before"] if compared else []), "unit", "must", "aim", ""):
        view.add_column(name, justify="left" if name in ("unit", "") else "right")
    view.add_column("taken")
    view.add_column("kernel")
    for standing in standings:
        figure = standing.figure
        verdicts = (verdict(standing), "worse" if standing.worse else "")
        view.add_row(
            *(figure.name, wording(standing), number(figure.value)),
            *([number(standing.before)] if compared else []),
            *(figure.unit, number(figure.must), number(figure.aim)),
            ", ".join(filter(None, verdicts)),
            *((standing.taken or "never").replace("+00:00", "Z"), standing.kernel or "-"),
        )
    return view
