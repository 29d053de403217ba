# SPDX-License-Identifier: GPL-2.0-or-later
"""The allocations of real programs, recorded on this machine and replayed on each allocator."""

import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lab import compactfit, console, traces
from lab.results import Cell, Line, Plot, Table

VARIANTS = ("cfm_wide", "cfnm_64", "cfnm_128")  # the other experiments tell them apart
KIB = 1024
SECONDS_A_REPLAY = 3
CALLS = ("malloc", "free", "realloc")
MOMENTS = ("mean", "sd", "p999", "max")

Replays = Mapping[tuple[str, str], Any]  # by trace and allocator


def replay_all(folder: Path, allocators: Sequence[str]) -> Replays:
    """Record the programs, replay each trace on each allocator; `folder` is the benchmark's."""
    with console.progress(
        "recording programs", len(traces.WORKLOADS), 3 * len(traces.WORKLOADS)
    ) as step:
        recorded = {}
        for number, name in enumerate(traces.WORKLOADS):
            recorded[name] = traces.record_workload(name)
            step.update(number + 1)
    wanted = [(trace, name) for trace in recorded for name in allocators if name not in VARIANTS]

    def replay(one: tuple[str, str]) -> Any:
        trace, allocator = one
        command = [str(folder / "replay"), str(recorded[trace]), allocator, "1"]
        return json.loads(compactfit.output(command))

    said: dict[tuple[str, str], Any] = {}
    with (
        console.progress("replaying", len(wanted), SECONDS_A_REPLAY * len(wanted)) as step,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        for number, (one, found) in enumerate(zip(wanted, pool.map(replay, wanted), strict=True)):
            said[one] = found
            step.update(number + 1)
    return said


def tables(said: Replays, titles: Mapping[str, str]) -> list[Table]:
    found = []
    for trace in dict.fromkeys(trace for trace, _ in said):
        mine = [(titles[name], one) for (of, name), one in said.items() if of == trace]
        found += [_instructions(trace, mine), _memory(trace, mine)]
    return found


def _instructions(trace: str, mine: Sequence[tuple[str, Any]]) -> Table:
    rows: list[list[Cell]] = []
    for title, one in mine:
        row: list[Cell] = [title]
        for call in CALLS:
            row += [one[call][key] if one[call] else None for key in MOMENTS]
        rows.append(row)
    names = ("mean", "sd", "p99.9", "max")
    columns = [f"{call}, {name}" for call in CALLS for name in names]
    counted = sum(mine[0][1][call]["count"] for call in CALLS if mine[0][1][call])
    return Table(
        f"Trace of {trace}, instructions",
        ["allocator", *columns],
        rows,
        f"Of {counted:,} calls in {mine[0][1]['calls']:,}; p99.9 of a thousand at least. Copying by"
        " compact-fit is not counted. Compact-fit and the last three change the size of an object;"
        " for the others realloc is malloc, an uncounted copy, and free.",
    )


def _memory(trace: str, mine: Sequence[tuple[str, Any]]) -> Table:
    rows: list[list[Cell]] = []
    for title, one in mine:
        ratio = needed(one)
        rows.append(
            [
                *(title, round(ratio, 3) if ratio else None),
                *(round(one["footprint"][when] / KIB) for when in ("peak", "last")),
                None if one["largest"] is None else round(one["largest"] / KIB),
                *(one["refused"], round(1e9 * one["seconds"] / one["calls"], 1)),
            ]
        )
    columns = ["allocator", "memory needed / peak", "footprint, KiB", "at the end, KiB"]
    columns += ["largest block, KiB", "refused", "ns a call"]
    return Table(
        f"Trace of {trace}, memory",
        columns,
        rows,
        f"Peak of live bytes: {max(one['peak'] for _, one in mine) / KIB:,.0f} KiB. Footprint:"
        " resident pages. Largest block: to be had at the end, in twice the peak, or in what is"
        " needed if that is more. Refused: requests larger than the allocator takes; they are left"
        " out of its peak too. ns: of the process, while others were replayed.",
    )


def needed(one: Mapping[str, Any]) -> float | None:
    """The least memory in which nothing fails, of the peak of live bytes."""
    least: int | None = one["least_memory"]
    return None if least is None else least / int(one["peak"])


def plots(said: Replays, titles: Mapping[str, str], shown: Sequence[str]) -> list[Plot]:
    groups = list(dict.fromkeys(trace for trace, _ in said))
    lines = []
    for name in shown:
        ratios = [(float(at), needed(said[trace, name])) for at, trace in enumerate(groups)]
        points = [(at, ratio) for at, ratio in ratios if ratio]
        if points:
            lines.append(Line(titles[name], points))
    title = "Memory that the traces need, of their peak"
    return [Plot(title, "bars", "program", "ratio", lines, groups)]


def values(said: Replays) -> dict[str, float]:
    """The figure: cfm's worst; none if a trace did not work at all."""
    ratios = [needed(one) for (_, name), one in said.items() if name == "cfm"]
    known = [ratio for ratio in ratios if ratio]
    return {"compactfit-traces": max(known)} if len(known) == len(ratios) else {}
