# SPDX-License-Identifier: GPL-2.0-or-later
"""Files whose pages come as large folios."""

from lab import loads
from lab.guests import Kernels
from lab.loads import CLASSIC, GCMA, GENERATIONS, MORE, MOVABLE, NONE, PAGES, Load, Setting
from lab.results import Outcome

VARIANTS = (NONE, MOVABLE, GCMA, MORE)
FITS = "cyclic 60 MiB, 64 KiB each, area 32, cache 32"
XFS = (Setting("xfs", CLASSIC), Setting("xfs", GENERATIONS))


def _cyclic(name: str, job: str, area_mib: int, cache_mib: int, file_mib: int) -> Load:
    ready = f"job fill /disk {file_mib} 1 >/dev/null\n"
    ready += f"job {job} /disk {file_mib} {{seed}}1 {3 * file_mib * PAGES} >/dev/null"
    step = f"{job} /disk {file_mib} {{seed}}2 {2 * file_mib * PAGES}"
    return Load(name, area_mib, cache_mib, file_mib, ready, (step,), settings=XFS, seeds=1)


LOADS = (
    _cyclic(FITS, "chunks", 32, 32, 60),
    _cyclic("cyclic 96 MiB, 64 KiB each, area 32, cache 32", "chunks", 32, 32, 96),
    _cyclic("cyclic 60 MiB, 4 KiB each, area 32, cache 32", "scan", 32, 32, 60),
)


def large(kernels: Kernels) -> Outcome:
    """what an idle area is worth where pages come as large folios"""
    runs, measured = loads.run("large", kernels, LOADS, VARIANTS)
    time = max(
        loads.ratio(
            measured[FITS, place, GCMA].mean(loads.fast_milliseconds),
            measured[FITS, place, MOVABLE].mean(loads.fast_milliseconds),
        )
        for place in XFS
    )
    return Outcome(
        runs,
        [
            loads.table(
                "Sectors read from disk, files with large folios",
                measured,
                VARIANTS,
                "Read from end to end, again and again.",
            )
        ],
        [],
        {"large-time": time, **loads.harm("large", measured)},
    )
