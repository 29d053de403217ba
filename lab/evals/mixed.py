# SPDX-License-Identifier: GPL-2.0-or-later
"""What an idle area is worth to pages in use, beside others that are read once."""

from lab import loads
from lab.guests import Kernels
from lab.loads import GCMA, MORE, NONE, PAGES, Load
from lab.results import Outcome

READS = 30_000
AGAIN_READS = 150_000
SCAN_MIB = 96
PASSES = 3  # of the scan, whole ones: the next job goes on where one ended
VARIANTS = (NONE, GCMA, MORE)
SCAN = f"hot 48 MiB beside a scan of {SCAN_MIB}"
SMALL_AREAS_MIB = (2, 4)
SEEDS = {"compile": 6}  # it reads a fifth more or less by chance, also with more memory
# In use already; found to be; what evicts these before that; what passes by after each reading
ACTIVE_MIB, FOUND_MIB, EVICT_MIB, FLOW_MIB = 31, 12, 40, 72


def _scan() -> Load:
    ready = "mkdir /disk/scan\njob fill /disk 48 1 >/dev/null\n"
    ready += f"job fill /disk/scan {SCAN_MIB} 1 >/dev/null"
    step = f"beside /disk 48 {{seed}}@ {PASSES * SCAN_MIB * PAGES} /disk/scan {SCAN_MIB}"
    warm = f"job {step.replace('@', '1')} >/dev/null"
    return Load(SCAN, 32, 32, 144, f"{ready}\n{warm}", (step.replace("@", "2"),))


def _stream(hot_mib: int, area_mib: int) -> Load:
    """Of the hot pages, the page cache alone holds nearly all, or most."""
    step = f"beside /disk {hot_mib} {{seed}}@ {READS} /dev/stream {loads.STREAM_MIB}"
    ready = f"job fill /disk {hot_mib} 1 >/dev/null\njob {step.replace('@', '1')} >/dev/null"
    name = f"hot {hot_mib} MiB beside a stream, area {area_mib}, cache 64"
    return Load(
        name,
        area_mib,
        64,
        hot_mib,
        ready,
        (step.replace("@", "2"),),
        stream=True,
        settings=loads.BOTH_LRUS,
        seeds=1,
    )


def _again(every: int) -> Load:
    """What comes back does so after more than the page cache holds, and once."""
    step = f"again /dev/stream {loads.STREAM_MIB} 1 {AGAIN_READS} {every} 48"
    name = f"a stream, each page of {every} again"
    settings = loads.BOTH_LRUS
    return Load(name, 32, 32, 0, ":", (step,), stream=True, settings=settings, seeds=1)


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


def _in_use(passes: int) -> Load:
    """Pages of which only a shadow tells that they are in use, beside a flow that reads nothing.

    Those that are not found out to be are read again by each pass.
    """
    flow = f"{FLOW_MIB} 1 {FLOW_MIB * PAGES}"
    holes = range(passes + 1)
    truncate = f"truncate -s {FLOW_MIB}M " + " ".join(f"/disk/hole{n}" for n in holes)
    ready = (
        "mkdir /disk/active /disk/found",
        f"job fill /disk/active {ACTIVE_MIB} 1 >/dev/null",
        f"job fill /disk/found {FOUND_MIB} 1 >/dev/null",
        truncate,
        "echo 1 >/proc/sys/vm/drop_caches",
        # so that hardly any page is admitted
        *(f"job pages /disk/hole{n} {flow} >/dev/null" for n in (1, 2)),
        f"job pages /disk/active {ACTIVE_MIB} 1 {3 * ACTIVE_MIB * PAGES} >/dev/null",
        f"job pages /disk/found {FOUND_MIB} 1 {FOUND_MIB * PAGES} >/dev/null",
        f"job pages /disk/hole0 {FLOW_MIB} 1 {EVICT_MIB * PAGES} >/dev/null",
    )
    read_again = f"pages /disk/found {FOUND_MIB} 1 {FOUND_MIB * PAGES}"
    jobs = [each for n in holes[1:] for each in (read_again, f"pages /disk/hole{n} {flow}")]
    return Load(
        f"{FOUND_MIB} MiB found in use beside a flow, area 8, cache 64",
        8,
        64,
        ACTIVE_MIB + FOUND_MIB,
        "\n".join(ready),
        (" && job ".join([*jobs, read_again]),),
        settings=loads.BOTH_LRUS,
        seeds=3,
    )


LOADS = (
    _scan(),
    _in_use(10),
    *(_stream(56, area) for area in SMALL_AREAS_MIB),
    _stream(72, SMALL_AREAS_MIB[1]),
    *(_again(every) for every in (3, 10)),
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
