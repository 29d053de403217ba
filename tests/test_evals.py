# SPDX-License-Identifier: GPL-2.0-or-later
"""Evaluations, as far as they are arithmetic."""

import ast
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from lab import (
    evals,
    figures,
    guests,
    loads,
    measure,
    paths,
    process,
    source,
    systems,
    tenants,
    workloads,
)
from lab.boot import BootResult
from lab.build import Kernel
from lab.errors import LabError
from lab.evals import (
    alloc,
    alloc_cpus,
    both,
    camera,
    dirty,
    memcg,
    overhead,
    rfc,
    size,
    swapped,
    tenancy,
    zsmalloc,
)
from lab.machine import Machine
from lab.measure import Allocation, BenchSample, Event
from tests.conftest import Lab

BOOTED = BootResult(
    "", "", "", True, 0, 1.0, timed_out=False, panic=None, signal=None, command=["qemu"]
)


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


def test_the_memory_that_a_job_really_has_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guests, "kernel_id", lambda _: None)
    disk = "252 0 disk {} 0 {} 0 0 0 0 0 0 0 0\n"
    sections = {
        "meminfo": "MemAvailable:     61234 kB\n",
        "diskstats before": disk.format(1, 8),
        "diskstats after": disk.format(3, 48),
    }
    counters = tenancy._run(output(sections)).counters
    assert counters == {"sectors read": 40, "requests": 2, "available, KiB": 61234}


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
        names = ("long", "fails", "never begins")
        guests.run_all("x", [guests.Guest(n, kernel, Machine(), "") for n in names], 1)
    assert time.monotonic() - begin < 60


def test_a_program_of_guests_is_made_anew_by_another_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GCMA_CACHE", str(tmp_path))
    source = tmp_path / "program.c"
    source.write_text("int main(void) { return 0; }\n")
    once = workloads.compiled(source)
    assert workloads.compiled(source) == once
    monkeypatch.setattr(workloads, "_toolchain", lambda: b"gcc 99")
    assert workloads.compiled(source) != once


def test_gap_begins_at_the_last_event_before_its_end() -> None:
    events = [
        Event(1, 100, "mm_page_alloc", ""),
        Event(1, 200, "mm_page_alloc", ""),
        Event(1, 300, "mm_filemap_add_to_page_cache", ""),
        Event(1, 950, "gcma_load", ""),
        Event(1, 1000, "gcma_load", ""),
    ]
    assert tenants.gaps(events, "mm_page_alloc", "gcma_load") == [750]
    assert tenants.gaps(events, "mm_page_alloc", "mm_filemap_add_to_page_cache") == [100]


def output(sections: dict[str, str]) -> guests.Output:
    """What a guest would have printed."""
    guest = guests.Guest("a guest", cast("Kernel", None), Machine(), "")
    return guests.Output(guest, BOOTED, sections)


def test_killed_groups_are_counted_and_the_most_kernel_memory_told() -> None:
    killed = output(
        {
            "kernel": "kernel 100\nKilled\nreader ended with 137\nkernel 700\nkernel 300\n"
            "reader ended with 1\n",
            "events": "low 0\noom 3\noom_kill 2\noom_group_kill 0\n",
            "stat": "anon 4\nworkingset_nodereclaim 0\n",
            "peak": "peak 900\n",
            "area ended": "policy gcma\ntenants_file 30\n",
        }
    )
    fate = memcg.read(killed)
    assert fate == memcg.Fate(
        oom_kills=2, kernel=700, peak=900, nodes_reclaimed=0, tenants=30, failed=1
    )
    with pytest.raises(LabError, match="a guest: the readers had no memory"):
        memcg.read(replace(killed, sections={**killed.sections, "kernel": "Killed\n"}))
    spared = replace(fate, oom_kills=0, kernel=350)
    few, many, below = (load.name for load in memcg.LOADS)
    fates = {
        ("none", few): spared,
        ("gcma", few): replace(spared, kernel=360),
        ("none", many): replace(spared, oom_kills=1),
        ("gcma", many): fate,
        ("none", below): spared,
        ("gcma", below): spared,
    }
    assert memcg.values(fates) == {"memcg-oom": 1, "memcg-kernel": 2}
    fates["gcma", below] = replace(spared, oom_kills=3, kernel=1050)
    assert memcg.values(fates) == {"memcg-oom": 3, "memcg-kernel": 3}


