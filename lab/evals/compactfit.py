# SPDX-License-Identifier: GPL-2.0-or-later
"""The compact-fit library beside other allocators: the paper's experiments, and traces."""

import json
import os
import statistics
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import compactfit, console
from lab.evals import traces
from lab.evals.guests import Kernels
from lab.results import Cell, Line, Outcome, Plot, Table

NEVER = 65535  # as K: never compact
PARTIAL = 3  # as K of the periodic tasks, the paper's
FRAGMENTATION_K = range(1, 10)
LARGEST = 8192  # bytes of a request that the figure of reusable memory asks for
SHOWN = ("cfm", "cfnm", "tlsf", "half_fit", "best_fit", "first_fit")


@dataclass(frozen=True)
class Experiment:
    """One run of the benchmark."""

    name: str
    allocator: str
    k: int

    @property
    def arguments(self) -> list[str]:
        return [self.name, self.allocator, str(self.k)]


Said = dict[Experiment, Any]


def experiments(bounded: Sequence[str], others: Sequence[str]) -> list[Experiment]:
    """All runs: those that take longest first."""
    everyone = [*bounded, *others]
    compact = [name for name in bounded if name.startswith("cf")]
    found = [Experiment("incremental", name, 1) for name in everyone]
    found += [Experiment("incremental", name, NEVER) for name in compact]
    found += [Experiment("periodic", name, 1) for name in everyone]
    found += [Experiment("periodic", name, PARTIAL) for name in compact]
    found += [Experiment("fragmentation", "cfm", k) for k in FRAGMENTATION_K]
    found += [Experiment("fragmentation", name, 1) for name in bounded if name != "cfm"]
    return found


def evaluation(_: Kernels) -> Outcome:
    """compact-fit beside other allocators: its paper's Fig. 6 to 8, and traces of real programs"""
    folder = compactfit.build(compactfit.BENCH)
    bench = folder / "bench"
    known = [line.split("\t") for line in compactfit.output([str(bench), "list"]).splitlines()]
    titles = {name: title for name, _, title in known}
    bounded = [name for name, kind, _ in known if kind == "bounded"]
    others = [name for name, kind, _ in known if kind != "bounded"]
    said = _run_all(bench, experiments(bounded, others))
    replayed = traces.replay_all(folder, [*bounded, *others])
    return Outcome(
        [],
        [_costs(said, titles, name) for name in ("incremental", "periodic")]
        + [_fragments(said, titles), *traces.tables(replayed, titles)],
        [*_plots(said, titles), *traces.plots(replayed, titles)],
        {**values(said), **traces.values(replayed)},
    )


def _run_all(bench: Path, wanted: list[Experiment]) -> Said:
    said: Said = {}
    with (
        console.progress("compactfit", len(wanted), 15 * len(wanted)) as step,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        texts = pool.map(lambda one: compactfit.output([str(bench), *one.arguments]), wanted)
        for number, (one, text) in enumerate(zip(wanted, texts, strict=True)):
            said[one] = json.loads(text)
            step.update(number + 1)
    return said


def split(series: dict[str, list[int]]) -> tuple[list[int], list[int]]:
    """Instructions of operations that moved nothing, and of those that moved an object."""
    pairs = list(zip(series["instructions"], series["copied"], strict=True))
    return [cost for cost, copied in pairs if not copied], [
        cost for cost, copied in pairs if copied
    ]


def _costs(said: Said, titles: dict[str, str], experiment: str) -> Table:
    rows: list[list[Cell]] = []
    for one, found in said.items():
        if one.name != experiment:
            continue
        name = titles[one.allocator]
        if one.k == NEVER:
            name += ", never compacting"
        elif one.k != 1:
            name += f", K = {one.k}"
        alloc = found["alloc"]["instructions"]
        still, moving = split(found["free"])
        rows.append([name, *_summary(alloc), *_summary(still), *_summary(moving)])
    what = {"incremental": "Objects of growing size", "periodic": "Five periodic tasks"}
    columns = ["allocator"]
    columns += [
        f"{of}, {how}" for of in ("malloc", "free", "moving free") for how in ("mean", "max")
    ]
    return Table(f"{what[experiment]}, instructions", columns, rows, "Copying not counted.")


def _summary(costs: list[int]) -> list[Cell]:
    return [round(statistics.mean(costs), 1), max(costs)] if costs else [None, None]


def _fragments(said: Said, titles: dict[str, str]) -> Table:
    rows: list[list[Cell]] = []
    for one, found in said.items():
        if one.name == "fragmentation":
            name = titles[one.allocator] + (f", K = {one.k}" if one.allocator == "cfm" else "")
            at = [found["allocatable"][size] for size in ("20", "100", "1000", "8000")]
            rows.append([name, round(payload(found), 1), *at])
    columns = ["allocator", "payload, %", *(f"of {size} B" for size in (20, 100, 1000, 8000))]
    return Table(
        "After a fifth of all objects was freed: objects to be had",
        columns,
        rows,
        "Memory of 7 MiB filled with objects of 20 to 100 B; payload: their bytes, of the memory.",
    )


def payload(found: dict[str, Any]) -> float:
    return 100.0 * float(found["payload"]) / float(found["memory"])


def reusable(found: dict[str, Any]) -> float:
    """Bytes to be had of what was freed, percent, at the size that is served worst."""
    sizes = {int(size): count for size, count in found["allocatable"].items()}
    worst: int = min(size * count for size, count in sizes.items() if size <= LARGEST)
    return 100.0 * worst / int(found["freed"])


def values(said: Said) -> dict[str, float]:
    """The figures."""
    incremental = said[Experiment("incremental", "cfm", 1)]
    alloc = incremental["alloc"]["instructions"]
    still, moving = split(incremental["free"])
    fragments = said[Experiment("fragmentation", "cfm", 1)]
    return {
        "compactfit-malloc-mean": statistics.mean(alloc),
        "compactfit-malloc-max": max(alloc),
        "compactfit-free-max": max(still),
        "compactfit-free-moving-max": max(moving),
        "compactfit-payload": payload(fragments),
        "compactfit-reusable": reusable(fragments),
    }


def _plots(said: Said, titles: dict[str, str]) -> list[Plot]:
    plots = []
    for what, x in (("alloc", "allocation"), ("free", "deallocation")):
        lines = []
        for name in SHOWN:
            series = said[Experiment("incremental", name, 1)][what]
            points = [(float(at), float(y)) for at, y in enumerate(series["instructions"])]
            lines.append(Line(titles[name], points))
        plots.append(
            Plot(f"Growing sizes, {x} (Fig. 6)", "lines", x, "instructions", lines, log_y=True)
        )
    lines = []
    for one, found in said.items():
        if one.name == "fragmentation" and (one.allocator in SHOWN or one.k > 1):
            label = titles[one.allocator] + (f", K = {one.k}" if one.allocator == "cfm" else "")
            if one.allocator == "cfm" and one.k not in (1, 3, 9):
                continue
            points = [(float(s), float(c)) for s, c in found["allocatable"].items() if c]
            lines.append(Line(label, points))
    plots.append(
        Plot(
            "Objects to be had after a fifth was freed (Fig. 8)",
            "lines",
            "bytes of an object",
            "objects",
            lines,
            log_x=True,
            log_y=True,
        )
    )
    return plots
