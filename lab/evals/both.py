# SPDX-License-Identifier: GPL-2.0-or-later
"""What an idle area is worth to files and to memory that is swapped, alone and at once."""

from collections.abc import Callable

from lab import loads, workloads
from lab.guests import Kernels
from lab.loads import DIRTY, GCMA, MORE, MOVABLE, NONE, Cost, Load, Measurements, Setting
from lab.results import Cell, Outcome, Table

AREA_MIB = MEMORY_MIB = 48
SET_MIB = 104  # larger than memory, smaller than memory and area
HALF_MIB = SET_MIB // 2
SWAP_MIB = 2 * SET_MIB
ACCESSES = 60_000
VARIANTS = (NONE, MOVABLE, GCMA, MORE)
FILES, MEMORY, BOTH = "files", "memory", "both"
LOADS = tuple(
    Load(
        f"{name}, {swap}",
        AREA_MIB,
        MEMORY_MIB,
        SET_MIB,
        f"job fill /disk {SET_MIB} 1 >/dev/null",
        (step,),
        settings=loads.BOTH_LRUS,
        program=program,
        swap=swap,
        swap_mib=SWAP_MIB,
        further=tuple(DIRTY) if swap == loads.DIRTY_SWAP and name != FILES else (),
    )
    for swap in workloads.SWAPS
    for name, program, step in (
        (FILES, "job", f"uniform /disk {SET_MIB} {{seed}} {ACCESSES}"),
        (MEMORY, "memory", f"uniform {SET_MIB} {{seed}} {ACCESSES}"),
        (BOTH, "memory", f"beside {HALF_MIB} {{seed}} {ACCESSES} /disk/data {HALF_MIB}"),
    )
)
KINDS = {FILES: loads.sectors, MEMORY: loads.swap_ins}


def avoided(
    measured: Measurements, name: str, place: Setting, what: Callable[[Cost], float]
) -> float:
    """Of the reads that there are with none, those that there are not with gcma, in percent."""
    none, gcma = (measured[name, place, variant].mean(what) for variant in (NONE, GCMA))
    return 100 * (1 - loads.ratio(gcma, none))


def kept(beside: float, alone: float) -> float:
    """Of what is avoided alone, what is beside the other; if that is nothing, or less, whether it
    is no less.
    """
    return beside / alone if alone > 0 else float(beside >= alone)


def both(kernels: Kernels) -> Outcome:
    """what an idle area is worth to files and swapped memory at once: neither starves the other"""
    runs, measured = loads.run("both", kernels, LOADS, VARIANTS)
    rows: list[list[Cell]] = []
    shares: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for swap in workloads.SWAPS:
        for place in loads.BOTH_LRUS:
            for kind, what in KINDS.items():
                alone, beside = f"{kind}, {swap}", f"{BOTH}, {swap}"
                percent = {name: avoided(measured, name, place, what) for name in (alone, beside)}
                shares[kind].append(kept(percent[beside], percent[alone]))
                for name, state in ((alone, "alone"), (beside, "beside the other")):
                    by = {v: measured[name, place, v] for v in VARIANTS}
                    of_more = loads.avoided(by[NONE], by[GCMA], by[MORE], what=what)
                    rows.append(
                        [
                            *(kind, state, swap, place.lru),
                            *(round(by[v].mean(what)) for v in VARIANTS),
                            *(round(percent[name], 1), round(of_more, 1)),
                        ]
                    )
    return Outcome(
        runs,
        [
            Table(
                "Sectors of files, and pages of swap, that are read",
                (
                    *("of", "", "swap", "LRU", *VARIANTS),
                    "avoided, %",
                    "of what more memory avoids, %",
                ),
                rows,
                f"{ACCESSES:,} accesses at random to {SET_MIB} MiB of files, or of memory, or by"
                f" turns to {HALF_MIB} of each; an area of {AREA_MIB} MiB beside about"
                f" {MEMORY_MIB} MiB. Avoided: by gcma, of the reads with none.",
            ),
            loads.swap_table(
                "The same with tenants that are not written to swap",
                measured,
                (NONE, GCMA, *DIRTY),
                "On a disk and with the classic LRU only, one random sequence each. gcma: the"
                " default, write-through. The whole area may hold such tenants: they stay until"
                " they are freed or swapped in, and files have what they leave.",
                {"sectors": loads.sectors, "swap-ins": loads.swap_ins},
            ),
        ],
        [],
        {"both-files": min(shares[FILES]), "both-memory": min(shares[MEMORY])},
    )
