# SPDX-License-Identifier: GPL-2.0-or-later
"""What an idle area is worth when the load changes."""

from collections.abc import Sequence

from lab import loads
from lab.guests import Kernels
from lab.loads import GCMA, MORE, NONE, PAGES, Load, Setting
from lab.results import Line, Outcome, Plot

AREA_MIB = CACHE_MIB = 32
SCAN_MIB, SET_MIB = 96, 48  # larger, and smaller, than page cache and area together
READS = 30_000  # of a step
VARIANTS = (NONE, GCMA, MORE)
STEPS = tuple(f"uniform /disk {SET_MIB} {{seed}}{number} {READS}" for number in range(1, 5))
LABELS = tuple(f"reads to {number * READS:,}" for number in range(1, 5))
TO_SET = ("six passes of a scan, then a set", "three passes of a scan, then a set")


def _load(name: str, ready: str, settings: Sequence[Setting] = loads.BOTH_LRUS) -> Load:
    ready = f"job fill /disk {SCAN_MIB} 1 >/dev/null\n{ready}"
    return Load(name, AREA_MIB, CACHE_MIB, SCAN_MIB, ready, STEPS, LABELS, settings=settings)


def _scan(passes: int) -> str:
    return f"job scan /disk {SCAN_MIB} 2 {passes * SCAN_MIB * PAGES} >/dev/null"


def _by_turns(area_mib: int, cache_mib: int, mib: int, passes: int) -> Load:
    """Each fits in memory, but not both: what is in use is evicted, and then in use again."""
    ready = ["mkdir /disk/one /disk/two"]
    ready += [f"job fill /disk/{which} {mib} 1 >/dev/null" for which in ("one", "two")]
    steps = [
        f"pages /disk/{which} {mib} {{seed}} {passes * mib * PAGES}" for which in ("one", "two") * 3
    ]
    ready += [f"job {step} >/dev/null" for step in steps[:2]]
    labels = [f"set {number % 2 + 1}, {number // 2 + 1}" for number in range(4)]
    return Load(
        f"two sets of {mib} MiB by turns, each read {passes} times,"
        f" area {area_mib}, cache {cache_mib}",
        *(area_mib, cache_mib, 2 * mib),
        "\n".join(ready),
        tuple(steps[2:]),
        tuple(labels),
        settings=loads.BOTH_LRUS,
    )


LOADS = (
    _load(TO_SET[0], _scan(6), loads.EVERYWHERE),
    _load(TO_SET[1], _scan(3)),
    _load("a set, a scan, the set", f"job uniform /disk {SET_MIB} 5 60000 >/dev/null\n{_scan(4)}"),
    _by_turns(3, 62, 44, 5),
    _by_turns(1, 64, 50, 4),
)


def phases(kernels: Kernels) -> Outcome:
    """what an idle area is worth when the load changes"""
    runs, measured = loads.run("phases", kernels, LOADS, VARIANTS)
    setting = loads.FIRST
    lines = [
        Line(
            variant,
            [
                (
                    float(number * READS),
                    measured[TO_SET[0], setting, variant].mean(
                        loads.sectors, slice(number - 1, number)
                    ),
                )
                for number in range(1, 5)
            ],
        )
        for variant in VARIANTS
    ]
    first = slice(0, 2)
    adapts = max(
        loads.ratio(
            measured[load, place, GCMA].mean(loads.sectors, first),
            measured[load, place, MORE].mean(loads.sectors, first),
        )
        for load, place, variant in measured
        if load in TO_SET and variant == GCMA
    )
    return Outcome(
        runs,
        [
            loads.table(
                "Sectors read from disk when the load changes",
                measured,
                VARIANTS,
                f"An area of {AREA_MIB} MiB beside about {CACHE_MIB} MiB of page cache, unless"
                f" said; scans of {SCAN_MIB} MiB, uniform reads of the first {SET_MIB} MiB.",
            )
        ],
        [Plot(f"{TO_SET[0]}: disk reads", "lines", "reads", "sectors read", lines)],
        {
            "phases-adapt": adapts,
            **loads.harm("phases", measured),
            "phases-step": max(
                loads.worst(measured, loads.sectors, loads.BLOCK, slice(number, number + 1))
                for number in range(max(len(load.steps) for load in LOADS))
            ),
        },
    )
