# SPDX-License-Identifier: GPL-2.0-or-later
"""The compact-fit library beside others: the paper's experiments, worst cases, traces."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from lab.compactfit import build, experiments, replays
from lab.compactfit.experiments import PARTIAL, Experiment, Load, Measured
from lab.compactfit.replays import Replays
from lab.guests import Kernels
from lab.results import Cell, Line, Outcome, Plot, Table

# no more lines in a plot than there are colours
SHOWN = ("cfm", "cfnm", "tlsf", "half_fit", "first_fit", "dlmalloc")
FILLED = ("cfm", "cfnm", "tlsf", "half_fit", "dlmalloc")
FILLED_K = (1, 9)
SIZES = (20, 100, 1000, 8000)  # bytes of the objects that the table of fragments is about
KIB = 1024
CALLS = ("malloc", "free", "realloc")
MOMENTS = {"mean": "mean", "sd": "sd", "p999": "p99.9", "max": "max"}

Titles = Mapping[str, str]  # by allocator


def allocators(_: Kernels) -> Outcome:
    """compact-fit beside other allocators: its paper's Fig. 6 to 8, and traces of real programs"""
    folder = build.build(build.BENCH)
    listed = build.output([str(folder / "bench"), "list"])
    known = [line.split("\t") for line in listed.splitlines()]
    titles = {name: title for name, _, title in known}
    bounded = [name for name, kind, _ in known if kind == "bounded"]
    others = [name for name, kind, _ in known if kind != "bounded"]
    timed = experiments.speed(folder)
    misses = {name: experiments.misses(folder, name) for name in ("cfm", "tlsf")}
    measured = experiments.run(folder, experiments.wanted(bounded, others))
    replayed = replays.run(folder, [*bounded, *others])
    return Outcome(
        [],
        [
            *(_costs(measured, titles, name) for name in ("incremental", "periodic")),
            *(_worst(measured, titles), _fragments(measured, titles), _crossover(measured)),
            _speed(timed, misses),
            *replay_tables(replayed, titles),
        ],
        [
            *(_growing_plot(measured, titles, *which) for which in GROWING),
            *(_fragments_plot(measured, titles), _crossover_plot(measured)),
            replay_plot(replayed, titles, SHOWN),
        ],
        {**values(measured), **speed_values(timed, misses), **replay_values(replayed)},
    )


def values(measured: Measured) -> dict[str, float]:
    """The figures of the experiments."""
    incremental = measured[Experiment("incremental", "cfm")]
    alloc = incremental["alloc"]["instructions"]
    still, moving = experiments.split(incremental["free"])
    partial = measured[Experiment("periodic", "cfm", PARTIAL)]
    fragments = measured[Experiment("fragmentation", "cfm")]
    blocks = measured[Experiment("incremental", "cfnm")]["alloc"]
    loop, word = _crossovers(measured)
    return {
        "compactfit-malloc-mean": statistics.mean(alloc),
        "compactfit-malloc-max": max(alloc),
        "compactfit-free-max": max(still),
        "compactfit-free-max-partial": max(experiments.split(partial["free"])[0]),
        "compactfit-free-moving-max": max(moving),
        "compactfit-payload": experiments.payload(fragments),
        "compactfit-usable-share": experiments.usable_share(fragments),
        "compactfit-reusable": experiments.reusable(fragments)[1],
        "compactfit-nonmoving-crossover": experiments.crossover(loop),
        "compactfit-nonmoving-crossover-word": experiments.crossover(word),
        "compactfit-nonmoving-malloc": experiments.per_block(blocks),
    }


# What operations cost


def _costs(measured: Measured, titles: Titles, name: str) -> Table:
    rows: list[list[Cell]] = []
    for experiment, numbers in measured.items():
        if experiment.name != name:
            continue
        alloc = numbers["alloc"]["instructions"]
        still, moving = experiments.split(numbers["free"])
        costs = [*_summary(alloc), *_summary(still), *_summary(moving)]
        rows.append([experiment.title(titles), *costs, numbers["refused"]])
    what = {"incremental": "Objects of growing size", "periodic": "Five periodic tasks"}
    columns = ["allocator"]
    columns += [
        f"{of}, {how}" for of in ("malloc", "free", "moving free") for how in ("mean", "max")
    ]
    return Table(
        f"{what[name]}, instructions",
        [*columns, "refused"],
        rows,
        "Copying not counted. Refused: allocations that failed; what they cost is left out.",
    )


