# SPDX-License-Identifier: GPL-2.0-or-later
"""What loads cost, as far as it is arithmetic."""

from dataclasses import replace
from typing import cast

import pytest

from lab import figures, guests, loads, workloads
from lab.boot import BootResult
from lab.build import Kernel
from lab.errors import LabError
from lab.evals import contention
from lab.loads import FIRST, GCMA, GENERATIONS, MORE, NONE, Cost, Load, Measured, Setting
from lab.machine import Machine

BOOTED = BootResult(
    "", "", "", True, 0, 1.0, timed_out=False, panic=None, signal=None, command=["qemu"]
)
LOAD = Load("a load", 32, 32, 48, "job fill /disk 48 1", ("uniform /disk 48 {seed}1 9",) * 2)


def disk(reads: int, sectors: int, name: str = "disk") -> str:
    return f" 252 0 {name} {reads} 0 {sectors} 0 0 0 0 0 0 0 0\n"


def test_each_step_costs_what_the_counters_gained_in_it() -> None:
    sections = {
        "diskstats 0": disk(10, 80) + disk(1, 8, "stream"),
        "diskstats 1": disk(13, 104) + disk(5, 16, "stream"),
        "diskstats 2": disk(13, 104) + disk(5, 16, "stream"),
        "area 1": "stores 7\nloads 2\n",
        "area 0": "stores 4\nloads 2\n",
        "area 2": "stores 9\nloads 5\n",
        "vmstat 0": "pswpin 1\npswpout 2\npgmajfault 5\n",
        "vmstat 1": "pswpin 4\npswpout 2\npgmajfault 9\n",
        "vmstat 2": "pswpin 4\npswpout 7\npgmajfault 9\n",
        "job 1": "9 5000\n",
        "job 2": "9 300\n",
    }
    output = guests.Output(guests.Guest("g", cast("Kernel", None), Machine(), ""), BOOTED, sections)
    assert loads.costs(LOAD, output) == [
        Cost(24, 3, 5000, 3, 0, 3, 0, 4),
        Cost(0, 0, 300, 2, 3, 0, 5),
    ]
    both = Load(*("a load", 32, 32, 48, "", LOAD.steps), stream=True)
    assert loads.costs(both, output)[0] == Cost(32, 7, 5000, 3, 0, 3, 0, 4)
    none = {name: text for name, text in sections.items() if not name.startswith("area")}
    output = guests.Output(output.guest, BOOTED, none)
    assert loads.costs(LOAD, output)[0] == Cost(24, 3, 5000, 0, 0, 3, 0, 4)
    swapped = replace(LOAD, disk_mib=0, swap="disk")
    assert loads.costs(swapped, output)[1] == Cost(0, 0, 300, 0, 0, 0, 5)


@pytest.mark.parametrize("filesystem", ["ext4", "xfs", "f2fs"])
@pytest.mark.parametrize("lru", ["classic", "generations"])
def test_script_sets_the_stage_then_measures_each_step(filesystem: str, lru: str) -> None:
    text = loads.script(LOAD, Setting(filesystem, lru), 3)
    assert f"mount -t {filesystem} " in text
    assert f"echo {'y' if lru == GENERATIONS else 'n'} >{loads.SWITCH}" in text
    assert "echo 0 >$disk/irqmode" in text
    order = ["mkfs", loads.SWITCH, "job fill", "snapshot 0", "job uniform /disk 48 31 9"]
    order += ["snapshot 1", "section job 2", "snapshot 2"]
    places = [text.index(word) for word in order]
    assert places == sorted(places)


@pytest.mark.parametrize("swap", ["disk", "zram"])
def test_memory_is_swapped_to_what_the_load_says(swap: str) -> None:
    load = replace(
        LOAD, disk_mib=0, swap=swap, swap_mib=96, program="memory", steps=("zipf 48 {seed} 9",)
    )
    text = loads.script(load, FIRST, 3)
    assert "mkfs" not in text
    order = ["96", "swapon", loads.SWITCH, "snapshot 0", "memory zipf 48 3 9", "snapshot 1"]
    places = [text.index(word) for word in order]
    assert places == sorted(places)


def test_a_disk_to_swap_to_takes_its_memory_before_anything_is_swapped() -> None:
    disk, zram = (workloads.SWAPS[name] for name in ("disk", "zram"))
    assert (disk.memory_mib(96), zram.memory_mib(96)) == (96, 0)
    text = disk.on(96)
    places = [text.index(word) for word in ("dd if=/dev/zero", "count=96", "mkswap", "swapon")]
    assert places == sorted(places)


