# SPDX-License-Identifier: GPL-2.0-or-later
"""How the compact-fit library's tests are judged."""

from pathlib import Path

import pytest

from lab import compactfit
from lab.evals import compactfit as evals


def test_enough_branches() -> None:
    assert compactfit.judge_coverage(95.0).passed


def test_too_few_branches() -> None:
    case = compactfit.judge_coverage(94.9)
    assert not case.passed
    assert case.why == "they take 94.9 %"


def test_what_cargo_prints() -> None:
    text = """
running 3 tests
test pins ... ok
test src/lib.rs - Heap (line 151) - compile fail ... FAILED
test slow ... ignored, takes hours

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out
"""
    pins, fails, slow = compactfit.cargo_cases(text)
    assert pins.passed and not pins.skipped
    assert not fails.passed
    assert slow.skipped


def test_operations_that_move_are_told_apart() -> None:
    series = {"instructions": [80, 140, 90], "copied": [0, 64, 0]}
    assert evals.split(series) == ([80, 90], [140])


def frees(instructions: list[int], copied: int = 0) -> dict[str, list[int]]:
    sizes = [8 + 4 * number for number in range(len(instructions))]
    return {"size": sizes, "instructions": instructions, "copied": [copied] * len(sizes)}


def test_figures() -> None:
    costs = {"size": [8, 12], "instructions": [60, 70], "copied": [0, 0]}
    moving = {"size": [8, 12], "instructions": [80, 140], "copied": [0, 64]}
    slower = {"size": [32, 64, 90], "instructions": [100, 106, 112], "copied": [0, 0, 0]}
    found = {
        **{"memory": 1000, "payload": 820, "freed": 205},
        **{"allocatable": {"20": 10, "9000": 0}, "empty": {"20": 50, "9000": 1}},
    }
    said = {
        evals.Experiment("incremental", "cfm"): {"alloc": costs, "free": moving},
        evals.Experiment("incremental", "cfnm"): {"alloc": slower, "free": moving},
        evals.Experiment("fragmentation", "cfm"): found,
        evals.Experiment("periodic", "cfm", evals.PARTIAL): {"free": frees([90, 120])},
    }
    for block in (0, *evals.CROSSOVER):
        said[evals.deallocation(block)] = {"free": frees([1000 - block])}
        # a moving one copies 800 bytes: 200 words
        said[evals.deallocation(block, "bench")] = {
            "free": frees([1032 - block if block else 800], copied=0 if block else 800)
        }
    assert evals.values(said) == {
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
    found = {"freed": 1000, "allocatable": {"20": 45, "500": 1, "4000": 1, "16000": 0}}
    assert evals.reusable(found) == (500, 50)


def test_crossover_is_where_cheaper_frees_begin_for_good() -> None:
    costs = {0: 500.0, 32: 490, 64: 510, 128: 400, 256: 300, 512: 250, 1024: 200}
    assert evals.crossover(costs) == 128
    assert evals.crossover(costs | {1024: 500.0}) > 1024


def test_frees_of_heaps_are_compared_over_the_same_sizes() -> None:
    said = {
        evals.deallocation(block, "bench"): {"free": frees([100, 100], copied=400)}
        for block in evals.CROSSOVER
    } | {evals.deallocation(0, "bench"): {"free": frees([10, 20, 9999], copied=8)}}
    costs = evals.free_costs(said, "bench", word=1)
    assert costs[0] == 17  # 15, and two words
    assert costs[64] == 200


def test_worst_of_all_patterns() -> None:
    patterns = {
        "usual": {"alloc": [50, 60, 90], "free": [40]},
        "holes": {"alloc": [9000, 10], "free": []},
    }
    assert evals.worst_of(patterns, "alloc") == [60, 9000, "holes"]
    assert evals.worst_of(patterns, "free") == [40, 40, "usual"]


def test_runs_are_named_by_what_is_configured() -> None:
    titles = {"cfm": "moving", "cfnm": "non-moving", "tlsf": "TLSF"}
    assert evals.Experiment("worst", "tlsf").title(titles) == "TLSF"
    assert evals.Experiment("worst", "cfnm").title(titles) == "non-moving, 32 B"
    one = evals.Experiment("periodic", "cfm", evals.NEVER, page=32768)
    assert one.title(titles) == "moving, pages of 32 KiB, never compacting"
    assert one.arguments == ["periodic", "cfm", "65535", "32768", "0"]


def test_each_allocator_is_run_in_each_experiment() -> None:
    runs = evals.experiments(["cfm", "cfnm", "tlsf"], ["glibc"])
    for name in ("worst", "periodic"):
        everyone = {one.allocator for one in runs if one.name == name}
        assert everyone == {"cfm", "cfnm", "tlsf", "glibc"}
    # who lives in the whole process has no memory to fill
    filled = [one for one in runs if one.name == "fragmentation"]
    assert {one.allocator for one in filled} == {"cfm", "cfnm", "tlsf"}
    default = [one.k for one in filled if one.allocator == "cfm" and not one.page]
    assert default == [*range(1, 10)]
    # no run is made twice
    assert len(set(runs)) == len(runs)


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


def test_what_hangs_is_ended(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo ok 1 begun; exec sleep 60"]
    answer = compactfit._command(command, tmp_path, limit=0.2)
    assert answer.returncode == compactfit.TIMED_OUT
    assert answer.stdout == "ok 1 begun\n"
    assert "did not end" in answer.stderr


def test_build_of_another_clone_is_not_of_here(tmp_path: Path) -> None:
    cached = tmp_path / "CMakeCache.txt"
    assert not compactfit._is_of_here(tmp_path)
    cached.write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere/compactfit\n")
    assert not compactfit._is_of_here(tmp_path)
    cached.write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={compactfit.SOURCE}\n")
    assert compactfit._is_of_here(tmp_path)
