# SPDX-License-Identifier: GPL-2.0-or-later
"""Evaluations, as far as they are arithmetic."""

import ast
import random
import time
from pathlib import Path
from typing import cast

import pytest

from lab import evals, figures, guests, paths, process, source, tenants
from lab.build import Kernel
from lab.errors import LabError
from lab.evals import size, tenancy, zsmalloc
from lab.machine import Machine
from lab.measure import Event


def brute_force(steps: tuple[tuple[bool, int], ...], frames: int, held: frozenset[int]) -> int:
    """The fewest reads of any way to keep evicted pages."""
    if not steps:
        return 0
    (added, page), rest = steps[0], steps[1:]
    if added:
        return (page not in held) + brute_force(rest, frames, held - {page})
    keep = held | {page}
    if len(keep) <= frames:
        return brute_force(rest, frames, keep)
    return min(brute_force(rest, frames, keep - {victim}) for victim in keep)


def random_steps(seed: int) -> tuple[tuple[bool, int], ...]:
    """Pages come and go; none comes twice without having gone."""
    dice = random.Random(seed)  # noqa: S311
    resident: set[int] = set()
    steps = []
    for _ in range(18):
        page = dice.randrange(6)
        steps.append((page not in resident, page))
        resident ^= {page}
    return tuple(steps)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("frames", [0, 1, 2, 3])
def test_belady_is_the_optimum(seed: int, frames: int) -> None:
    steps = random_steps(seed)
    best = tenancy.belady(tenancy.Trace(steps), frames)
    assert best == brute_force(steps, frames, frozenset())


def test_belady_counts_from_the_mark() -> None:
    trace = tenancy.read_trace("+a\n-a\n!\n+a\n+b\nnoise\n")
    assert trace.steps == [(True, 10), (False, 10), None, (True, 10), (True, 11)]
    assert tenancy.belady(trace, 0) == 2
    assert tenancy.belady(trace, 1) == 1


@pytest.mark.parametrize("why", [LabError("why"), KeyboardInterrupt("why")])
def test_no_guest_outlives_an_error_or_an_interrupt(
    why: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boot(guest: guests.Guest) -> guests.Output:
        if guest.name == "fails":
            time.sleep(0.3)  # the others have begun
            raise why
        with process.started(["sleep", "600"]) as child:
            child.wait()
        raise LabError("killed")

    monkeypatch.setattr(guests, "_run", boot)
    monkeypatch.setattr(guests.os, "cpu_count", lambda: 2)
    kernel = cast("Kernel", None)
    begin = time.monotonic()
    with pytest.raises(type(why), match="why"):
        guests.run_all("x", [guests.Guest(n, kernel, Machine(), "") for n in ("long", "fails")], 1)
    assert time.monotonic() - begin < 60


def test_gap_of_a_load_begins_at_its_own_page() -> None:
    events = [
        Event(1, 100, "mm_filemap_add_to_page_cache", ""),
        Event(1, 200, "mm_filemap_add_to_page_cache", ""),
        Event(1, 950, "gcma_load", ""),
        Event(1, 1000, "gcma_load", ""),
    ]
    assert tenants.load_gaps(events) == [750]


def test_code_lines_are_neither_blank_nor_comment() -> None:
    text = "// SPDX\n/*\n * text\n */\n\nint a; /* why */\n  \n#define B 1\n/* one */ int c;\n"
    assert size.code_lines(text) == 3


def test_added_lines_by_file() -> None:
    patch = "--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1 +1,3 @@\n-x\n+int a;\n+/* c */\n+\n"
    patch += "+++ b/mm/b.c\n+int b;\n"
    assert size.added_lines(patch) == {"mm/a.c": 1, "mm/b.c": 1}


def test_code_of_compactfit_is_not_gcmas() -> None:
    counted = size.kernel_lines(source.read_series(paths.KERNEL))
    assert "mm/gcma.c" in counted
    assert not [name for name in counted if "compactfit" in name or name.startswith("lib/")]


def test_compactfit_is_held_against_zsmalloc_where_it_is_worst() -> None:
    ours = {"freed": 120, "compacted": 120, "kept_payload": 100}
    theirs = {"freed": 240, "compacted": 100, "kept_payload": 100}
    fills = {
        (compressor, percent, heap): theirs if heap == zsmalloc.ZSMALLOC else ours
        for compressor in zsmalloc.COMPRESSORS
        for percent in zsmalloc.PERCENTS
        for _, _, heap in zsmalloc.HEAPS
    }
    worse = {key: {**numbers, "freed": 160} for key, numbers in fills.items()}
    waits = {zsmalloc.ZSMALLOC: (9000.0, 64.0), zsmalloc.CHOSEN: (600.0, 4096.0)}
    assert zsmalloc.values([fills], waits) == {
        "compactfit-zsmalloc-freed": 0.5,
        "compactfit-zsmalloc-compacted": 1.2,
        "compactfit-zsmalloc-wait": 15,
    }
    assert zsmalloc.values([fills, worse], waits)["compactfit-zsmalloc-freed"] == 1
    assert round(zsmalloc.overhead(ours, "freed", "kept_payload")) == 20


def imported(module: Path) -> set[str]:
    """The full names of what a module imports, those of `from x import y` as x.y."""
    names = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_no_evaluation_borrows_from_another() -> None:
    folder = paths.REPO / "lab/evals"
    modules = [path for path in folder.rglob("*.py") if path != folder / "__init__.py"]
    borrowed = {
        (path.stem, name)
        for path in modules
        for name in imported(path)
        if name.startswith("lab.evals")
    }
    assert modules
    assert borrowed == set()


def test_figures_belong_to_evaluations_that_exist() -> None:
    assert {promise.eval for promise in figures.read()} <= set(evals.EVALS)


def test_every_evaluation_says_what_it_is() -> None:
    assert all(evals.EVALS[name].__doc__ for name in evals.EVALS)


def test_unknown_evaluation_is_refused() -> None:
    with pytest.raises(LabError, match="unknown evaluation nothing: choose one of photo,"):
        evals.find("nothing")