def test_further_variants_run_in_the_first_setting_with_few_seeds() -> None:
    load = replace(LOAD, settings=loads.BOTH_LRUS, further=("a", "b"))
    other = loads.BOTH_LRUS[1]
    assert loads.plan([load], (NONE, GCMA)) == {
        **{(load, FIRST, variant): range(1, 4) for variant in (NONE, GCMA)},
        **{(load, FIRST, variant): range(1, 2) for variant in ("a", "b")},
        **{(load, other, variant): range(1, 2) for variant in (NONE, GCMA)},
    }


@pytest.mark.parametrize("variant", [NONE, GCMA, *loads.DIRTY])
def test_a_swap_policy_is_chosen_before_anything_is_swapped(
    variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workloads, "files", lambda *_, **__: {})
    load = replace(LOAD, disk_mib=0, swap="disk", swap_mib=96, program="memory")
    guest = loads.guest(cast("guests.Kernels", lambda _: None), load, FIRST, variant, 1)
    assert guest.machine.policy == ("none" if variant == NONE else "gcma")
    assert ("swap_policy" in guest.script) == (variant in loads.DIRTY)
    if variant in loads.DIRTY:
        words = (f"echo {loads.DIRTY[variant]} >", "echo 8192 >", "swapon")
        places = [guest.script.index(word) for word in words]
        assert places == sorted(places)


def test_each_sample_has_less_memory_than_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "files", lambda *_, **__: {})
    kernels = cast("guests.Kernels", lambda _: None)
    machines = [loads.guest(kernels, LOAD, FIRST, NONE, seed).machine for seed in (1, 2, 3)]
    assert len({machine.memory_mib for machine in machines}) == 1
    assert [machine.less_kib for machine in machines] == [0, loads.SAMPLE_KIB, 2 * loads.SAMPLE_KIB]


def test_variants_with_fewer_seeds_are_held_against_the_same_seeds() -> None:
    def swapped(variant: str, *swap_outs: int, setting: Setting = FIRST) -> Measured:
        samples = [[Cost(0, 0, 10**6, 0, 0, 2, n)] for n in swap_outs]
        return Measured(LOAD, setting, variant, samples)

    other = Setting(lru=GENERATIONS)
    measured = {
        ("a load", FIRST, NONE): swapped(NONE, 100, 300),
        ("a load", FIRST, "few"): swapped("few", 25),
        ("a load", other, NONE): swapped(NONE, 100, setting=other),
    }
    none, few = loads.beside(measured, "a load", FIRST, (NONE, "few"))
    assert (none.mean(loads.swap_outs), few.mean(loads.swap_outs)) == (100, 25)
    assert loads.beside(measured, "a load", other, (NONE, "few")) == []
    table = loads.swap_table("t", measured, (NONE, "few"), "")
    assert table.rows == [["a load", "", "classic", 2, 2, 100, 25, 1, 1]]
    assert loads.swap_table("t", measured, (NONE,), "").rows[0][4] == 200
    faults = loads.swap_table("t", measured, (NONE,), "", {"faults": loads.major_faults})
    assert (faults.columns[3:], faults.rows[0][3:]) == (("none, faults",), [0])


