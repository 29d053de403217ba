# SPDX-License-Identifier: GPL-2.0-or-later
"""What the area's lock costs many CPUs: system guests of a kernel with lock statistics."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from lab import workloads
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output, run_all
from lab.machine import Machine
from lab.results import Cell, Line, Outcome, Plot, Table

CPUS = (2, 4, 8)
POLICIES = ("none", "gcma")
AREA_MIB = CACHE_MIB = 64
KERNEL_MIB = 100  # of the kernel with statistics, and a system guest
CPU_MIB = 10  # of each CPU
# larger than page cache and area together: every read takes a page from somewhere
FILES_MIB = (AREA_MIB + CACHE_MIB) * 11 // 10
READS = 400_000  # of all CPUs
SECONDS = 60  # of a guest
LOCKS = {"g->lock": "gcma.lock", "xa->xa_lock": "i_pages", "lruvec->lru_lock": "lru_lock"}

# The kernel patches how it reads its clock when it finds it stable, while the other CPUs run: QEMU
# 7.2 keeps the breakpoint that stood there in between. Known to be unstable, it is left alone.
CLOCK = "tsc=unstable"

# A file for each CPU, all as large together as one would be, so that only the area is shared.
SCRIPT = """\
mount -t tmpfs tmp /tmp
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
@disk@
for cpu in $(seq @cpus@); do
	mkdir /run/disk/$cpu
	@job@ fill /run/disk/$cpu @mib@ 1 >/dev/null
done
read_all() { # SEED READS
	for cpu in $(seq @cpus@); do
		taskset -c $((cpu - 1)) @job@ uniform /run/disk/$cpu @mib@ $1$cpu $2 >/dev/null &
	done
	wait
}
read_all 1 @warm@
echo 0 >/proc/lock_stat
snapshot before
start=$(date +%s%N)
read_all 2 @reads@
end=$(date +%s%N)
snapshot after
section ns
echo $((end - start))
section locks
cat /proc/lock_stat
"""

LOCK = re.compile(
    r"^ *&?(?P<name>\S+?)(?:#\d+)?(?:-[RW])?: +\d+ +\d+ +[\d.]+ +[\d.]+ +(?P<wait>[\d.]+)"
    r" +[\d.]+ +\d+ +\d+ +[\d.]+ +[\d.]+ +(?P<held>[\d.]+) +[\d.]+$",
    flags=re.M,
)


@dataclass(frozen=True)
class Lock:
    """Of all locks of one kind, microseconds."""

    waited: float = 0.0
    held: float = 0.0

    def __add__(self, other: "Lock") -> "Lock":
        return Lock(self.waited + other.waited, self.held + other.held)


def read_locks(text: str) -> dict[str, Lock]:
    """Lines of /proc/lock_stat, by name."""
    locks: dict[str, Lock] = {}
    for match in LOCK.finditer(text):
        lock = Lock(float(match["wait"]), float(match["held"]))
        locks[match["name"]] = locks.get(match["name"], Lock()) + lock
    return locks


def _guest(kernels: Kernels, cpus: int, policy: str) -> Guest:
    script = SCRIPT.replace(
        "@disk@", workloads.ram_disk(FILES_MIB * 5 // 4, wait=False, at="/run/disk")
    )
    values = {
        "cpus": cpus,
        "mib": FILES_MIB // cpus,
        "warm": READS // cpus // 4,
        "reads": READS // cpus,
        "job": workloads.program("job"),
    }
    for name, value in values.items():
        script = script.replace(f"@{name}@", str(value))
    memory = AREA_MIB + CACHE_MIB + KERNEL_MIB + CPU_MIB * cpus + FILES_MIB
    return Guest(
        f"{cpus} CPUs, {policy}",
        kernels("lockstat"),
        Machine(memory, cpus=cpus, area_mib=AREA_MIB, policy=policy, args=(CLOCK,)),
        script,
        exact=False,
    )


def _shares(output: Output) -> Mapping[str, tuple[float, float]]:
    """Of the time of all CPUs, in percent: waiting for a lock, and holding it."""
    locks = read_locks(output["locks"])
    if "g->lock" not in locks and output.guest.machine.policy == "gcma":
        raise LabError("the kernel's lock statistics do not know gcma.lock", output["locks"][:2000])
    time = int(output["ns"]) / 1000 * output.guest.machine.cpus
    by_name = {name: locks.get(lock, Lock()) for lock, name in LOCKS.items()}
    return {
        name: (100 * lock.waited / time, 100 * lock.held / time) for name, lock in by_name.items()
    }


def check(guest: Guest, area: Mapping[str, int]) -> None:
    """Raise a LabError if the area was of no use: then nobody waited for its lock."""
    if guest.machine.policy == "gcma" and min(area["stores"], area["loads"]) < READS // 100:
        raise LabError(
            f"{guest.name}: only {area['stores']:,} stores and {area['loads']:,} loads in"
            f" {READS:,} reads"
        )


def cores_note(cores: int) -> str:
    """What the shares say on a host of so many cores."""
    crowded = [str(cpus) for cpus in CPUS if cpus > cores]
    text = f"on {cores} cores of the host."
    if crowded:
        text += (
            f" With {' and '.join(crowded)} CPUs some stand still while others run, maybe with the"
            f" lock: that is waiting, too, and no more than {cores} want the lock at once."
        )
    return text


def contention(kernels: Kernels) -> Outcome:
    """what the lock of the area costs 2, 4 and 8 CPUs that store and load at once"""
    guests = [_guest(kernels, cpus, policy) for cpus in CPUS for policy in POLICIES]
    outputs = run_all("contention", guests, SECONDS)
    rows: list[list[Cell]] = []
    shares = {name: _shares(output) for name, output in outputs.items()}
    runs = []
    for guest in guests:
        output = outputs[guest.name]
        area = output.gained("area", "before", "after")
        check(guest, area)
        for name, (waited, held) in shares[guest.name].items():
            if waited or held:
                row: list[Cell] = [guest.machine.cpus, guest.machine.policy, name]
                rows.append([*row, round(waited, 3), round(held, 3)])
        counters: dict[str, float] = {
            f"{name}, {what} %": value
            for name, pair in shares[guest.name].items()
            for what, value in zip(("waited", "held"), pair, strict=True)
        }
        counters |= {name: area[name] for name in ("stores", "loads") if name in area}
        runs.append(output.run(counters=counters))
    worst = [max(shares[f"{cpus} CPUs, gcma"]["gcma.lock"][at] for cpus in CPUS) for at in (0, 1)]
    lines = [
        Line(
            what,
            [(float(at), shares[f"{cpus} CPUs, gcma"]["gcma.lock"][n]) for at, cpus in groups],
        )
        for n, what in enumerate(("waiting", "holding"))
        for groups in [list(enumerate(CPUS))]
    ]
    return Outcome(
        runs,
        [
            Table(
                "Locks, in % of the time of all CPUs",
                ("CPUs", "policy", "lock", "waiting", "holding"),
                rows,
                f"Each CPU reads pages of a file of its own at random, all files together"
                f" {FILES_MIB} MiB, an area of {AREA_MIB} MiB beside about {CACHE_MIB} MiB of page"
                " cache. A kernel with lock statistics, which make holding dearer,"
                f" {cores_note(os.cpu_count() or 1)} gcma.lock is held with interrupts off.",
            )
        ],
        [Plot("gcma.lock", "bars", "CPUs", "% of time", lines, groups=[str(n) for n in CPUS])],
        {"contention-wait": worst[0], "contention-held": worst[1]},
    )
