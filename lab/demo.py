# SPDX-License-Identifier: GPL-2.0-or-later
"""`./gcma demo`: the main job in one command, in words, pictures and files."""

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table as RichTable

from lab import console, evals, figures, plots, report, results
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
        mine = [one for one in standings if one.promise.eval == result.name]
        console.show(figures.table(mine))


def write_report(path: Path, chosen: Sequence[Result]) -> None:
    """A report of these results, with the figures that they yield; only over another page."""
    if path.is_file() and not path.read_bytes().startswith(report.DOCTYPE.encode()):
        raise LabError(f"{path} is no page and would be lost: name another file for the report")
    by_name = {one.name: one for one in chosen}
    standings = [
        one for one in figures.standings(figures.read(), by_name) if one.promise.eval in by_name
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


def run(folder: Path) -> Result:
    """Take the photos, show and write them."""
    result = evals.run("photo")
    results.write_file(folder / "results.json", results.to_json(result))
    write_report(folder / "report.html", [result])
    return result
