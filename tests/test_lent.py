# SPDX-License-Identifier: GPL-2.0-or-later
"""Lent pages where memory ends: what they keep there, and who waits or dies for them.

Exact guests of little memory beside an area, without swap, under either LRU.
"""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from lab import boot, measure, workloads
from lab.build import Kernel
from lab.loads import CLASSIC, GENERATIONS, SWITCH
from lab.machine import KERNEL_MIB, Machine

pytestmark = [pytest.mark.guest, pytest.mark.long]

LRUS = {CLASSIC: "n", GENERATIONS: "y"}
DISK = workloads.ram_disk(128, wait=False)


def sections(kernel: Kernel, area_mib: int, mib: int, script: str, policy: str) -> dict[str, str]:
    """What a script prints, once under each LRU: its sections end with the LRU's name."""
    if kernel.flavour.name != "prod":
        pytest.skip("memory is measured out for the kernel as it is used")
    machine = Machine(KERNEL_MIB + mib + area_mib, 1, area_mib, policy)
    files = workloads.files("job", "rental", host=("mkfs.ext4",))
    rounds = [
        f"lru={lru}\necho {value} >{SWITCH}\necho 3 >/proc/sys/vm/drop_caches\n{script}"
        for lru, value in LRUS.items()
    ]
    text = workloads.PRELUDE + DISK + "\n".join(rounds)
    result = boot.exact(kernel, machine, text, files=files, timeout=600).check()
    return measure.sections(result.output)


# A page takes a node of the tree of its file's pages, 0.6 KiB: all together more ordinary memory
# than there is. The area has room for all of them.
SPARSE_PAGES = 60_000
SPARSE = f"""
section "sparse $lru"
rental sparse /disk/holes {SPARSE_PAGES}
grep oom_kill /proc/vmstat
area "$lru"
rm /disk/holes
"""


def test_what_lent_pages_keep_in_memory_is_given_back(kernel: Kernel) -> None:
    def run(policy: str) -> dict[str, str]:
        return sections(kernel, 256, 16, SPARSE, policy)

    with ThreadPoolExecutor(2) as pool:
        none, rental = pool.map(run, ("none", "rental"))
    for lru in LRUS:
        assert measure.counters(rental[f"area {lru}"])["lends"] >= SPARSE_PAGES
        without, lent = (measure.counters(output[f"sparse {lru}"]) for output in (none, rental))
        assert (without["oom_kill"], lent["oom_kill"]) == (0, 0)
        assert lent["ns"] <= 1.5 * without["ns"]


# Each reads half a MiB and is gone. Files that are written need more memory than there is then.
DEAD = 64
DEAD_GROUPS = f"""
job fill /disk {DEAD // 2} 1 >/dev/null
sync
echo 3 >/proc/sys/vm/drop_caches
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
for number in $(seq 0 {DEAD - 1}); do
	mkdir /sys/fs/cgroup/dead
	sh -c "echo 0 >/sys/fs/cgroup/dead/cgroup.procs
	exec dd if=/disk/data of=/dev/null bs=64k skip=$((number * 8)) count=8 2>/dev/null"
	rmdir /sys/fs/cgroup/dead
done
section "dying before $lru"
cat /sys/fs/cgroup/cgroup.stat
for number in 1 2 3; do
	dd if=/dev/zero of=/disk/out bs=1M count=32 conv=notrunc 2>/dev/null
	sync
done
section "dying $lru"
cat /sys/fs/cgroup/cgroup.stat
"""


def test_lent_pages_do_not_keep_a_dead_group(kernel: Kernel) -> None:
    told = sections(kernel, 64, 86, DEAD_GROUPS, "rental")
    for lru in LRUS:
        before, after = (
            measure.counters(told[f"{when} {lru}"])["nr_dying_descendants"]
            for when in ("dying before", "dying")
        )
        assert before >= DEAD, lru
        assert after <= DEAD / 8, lru


# Less is free than kswapd is to keep free, nothing can be reclaimed, and a group at its limit
# evicts what it was lent.
KSWAPD = """
job fill /disk 16 1 >/dev/null
sync
echo 3 >/proc/sys/vm/drop_caches
echo 3000 >/proc/sys/vm/watermark_scale_factor
: >/tmp/held
rental hog 40 >/tmp/held &
until grep -q held /tmp/held; do sleep 0.01; done
sleep 2
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/limited
echo 8M >/sys/fs/cgroup/limited/memory.max
section "before $lru"
cat /proc/vmstat
sh -c 'echo 0 >/sys/fs/cgroup/limited/cgroup.procs
for number in $(seq 8); do cat /disk/data >/dev/null; done'
section "after $lru"
cat /proc/vmstat
section "zones $lru"
cat /proc/zoneinfo
area "$lru"
rmdir /sys/fs/cgroup/limited
kill $!
wait $! || true
echo 10 >/proc/sys/vm/watermark_scale_factor
"""


def test_kswapd_gives_up_beside_a_group_that_evicts_lent_pages(kernel: Kernel) -> None:
    told = sections(kernel, 32, 84, KSWAPD, "rental")
    for lru in LRUS:
        before, after = (measure.counters(told[f"{when} {lru}"]) for when in ("before", "after"))
        assert measure.counters(told[f"area {lru}"])["lends"] > 8 * 4096 / 2, lru
        assert re.search(r"node_unreclaimable: +1\n", told[f"zones {lru}"]), lru
        assert after["pageoutrun"] - before["pageoutrun"] <= 16, lru


# So much is to be kept free that nothing but the area has a page for who reads a file. But what is
# in other memory is evicted first, and has what comes home to the area: more or less of it, in MiB
FAULTS = """
job fill /disk {file} 1 >/dev/null
sync
echo 3 >/proc/sys/vm/drop_caches
free=$(sed -n 's/^MemFree: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo)
: >/tmp/held
rental hog $((free / 1024 - {left})) >/tmp/held &
until grep -q held /tmp/held; do sleep 0.01; done
section "faults $lru"
for seed in 1 2 3; do
echo 3 >/proc/sys/vm/drop_caches
rental faults /disk/data {file} $seed 5000 {kept_kib} || true
done
echo killed $(dmesg | grep -c "oom-killer: gfp_mask=.*HIGHUSER_MOVABLE")
kill $!
wait $! || true
"""


@pytest.mark.parametrize(
    ("mib", "sizes"),
    [
        (84, {"file": 48, "left": 16, "kept_kib": 24000}),
        (140, {"file": 72, "left": 40, "kept_kib": 46000}),
    ],
)
def test_who_reads_a_file_is_not_killed_while_the_area_serves(
    kernel: Kernel, mib: int, sizes: dict[str, int]
) -> None:
    told = sections(kernel, 32, mib, FAULTS.format(**sizes), "rental")
    for lru in LRUS:
        # nodes of the file's tree are no pages of files, and somebody may be killed for one
        assert "killed 0" in told[f"faults {lru}"], lru
        assert "ns " in told[f"faults {lru}"], lru
