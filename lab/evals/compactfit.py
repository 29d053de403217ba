# SPDX-License-Identifier: GPL-2.0-or-later
"""The compact-fit library beside others: the paper's experiments, worst cases, traces."""

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
from lab.guests import Kernels
from lab.results import Cell, Line, Outcome, Plot, Table

SECONDS_A_RUN = 3
NEVER = 65535  # as K: never compact
PARTIAL = 3  # as K of the periodic tasks, the paper's
FRAGMENTATION_K = range(1, 10)
LARGEST = 8192  # bytes of a request that the figure of reusable memory asks for
PAGES = (32768, 65536)  # bytes of a page beside the default
BLOCKS = (64, 128)  # bytes of a block-frame beside the paper's
FRAME = 32  # the paper's
CROSSOVER = (32, 64, 128, 256, 512, 1024)  # bytes of a block-frame, for the paper's crossover
COPYING = "bench_copying"
# no more lines in a plot than there are colours
SHOWN = ("cfm", "cfnm", "tlsf", "half_fit", "first_fit", "dlmalloc")
FILLED = ("cfm", "cfnm", "tlsf", "half_fit", "dlmalloc")
FILLED_K = (1, 9)


@dataclass(frozen=True)
class Experiment:
    """One run of the benchmark."""

    name: str
    allocator: str
    k: int = 1
    page: int = 0  # bytes; 0: the default
    block: int = 0
    program: str = "bench"

    @property
    def arguments(self) -> list[str]:
        return [self.name, self.allocator, str(self.k), str(self.page), str(self.block)]

    def title(self, titles: dict[str, str]) -> str:
        """The allocator, and how it is configured."""
        parts = [titles[self.allocator]]
        if self.allocator == "cfnm":
            parts.append(f"{self.block or FRAME} B")
        if self.page:
            parts.append(f"pages of {self.page // 1024} KiB")
        if self.k == NEVER:
            parts.append("never compacting")
        elif self.k != 1:
            parts.append(f"K = {self.k}")
        return ", ".join(parts)


Said = dict[Experiment, Any]


def experiments(bounded: Sequence[str], others: Sequence[str]) -> list[Experiment]:
    """All runs: those that take longest first."""
    everyone = [*bounded, *others]
    found = [Experiment("worst", name) for name in everyone]
    found += [Experiment("incremental", name) for name in everyone]
    found += [Experiment("incremental", "cfnm", block=block) for block in BLOCKS]
    found += [Experiment("incremental", name, NEVER) for name in ("cfm", "cfnm")]
    found += [Experiment("periodic", name) for name in everyone]
    found += [Experiment("periodic", name, PARTIAL) for name in ("cfm", "cfnm")]
    found += [Experiment("fragmentation", "cfm", k) for k in FRAGMENTATION_K]
    found += [Experiment("fragmentation", name) for name in bounded if name != "cfm"]
    found += [Experiment("fragmentation", "cfm", page=page) for page in PAGES]
    found += [Experiment("fragmentation", "cfnm", block=block) for block in BLOCKS]
    for program in ("bench", COPYING):
        found += [deallocation(block, program) for block in (0, *CROSSOVER)]
    return found


def deallocation(block: int, program: str = COPYING) -> Experiment:
    """Frees of a non-moving heap with these block-frames; 0: of a moving one."""
    allocator = "cfnm" if block else "cfm"
    return Experiment("deallocation", allocator, block=block, program=program)


def evaluation(_: Kernels) -> Outcome:
    """compact-fit beside other allocators: its paper's Fig. 6 to 8, and traces of real programs"""
    folder = compactfit.build(compactfit.BENCH)
    listed = compactfit.output([str(folder / "bench"), "list"])
    known = [line.split("\t") for line in listed.splitlines()]
    titles = {name: title for name, _, title in known}
    bounded = [name for name, kind, _ in known if kind == "bounded"]
    others = [name for name, kind, _ in known if kind != "bounded"]
    said = _run_all(folder, experiments(bounded, others))
    replayed = traces.replay_all(folder, [*bounded, *others])
    return Outcome(
        [],
        [_costs(said, titles, name) for name in ("incremental", "periodic")]
        + [_worst(said, titles), _fragments(said, titles), _crossover(said)]
        + traces.tables(replayed, titles),
        [*_plots(said, titles), _crossover_plot(said), *traces.plots(replayed, titles, SHOWN)],
        {**values(said), **traces.values(replayed)},
    )


