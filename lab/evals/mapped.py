# SPDX-License-Identifier: GPL-2.0-or-later
"""What an idle area is worth to files that are mapped."""

from lab import loads
from lab.guests import Kernels
from lab.loads import GCMA, MORE, NONE, PAGES, Load
from lab.results import Outcome

AREA_MIB = CACHE_MIB = 32
FILE_MIB = 70
FAULTS = 15_000
VARIANTS = (NONE, GCMA, MORE)
UNIFORM = "uniform faults"
ALMOST = "uniform faults, 64 MiB, area 16"  # more than fits: tenants lie scattered in the file
LOADS = (
    Load(
        UNIFORM,
        *(AREA_MIB, CACHE_MIB, FILE_MIB),
        f"job fill /disk {FILE_MIB} 1 >/dev/null\n"
        f"job faults /disk {FILE_MIB} {{seed}}1 {FAULTS} >/dev/null",
        (f"faults /disk {FILE_MIB} {{seed}}2 {FAULTS}",),
    ),
    Load(
        ALMOST,
        *(AREA_MIB // 2, CACHE_MIB, 64),
        f"job fill /disk 64 1 >/dev/null\njob faults /disk 64 {{seed}}1 {FAULTS} >/dev/null",
        (f"faults /disk 64 {{seed}}2 {FAULTS}",),
        settings=loads.BOTH_LRUS,
    ),
    Load(
        "faults from end to end",
        *(AREA_MIB, CACHE_MIB, FILE_MIB),
        f"job fill /disk {FILE_MIB} 1 >/dev/null\n"
        f"job walk /disk {FILE_MIB} {{seed}}1 {2 * FILE_MIB * PAGES} >/dev/null",
        (f"walk /disk {FILE_MIB} {{seed}}2 {2 * FILE_MIB * PAGES}",),
        settings=loads.BOTH_LRUS,
        seeds=1,
    ),
    Load(
        "faults from end to end, every second page kept",
        *(AREA_MIB, CACHE_MIB - 8, 64),
        "job fill /disk 64 1 >/dev/null\necho 1 >/proc/sys/vm/drop_caches\n"
        f"job half /disk 64 {{seed}}1 {3 * 64 * PAGES // 2} >/dev/null",
        (f"walk /disk 64 {{seed}}2 {64 * PAGES}",),
        elsewhere=8,  # on f2fs a few pages of memory decide what is kept: either way
    ),
)


def mapped(kernels: Kernels) -> Outcome:
    """what an idle area is worth to files that are mapped"""
    runs, measured = loads.run("mapped", kernels, LOADS, VARIANTS)
    uniform = [measured[UNIFORM, place, GCMA] for place in loads.EVERYWHERE]
    return Outcome(
        runs,
        [
            loads.table(
                "Sectors read from disk by faults",
                measured,
                VARIANTS,
                f"A file of {FILE_MIB} MiB unless said, an area of {AREA_MIB} MiB beside about"
                f" {CACHE_MIB} MiB of page cache. Uniform: {FAULTS:,} accesses.",
            )
        ],
        [],
        {
            "mapped-loads": max(m.mean(lambda cost: cost.loads) for m in uniform) / FAULTS,
            "mapped-time": max(m.mean(loads.milliseconds) for m in uniform),
            **loads.harm("mapped", measured),
        },
    )
