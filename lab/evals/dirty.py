# SPDX-License-Identifier: GPL-2.0-or-later
"""What an allocation costs that has to get tenants out of its way which swap has no copy of.

The area is full of such tenants, but for as many frames as are allocated. All of the range holds
tenants, or none of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lab import measure, tenants, workloads
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output, run_all
from lab.machine import Machine
from lab.results import Cell, Line, Outcome, Plot, Table

AREA_MIB = 32
AREA_PAGES = AREA_MIB * 256
# 32: reclaim isolates so many; 256: what a release scrubs at once, and the largest alignment
TENANTS = (0, 1, 2, 31, 32, 33, 256, 1023, 1024, 1025)
CLEAN_PAGES = 1024  # of the range without tenants
JUDGED = 1024
SWAP_MIB = 64  # more than the area: some pages are not admitted, and written
MEMORY_MIB = AREA_MIB + SWAP_MIB + 160
COPY_MORE = 400  # instructions beside a page copy that the figures allow
SECONDS = 30  # of a guest on an idle core

NONE, THROUGH = "none", "write-through"
# What an area counts, by the way that its tenants went
COUNTERS = {"write-back": "written_back", "put-back": "put_back", "move-aside": "moved_aside"}
VARIANTS = (NONE, THROUGH, *workloads.WAYS)

# Slots of a program that ended are kept back for the next one: only swapoff gives all of them back.
SCRIPT = f"""\
{workloads.STEADY}
{workloads.SWAPS["disk"].on(SWAP_MIB, wait=False)}
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
group=/sys/fs/cgroup/job
mkdir $group
[ ! -e {workloads.AREA}/admission ] || echo always >{workloads.AREA}/admission
@policy@
for count in {" ".join(map(str, TENANTS))}; do
	[ $count = 0 ] && pages={CLEAN_PAGES} || pages=$count
	section "alloc $count"
	sh -c "echo 0 >$group/cgroup.procs
		exec primary {workloads.DEBUG} @counters@ $group/memory.reclaim {AREA_PAGES} $pages $count"
	swapoff /dev/swap
	swapon /dev/swap
done
{tenants.PAGE_COPY}"""


@dataclass(frozen=True)
class Cost:
    """Of one allocation."""

    pages: int
    instructions: int
    left: int  # tenants afterwards


def _script(variant: str) -> str:
    policy, counters = "", "- -"
    if variant == THROUGH:
        counters = f"{workloads.AREA}/tenants_swap -"
    elif variant in COUNTERS:
        policy = workloads.swap_policy(variant, AREA_PAGES)
        counters = f"{workloads.AREA}/tenants_dirty {workloads.AREA}/{COUNTERS[variant]}"
    return SCRIPT.replace("@policy@", policy).replace("@counters@", counters)


def _guest(kernels: Kernels, variant: str) -> Guest:
    return Guest(
        variant,
        kernels("prod"),
        Machine(MEMORY_MIB, 1, AREA_MIB, "none" if variant == NONE else "gcma"),
        _script(variant),
        workloads.files("primary", "pagecopy", host=("mkswap",)),
    )


def read(output: Output) -> dict[int, Cost]:
    """By the tenants of the range. Those that were dirty have all gone the way of the policy."""
    variant = output.guest.name
    costs = {}
    for count in TENANTS:
        text = output[f"alloc {count}"]
        ((pages, (sample,)),) = measure.ladder(text).items()
        if not sample.ok:
            raise LabError(f"{variant}: {pages} pages with {count} tenants could not be allocated")
        told = measure.counters(text)
        if variant in COUNTERS and told["moved"] != count:
            raise LabError(f"{variant}: of {count} dirty tenants {told['moved']} went that way")
        costs[count] = Cost(pages, sample.alloc, told["left"])
    return costs


def of_copy(cost: Cost, copy: int) -> float:
    """What each page of an allocation takes, of a page copy and a little."""
    return cost.instructions / cost.pages / (copy + COPY_MORE)


def bend(by_count: Mapping[int, Cost], without: Mapping[int, Cost]) -> float:
    """Is the cost a straight line in the dirty tenants?

    What each of them takes more than an allocation `without`, where that is most / where it is
    least: 1 if it is.
    """
    each = [
        (by_count[count].instructions - without[count].instructions) / count
        for count in TENANTS
        if count
    ]
    return max(each) / min(each)


def _table(costs: Mapping[str, Mapping[int, Cost]], copy: int) -> Table:
    rows: list[list[Cell]] = []
    for count in TENANTS:
        by = [costs[variant][count] for variant in VARIANTS]
        shares = [
            round(of_copy(costs[way][count], copy), 3) if count else None for way in workloads.WAYS
        ]
        rows.append([by[0].pages, count, *(cost.instructions for cost in by), *shares])
    return Table(
        "Instructions of an allocation, by the tenants in its range",
        (
            *("pages", "tenants in the range"),
            *VARIANTS,
            *(f"{way}, a page / (copy + {COPY_MORE})" for way in workloads.WAYS),
        ),
        rows,
        f"One CPU. An area of {AREA_MIB} MiB that is full of swapped-out pages, under write-through"
        " of copies, under the others of what swap does not have, but for as many frames as are"
        f" allocated; none has no tenants. A page copy takes {copy:,}. write-back: the disk itself"
        " takes no time.",
    )


def _plot(costs: Mapping[str, Mapping[int, Cost]]) -> Plot:
    """A straight line each, if the bound holds: see bend()."""
    return Plot(
        "Cost of an allocation by the dirty tenants of its range",
        "lines",
        "dirty tenants in the range, all of its pages",
        "instructions of cma_alloc()",
        [
            Line(
                variant,
                [(float(count), float(costs[variant][count].instructions)) for count in TENANTS],
            )
            for variant in (THROUGH, *workloads.WAYS)
        ],
    )


def dirty_tenants(kernels: Kernels) -> Outcome:
    """cost of an allocation by the tenants of its range that swap has no copy of"""
    guests = [_guest(kernels, variant) for variant in VARIANTS]
    outputs = run_all("dirty-tenants", guests, SECONDS)
    costs = {variant: read(output) for variant, output in outputs.items()}
    copy = tenants.page_copy(outputs[THROUGH])
    return Outcome(
        [
            outputs[variant].run(
                {
                    f"{count} tenants, instructions": [cost.instructions]
                    for count, cost in by_count.items()
                },
                {
                    "page copy": tenants.page_copy(outputs[variant]),
                    **{f"{count} tenants, left": cost.left for count, cost in by_count.items()},
                },
            )
            for variant, by_count in costs.items()
        ],
        [_table(costs, copy)],
        [_plot(costs)],
        {
            "dirty-aside": of_copy(costs["move-aside"][JUDGED], copy),
            "dirty-put-back": of_copy(costs["put-back"][JUDGED], copy),
            "dirty-line": max(bend(costs[way], costs[THROUGH]) for way in workloads.WAYS),
        },
    )
