# SPDX-License-Identifier: GPL-2.0-or-later
"""The benchmark's experiments, those of the paper among them, and what their numbers come to."""

import json
import os
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import console
from lab.compactfit import build

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

    def title(self, titles: Mapping[str, str]) -> str:
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


Measured = Mapping[Experiment, Any]  # what the benchmark prints, read


def wanted(bounded: Sequence[str], others: Sequence[str]) -> list[Experiment]:
    """All runs: those that take longest first."""
    everyone = [*bounded, *others]
    runs = [Experiment("worst", name) for name in everyone]
    runs += [Experiment("incremental", name) for name in everyone]
    runs += [Experiment("incremental", "cfnm", block=block) for block in BLOCKS]
    runs += [Experiment("incremental", name, NEVER) for name in ("cfm", "cfnm")]
    runs += [Experiment("periodic", name) for name in everyone]
    runs += [Experiment("periodic", name, PARTIAL) for name in ("cfm", "cfnm")]
    runs += [Experiment("fragmentation", "cfm", k) for k in FRAGMENTATION_K]
    runs += [Experiment("fragmentation", name) for name in bounded if name != "cfm"]
    runs += [Experiment("fragmentation", "cfm", page=page) for page in PAGES]
    runs += [Experiment("fragmentation", "cfnm", block=block) for block in BLOCKS]
    for program in ("bench", COPYING):
        runs += [deallocation(block, program) for block in (0, *CROSSOVER)]
    return runs


def deallocation(block: int, program: str = COPYING) -> Experiment:
    """Frees of a non-moving heap with these block-frames; 0: of a moving one."""
    allocator = "cfnm" if block else "cfm"
    return Experiment("deallocation", allocator, block=block, program=program)


def run(folder: Path, experiments: Sequence[Experiment]) -> Measured:
    """Run them all; `folder` is the benchmark's."""
    measured: dict[Experiment, Any] = {}
    with (
        console.progress("compactfit", len(experiments), SECONDS_A_RUN * len(experiments)) as step,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        texts = pool.map(
            lambda experiment: build.output(
                [str(folder / experiment.program), *experiment.arguments]
            ),
            experiments,
        )
        for experiment, text in zip(experiments, texts, strict=True):
            measured[experiment] = json.loads(text)
            step.update(len(measured))
    return measured


# Time and cache misses beside TLSF


@dataclass(frozen=True)
class Load:
    """Objects of random sizes, of which random ones are freed and allocated again."""

    objects: int
    least: int  # bytes
    most: int

    @property
    def arguments(self) -> list[str]:
        return [str(self.objects), str(self.least), str(self.most)]

    def __str__(self) -> str:
        return f"{self.objects:,} objects of {self.least:,} to {self.most:,} B"


LOADS = (Load(5_000, 20, 100), Load(1_000_000, 20, 100), Load(20_000, 500, 4000))
MISSING = Load(20_000, 20, 100)  # of which cachegrind counts the misses
PAIRS = 100_000  # frees and allocations that it counts
CACHES = ("--D1=32768,8,64", "--LL=8388608,16,64")  # bytes, ways, bytes of a line


def speed(folder: Path) -> dict[Load, Mapping[str, float]]:
    """Of each load, one after the other: nanoseconds of both, and their ratio in one run."""
    program = str(folder / "speed")
    return {load: json.loads(build.output([program, *load.arguments])) for load in LOADS}


def misses(folder: Path, allocator: str) -> float:
    """Misses of the first data cache in a free and an allocation, as cachegrind simulates it."""
    few, many = (_misses(folder, allocator, pairs) for pairs in (0, PAIRS))
    return (many - few) / PAIRS


def _misses(folder: Path, allocator: str, pairs: int) -> int:
    written = folder / f"cachegrind.{allocator}.{pairs}"
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", *CACHES]
    command += [f"--cachegrind-out-file={written}", str(folder / "speed")]
    build.output([*command, *MISSING.arguments, allocator, str(pairs)])
    lines = written.read_text().splitlines()
    (events,) = (line.split()[1:] for line in lines if line.startswith("events:"))
    (summary,) = (line.split()[1:] for line in lines if line.startswith("summary:"))
    counts = {name: int(count) for name, count in zip(events, summary, strict=True)}
    return counts["D1mr"] + counts["D1mw"]


def split(series: Mapping[str, list[int]]) -> tuple[list[int], list[int]]:
    """Instructions of operations that moved nothing, and of those that moved an object."""
    pairs = list(zip(series["instructions"], series["copied"], strict=True))
    return [cost for cost, copied in pairs if not copied], [
        cost for cost, copied in pairs if copied
    ]


def worst_of(
    patterns: Mapping[str, Mapping[str, list[int]]], operation: str
) -> tuple[float, int, str]:
    """An operation's usual instructions, the most that any pattern finds, and that pattern."""
    costs = {name: max(of[operation]) for name, of in patterns.items() if of[operation]}
    dearest = max(costs, key=costs.__getitem__)
    return statistics.median(patterns["usual"][operation]), costs[dearest], dearest


def payload(fragments: Mapping[str, Any]) -> float:
    """Bytes of the objects that filled the memory, of the memory, percent."""
    return 100.0 * float(fragments["payload"]) / float(fragments["memory"])


def reusable(fragments: Mapping[str, Any]) -> tuple[int, float]:
    """The size that is served worst, and bytes to be had in it of what was freed, percent."""
    sizes = {int(size): count for size, count in fragments["allocatable"].items()}
    had = {size: size * count for size, count in sizes.items() if size <= LARGEST}
    worst = min(had, key=had.__getitem__)
    return worst, 100.0 * had[worst] / int(fragments["freed"])


def usable_share(fragments: Mapping[str, Any]) -> float:
    """Objects to be had, of those in as large a share of an empty memory; percent, worst size."""
    share = float(fragments["freed"]) / float(fragments["payload"])
    had = fragments["allocatable"]
    sizes = {size: count for size, count in fragments["empty"].items() if int(size) <= LARGEST}
    least: float = min(had[size] / (share * count) for size, count in sizes.items())
    return 100.0 * least


def free_costs(measured: Measured, program: str = COPYING, word: float = 0) -> dict[int, float]:
    """Instructions of a free, mean, by bytes of a block-frame; 0: the moving engine.

    Over those sizes that each heap has room for. `word`: of each word copied, where the program
    does not count them.
    """
    runs = {block: measured[deallocation(block, program)]["free"] for block in (0, *CROSSOVER)}
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


def per_block(series: Mapping[str, list[int]]) -> float:
    """Instructions that one block-frame more takes, of the paper's size."""
    blocks = [-(-size // FRAME) for size in series["size"]]
    return statistics.linear_regression(blocks, series["instructions"]).slope
