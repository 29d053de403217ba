# SPDX-License-Identifier: GPL-2.0-or-later
"""Results shown to people: on the terminal, as a page, as pictures."""

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table as RichTable

from lab import console, figures, plots, report, results
from lab.errors import LabError
from lab.results import Result, Table


def rich_table(table: Table) -> RichTable:
    view = RichTable(title=table.title, caption=table.note or None)
    for number, name in enumerate(table.columns):
        texts = any(isinstance(row[number], str) for row in table.rows)
        view.add_column(name, justify="left" if texts else "right")
    for row in table.rows:
        view.add_row(*(report.cell(value) for value in row))
    return view


def show(result: Result) -> None:
    """A result on the terminal: its tables, and those of its plots that a terminal can draw."""
    for table in result.tables:
        console.show(rich_table(table))
    for plot in result.plots:
        if plot.kind == "cdf":
            console.show("\n" + plots.text(plot))
    if result.figures:
        standings = figures.standings(figures.read(), {result.name: result})
        mine = [standing for standing in standings if standing.promise.eval == result.name]
        console.show(figures.table(mine))


def check_report(path: Path) -> None:
    """Refuse before the work what cannot be written after it."""
    results.check_place(path)
    if path.is_file() and not path.read_bytes().startswith(report.DOCTYPE.encode()):
        raise LabError(f"{path} is no page and would be lost: name another file for the report")


def write_report(path: Path, chosen: Sequence[Result]) -> None:
    """A report of these results, with the figures that they yield; only over another page."""
    check_report(path)
    by_name = {result.name: result for result in chosen}
    standings = [
        standing
        for standing in figures.standings(figures.read(), by_name)
        if standing.promise.eval in by_name
    ]
    results.write_file(path, report.html(chosen, standings, results.now()))


def write_pictures(folder: Path, chosen: Sequence[Result]) -> list[Path]:
    """The plots of these results, a file each."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, picture in report.pictures(chosen).items():
        results.write_file(folder / name, picture)
        written.append(folder / name)
    return written
