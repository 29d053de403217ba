# SPDX-License-Identifier: GPL-2.0-or-later
"""What an idle area is worth: sectors that jobs read from disk. Exact guests, so counts repeat.

Beside the policies there is the machine without an area, which has as much more memory, and
Belady's optimum: what a victim cache as large as the area would have avoided if it had known the
future, on the evictions recorded with policy none.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab import measure, workloads
from lab.guests import Guest, Kernels, Output, run_all
from lab.loads import (
    CLASSIC,
    GCMA,
    GENERATIONS,
    KERNEL_MIB,
    MORE,
    MOVABLE,
    NONE,
    SWITCH,
    of_possible,
    ratio,
)
from lab.machine import Machine
from lab.results import Cell, Line, Outcome, Plot, Run, Table

AREA_MIB = 64
CACHE_MIB = 64  # about what the page cache can have beside the area
# larger than the page cache and the area together by a tenth
FILES_MIB = (CACHE_MIB + AREA_MIB) * 11 // 10
MEMORY_MIB = AREA_MIB + CACHE_MIB + KERNEL_MIB + FILES_MIB
PAGES = FILES_MIB * 256
JOBS = ("uniform", "zipf", "compile", "scan")

ALWAYS, BELADY = "gcma, always", "Belady"
USEFUL = 0.01  # of the reads: less than that avoided is nothing
VARIANTS = {CLASSIC: (NONE, MOVABLE, GCMA, ALWAYS, MORE), GENERATIONS: (NONE, GCMA, MORE)}

# The first half warms up, the second is counted.
SCRIPT = f"""\
{workloads.STEADY}{workloads.ram_disk(FILES_MIB * 5 // 4)}
echo @generations@ >{SWITCH}
@trace@
job fill /disk {FILES_MIB} 1 >/dev/null
[ ! -e {workloads.AREA}/admission ] || echo @admission@ >{workloads.AREA}/admission
section meminfo
grep MemAvailable /proc/meminfo
job @job@ /disk {FILES_MIB} 2 {2 * PAGES} >/dev/null
@mark@
snapshot before
job @job@ /disk {FILES_MIB} 3 {2 * PAGES} >/dev/null
snapshot after
@untrace@
"""
TRACE = {
    # from the first eviction on, or Belady would not have what the area has
    "@trace@": """\
touch /disk/data
cd /sys/kernel/tracing
echo 16384 >buffer_size_kb
echo 1 >events/filemap/mm_filemap_add_to_page_cache/enable
echo 1 >events/filemap/mm_filemap_delete_from_page_cache/enable
evictions /disk/data <trace_pipe >/tmp/evictions &
filter=$!
cd /""",
    "@mark@": "echo mark >/sys/kernel/tracing/trace_marker",
    "@untrace@": """\
echo end >/sys/kernel/tracing/trace_marker
wait $filter
section evictions
cat /tmp/evictions""",
}
NO_TRACE = dict.fromkeys(TRACE, "")


@dataclass(frozen=True)
class Trace:
    """Pages on their way into (+) and out of (-) the page cache; None is the mark."""

    steps: Sequence[tuple[bool, int] | None]


def read_trace(text: str) -> Trace:
    """Lines of lab/guest/evictions.c."""
    steps: list[tuple[bool, int] | None] = []
    for line in text.splitlines():
        if line == "!":
            steps.append(None)
        elif line[:1] in ("+", "-"):
            steps.append((line[0] == "+", int(line[1:], 16)))
    return Trace(steps)


def belady(trace: Trace, frames: int) -> int:
    """Reads after the mark with the best victim cache of so many frames.

    Exclusive: an eviction may put the page into the cache, the next read takes it out. The best
    choice is to throw away, or not to let in, the page whose next read is farthest away.
    """
    next_read = _next_reads(trace)
    held: dict[int, int] = {}  # page -> when it is read next
    farthest: list[tuple[int, int]] = []  # (-when, page), with pages that left the cache
    reads = 0
    for number, step in enumerate(trace.steps):
        if step is None:
            reads = 0
            continue
        added, page = step
        if added:
            reads += held.pop(page, None) is None
            continue
        held[page] = next_read[number]
        heapq.heappush(farthest, (-next_read[number], page))
        while len(held) > frames:
            when, victim = heapq.heappop(farthest)
            if held.get(victim) == -when:
                del held[victim]
    return reads


def _next_reads(trace: Trace) -> list[int]:
    """For each step, when its page comes into the page cache next."""
    upcoming: dict[int, int] = {}
    next_reads = [len(trace.steps)] * len(trace.steps)
    for number in range(len(trace.steps) - 1, -1, -1):
        step = trace.steps[number]
        if step is None:
            continue
        added, page = step
        next_reads[number] = upcoming.get(page, len(trace.steps))
        if added:
            upcoming[page] = number
    return next_reads


def _name(job: str, lru: str) -> str:
    return job if lru == CLASSIC else f"{job}, {lru}"


def _guest(
    kernels: Kernels, job: str, variant: str, lru: str = CLASSIC, *, traced: bool = False
) -> Guest:
    policy = {NONE: "none", MOVABLE: "movable", MORE: "movable"}.get(variant, "gcma")
    script = SCRIPT.replace("@job@", job)
    script = script.replace("@admission@", "always" if variant == ALWAYS else "adaptive")
    script = script.replace("@generations@", "y" if lru == GENERATIONS else "n")
    for mark, text in (TRACE if traced else NO_TRACE).items():
        script = script.replace(mark, text)
    area = 0 if variant == MORE else AREA_MIB
    return Guest(
        f"{_name(job, lru)}, {variant}" + (", traced" if traced else ""),
        kernels("prod"),
        Machine(MEMORY_MIB + (16 if traced else 0), cpus=1, area_mib=area, policy=policy),
        script,
        workloads.files("job", "evictions", host=("mkfs.ext4",)),
    )


def _sectors(output: Output) -> int:
    return output.sectors_read("disk", "before", "after")


def _requests(output: Output) -> int:
    return output.requests("disk", "before", "after")


def _run(output: Output) -> Run:
    counters: dict[str, float] = {
        "sectors read": _sectors(output),
        "requests": _requests(output),
        # CACHE_MIB is but meant
        "available, KiB": measure.counters(output["meminfo"])["MemAvailable"],
    }
    area = output.gained("area", "before", "after") if "area before" in output.sections else {}
    for name in ("stores", "loads", "misses", "recycles", "refused_admission"):
        if name in area:
            counters[name] = area[name]
    return output.run(counters=counters)


def _avoided(reads: Mapping[str, float], variant: str, best: str) -> float:
    """Of the reads that `best` avoids, those that `variant` avoids, in percent."""
    return of_possible(reads[NONE], reads[variant], reads[best])


def _share(reads: Mapping[str, float], variant: str) -> Cell:
    """The same for the table: None where more memory is of no use, or it was not run."""
    useful = variant in reads and reads[NONE] - reads[MORE] > USEFUL * reads[NONE]
    return round(_avoided(reads, variant, MORE), 1) if useful else None


def tenancy(kernels: Kernels) -> Outcome:
    """what an idle area is worth: disk sectors read by jobs larger than memory"""
    guests = [
        _guest(kernels, job, variant, lru)
        for lru, variants in VARIANTS.items()
        for job in JOBS
        for variant in variants
    ]
    traces = [_guest(kernels, job, NONE, traced=True) for job in JOBS]
    outputs = run_all("tenancy", [*guests, *traces], 30)
    reads: dict[str, dict[str, float]] = {}
    for lru, variants in VARIANTS.items():
        for name in (_name(job, lru) for job in JOBS):
            reads[name] = {variant: _sectors(outputs[f"{name}, {variant}"]) for variant in variants}
    for job in JOBS:
        traced = outputs[f"{job}, {NONE}, traced"]
        # the tracer's own memory changes the reads a little: scale to the untraced run
        trace = read_trace(traced["evictions"])
        share = belady(trace, AREA_MIB * 256) / max(belady(trace, 0), 1)
        reads[job][BELADY] = round(reads[job][NONE] * share)
    columns = (*VARIANTS[CLASSIC], BELADY)
    rows: list[list[Cell]] = [
        [job, *(of.get(name) for name in columns)] for job, of in reads.items()
    ]
    shares: list[list[Cell]] = [
        [job, *(_share(of, name) for name in columns[1:])] for job, of in reads.items()
    ]
    bars = [
        Line(name, [(float(x), reads[job][name] / reads[job][NONE]) for x, job in enumerate(JOBS)])
        for name in columns
    ]
    scan = reads["scan"]
    return Outcome(
        [_run(output) for output in outputs.values()],
        [
            Table(
                "Sectors read from disk",
                ("job", *columns),
                rows,
                f"{2 * PAGES:,} pages of a file of {FILES_MIB} MiB; about {CACHE_MIB} MiB of page"
                f" cache beside an area of {AREA_MIB} MiB. Belady: of the evictions of none. Pages"
                " that come back from the area count as refaults, so the page cache itself may"
                " keep better ones than with none: gcma can read less than that. The classic LRU,"
                " unless said.",
            ),
            Table(
                "Reads avoided, in % of those that more memory avoids",
                ("job", *columns[1:]),
                shares,
            ),
        ],
        [
            Plot(
                "Disk reads, relative to none",
                "bars",
                "",
                "sectors read",
                bars,
                groups=JOBS,
            )
        ],
        {
            **{
                f"tenancy-{job}": min(
                    _avoided(reads[_name(job, lru)], GCMA, MORE) for lru in VARIANTS
                )
                for job in JOBS[:3]
            },
            **{
                f"tenancy-{name}": max(
                    ratio(what(outputs[f"{job}, {GCMA}"]), what(outputs[f"{job}, {NONE}"]))
                    for job in reads
                )
                for name, what in (("sectors", _sectors), ("requests", _requests))
            },
            "tenancy-scan-always": 100 * (1 - scan[GCMA] / scan[ALWAYS]) if scan[ALWAYS] else 0.0,
            "tenancy-scan-belady": _avoided(scan, GCMA, BELADY),
        },
    )
