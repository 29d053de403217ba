# SPDX-License-Identifier: GPL-2.0-or-later
"""What a store and a load of a tenant take: an exact guest that does some, and its reading."""

from collections.abc import Iterable

from lab import machine, measure, stats, targets, workloads
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output
from lab.measure import Event

PAGES_MIB = 24
RECLAIM_MIB = 16
MEMORY_MIB = 192
STORED = 0.95  # of the pages that are evicted, so many must be: the others cost next to nothing
ALLOCATED, ADDED, LOADED = "mm_page_alloc", "mm_filemap_add_to_page_cache", "gcma_load"
EVENTS = f"{ALLOCATED}|{ADDED}|{LOADED}"

# What a bare copy takes, to hold the costs of pages against
PAGE_COPY = """\
section pagecopy
pagecopy
grep -q rep_good /proc/cpuinfo && echo copy_page rep || echo copy_page regs
"""

# Each page is read alone, so that its events stand alone. The job runs in a group of its own: its
# pages are the group's. The first pass reads pages that were never evicted, the two others pages
# that were: from tenants, if there are any. Only the events tell the last two apart.
SCRIPT = f"""\
{workloads.ram_disk(48)}
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/job
group=/sys/fs/cgroup/job
job fill /disk {PAGES_MIB} 1 >/dev/null
echo 1 >/proc/sys/vm/drop_caches
read_all() {{
	sh -c "echo 0 >$group/cgroup.procs; job pages /disk {PAGES_MIB} 1 {PAGES_MIB * 256}"
}}
reclaim() {{ poke $group/memory.reclaim {RECLAIM_MIB}M; }}
cd /sys/kernel/tracing
echo {targets.DEFAULT.trace_clock} >trace_clock
echo 16384 >buffer_size_kb
trace() {{
	[ $1 = 0 ] || echo >trace
	for event in kmem/mm_page_alloc filemap/mm_filemap_add_to_page_cache gcma/gcma_load; do
		[ ! -e events/$event ] || echo $1 >events/$event/enable
	done
}}
trace 1
section first
read_all
trace 0
section first-trace
grep -E '{EVENTS}' trace || true
snapshot before
section reclaim
reclaim
snapshot reclaimed
section read-quiet
read_all
reclaim >/dev/null
trace 1
section read-traced
read_all
trace 0
section trace
grep -E '{EVENTS}' trace || true
{PAGE_COPY}\
snapshot after
"""


def guest(kernels: Kernels, name: str, policy: str, area_mib: int, cpus: int = 1) -> Guest:
    """A guest that stores and loads some pages and measures each step."""
    return Guest(
        name,
        kernels("prod"),
        machine.beside(MEMORY_MIB, area_mib, cpus, policy),
        SCRIPT,
        workloads.files("job", "poke", "pagecopy", host=("mkfs.ext4",)),
    )


def reclaim_cost(output: Output) -> float:
    """Instructions for a page that memory.reclaim evicts."""
    stolen = output.gained("vmstat", "before", "reclaimed")["pgsteal_file"]
    return int(output["reclaim"]) / stolen


def store_cost(none: Output, gcma: Output) -> float:
    """Instructions of a store: what an eviction takes more with it."""
    stores = gcma.gained("area", "before", "reclaimed")["stores"]
    stolen = gcma.gained("vmstat", "before", "reclaimed")["pgsteal_file"]
    if stores < stolen * STORED:
        raise LabError(
            f"{gcma.guest.name}: of {stolen:,} evicted pages only {stores:,} were stored"
        )
    return reclaim_cost(gcma) - reclaim_cost(none)


def gaps(events: Iterable[Event], begin: str, end: str) -> list[float]:
    """Instructions from each `end` back to the last `begin` before it."""
    lengths = []
    begun: float | None = None
    for event in events:
        if event.name == end and begun is not None:
            lengths.append(event.time - begun)
            begun = None
        if event.name == begin:
            begun = event.time
    return lengths


def _median_gap(output: Output, section: str, begin: str, end: str) -> float:
    return stats.percentile(gaps(measure.events(output[section]), begin, end), 50)


def load_cost(none: Output, gcma: Output) -> float:
    """Instructions of a load: what a page's way into the page cache takes more with it.

    The way goes from the allocation of the page to its addition; that the frame is given back
    afterwards, nobody waits for. With tenants the refault is accounted on this way, without them
    later: what that takes, pages that were evicted tell beside pages that never were.
    """
    with_load = _median_gap(gcma, "trace", ALLOCATED, LOADED)
    with_load -= _median_gap(gcma, "trace", ADDED, LOADED)
    without = _median_gap(none, "trace", ALLOCATED, ADDED)
    refault = _median_gap(none, "trace", ADDED, ALLOCATED)
    refault -= _median_gap(none, "first-trace", ADDED, ALLOCATED)
    return with_load - without - refault


def page_copy(output: Output) -> int:
    """Instructions of the kernel's copy_page() on this machine."""
    words = dict(line.split() for line in output["pagecopy"].splitlines() if line)
    return int(words[words["copy_page"]])
