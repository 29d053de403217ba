# SPDX-License-Identifier: GPL-2.0-or-later
"""What an idle area is worth to pages in use, beside others that are read once."""

from lab import loads
from lab.guests import Kernels
from lab.loads import GCMA, MORE, NONE, PAGES, Load
from lab.results import Outcome

READS = 30_000
SCAN_MIB = 96
PASSES = 3  # of the scan, whole ones: the next job goes on where one ended
VARIANTS = (NONE, GCMA, MORE)
SCAN = f"hot 48 MiB beside a scan of {SCAN_MIB}"
SMALL_AREAS_MIB = (2, 4)
SEEDS = {"compile": 6}  # it reads a fifth more or less by chance, also with more memory


def _scan() -> Load:
    ready = "mkdir /disk/scan\njob fill /disk 48 1 >/dev/null\n"
    ready += f"job fill /disk/scan {SCAN_MIB} 1 >/dev/null"
    step = f"beside /disk 48 {{seed}}@ {PASSES * SCAN_MIB * PAGES} /disk/scan {SCAN_MIB}"
    warm = f"job {step.replace('@', '1')} >/dev/null"
    return Load(SCAN, 32, 32, 144, f"{ready}\n{warm}", (step.replace("@", "2"),))


def _stream(area_mib: int) -> Load:
    """Of the hot pages, the page cache alone holds nearly all."""
    step = f"beside /disk 56 {{seed}}@ {READS} /dev/stream {loads.STREAM_MIB}"
    ready = "job fill /disk 56 1 >/dev/null\n" + f"job {step.replace('@', '1')} >/dev/null"
    name = f"hot 56 MiB beside a stream, area {area_mib}, cache 64"
    return Load(
        name,
        area_mib,
        64,
        56,
        ready,
        (step.replace("@", "2"),),
        stream=True,
        settings=loads.BOTH_LRUS,
        seeds=1,
    )


def _small(job: str, area_mib: int) -> Load:
    """An area too small to be worth much: what it recycles loses its shadows."""
    ready = "job fill /disk 96 1 >/dev/null\n" + f"job {job} /disk 96 {{seed}}1 {READS} >/dev/null"
    name = f"{job} 96 MiB, area {area_mib}, cache 64"
    step = f"{job} /disk 96 {{seed}}2 {READS}"
    seeds = SEEDS.get(job, 1)
    return Load(
        name,
        area_mib,
        64,
        96,
        ready,
        (step,),
        settings=loads.BOTH_LRUS,
        seeds=seeds,
        elsewhere=seeds,
    )


LOADS = (
    _scan(),
    *(_stream(area) for area in SMALL_AREAS_MIB),
    *(_small(job, SMALL_AREAS_MIB[0]) for job in ("uniform", "zipf", "compile", "scan")),
)


def mixed(kernels: Kernels) -> Outcome:
    """what an idle area is worth to pages in use beside others that are read once"""
    runs, measured = loads.run("mixed", kernels, LOADS, VARIANTS)
    avoided = min(
        loads.avoided(*(measured[SCAN, place, v] for v in VARIANTS)) for place in loads.EVERYWHERE
    )
    return Outcome(
        runs,
        [
            loads.table(
                "Sectors read from disk by pages in use beside others",
                measured,
                VARIANTS,
                "By turns one page of the hot ones at random and the next of a file that is read"
                " from end to end, again and again, or of a stream. An area of 32 MiB beside 32 of"
                " page cache, unless said.",
            )
        ],
        [],
        {"mixed-hot": avoided, **loads.harm("mixed", measured)},
    )
