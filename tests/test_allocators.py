# SPDX-License-Identifier: GPL-2.0-or-later
"""What compact-fit's benchmark and the replays of traces come to."""

from typing import Any

import pytest

from lab.compactfit import experiments
from lab.compactfit.experiments import Experiment
from lab.evals import allocators


def test_operations_that_move_are_told_apart() -> None:
    series = {"instructions": [80, 140, 90], "copied": [0, 64, 0]}
    assert experiments.split(series) == ([80, 90], [140])


def frees(instructions: list[int], copied: int = 0) -> dict[str, list[int]]:
    sizes = [8 + 4 * number for number in range(len(instructions))]
    return {"size": sizes, "instructions": instructions, "copied": [copied] * len(sizes)}


def test_figures() -> None:
    costs = {"size": [8, 12], "instructions": [60, 70], "copied": [0, 0]}
    moving = {"size": [8, 12], "instructions": [80, 140], "copied": [0, 64]}
    slower = {"size": [32, 64, 90], "instructions": [100, 106, 112], "copied": [0, 0, 0]}
    fragments = {
        **{"memory": 1000, "payload": 820, "freed": 205},
        **{"allocatable": {"20": 10, "9000": 0}, "empty": {"20": 50, "9000": 1}},
    }
    measured = {
        Experiment("incremental", "cfm"): {"alloc": costs, "free": moving},
        Experiment("incremental", "cfnm"): {"alloc": slower, "free": moving},
        Experiment("fragmentation", "cfm"): fragments,
        Experiment("periodic", "cfm", experiments.PARTIAL): {"free": frees([90, 120])},
    }
    for block in (0, *experiments.CROSSOVER):
        measured[experiments.deallocation(block)] = {"free": frees([1000 - block])}
        # a moving one copies 800 bytes: 200 words
        measured[experiments.deallocation(block, "bench")] = {
            "free": frees([1032 - block if block else 800], copied=0 if block else 800)
        }
    assert allocators.values(measured) == {
        "compactfit-malloc-mean": 65,
        "compactfit-malloc-max": 70,
        "compactfit-free-max": 80,
        "compactfit-free-max-partial": 120,
        "compactfit-free-moving-max": 140,
        "compactfit-payload": 82,
        "compactfit-usable-share": 80,  # 10 of 12.5
        # at 20 B; more than 8 KB is not asked for
        "compactfit-reusable": pytest.approx(100 * 200 / 205),
        "compactfit-nonmoving-crossover": 32,
        "compactfit-nonmoving-crossover-word": 64,
        "compactfit-nonmoving-malloc": 6,
    }


def test_reusable_is_that_of_the_worst_size() -> None:
    fragments = {"freed": 1000, "allocatable": {"20": 45, "500": 1, "4000": 1, "16000": 0}}
    assert experiments.reusable(fragments) == (500, 50)


def test_crossover_is_where_cheaper_frees_begin_for_good() -> None:
    costs = {0: 500.0, 32: 490, 64: 510, 128: 400, 256: 300, 512: 250, 1024: 200}
    assert experiments.crossover(costs) == 128
    assert experiments.crossover(costs | {1024: 500.0}) > 1024


def test_frees_of_heaps_are_compared_over_the_same_sizes() -> None:
    measured = {
        experiments.deallocation(block, "bench"): {"free": frees([100, 100], copied=400)}
        for block in experiments.CROSSOVER
    } | {experiments.deallocation(0, "bench"): {"free": frees([10, 20, 9999], copied=8)}}
    costs = experiments.free_costs(measured, "bench", word=1)
    assert costs[0] == 17  # 15, and two words
    assert costs[64] == 200


def test_worst_of_all_patterns() -> None:
    patterns = {
        "usual": {"alloc": [50, 60, 90], "free": [40]},
        "holes": {"alloc": [9000, 10], "free": []},
    }
    assert experiments.worst_of(patterns, "alloc") == (60, 9000, "holes")
    assert experiments.worst_of(patterns, "free") == (40, 40, "usual")


def test_runs_are_named_by_what_is_configured() -> None:
    titles = {"cfm": "moving", "cfnm": "non-moving", "tlsf": "TLSF"}
    assert Experiment("worst", "tlsf").title(titles) == "TLSF"
    assert Experiment("worst", "cfnm").title(titles) == "non-moving, 32 B"
    changed = Experiment("periodic", "cfm", experiments.NEVER, page=32768)
    assert changed.title(titles) == "moving, pages of 32 KiB, never compacting"
    assert changed.arguments == ["periodic", "cfm", "65535", "32768", "0"]


def test_each_allocator_is_run_in_each_experiment() -> None:
    runs = experiments.wanted(["cfm", "cfnm", "tlsf"], ["glibc"])
    for name in ("worst", "periodic"):
        everyone = {run.allocator for run in runs if run.name == name}
        assert everyone == {"cfm", "cfnm", "tlsf", "glibc"}
    # who lives in the whole process has no memory to fill
    filled = [run for run in runs if run.name == "fragmentation"]
    assert {run.allocator for run in filled} == {"cfm", "cfnm", "tlsf"}
    default = [run.k for run in filled if run.allocator == "cfm" and not run.page]
    assert default == [*range(1, 10)]
    # no run is made twice
    assert len(set(runs)) == len(runs)


def replayed(least: int | None) -> dict[str, Any]:
    costs = {"count": 50, "mean": 60.5, "sd": 3.0, "p999": 90, "max": 91, "copied": 0}
    return {
        "calls": 1000,
        "refused": 2,
        "peak": 1 << 20,
        "least_memory": least,
        "largest": None if least is None else 2048,
        "footprint": {"peak": 4096, "last": 2048},
        "seconds": 0.0001,
        "malloc": costs,
        "free": costs,
        "realloc": None,
    }


def test_tables_of_replays() -> None:
    replays = {("git", "cfm"): replayed(3 << 19), ("git", "glibc"): replayed(None)}
    instructions, memory = allocators.replay_tables(replays, {"cfm": "moving", "glibc": "glibc"})
    assert instructions.rows[0] == ["moving", *[60.5, 3.0, 90, 91] * 2, *[None] * 4]
    assert "Of 100 calls in 1,000;" in instructions.note
    assert memory.rows == [
        ["moving", 1.5, 4, 2, 2, 2, 100.0],
        ["glibc", None, 4, 2, None, 2, 100.0],
    ]
    assert len(memory.columns) == len(memory.rows[0])
    assert len(instructions.columns) == len(instructions.rows[0])


def test_figure_and_plot_of_replays() -> None:
    replays = {("git", "cfm"): replayed(1 << 20), ("gcc", "cfm"): replayed(3 << 19)}
    assert allocators.replay_values(replays) == {"compactfit-traces": 1.5}
    plot = allocators.replay_plot(replays, {"cfm": "moving"}, ["cfm"])
    assert plot.groups == ["git", "gcc"]
    assert plot.lines[0].points == [(0.0, 1.0), (1.0, 1.5)]
    # a trace that no memory was enough for: there is no figure then
    assert allocators.replay_values({**replays, ("git", "cfm"): replayed(None)}) == {}
