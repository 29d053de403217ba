# SPDX-License-Identifier: GPL-2.0-or-later
"""What an idle area is worth to memory that is swapped."""

from dataclasses import replace

from lab import loads, workloads
from lab.guests import Kernels
from lab.loads import DIRTY, FIRST, GCMA, MORE, MOVABLE, NONE, PAGES, Load, Measurements
from lab.results import Outcome

AREA_MIB = MEMORY_MIB = 48
SET_MIB = 88  # larger than memory, smaller than memory and area
SWAP_MIB = 2 * SET_MIB  # a page that was read again keeps its place in swap while half is free
APPS = 11
ACCESSES = 60_000
VARIANTS = (NONE, MOVABLE, GCMA, MORE)
# Policies of dirty tenants save writes to a disk; zram is written through by all of them
JOBS = {
    "uniform": f"uniform {SET_MIB} {{seed}} {ACCESSES}",
    "Zipf 1.1": f"zipf {SET_MIB} {{seed}} {ACCESSES}",
    f"{APPS} applications in turn": (
        f"apps {SET_MIB // APPS} {{seed}} {6 * SET_MIB * PAGES} {APPS}"
    ),
}

KEYS = 75_000  # of about 1,200 bytes each; there are the server's text and libraries, too
REQUESTS = 20_000
SOCKET = "/run/redis"
REDIS_JOBS = {
    "Redis, keys by Zipf 1.1": f"zipf {SOCKET} {KEYS} {{seed}} {REQUESTS}",
    "Redis, redis-benchmark": f"benchmark {SOCKET} {KEYS} {{seed}} {REQUESTS}",
}
# Each page of as much memory is read and written, again and again
STRESS = (
    f"run stress-ng --vm 1 --vm-bytes {SET_MIB}M --vm-keep --vm-method incdec --vm-ops 100000"
    " --no-rand-seed --quiet"
)
STRESS_MIB = 24  # of the guest's memory, with its libraries
REDIS_READY = f"""\
redis-server --port 0 --unixsocket {SOCKET} --save '' --appendonly no >/tmp/log 2>&1 &
until [ -e {SOCKET} ]; do sleep 0.01; done
redis fill {SOCKET} {KEYS} {{seed}}"""


def _load(name: str, step: str, swap: str) -> Load:
    return Load(
        f"{name}, {swap}",
        AREA_MIB,
        MEMORY_MIB,
        0,
        ":",
        (step,),
        settings=loads.BOTH_LRUS,
        program="memory",
        swap=swap,
        swap_mib=SWAP_MIB,
        further=tuple(DIRTY) if swap == loads.DIRTY_SWAP else (),
    )


def _redis(name: str, step: str, swap: str) -> Load:
    return replace(
        _load(name, step, swap),
        ready=REDIS_READY,
        program="redis",
        host=("redis-server", "redis-benchmark"),
        seeds=1,  # it takes three times as long as others
    )


def _stress(name: str, step: str, swap: str) -> Load:
    # with random numbers of its own, which are always the same
    cache_mib = MEMORY_MIB + STRESS_MIB
    return replace(_load(name, step, swap), cache_mib=cache_mib, host=("stress-ng",), seeds=1)


LOADS = tuple(
    make(name, step, swap)
    for swap in workloads.SWAPS
    for make, jobs in (
        (_load, JOBS),
        (_stress, {"stress-ng, vm": STRESS}),
        (_redis, REDIS_JOBS),
    )
    for name, step in jobs.items()
)


def writes_avoided(measured: Measurements, name: str, variant: str) -> float:
    """Of the pages that are written to swap with none, those that are not, in percent."""
    none, dirty = loads.beside(measured, name, FIRST, (NONE, variant))
    return 100 * (1 - loads.ratio(dirty.mean(loads.swap_outs), none.mean(loads.swap_outs)))


def swapped(kernels: Kernels) -> Outcome:
    """what an idle area is worth to memory that is swapped"""
    runs, measured = loads.run("swapped", kernels, LOADS, VARIANTS)
    places = [(load.name, setting) for load in LOADS for setting in load.settings]
    reads = min(
        loads.avoided(*(measured[*place, v] for v in (NONE, GCMA, MORE)), what=loads.swap_ins)
        for place in places
    )
    writes = max(
        loads.ratio(
            measured[*place, GCMA].mean(loads.swap_outs),
            measured[*place, NONE].mean(loads.swap_outs),
        )
        for place in places
    )
    dirty = min(
        writes_avoided(measured, load.name, variant) for load in LOADS for variant in load.further
    )
    return Outcome(
        runs,
        [
            loads.swap_table(
                "Pages read from swap and written to it",
                measured,
                VARIANTS,
                f"{SET_MIB} MiB of anonymous memory, an area of {AREA_MIB} MiB beside about"
                f" {MEMORY_MIB} MiB. Each page is written to once, then {ACCESSES:,} are accessed"
                f" ({6 * SET_MIB * PAGES:,} by applications), one in four for writing: what is read"
                " and written is that of all of it, instructions are those of the last half of the"
                f" accesses. Redis: {KEYS:,} keys of 1,000 bytes, set before; {REQUESTS:,}"
                " requests, of redis-benchmark of each kind. stress-ng: all that it does.",
            ),
            loads.swap_table(
                "Major faults",
                measured,
                VARIANTS,
                "Of the same. A page that comes from the area instead of from swap is one, too.",
                {"major faults": loads.major_faults},
            ),
            loads.swap_table(
                "The same with tenants that are not written to swap",
                measured,
                (NONE, GCMA, *DIRTY),
                "On a disk and with the classic LRU only, one random sequence each: zram is"
                " written through by all policies. gcma: the default, write-through. The whole area"
                " may hold such tenants, and nobody allocates from it.",
                {**loads.SWAPPED, "major faults": loads.major_faults},
            ),
        ],
        [],
        {
            "swapped-reads": reads,
            "swapped-writes": writes,
            "swapped-instructions": loads.worst(measured, loads.instructions),
            "swapped-writes-avoided": dirty,
        },
    )