def _run_all(folder: Path, wanted: list[Experiment]) -> Said:
    said: Said = {}
    with (
        console.progress("compactfit", len(wanted), SECONDS_A_RUN * len(wanted)) as step,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        texts = pool.map(
            lambda one: compactfit.output([str(folder / one.program), *one.arguments]), wanted
        )
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
        alloc = found["alloc"]["instructions"]
        still, moving = split(found["free"])
        costs = [*_summary(alloc), *_summary(still), *_summary(moving)]
        rows.append([one.title(titles), *costs, found["refused"]])
    what = {"incremental": "Objects of growing size", "periodic": "Five periodic tasks"}
    columns = ["allocator"]
    columns += [
        f"{of}, {how}" for of in ("malloc", "free", "moving free") for how in ("mean", "max")
    ]
    return Table(
        f"{what[experiment]}, instructions",
        [*columns, "refused"],
        rows,
        "Copying not counted. Refused: allocations that failed; what they cost is left out.",
    )


def _summary(costs: list[int]) -> list[Cell]:
    return [round(statistics.mean(costs), 1), max(costs)] if costs else [None, None]


def _worst(said: Said, titles: dict[str, str]) -> Table:
    rows: list[list[Cell]] = []
    percents: list[float] = []
    for one, found in said.items():
        if one.name == "worst":
            row: list[Cell] = [one.title(titles)]
            for operation in ("alloc", "free"):
                row += worst_of(found["patterns"], operation)
            refused = [ask["size"] or None for ask in found["refused"]]
            percents = percents or [round(ask["percent"]) for ask in found["refused"]]
            rows.append([*row, *(refused or [None] * len(percents))])
    columns = ["allocator"]
    columns += [
        f"{of}, {what}" for of in ("malloc", "free") for what in ("usual", "worst", "in pattern")
    ]
    columns += [f"refused at {percent} % free, B" for percent in percents]
    return Table(
        "Worst cases, instructions",
        columns,
        rows,
        "usual: the median with random sizes. Patterns: compactfit/bench/worst.c; copying not "
        "counted. Refused: the smallest request up to 16 KiB that fails after all objects of 32 B "
        "that filled the memory but every n-th were freed; empty: none does.",
    )


def worst_of(patterns: dict[str, dict[str, list[int]]], operation: str) -> list[Cell]:
    """An operation's usual instructions, the most that any pattern finds, and that pattern."""
    costs = {name: max(found[operation]) for name, found in patterns.items() if found[operation]}
    dearest = max(costs, key=costs.__getitem__)
    return [statistics.median(patterns["usual"][operation]), costs[dearest], dearest]


def _fragments(said: Said, titles: dict[str, str]) -> Table:
    rows: list[list[Cell]] = []
    for one, found in said.items():
        if one.name == "fragmentation":
            at = [found["allocatable"][size] for size in ("20", "100", "1000", "8000")]
            size, percent = reusable(found)
            share = round(usable_share(found), 1)
            row = [one.title(titles), round(payload(found), 1), *at, round(percent, 1), size, share]
            rows.append(row)
    columns = ["allocator", "payload, %", *(f"of {size} B" for size in (20, 100, 1000, 8000))]
    return Table(
        "After a fifth of all objects was freed: objects to be had",
        [*columns, "reusable, %", "at B", "of empty memory, %"],
        rows,
        "Memory of 7 MiB filled with objects of 20 to 100 B; payload: their bytes, of the memory. "
        "Reusable: bytes to be had of those that were freed, at the size up to 8 KiB that is "
        "served worst. Of empty memory: objects to be had, of those that empty memory as large as "
        "the share that was freed would hold, at the size that is served worst by that measure. "
        "Objects are aligned to 8 B by First-fit, Best-fit, Half-fit and TLSF, to 16 by the "
        "allocators of crates.io, to 32 by o1heap, by compact-fit to what divides their size, 4 at "
        "least.",
    )


def payload(found: dict[str, Any]) -> float:
    return 100.0 * float(found["payload"]) / float(found["memory"])


def reusable(found: dict[str, Any]) -> tuple[int, float]:
    """The size that is served worst, and bytes to be had in it of what was freed, percent."""
    sizes = {int(size): count for size, count in found["allocatable"].items()}
    had = {size: size * count for size, count in sizes.items() if size <= LARGEST}
    worst = min(had, key=had.__getitem__)
    return worst, 100.0 * had[worst] / int(found["freed"])


def usable_share(found: dict[str, Any]) -> float:
    """Objects to be had, of those in as large a share of an empty memory; percent, worst size."""
    share = float(found["freed"]) / float(found["payload"])
    had = found["allocatable"]
    sizes = {size: count for size, count in found["empty"].items() if int(size) <= LARGEST}
    least: float = min(had[size] / (share * count) for size, count in sizes.items())
    return 100.0 * least


def free_costs(said: Said, program: str = COPYING, word: float = 0) -> dict[int, float]:
    """Instructions of a free, mean, by bytes of a block-frame; 0: the moving engine.

    Over those sizes that each heap has room for. `word`: of each word copied, where the program
    does not count them.
    """
    runs = {block: said[deallocation(block, program)]["free"] for block in (0, *CROSSOVER)}
    common = min(len(series["size"]) for series in runs.values())
    return {
        block: statistics.mean(series["instructions"][:common])
        + word / 4 * statistics.mean(series["copied"][:common])
        for block, series in runs.items()
    }


def crossover(costs: dict[int, float]) -> int:
    """The smallest block-frame from which on the non-moving engine's frees are cheaper.

    Twice the largest that was measured, if they are not even there.
    """
    dear = [block for block, cost in costs.items() if block and cost >= costs[0]]
    cheap = [block for block in CROSSOVER if block > max(dear, default=0)]
    return min(cheap, default=2 * CROSSOVER[-1])


def _crossover(said: Said) -> Table:
    loop, word = free_costs(said), free_costs(said, "bench", 1)
    rows: list[list[Cell]] = [
        [f"non-moving, {block} B" if block else "moving", round(loop[block]), round(word[block])]
        for block in loop
    ]
    rows.append(["non-moving is cheaper from, B", crossover(loop), crossover(word)])
    return Table(
        "Objects of growing size: instructions of a free, copying counted, mean",
        ["engine", "the library's loop", "one instruction a word"],
        rows,
        "Every second object is freed, as in the paper's Fig. 6(b), which finds 80 B. The library "
        "copies by a loop in C; a string instruction counts as one instruction a word.",
    )


def _crossover_plot(said: Said) -> Plot:
    lines = []
    for what, costs in (
        ("the library's loop", free_costs(said)),
        ("one instruction a word", free_costs(said, "bench", 1)),
    ):
        moving = costs.pop(0)
        lines.append(Line(f"non-moving, {what}", [(float(b), cost) for b, cost in costs.items()]))
        lines.append(Line(f"moving, {what}", [(float(b), moving) for b in costs]))
    return Plot(
        "Free, copying counted, by block-frame",
        "lines",
        "bytes of a block-frame",
        "instructions",
        lines,
        log_x=True,
        log_y=True,
    )


def per_block(series: dict[str, list[int]]) -> float:
    """Instructions that one block-frame more takes, of the paper's size."""
    blocks = [-(-size // FRAME) for size in series["size"]]
    return statistics.linear_regression(blocks, series["instructions"]).slope


def values(said: Said) -> dict[str, float]:
    """The figures."""
    incremental = said[Experiment("incremental", "cfm")]
    alloc = incremental["alloc"]["instructions"]
    still, moving = split(incremental["free"])
    partial = said[Experiment("periodic", "cfm", PARTIAL)]
    fragments = said[Experiment("fragmentation", "cfm")]
    return {
        "compactfit-malloc-mean": statistics.mean(alloc),
        "compactfit-malloc-max": max(alloc),
        "compactfit-free-max": max(still),
        "compactfit-free-max-partial": max(split(partial["free"])[0]),
        "compactfit-free-moving-max": max(moving),
        "compactfit-payload": payload(fragments),
        "compactfit-usable-share": usable_share(fragments),
        "compactfit-reusable": reusable(fragments)[1],
        "compactfit-nonmoving-crossover": crossover(free_costs(said)),
        "compactfit-nonmoving-crossover-word": crossover(free_costs(said, "bench", 1)),
        "compactfit-nonmoving-malloc": per_block(said[Experiment("incremental", "cfnm")]["alloc"]),
    }


def _plots(said: Said, titles: dict[str, str]) -> list[Plot]:
    plots = []
    for what, title in (
        ("alloc", "Growing sizes, allocation (Fig. 6)"),
        ("free", "Growing sizes, deallocation (Fig. 6)"),
    ):
        lines = []
        for name in SHOWN:
            series = said[Experiment("incremental", name)][what]
            pairs = zip(series["size"], series["instructions"], strict=True)
            points = [(float(size), float(cost)) for size, cost in pairs]
            lines.append(Line(Experiment("incremental", name).title(titles), points))
        plots.append(Plot(title, "lines", "bytes of an object", "instructions", lines, log_y=True))
    lines = []
    for one, found in said.items():
        if one.name != "fragmentation" or one.allocator not in FILLED or one.page or one.block:
            continue
        if one.k in FILLED_K:
            points = [(float(s), float(c)) for s, c in found["allocatable"].items() if c]
            lines.append(Line(one.title(titles), points))
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