def _summary(costs: list[int]) -> list[Cell]:
    return [round(statistics.mean(costs), 1), max(costs)] if costs else [None, None]


GROWING = (
    ("alloc", "Growing sizes, allocation (Fig. 6)"),
    ("free", "Growing sizes, deallocation (Fig. 6)"),
)


def _growing_plot(measured: Measured, titles: Titles, operation: str, title: str) -> Plot:
    lines = []
    for name in SHOWN:
        experiment = Experiment("incremental", name)
        series = measured[experiment][operation]
        pairs = zip(series["size"], series["instructions"], strict=True)
        points = [(float(size), float(cost)) for size, cost in pairs]
        lines.append(Line(experiment.title(titles), points))
    return Plot(title, "lines", "bytes of an object", "instructions", lines, log_y=True)


def _worst(measured: Measured, titles: Titles) -> Table:
    rows: list[list[Cell]] = []
    percents: list[float] = []
    for experiment, numbers in measured.items():
        if experiment.name == "worst":
            row: list[Cell] = [experiment.title(titles)]
            for operation in ("alloc", "free"):
                row += experiments.worst_of(numbers["patterns"], operation)
            refused = [ask["size"] or None for ask in numbers["refused"]]
            percents = percents or [round(ask["percent"]) for ask in numbers["refused"]]
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


# Time


def speed_values(
    timed: Mapping[Load, Mapping[str, float]], misses: Mapping[str, float]
) -> dict[str, float]:
    """The figures: the least favourable load of small objects, and misses of both."""
    return {
        "compactfit-time": max(numbers["ratio"] for numbers in timed.values()),
        "compactfit-time-few": timed[experiments.LOADS[0]]["ratio"],
        "compactfit-misses": misses["cfm"],
        "compactfit-misses-tlsf": misses["tlsf"],
    }


def _speed(timed: Mapping[Load, Mapping[str, float]], misses: Mapping[str, float]) -> Table:
    rows: list[list[Cell]] = [
        [str(load), numbers["cfm"], numbers["tlsf"], numbers["ratio"]]
        for load, numbers in timed.items()
    ]
    counted = ", ".join(f"{name} {count:.2f}" for name, count in misses.items())
    return Table(
        "A free and an allocation beside TLSF (our own), ns",
        ["load", "compact-fit", "TLSF", "ratio"],
        rows,
        "Copying is in it. The ratio is the median of those of turns of both in one run; the"
        " nanoseconds are this machine's. Misses of a first data cache of 32 KiB in a free and an"
        f" allocation, {experiments.MISSING}, simulated by cachegrind: {counted}.",
    )


# What is left of the memory


def _fragments(measured: Measured, titles: Titles) -> Table:
    rows: list[list[Cell]] = []
    for experiment, numbers in measured.items():
        if experiment.name == "fragmentation":
            size, percent = experiments.reusable(numbers)
            rows.append(
                [
                    *(experiment.title(titles), round(experiments.payload(numbers), 1)),
                    *(numbers["allocatable"][str(size)] for size in SIZES),
                    *(round(percent, 1), size, round(experiments.usable_share(numbers), 1)),
                ]
            )
    columns = ["allocator", "payload, %", *(f"of {size} B" for size in SIZES)]
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


def _fragments_plot(measured: Measured, titles: Titles) -> Plot:
    lines = []
    for experiment, numbers in measured.items():
        if experiment.name != "fragmentation" or experiment.allocator not in FILLED:
            continue
        if experiment.k in FILLED_K and not experiment.page and not experiment.block:
            had = numbers["allocatable"].items()
            points = [(float(size), float(count)) for size, count in had if count]
            lines.append(Line(experiment.title(titles), points))
    return Plot(
        "Objects to be had after a fifth was freed (Fig. 8)",
        "lines",
        "bytes of an object",
        "objects",
        lines,
        log_x=True,
        log_y=True,
    )


# Moving or not


def _crossovers(measured: Measured) -> tuple[dict[int, float], dict[int, float]]:
    """Instructions of a free by block-frame: the library's loop, and one instruction a word."""
    return (
        experiments.free_costs(measured),
        experiments.free_costs(measured, "bench", word=1),
    )