@pytest.mark.parametrize("tenants", [30, 29])
def test_figure_of_cpus_is_that_of_the_worst_number(
    tenants: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_all(_: str, ordered: list[guests.Guest], __: float) -> dict[str, guests.Output]:
        printed = {}
        for guest in ordered:
            cost = 420 + guest.machine.cpus if guest.machine.policy == "gcma" else 400
            sections = {
                "alloc": f"1 {cost - 10} 300 1\n1 {cost + 10} 300 1\n",
                "area before": "tenants_file 4000\n",
                "area after": f"tenants_file {4000 - tenants}\n",
            }
            printed[guest.name] = replace(output(sections), guest=guest)
        return printed

    monkeypatch.setattr(alloc_cpus, "run_all", run_all)
    monkeypatch.setattr(guests, "kernel_id", lambda _: None)
    monkeypatch.setattr(alloc_cpus.workloads, "files", lambda *_, **__: {})
    kernels = cast("guests.Kernels", lambda _: None)
    if tenants < alloc_cpus.REPETITIONS:
        with pytest.raises(LabError, match="only 29 of 30 allocations took a page with a tenant"):
            alloc_cpus.alloc_cpus(kernels)
        return
    outcome = alloc_cpus.alloc_cpus(kernels)
    assert outcome.values == {"alloc-cpus": (420 + 64) / 400}
    assert outcome.tables[0].rows[1] == [1, "gcma", 411, 421, 431, 0, 30]


def ladder(*costs: int) -> dict[int, list[BenchSample]]:
    """The same costs for each of the RFC's sizes."""
    return {pages: [BenchSample(cost, 0, ok=True) for cost in costs] for pages in rfc.SIZES}


def test_allocation_that_fails_where_none_may_is_no_sample() -> None:
    sections = {"alloc": "64 436 3652 1\n64 9 0 0\n"}
    movable = output(sections)
    assert measure.failures(movable.ladder("alloc")[64]) == 1
    guest = replace(movable.guest, machine=Machine(policy="gcma"))
    with pytest.raises(LabError, match="a guest, alloc: 1 allocations failed"):
        replace(movable, guest=guest).ladder("alloc")


def test_figures_of_the_rfcs_table_are_the_worst() -> None:
    swapped = {"none": ladder(400, 400), "gcma": ladder(400, 440)}
    swapped["gcma"][512] = ladder(500, 500)[512]
    compiled = {"gcma": ladder(400, 400, 500), "gcma, zram": ladder(400, 400, 1000)}
    compiled["gcma, 4 CPUs"] = ladder(400, 400, 600)
    states = {rfc.COMPILE: compiled, rfc.SWAPPED: swapped}
    assert rfc.values(states) == {"rfc-worst-median": 2.5, "rfc-swapped-none-mean": 1.25}


def test_an_area_full_of_tenants_loses_one_with_each_page_allocated() -> None:
    pages = sum(rfc.SIZES)
    assert measure.held(ladder(1), {"revoked": pages // 2}) == pytest.approx(0.5, abs=1e-4)
    assert measure.held(ladder(1), {"pswpin": 7}) is None


@pytest.mark.parametrize(
    ("policy", "area", "use", "tenants"),
    [
        ("gcma", "tenants_file 8192\ntenants_swap 16384\n", 75, {"file": 32, "swap": 64}),
        ("none", "policy none\n", 0, {}),
        ("movable", "policy movable\n", 50, {}),
    ],
)
def test_the_camera_shows_what_the_area_holds(
    policy: str, area: str, use: float, tenants: dict[str, float]
) -> None:
    disk = " 254 0 vda 1 0 {} 0 0 0 0 0 0 0 0\n"
    sections = {
        "photos": "1500000 1\n2500000 0\n",
        "trace": "",
        "area after": area,
        "vmstat before": "pswpin 3\n",
        "vmstat after": f"pswpin 10\nnr_free_cma {camera.AREA_MIB * 128}\n",
        "diskstats before": disk.format(8),
        "diskstats after": disk.format(24),
    }
    shots = camera._shots(output(sections), policy)
    assert (shots.photos, shots.failed) == ([1500, 2500], 1)
    assert (shots.sectors_read, shots.pages_swapped_in) == (16, 7)
    assert (shots.use, shots.tenants) == (use, tenants)


def test_photos_and_allocations_that_were_not_seen_are_missed() -> None:
    def shots(photos: int, failed: int, allocations: int) -> camera.Shots:
        seen = [Allocation(1013, 5.0, ok=True)] * allocations
        return camera.Shots([1.0] * photos, failed, seen, 0, 0, 0.0, {})

    camera.check("gcma", shots(camera.PHOTOS, 0, 4 * camera.PHOTOS))
    camera.check("movable", shots(camera.PHOTOS, 2, 4 * camera.PHOTOS - 8))
    for lacking in (shots(29, 0, 120), shots(30, 0, 119), shots(0, 0, 0)):
        with pytest.raises(LabError, match=r"gcma: .* of 30 photos"):
            camera.check("gcma", lacking)


@pytest.mark.parametrize(
    ("has", "missing"),
    [({}, None), ({"file": 1.5, "swap": 2}, None), ({"file": 1.5, "swap": 0}, "swap")],
)
def test_photos_take_frames_of_both_kinds_of_tenants(
    has: dict[str, float], missing: str | None
) -> None:
    seen = [Allocation(1013, 5.0, ok=True)] * 4 * camera.PHOTOS
    shots = camera.Shots([1.0] * camera.PHOTOS, 0, seen, 0, 0, 0.0, has)
    camera.check("gcma", shots, ("file",))
    if missing is None:
        camera.check("gcma", shots, camera.SWAP.kinds)
        return
    with pytest.raises(LabError, match=f"gcma: no tenants beside the photos: {missing}"):
        camera.check("gcma", shots, camera.SWAP.kinds)


def test_photos_beside_a_job_are_counted() -> None:
    assert camera.taken_beside("gcma", "1\n0\n1\n1\n") == (3, 1)
    with pytest.raises(LabError, match="gcma: no photo was tried"):
        camera.taken_beside("gcma", "")


def test_photos_are_taken_beside_files_and_beside_applications_that_are_switched() -> None:
    for load, words in ((camera.FILES, ("job mix",)), (camera.SWAP, ("swapon", "memory apps"))):
        text = load.setup + load.background + load.timed
        assert all(word in text for word in words)
    assert "swapon" not in camera.FILES.setup
    assert camera.APPS * camera.APP_MIB >= camera.MEMORY_MIB


def test_what_is_avoided_of_files_and_of_memory_is_told_apart() -> None:
    load = both.LOADS[0]

    def measured(variant: str, sectors: int, swap_ins: int) -> loads.Measured:
        costs = [[loads.Cost(sectors, 0, 1, 0, 0, swap_ins, 0)]]
        return loads.Measured(load, loads.FIRST, variant, costs)

    pair = {
        (load.name, loads.FIRST, variant): measured(variant, *reads)
        for variant, reads in ((loads.NONE, (400, 50)), (loads.GCMA, (100, 40)))
    }
    assert both.avoided(pair, load.name, loads.FIRST, loads.sectors) == 75
    assert both.avoided(pair, load.name, loads.FIRST, loads.swap_ins) == pytest.approx(20)


def test_files_beside_pages_that_are_not_written_are_measured_too() -> None:
    further = {load.name: load.further for load in both.LOADS if load.further}
    assert further == dict.fromkeys(("memory, disk", "both, disk"), tuple(loads.DIRTY))


def test_an_area_that_is_in_use_by_nobody_is_not_under_load() -> None:
    def guest(revoked: str) -> guests.Output:
        counted = {"area before": f"stores 0\nloads 0\n{revoked.format(5)}"}
        counted["area after"] = f"stores 9\nloads 7\n{revoked.format(55)}"
        return output({"loaded": "1 385 9 1\n" * 40 + "20 385 9 1\n" * 3, **counted})

    table = alloc.load_table({"none": guest(""), "gcma": guest("revoked {}\n")})
    assert table.rows == [["none", 9, 7, None], ["gcma", 9, 7, 50.0]]
    with pytest.raises(LabError, match="gcma: no page that was allocated under load"):
        alloc.load_table({"gcma": guest("revoked 5\n")})


def test_two_that_read_more_than_with_none_are_no_two_that_avoid_reads() -> None:
    assert both.kept(40, 50) == pytest.approx(0.8)
    assert (both.kept(-20, -10), both.kept(-10, -10), both.kept(0, 0)) == (0, 1, 1)
    reads = {loads.NONE: 100.0, loads.GCMA: 140.0, loads.MORE: 100.0}
    assert tenancy._avoided(reads, loads.GCMA, loads.MORE) == 0


def test_writes_avoided_are_those_of_the_same_sequence() -> None:
    load = swapped.LOADS[0]

    def measured(variant: str, *swap_outs: int) -> loads.Measured:
        costs = [[loads.Cost(0, 0, 1, 0, 0, 0, n)] for n in swap_outs]
        return loads.Measured(load, loads.FIRST, variant, costs)

    aside = "gcma, move-aside"
    pair = {
        (load.name, loads.FIRST, variant): measured(variant, *writes)
        for variant, writes in ((loads.NONE, (400, 9999, 9999)), (aside, (100,)))
    }
    assert swapped.writes_avoided(pair, load.name, aside) == 75


def test_dirty_tenants_are_tried_where_swap_is_a_disk() -> None:
    further = {load.swap: load.further for load in swapped.LOADS}
    assert further == {"disk": tuple(loads.DIRTY), "zram": ()}
    names = [load.name for load in swapped.LOADS if load.further]
    assert sum("Redis" in name for name in names) == len(swapped.REDIS_JOBS)


def primaries(variant: str, *, lost: int = 0, ok: int = 1) -> dict[str, str]:
    """What a guest of `dirty-tenants` prints: 500 instructions, and 1,000 for each dirty page."""
    sections = {"pagecopy": "rep 600\nregs 900\ncopy_page rep\n"}
    for count in dirty.TENANTS:
        moved = max(count - lost, 0) if variant in dirty.COUNTERS else 0
        cost = 500 + 1000 * moved
        sections[f"alloc {count}"] = (
            f"{count or dirty.CLEAN_PAGES} {cost} 300 {ok}\nmoved {moved}\nleft 4000\n"
        )
    return sections


def test_what_each_dirty_tenant_takes_is_compared() -> None:
    without = {count: dirty.Cost(count, 400 + count, 0) for count in dirty.TENANTS}
    line = {count: dirty.Cost(count, 400 + 51 * count, 0) for count in dirty.TENANTS}
    assert dirty.bend(line, without) == 1
    once = {**line, 33: dirty.Cost(33, 400 + 51 * 33 + 33 * 25, 0)}
    assert dirty.bend(once, without) == 1.5


def test_figures_of_dirty_tenants_are_instructions_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = {}

    def run_all(_: str, ordered: list[guests.Guest], __: float) -> dict[str, guests.Output]:
        scripts.update({guest.name: guest.script for guest in ordered})
        return {g.name: replace(output(primaries(g.name)), guest=g) for g in ordered}

    monkeypatch.setattr(dirty, "run_all", run_all)
    monkeypatch.setattr(guests, "kernel_id", lambda _: None)
    monkeypatch.setattr(dirty.workloads, "files", lambda *_, **__: {})
    outcome = dirty.dirty_tenants(cast("guests.Kernels", lambda _: None))
    share = (1000 + 500 / 1024) / (600 + 400)
    assert outcome.values == {"dirty-aside": share, "dirty-put-back": share, "dirty-line": 1}
    table = outcome.tables[0]
    assert table.rows[0] == [1024, 0, *[500] * 5, *[None] * 3]
    assert table.rows[1] == [1, 1, 500, 500, *[1500] * 3, *[1.5] * 3]
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert outcome.plots[0].lines[-1].points[-1] == (1025, 1_025_500)
    for variant, script in scripts.items():
        assert ("swap_policy" in script) == (variant in dirty.COUNTERS)
        assert "@" not in script
    assert "tenants_dirty /sys/kernel/mm/cma/reserved/moved_aside " in scripts["move-aside"]


def test_dirty_tenants_that_went_another_way_are_told() -> None:
    def told(name: str, sections: dict[str, str]) -> guests.Output:
        guest = guests.Guest(name, cast("Kernel", None), Machine(), "")
        return guests.Output(guest, BOOTED, sections)

    with pytest.raises(LabError, match="put-back: of 1 dirty tenants 0 went that way"):
        dirty.read(told("put-back", primaries("put-back", lost=1)))
    with pytest.raises(LabError, match="1024 pages with 0 tenants could not be allocated"):
        dirty.read(told("write-through", primaries("write-through", ok=0)))


# What each kernel takes for a part, beside 1,000 instructions of the one that is not patched
MIXES = {overhead.OFF: 1001, overhead.NO_RENTAL: 1003, overhead.NO_AREA: 1004, overhead.IDLE: 1100}


def mixed(guest: guests.Guest, swapped_in: int = 96, **cost: int) -> guests.Output:
    """What a guest prints of the mixes; the swaps in `cost` take another one."""
    usual = MIXES.get(guest.name, 1000)
    sections = {}
    for lru in overhead.LRUS:
        sections[overhead.on(lru, overhead.MIXED)] = f"calls {usual}\npipes {usual}\n"
        for swap in workloads.SWAPS:
            mix = overhead.on(lru, swap)
            sections[f"vmstat before {mix}"] = "pswpin 4\npswpout 0\n"
            sections[mix] = f"tmpfs_out {cost.get(swap, usual)}\npages 100\n"
            sections[f"vmstat after {mix}"] = f"pswpin {4 + swapped_in}\npswpout 95\n"
    return guests.Output(guest, BOOTED, sections)


def test_swap_and_rental_memory_have_figures_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_all(_: str, ordered: list[guests.Guest], __: float) -> dict[str, guests.Output]:
        special = {overhead.NO_AREA: {"disk": 1002}, overhead.IDLE: {"swapped_in": 0}}
        return {each.name: mixed(each, **special.get(each.name, {})) for each in ordered}

    monkeypatch.setattr(overhead, "run_all", run_all)
    monkeypatch.setattr(guests, "kernel_id", lambda _: None)
    monkeypatch.setattr(workloads, "files", lambda *_, **__: {})
    for name, cost in {"page_copy": 600, "store_cost": 500, "load_cost": 250}.items():
        monkeypatch.setattr(tenants, name, lambda *_, cost=cost: cost)
    outcome = overhead.overhead(cast("guests.Kernels", lambda _: None))
    told = {name: round(value, 6) for name, value in outcome.values.items()}
    assert told == {
        **{"overhead-n": 0.1, "overhead-y": 0.4, "overhead-swap": 0.4},
        "overhead-rental": round(100 * (1004 / 1003 - 1), 6),
        **{"store-copy": 0.5, "load-copy": 0.25},
    }
    fixed, swapping, _ = outcome.tables
    assert fixed.rows[2] == ["all", 2000, 0.1, 0.3, 0.4, 10.0]
    assert fixed.rows[-1] == ["generations, all", 2000, 0.1, 0.3, 0.4, 10.0]
    assert swapping.rows[1] == ["disk, all", 1000, 0.1, 0.3, 0.2, 10.0]
    assert swapping.rows[2][0] == "generations, disk, tmpfs out"
    assert swapping.rows[4] == ["zram, tmpfs out", 1000, 0.1, 0.3, 0.4, 10.0]
    assert outcome.runs[0].counters["disk, tmpfs_out"] == outcome.runs[0].counters["calls"] == 1000


def test_a_mix_that_was_to_swap_and_did_not_is_told() -> None:
    guest = guests.Guest(overhead.NO_AREA, cast("Kernel", None), Machine(area_mib=0), "")
    assert overhead.read(mixed(guest))["zram"] == {"tmpfs_out": 1004}
    with pytest.raises(LabError, match="no area, disk: pswpin is 0 for 100 pages"):
        overhead.read(mixed(guest, swapped_in=0))


def test_an_area_can_be_full_of_tenants_beside_any_range() -> None:
    assert max(*dirty.TENANTS, dirty.CLEAN_PAGES) * 2 < dirty.AREA_PAGES
    assert dirty.JUDGED in dirty.TENANTS
    assert dirty.AREA_MIB * 5 // 4 < dirty.SWAP_MIB


def test_code_lines_are_neither_blank_nor_comment() -> None:
    text = "// SPDX\n/*\n * text\n */\n\nint a; /* why */\n  \n#define B 1\n/* one */ int c;\n"
    assert size.code_lines(text) == 3


def test_added_lines_by_file() -> None:
    patch = "--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1 +1,3 @@\n-x\n+int a;\n+/* c */\n+\n"
    patch += "+++ b/mm/b.c\n+int b;\n"
    assert size.added_lines(patch) == {"mm/a.c": 1, "mm/b.c": 1}


@pytest.fixture
def counted(small_lab: Lab) -> Lab:
    """A series of two systems, of which one is counted."""
    header = "Adds: mm/gcma.c\nAdds: mm/gcma_kunit.c\nAdds: tools/\n\n"
    hunk = "--- a/mm/cma.c\n+++ b/mm/cma.c\n@@ -1 +1,3 @@\n int a;\n+int hook;\n+\n"
    more = "--- a/mm/gcma.c\n+++ b/mm/gcma.c\n@@ -1 +1,2 @@\n int gcma;\n+int more;\n"
    small_lab.write("files/mm/gcma_kunit.c", "int test;\n")
    small_lab.write("files/tools/test.c", "int test;\n")
    small_lab.write("files/lib/compactfit/main.c", "int main;\n")
    small_lab.write("patches-6.12/gcma/0001-a.patch", header + hunk)
    small_lab.write("patches-6.12/gcma/0002-b.patch", more)
    small_lab.write("patches-6.12/compactfit/0003-c.patch", "Adds: lib/\n\n" + hunk)
    names = ("gcma/0001-a.patch", "gcma/0002-b.patch", "compactfit/0003-c.patch")
    small_lab.write("patches-6.12/series", "\n".join(names) + "\n")
    return small_lab


def test_lines_are_counted_by_part(counted: Lab) -> None:
    parts = size.kernel_lines(source.read_series(counted.kernel))
    assert {part: files for part, files in parts.items() if files} == {
        "gcma": {"mm/gcma.c": 2},
        "hooks": {"mm/cma.c": 1},
    }


def test_what_completes_a_system_counts_with_it(counted: Lab) -> None:
    hunk = "--- a/mm/swap.c\n+++ b/mm/swap.c\n@@ -1 +1,2 @@\n int a;\n+int hook;\n"
    for system in ("swap", "dirty"):
        counted.write(f"files/mm/gcma_{system}.c", "int one;\nint two;\n")
        header = f"Adds: mm/gcma_{system}.c\n\n"
        counted.write(f"patches-6.12/{system}/0001-{system}.patch", header + hunk)
    names = ("gcma/0001-a.patch", "swap/0001-swap.patch", "dirty/0001-dirty.patch")
    counted.write("patches-6.12/series", "\n".join(names) + "\n")
    parts = size.kernel_lines(source.read_series(counted.kernel))
    assert parts["swap"] == {"mm/gcma_swap.c": 2, "mm/gcma_dirty.c": 2, "mm/swap.c": 2}


def test_a_file_in_no_part_is_named(counted: Lab) -> None:
    counted.write("files/tools/test.c", "")
    (counted.kernel / "files/mm/gcma.c").rename(counted.kernel / "files/mm/stray.c")
    path = counted.kernel / "patches-6.12/gcma/0001-a.patch"
    path.write_text(path.read_text().replace("mm/gcma.c", "mm/stray.c"))
    with pytest.raises(LabError, match=r"mm/stray\.c is in no part of gcma"):
        size.kernel_lines(source.read_series(counted.kernel))


def test_every_part_has_a_figure() -> None:
    parts = {part for s in systems.SYSTEMS.values() if s.parts for part in (*s.parts, s.hooks)}
    promised = {promise.name for promise in figures.read() if promise.eval == "size"}
    assert promised == {f"kernel-lines-{part}" for part in parts} | {"frame-table"}


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
