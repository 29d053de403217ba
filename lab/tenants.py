# SPDX-License-Identifier: GPL-2.0-or-later
"""What a store and a load of a tenant take: an exact guest that does some, and its reading."""

from collections.abc import Iterable

from lab import machine, measure, stats, workloads
from lab.guests import Guest, Kernels, Output
from lab.measure import Event

PAGES_MIB = 24
RECLAIM_MIB = 16
MEMORY_MIB = 192

# Each page is read alone, so that its events stand alone. The job runs in a group of its own: its
# pages are the group's. The two events are timed by the instructions between them, less what
# recording one of them takes: the second pass knows, as all else in it is the same.
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
echo x86-tsc >trace_clock
echo 16384 >buffer_size_kb
read_all >/dev/null
snapshot before
section reclaim
reclaim
snapshot reclaimed
section read-quiet
read_all
reclaim >/dev/null
for event in filemap/mm_filemap_add_to_page_cache gcma/gcma_load; do
	[ ! -e events/$event ] || echo 1 >events/$event/enable
done
section read-traced
read_all
echo 0 >tracing_on
section trace
grep -E 'mm_filemap_add_to_page_cache|gcma_load' trace || true
section pagecopy
pagecopy
grep -q rep_good /proc/cpuinfo && echo copy_page rep || echo copy_page regs
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
    return reclaim_cost(gcma) - reclaim_cost(none)


def load_gaps(events: Iterable[Event]) -> list[float]:
    """Instructions between a page's way into the page cache and the end of its load."""
    gaps = []
    added: float | None = None
    for event in events:
        if event.name == "mm_filemap_add_to_page_cache":
            added = event.time
        elif event.name == "gcma_load" and added is not None:
            gaps.append(event.time - added)
            added = None
    return gaps


def load_cost(output: Output) -> float:
    """Instructions of a load: the median gap, less the recording of one event."""
    events = measure.events(output["trace"])
    quiet, traced = (measure.job(output[name])[1] for name in ("read-quiet", "read-traced"))
    return stats.percentile(load_gaps(events), 50) - (traced - quiet) / len(events)


def page_copy(output: Output) -> int:
    """Instructions of the kernel's copy_page() on this machine."""
    words = dict(line.split() for line in output["pagecopy"].splitlines() if line)
    return int(words[words["copy_page"]])
