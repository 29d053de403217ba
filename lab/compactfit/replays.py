# SPDX-License-Identifier: GPL-2.0-or-later
"""The traces of the five programs, replayed on each allocator."""

import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lab import console
from lab.compactfit import build, programs

VARIANTS = ("cfm_wide", "cfnm_64", "cfnm_128")  # the experiments tell them apart
SECONDS_A_RECORDING = 3
SECONDS_A_REPLAY = 3

Replays = Mapping[tuple[str, str], Any]  # by trace and allocator


def run(folder: Path, allocators: Sequence[str]) -> Replays:
    """Record the programs, replay each trace on each allocator; `folder` is the benchmark's."""
    traces = _record()
    wanted = [(trace, name) for trace in traces for name in allocators if name not in VARIANTS]

    def replay(pair: tuple[str, str]) -> Any:
        trace, allocator = pair
        return json.loads(
            build.output([str(folder / "replay"), str(traces[trace]), allocator, "1"])
        )

    replays: dict[tuple[str, str], Any] = {}
    with (
        console.progress("replaying", len(wanted), SECONDS_A_REPLAY * len(wanted)) as step,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        for pair, numbers in zip(wanted, pool.map(replay, wanted), strict=True):
            replays[pair] = numbers
            step.update(len(replays))
    return replays


def _record() -> dict[str, Path]:
    names = list(programs.PROGRAMS)
    traces = {}
    with console.progress(
        "recording programs", len(names), SECONDS_A_RECORDING * len(names)
    ) as step:
        for name in names:
            traces[name] = programs.record(name)
            step.update(len(traces))
    return traces


def needed(numbers: Mapping[str, Any]) -> float | None:
    """The least memory in which nothing fails, of the peak of live bytes."""
    least: int | None = numbers["least_memory"]
    return None if least is None else least / int(numbers["peak"])