def _crossover(measured: Measured) -> Table:
    loop, word = _crossovers(measured)
    rows: list[list[Cell]] = [
        [f"non-moving, {block} B" if block else "moving", round(loop[block]), round(word[block])]
        for block in loop
    ]
    cheaper = (experiments.crossover(loop), experiments.crossover(word))
    rows.append(["non-moving is cheaper from, B", *cheaper])
    return Table(
        "Objects of growing size: instructions of a free, copying counted, mean",
        ["engine", "the library's loop", "one instruction a word"],
        rows,
        "Every second object is freed, as in the paper's Fig. 6(b), which finds 80 B. The library "
        "copies by a loop in C; a string instruction counts as one instruction a word.",
    )


def _crossover_plot(measured: Measured) -> Plot:
    lines = []
    loop, word = _crossovers(measured)
    for what, costs in (("the library's loop", loop), ("one instruction a word", word)):
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


# Traces of programs


def replay_tables(replayed: Replays, titles: Titles) -> list[Table]:
    tables = []
    for trace in dict.fromkeys(trace for trace, _ in replayed):
        by_title = {
            titles[name]: numbers for (of, name), numbers in replayed.items() if of == trace
        }
        tables += [_instructions(trace, by_title), _memory(trace, by_title)]
    return tables


def _instructions(trace: str, by_title: Mapping[str, Any]) -> Table:
    rows: list[list[Cell]] = []
    for title, numbers in by_title.items():
        row: list[Cell] = [title]
        for call in CALLS:
            row += [numbers[call][moment] if numbers[call] else None for moment in MOMENTS]
        rows.append(row)
    columns = [f"{call}, {name}" for call in CALLS for name in MOMENTS.values()]
    first = next(iter(by_title.values()))
    counted = sum(first[call]["count"] for call in CALLS if first[call])
    return Table(
        f"Trace of {trace}, instructions",
        ["allocator", *columns],
        rows,
        f"Of {counted:,} calls in {first['calls']:,}; p99.9 of a thousand at least. Copying by"
        " compact-fit is not counted. Compact-fit and the last three change the size of an object;"
        " for the others realloc is malloc, an uncounted copy, and free.",
    )


def _memory(trace: str, by_title: Mapping[str, Any]) -> Table:
    rows: list[list[Cell]] = []
    for title, numbers in by_title.items():
        ratio, largest = replays.needed(numbers), numbers["largest"]
        rows.append(
            [
                *(title, round(ratio, 3) if ratio else None),
                *(round(numbers["footprint"][when] / KIB) for when in ("peak", "last")),
                None if largest is None else round(largest / KIB),
                *(numbers["refused"], round(1e9 * numbers["seconds"] / numbers["calls"], 1)),
            ]
        )
    columns = ["allocator", "memory needed / peak", "footprint, KiB", "at the end, KiB"]
    columns += ["largest block, KiB", "refused", "ns a call"]
    peak = max(numbers["peak"] for numbers in by_title.values())
    return Table(
        f"Trace of {trace}, memory",
        columns,
        rows,
        f"Peak of live bytes: {peak / KIB:,.0f} KiB. Footprint:"
        " resident pages. Largest block: to be had at the end, in twice the peak, or in what is"
        " needed if that is more. Refused: requests larger than the allocator takes; they are left"
        " out of its peak too. ns: of the process, while others were replayed.",
    )


def replay_plot(replayed: Replays, titles: Titles, shown: Sequence[str]) -> Plot:
    groups = list(dict.fromkeys(trace for trace, _ in replayed))
    lines = []
    for name in shown:
        ratios = [replays.needed(replayed[trace, name]) for trace in groups]
        points = [(float(at), ratio) for at, ratio in enumerate(ratios) if ratio]
        if points:
            lines.append(Line(titles[name], points))
    title = "Memory that the traces need, of their peak"
    return Plot(title, "bars", "program", "ratio", lines, groups)


def replay_values(replayed: Replays) -> dict[str, float]:
    """The figure: cfm's worst; none if a trace did not work at all."""
    ratios = [replays.needed(numbers) for (_, name), numbers in replayed.items() if name == "cfm"]
    known = [ratio for ratio in ratios if ratio]
    return {"compactfit-traces": max(known)} if len(known) == len(ratios) else {}
