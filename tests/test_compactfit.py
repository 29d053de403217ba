# SPDX-License-Identifier: GPL-2.0-or-later
"""How the compact-fit library's tests are judged."""

from lab import compactfit
from lab.evals import compactfit as evals


def test_enough_branches() -> None:
    assert compactfit.judge_coverage(95.0).passed


def test_too_few_branches() -> None:
    case = compactfit.judge_coverage(94.9)
    assert not case.passed
    assert case.why == "they take 94.9 %"


def test_operations_that_move_are_told_apart() -> None:
    series = {"instructions": [80, 140, 90], "copied": [0, 64, 0]}
    assert evals.split(series) == ([80, 90], [140])


def test_figures() -> None:
    costs = {"size": [8, 12], "instructions": [60, 70], "copied": [0, 0]}
    frees = {"size": [8, 12], "instructions": [80, 140], "copied": [0, 64]}
    found = {"memory": 1000, "payload": 820, "freed": 200, "allocatable": {"20": 10, "9000": 0}}
    said = {
        evals.Experiment("incremental", "cfm", 1): {"alloc": costs, "free": frees},
        evals.Experiment("fragmentation", "cfm", 1): found,
    }
    assert evals.values(said) == {
        "compactfit-malloc-mean": 65,
        "compactfit-malloc-max": 70,
        "compactfit-free-max": 80,
        "compactfit-free-moving-max": 140,
        "compactfit-payload": 82,
        "compactfit-reusable": 100,  # at 20 B; more than 8 KB is not asked for
    }


def test_each_allocator_is_run_in_each_experiment() -> None:
    runs = evals.experiments(["cfm", "tlsf"], ["glibc"])
    assert {one.allocator for one in runs if one.name == "periodic"} == {"cfm", "tlsf", "glibc"}
    # who lives in the whole process has no memory to fill
    assert {one.allocator for one in runs if one.name == "fragmentation"} == {"cfm", "tlsf"}
    assert [one.k for one in runs if one.name == "fragmentation" and one.allocator == "cfm"] == [
        *range(1, 10)
    ]


def test_replays_are_judged() -> None:
    peak = 100 * compactfit.SMALL + 600 * (compactfit.SMALL // 3)
    costs = {"mean": 60.0}
    found = {
        "peak": peak,
        "calls": compactfit.SMALL * 11 // 6,
        "failed": 0,
        "refused": 0,
        "least_memory": peak * 5 // 4,
        "footprint": {"peak": peak},
        **dict.fromkeys(("malloc", "free", "realloc"), costs),
    }
    assert compactfit.judge_replay("replay", found).passed
    assert compactfit.judge_replay("replay", {**found, "least_memory": None}).passed
    for wrong in ({"peak": 1}, {"least_memory": peak - 1}, {"failed": 1}, {"free": {"mean": 0}}):
        assert not compactfit.judge_replay("replay", {**found, **wrong}).passed