def measured(variant: str, *sectors: int, setting: Setting = FIRST) -> Measured:
    samples = [[Cost(n, n // 2, 10 * n, 0, 0), Cost(1, 1, 1, 0, 0)] for n in sectors]
    return Measured(LOAD, setting, variant, samples)


def test_figures_are_the_worst_of_all_settings() -> None:
    other = Setting("xfs", GENERATIONS)
    both = {
        ("a load", FIRST, NONE): measured(NONE, 99, 199),
        ("a load", FIRST, GCMA): measured(GCMA, 79, 99),
        ("a load", FIRST, MORE): measured(MORE, 39, 79),
        ("a load", other, NONE): measured(NONE, 99, setting=other),
        ("a load", other, GCMA): measured(GCMA, 109, setting=other),
        ("a load", other, MORE): measured(MORE, 49, setting=other),
    }
    assert loads.worst(both, loads.sectors) == 110 / 100
    assert loads.harm("x", both) == {
        "x-sectors": 110 / 100,
        "x-requests": 55 / 50,
        "x-slowdown": pytest.approx((55 * 20_000 + 1091) / (50 * 20_000 + 991)),
        "x-instructions": 1091 / 991,
    }
    # who is of use may cost
    useful = {key: replace(m, samples=[[Cost(8, 1, 9, 0, 9)] * 2]) for key, m in both.items()}
    assert "x-instructions" not in loads.harm("x", useful)
    # a block more than hardly any is chance
    assert loads.worst(both, loads.sectors, 9) == 110 / 100
    assert loads.worst(both, loads.sectors, 0, slice(0, 1)) == 109 / 99
    assert loads.worst(both, loads.sectors, 10) == 1
    none, gcma, more = (both["a load", FIRST, variant] for variant in (NONE, GCMA, MORE))
    assert none.mean(loads.sectors) == 150
    assert gcma.spread(loads.sectors) == pytest.approx(100 * 20 / 90)
    assert none.mean(loads.instructions, slice(1, 2)) == 1
    assert loads.avoided(none, gcma, more) == pytest.approx(100 * 60 / 90)
    table = loads.table("t", both, (NONE, GCMA, MORE), "")
    assert table.rows[0][:5] == ["a load", "ext4, classic", 149, 89, 59]
    assert table.rows[0][5:7] == [2, pytest.approx(22.5)]
    assert table.rows[2][5:7] == [1, None]


def test_nothing_read_is_as_much_as_nothing() -> None:
    assert loads.ratio(0, 0) == 1
    assert loads.ratio(1, 0) == float("inf")
    zero = measured(NONE, 0)
    assert loads.avoided(zero, zero, zero) == 100
    # more memory is of no use, and gcma does harm
    assert loads.avoided(zero, measured(GCMA, 9), zero) == 0
    assert Measured(LOAD, FIRST, NONE, [[Cost(0, 0, 0, 0, 0)]]).spread(loads.sectors) == 0


def test_time_is_told_from_requests_and_sectors() -> None:
    cost = Cost(sectors=2 << 20, requests=50, instructions=3_000_000, stores=0, loads=0)
    assert loads.milliseconds(cost) == pytest.approx(4)
    assert loads.fast_milliseconds(cost) == pytest.approx(1003)


LOCK_STAT = """\
lock_stat version 0.4
-----------------------------------------------
              class name    con-bounces    contentions   waittime-min   waittime-max
-----------------------------------------------

           &xa->xa_lock#7:           100            110     0.10      9.00      70.00 \
           0.70            2000           3000           0.10           5.00        900.00 \
           0.30
            -------------
           &xa->xa_lock#7              4          [<ffffffff811>] __filemap_add_folio+0x1
                &g->lock:            10             12           0.08    20.01     44.50 \
           4.45             500            800           0.05           8.00        600.25 \
           0.75
           &xa->xa_lock#2:             0              0           0.00      0.00      0.00 \
           0.00              20             30           0.10           0.50         10.00 \
           0.30
"""


def test_locks_of_one_kind_are_one() -> None:
    assert contention.read_locks(LOCK_STAT) == {
        "xa->xa_lock": contention.Lock(70.0, 910.0),
        "g->lock": contention.Lock(44.5, 600.25),
    }


def test_a_lock_that_nobody_took_is_not_one_that_nobody_waits_for() -> None:
    guest = guests.Guest("2 CPUs", cast("Kernel", None), Machine(policy="gcma"), "")
    contention.check(guest, {"stores": contention.READS, "loads": contention.READS // 2})
    contention.check(replace(guest, machine=Machine(policy="none")), {})
    with pytest.raises(LabError, match="only 9 stores"):
        contention.check(guest, {"stores": 9, "loads": 9})


def test_contention_names_the_cores_and_the_cpus_that_share_them() -> None:
    assert contention.cores_note(8) == "on 8 cores of the host."
    assert contention.cores_note(2).startswith("on 2 cores of the host. With 4 and 8 CPUs some")


def test_what_is_less_than_a_request_is_no_ratio() -> None:
    assert loads.ratio(1 / 3, 0, 1) == 1
    assert loads.ratio(0, 0) == 1
    assert loads.ratio(2, 0, 1) == float("inf")
    assert loads.ratio(3, 2, 0.5) == 1.5
    assert loads.ratio(1, 2, 1) == 0.5
    assert figures.number(float("inf")) == "inf"
