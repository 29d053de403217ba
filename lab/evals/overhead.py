# SPDX-License-Identifier: GPL-2.0-or-later
"""What GCMA costs: those who do not use it, and each page that is stored or loaded."""

from collections.abc import Mapping

from lab import loads, measure, tenants, workloads
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output, run_all
from lab.machine import Machine
from lab.results import Cell, Outcome, Run, Table

AREA_MIB = 64
MEMORY_MIB = 192
SWAP_MIB = 32
SWAPPED = 0.95  # of the pages that are to be, so many must be: the others cost next to nothing
MIXED = "mix"
SECONDS = 70  # of a guest on an idle core
LRUS = {loads.CLASSIC: "n", loads.GENERATIONS: "y"}  # what `loads.SWITCH` is to say


def on(lru: str, mix: str) -> str:
    """The name of a mix on an LRU."""
    return mix if lru == loads.CLASSIC else f"{lru}, {mix}"


def _switched(script: str, mix: str) -> str:
    """The script on each LRU, told the mix's name there."""
    return "".join(
        f"echo {word} >{loads.SWITCH}\n{script} '{on(lru, mix)}'\n" for lru, word in LRUS.items()
    )


SWAPPING = "".join(
    f"{swap.on(SWAP_MIB, wait=False)}{_switched('swaps', name)}"
    "swapoff $(sed -n '2s/ .*//p' /proc/swaps)\n"
    for name, swap in workloads.SWAPS.items()
)
# Where a process lies decides how many page tables a fork copies. Swap comes last: the mix is as it
# would be without. Nobody waits for the disk, for waiting counts.
MIX = f"""\
echo 0 >/proc/sys/kernel/randomize_va_space
{workloads.ram_disk(32)}
job fill /disk 16 1 >/dev/null
fixed() {{ # its name
	mix /disk/data >/dev/null
	section "$1"
	mix /disk/data
}}
{_switched("fixed", MIXED)}\
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
group=/sys/fs/cgroup/mix
mkdir $group
swaps() {{ # its name; swap is on
	section "vmstat before $1"; cat /proc/vmstat
	section "$1"
	sh -c "echo 0 >$group/cgroup.procs; exec mix swap $group/memory.reclaim"
	section "vmstat after $1"; cat /proc/vmstat
}}
{SWAPPING}\
"""

# Kernels that one pays for without using GCMA
UNPATCHED, OFF, NO_AREA, IDLE = "unpatched", "=n", "=y, no area", "=y, idle area"
NO_RENTAL = "=y, no area, no rental"  # =y, no area, but for rental memory: what that alone takes
SET_BESIDE = (OFF, NO_RENTAL, NO_AREA, IDLE)

Parts = Mapping[str, int]  # part of a mix -> its instructions


def _mix_guests(kernels: Kernels) -> list[Guest]:
    files = workloads.files("job", "mix", host=("mkfs.ext4",))

    def guest(name: str, flavour: str, area_mib: int, policy: str) -> Guest:
        shape = Machine(MEMORY_MIB + area_mib, cpus=1, area_mib=area_mib, policy=policy)
        return Guest(name, kernels(flavour), shape, MIX, files)

    return [
        guest(UNPATCHED, "unpatched", 0, "movable"),
        guest(OFF, "nogcma", 0, "movable"),
        guest(NO_RENTAL, "norental", 0, "movable"),
        guest(NO_AREA, "prod", 0, "movable"),
        guest(IDLE, "prod", AREA_MIB, "gcma"),
    ]


def _swap_parts(output: Output, swap: str) -> Parts:
    """Raises a LabError if pages were not swapped: what was not done is cheap on any kernel."""
    parts = measure.counters(output[swap])
    pages = parts.pop("pages")
    gained = output.gained("vmstat", f"before {swap}", f"after {swap}")
    # what comes from an area is not read
    for event in ("pswpout",) if output.guest.machine.area_mib else ("pswpout", "pswpin"):
        if gained[event] < SWAPPED * pages:
            raise LabError(
                f"{output.guest.name}, {swap}: {event} is {gained[event]:,} for {pages:,} pages"
            )
    return parts


