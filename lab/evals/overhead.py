# SPDX-License-Identifier: GPL-2.0-or-later
"""What GCMA costs: those who do not use it, and each page that is stored or loaded."""

from collections.abc import Iterable, Mapping

from lab import machine, measure, stats, workloads
from lab.evals.guests import Guest, Kernels, Said, run_all
from lab.machine import Machine
from lab.measure import Event
from lab.results import Cell, Outcome, Run, Table

AREA_MIB = 64
MEMORY_MIB = 192

# Where a process lies decides how many page tables a fork copies.
MIX = f"""\
echo 0 >/proc/sys/kernel/randomize_va_space
{workloads.ram_disk(32)}
job fill /disk 16 1 >/dev/null
mix /disk/data >/dev/null
section mix
mix /disk/data
"""

# Kernels that one pays for without using GCMA
UNPATCHED, OFF, NO_AREA, IDLE = "unpatched", "=n", "=y, no area", "=y, idle area"

PAGES_MIB = 24
RECLAIM_MIB = 16

# Each page is read alone, so that its events stand alone. The job runs in a group of its own: its
# pages are the group's. The two events are timed by the instructions between them, less what
# recording one of them takes: the second pass knows, as all else in it is the same.
TENANTS = f"""\
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


def tenant_guest(kernels: Kernels, name: str, policy: str, area_mib: int, cpus: int = 1) -> Guest:
    """A guest that stores and loads some pages and measures each step."""
    return Guest(
        name,
        kernels("prod"),
        machine.beside(MEMORY_MIB, area_mib, cpus, policy),
        TENANTS,
        workloads.files("job", "poke", "pagecopy", host=("mkfs.ext4",)),
    )


def reclaim_cost(said: Said) -> float:
    """Instructions for a page that memory.reclaim evicts."""
    stolen = said.gained("vmstat", "before", "reclaimed")["pgsteal_file"]
    return int(said["reclaim"]) / stolen


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


def load_cost(said: Said) -> float:
    """Instructions of a load: the median gap, less the recording of one event."""
    events = measure.events(said["trace"])
    quiet, traced = (measure.job(said[name])[1] for name in ("read-quiet", "read-traced"))
    return stats.percentile(load_gaps(events), 50) - (traced - quiet) / len(events)


def page_copy(said: Said) -> int:
    """Instructions of the kernel's copy_page() on this machine."""
    words = dict(line.split() for line in said["pagecopy"].splitlines() if line)
    return int(words[words["copy_page"]])


def _mix_guests(kernels: Kernels) -> list[Guest]:
    files = workloads.files("job", "mix", host=("mkfs.ext4",))

    def guest(name: str, flavour: str, area_mib: int, policy: str) -> Guest:
        shape = Machine(MEMORY_MIB + area_mib, cpus=1, area_mib=area_mib, policy=policy)
        return Guest(name, kernels(flavour), shape, MIX, files)

    return [
        guest(UNPATCHED, "unpatched", 0, "movable"),
        guest(OFF, "nogcma", 0, "movable"),
        guest(NO_AREA, "prod", 0, "movable"),
        guest(IDLE, "prod", AREA_MIB, "gcma"),
    ]


def _parts(said: Said) -> dict[str, int]:
    return measure.counters(said["mix"])


def _mix_table(parts: Mapping[str, Mapping[str, int]]) -> Table:
    base = {**parts[UNPATCHED], "all": sum(parts[UNPATCHED].values())}
    rows: list[list[Cell]] = []
    for name, count in base.items():
        row: list[Cell] = [name.replace("_", " "), count]
        for kernel in (OFF, NO_AREA, IDLE):
            value = parts[kernel].get(name, sum(parts[kernel].values()))
            row.append(round(100 * (value / count - 1), 3))
        rows.append(row)
    columns = ("part", "unpatched, instructions", *(f"{name}, %" for name in (OFF, NO_AREA, IDLE)))
    return Table("Instructions of a fixed mix, more than unpatched", columns, rows)


def _more(parts: Mapping[str, Mapping[str, int]], kernel: str) -> float:
    return 100 * (sum(parts[kernel].values()) / sum(parts[UNPATCHED].values()) - 1)


def overhead(kernels: Kernels) -> Outcome:
    """instructions of a fixed mix on four kernels; of a store and a load"""
    tenants = [tenant_guest(kernels, f"tenants, {p}", p, AREA_MIB) for p in ("none", "gcma")]
    said = run_all("overhead", [*_mix_guests(kernels), *tenants], 25)
    parts = {name: _parts(said[name]) for name in (UNPATCHED, OFF, NO_AREA, IDLE)}
    gcma = said["tenants, gcma"]
    copy = page_copy(gcma)
    costs = {
        "store": reclaim_cost(gcma) - reclaim_cost(said["tenants, none"]),
        "load": load_cost(gcma),
    }
    rows: list[list[Cell]] = [
        [name, round(cost), copy, cost / (copy + 400)] for name, cost in costs.items()
    ]
    runs: list[Run] = [said[name].run(counters=parts[name]) for name in parts]
    runs += [said["tenants, none"].run(), gcma.run(counters=costs)]
    return Outcome(
        runs,
        [
            _mix_table(parts),
            Table(
                "Instructions of a page",
                ("what", "instructions", "bare page copy", "of one copy plus 400"),
                rows,
                "Store: what memory.reclaim takes for a page more than with policy none. Load: from"
                " the page's way into the page cache to the end of the load. Copy: copy_page().",
            ),
        ],
        values={
            "overhead-n": _more(parts, OFF),
            "overhead-y": _more(parts, NO_AREA),
            "store-copy": costs["store"] / (copy + 400),
            "load-copy": costs["load"] / (copy + 400),
        },
    )
