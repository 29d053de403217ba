# SPDX-License-Identifier: GPL-2.0-or-later
"""What an evaluation leaves behind: docs/results.md describes the JSON.

The latest result of each evaluation is kept in the cache folder, results/NAME.json.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab import paths
from lab.errors import LabError

SCHEMA = 1
Cell = str | float | None


@dataclass(frozen=True)
class KernelId:
    """Which kernel it was, exactly."""

    release: str
    flavour: str
    config_sha256: str
    series_sha256: str  # of the patches and files that this project adds


@dataclass(frozen=True)
class Run:
    """One guest."""

    name: str  # unique in its result
    mode: str  # "exact" or "system"
    kernel: KernelId
    machine: Mapping[str, Any]  # the fields of lab.machine.Machine
    command: list[str]  # QEMU's or virtme-ng's, the kernel's arguments among them
    seed: int
    seconds: float  # wall clock
    samples: Mapping[str, Sequence[float]] = field(default_factory=dict)
    counters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Rows below a title; numbers stay numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


@dataclass(frozen=True)
class Line:
    """One series of a plot."""

    label: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Plot:
    """A picture, described; lab/plots.py draws it."""

    title: str
    kind: str  # "cdf" (steps, y is a share), "lines", "points" or "bars" (x counts the groups)
    x: str
    y: str
    lines: Sequence[Line]
    groups: Sequence[str] = ()  # names of the groups of bars
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Figure:
    """One number that the project promises, as measured."""

    name: str
    value: float | None
    unit: str
    must: float | None
    aim: float | None
    holds: bool | None  # None: nothing is asked, or nothing was measured


@dataclass(frozen=True)
class Outcome:
    """What an evaluation found out; its figures still without their limits."""

    runs: Sequence[Run]
    tables: Sequence[Table]
    plots: Sequence[Plot] = ()
    values: Mapping[str, float] = field(default_factory=dict)  # figure -> value


@dataclass(frozen=True)
class Result:
    """An outcome with its name, date and judged figures: the file."""

    schema: int
    name: str
    title: str
    taken: str  # UTC, ISO 8601
    # what it was taken by and on: the same where two results may be compared
    host: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    runs: Sequence[Any]
    tables: Sequence[Table]
    plots: Sequence[Plot]
    figures: Sequence[Figure]

    @property
    def kernels(self) -> list[str]:
        """The kernels of the runs: release and the beginning of the series' digest."""
        ids = {(run["kernel"]["release"], run["kernel"]["series_sha256"][:8]) for run in self.runs}
        return [" ".join(words) for words in sorted(ids)]


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def make(
    name: str,
    title: str,
    outcome: Outcome,
    figures: Sequence[Figure],
    host: Mapping[str, str] | None = None,
) -> Result:
    runs = [asdict(run) for run in outcome.runs]
    # through JSON once, so that a fresh result and a stored one are the same thing
    made = Result(
        *(SCHEMA, name, title, now(), runs, outcome.tables, outcome.plots, figures),
        host=host or {},
    )
    return parse(to_json(made))


def to_json(result: Result) -> str:
    return json.dumps(asdict(result), indent=1, default=str) + "\n"


def parse(text: str) -> Result:
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise LabError(f"this is not a result: {error}") from None
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise LabError(f"this is not a result of schema {SCHEMA}")
    try:
        raw["tables"] = [Table(**table) for table in raw["tables"]]
        raw["plots"] = [
            Plot(**{**plot, "lines": [Line(**line) for line in plot["lines"]]})
            for plot in raw["plots"]
        ]
        raw["figures"] = [Figure(**figure) for figure in raw["figures"]]
        return Result(**raw)
    except (KeyError, TypeError) as error:
        raise LabError(f"this is not a result: {error}") from None


def write_file(path: Path, text: str) -> None:
    """All of it or nothing."""
    fresh = path.with_name(path.name + ".new")
    try:
        fresh.write_text(text)
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise LabError(f"cannot write {path}: {error.strerror}") from None


def check_place(path: Path) -> None:
    """Refuse before the work what `write_file()` would refuse after it."""
    if path.is_dir():
        raise LabError(f"cannot write {path}: it is a folder")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise LabError(f"cannot write {path}: is there a folder {path.parent} that you may write?")


def folder() -> Path:
    path = paths.cache() / "results"
    path.mkdir(exist_ok=True)
    return path


def save(result: Result) -> None:
    write_file(folder() / f"{result.name}.json", to_json(result))


def load(name: str) -> Result | None:
    """The latest result of an evaluation, if there is one."""
    path = folder() / f"{name}.json"
    if not path.exists():
        return None
    try:
        return parse(path.read_text(errors="replace"))
    except LabError as error:
        raise LabError(f"{path}: {error.message}: remove it, or take it afresh") from None