def read(output: Output) -> dict[str, Parts]:
    """By the mix: the fixed one, and one on each swap, on each LRU."""
    fixed = [on(lru, MIXED) for lru in LRUS]
    swapping = [on(lru, swap) for swap in workloads.SWAPS for lru in LRUS]
    return {
        **{mix: measure.counters(output[mix]) for mix in fixed},
        **{mix: _swap_parts(output, mix) for mix in swapping},
    }


def _total(parts: Parts) -> int:
    return sum(parts.values())


def _percent(more: int, base: int) -> float:
    return 100 * (more / base - 1)


def _rows(label: str, by_kernel: Mapping[str, Parts]) -> list[list[Cell]]:
    by_kernel = {kernel: {**of, "all": _total(of)} for kernel, of in by_kernel.items()}
    return [
        [
            *(label + name.replace("_", " "), count),
            *(round(_percent(by_kernel[kernel][name], count), 3) for kernel in SET_BESIDE),
        ]
        for name, count in by_kernel[UNPATCHED].items()
    ]


def _tables(measured: Mapping[str, Mapping[str, Parts]]) -> list[Table]:
    def of(mix: str) -> dict[str, Parts]:
        return {kernel: mixes[mix] for kernel, mixes in measured.items()}

    columns = ("part", "unpatched, instructions", *(f"{name}, %" for name in SET_BESIDE))
    return [
        Table(
            "Instructions of a fixed mix, more than unpatched",
            columns,
            [row for lru in LRUS for row in _rows(on(lru, ""), of(on(lru, MIXED)))],
            "On the classic LRU, and on that of generations.",
        ),
        Table(
            "Instructions of a mix that swaps, more than unpatched",
            columns,
            [
                row
                for swap in workloads.SWAPS
                for lru in LRUS
                for row in _rows(f"{on(lru, swap)}, ", of(on(lru, swap)))
            ],
            "Anonymous memory and tmpfs, written to, swapped out (MADV_PAGEOUT) and written to"
            " again, on zram and on a disk that nobody waits for. An idle area keeps a copy of what"
            " goes out, and it comes in from there.",
        ),
    ]


def values(measured: Mapping[str, Mapping[str, Parts]]) -> dict[str, float]:
    """The figures of the mixes, each of the worse LRU."""

    def more(mix: str, kernel: str, base: str = UNPATCHED) -> float:
        return max(
            _percent(_total(measured[kernel][on(lru, mix)]), _total(measured[base][on(lru, mix)]))
            for lru in LRUS
        )

    return {
        "overhead-n": more(MIXED, OFF),
        "overhead-y": more(MIXED, NO_AREA),
        "overhead-rental": more(MIXED, NO_AREA, NO_RENTAL),
        "overhead-swap": max(more(swap, NO_AREA) for swap in workloads.SWAPS),
    }


def overhead(kernels: Kernels) -> Outcome:
    """instructions of fixed mixes on several kernels; of a store and a load"""
    pair = [tenants.guest(kernels, f"tenants, {p}", p, AREA_MIB) for p in ("none", "gcma")]
    mixes = _mix_guests(kernels)
    outputs = run_all("overhead", [*mixes, *pair], SECONDS)
    measured = {guest.name: read(outputs[guest.name]) for guest in mixes}
    none, gcma = (outputs[guest.name] for guest in pair)
    copy = tenants.page_copy(gcma)
    costs = {"store": tenants.store_cost(none, gcma), "load": tenants.load_cost(none, gcma)}
    rows: list[list[Cell]] = [
        [name, round(cost), copy, cost / (copy + 400)] for name, cost in costs.items()
    ]
    runs: list[Run] = [
        outputs[kernel].run(
            counters={
                part if mix == MIXED else f"{mix}, {part}": count
                for mix, parts in mixed.items()
                for part, count in parts.items()
            }
        )
        for kernel, mixed in measured.items()
    ]
    runs += [none.run(), gcma.run(counters=costs)]
    return Outcome(
        runs,
        [
            *_tables(measured),
            Table(
                "Instructions of a page",
                ("what", "instructions", "bare page copy", "of one copy plus 400"),
                rows,
                "Store: what memory.reclaim takes for a page more than with policy none. Load: what"
                " the way of a page into the page cache takes more. Copy: copy_page().",
            ),
        ],
        values={
            **values(measured),
            "store-copy": costs["store"] / (copy + 400),
            "load-copy": costs["load"] / (copy + 400),
        },
    )
