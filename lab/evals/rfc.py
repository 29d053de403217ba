# SPDX-License-Identifier: GPL-2.0-or-later
"""The latency table of GCMA's RFC of 2015, with its four variants: exact guests.

A compile job of several processes has more files and more anonymous memory than fit, so memory is
full and swaps. Then, once more for the policies that have no pages to migrate: the area is full of
swapped-out pages and of nothing else, which is the state that writing through to swap pays for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab import measure, stats, workloads
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output, run_all
from lab.loads import KERNEL_MIB
from lab.machine import Machine
from lab.measure import BenchSample
from lab.results import Cell, Line, Outcome, Plot, Run, Table

SIZES = (1, 512, 1024, 2048, 4096, 8192, 16384, 32000)
LARGEST = SIZES[-1]
REPETITIONS = 32
SWAPPED_REPETITIONS = 8  # their costs hardly differ
AREA_MIB = 256
CACHE_MIB = 96  # about what is left beside the area
FILES_MIB = 192
PROCESSES = 4
WORK_MIB = 64  # of each: with the files, more than the rest of memory and the area
WARM_UP_S = 0.5  # in a guest's time: half a billion instructions
SWAPPED_MIB = (AREA_MIB + CACHE_MIB) * 5 // 4
SWAP_MIB = SWAPPED_MIB + 64
FULL = 0.9  # of the area, when the measurement begins
HELD = 0.8  # of the pages that are allocated at least: with less it is not what it says
SECONDS = 600  # of a guest on an idle core

COMPILE, SWAPPED = "compile", "swapped"


@dataclass(frozen=True)
class Variant:
    """One of the RFC's."""

    name: str
    policy: str
    swap: str = "disk"
    swapped: bool = False  # measured with an area full of swapped-out pages, too
    cpus: int = 1


NONE = Variant("none", "none", swapped=True)
GCMA = Variant("gcma", "gcma", swapped=True)
ZRAM = Variant("gcma, zram", "gcma", "zram")
# As many as the RFC's board has, where others may be copying. Not for movable: as soon as all CPUs
# of an exact guest wait, QEMU's clock may leap by minutes.
GCMA_4 = Variant("gcma, 4 CPUs", "gcma", cpus=4)
VARIANTS = (Variant("movable", "movable"), GCMA, ZRAM, GCMA_4, NONE)

SCRIPT = f"""\
{workloads.ram_disk(FILES_MIB * 5 // 4)}
@swap@
job fill /disk {FILES_MIB} 1 >/dev/null
for seed in $(seq {PROCESSES}); do
	job compile /disk {FILES_MIB} $seed 0 {WORK_MIB} &
done
sleep {WARM_UP_S}
snapshot "before {COMPILE}"
section {COMPILE}
alloc {workloads.BENCH} {REPETITIONS} 0 load {" ".join(map(str, SIZES))}
snapshot "after {COMPILE}"
"""
# With an admission that chooses, a scan would not fill the area again
FULL_OF_SWAPPED = f"""\
killall job
wait
[ ! -e {workloads.AREA}/admission ] || echo always >{workloads.AREA}/admission
memory scan {SWAPPED_MIB} 1 1000000000 &
until [ ! -e {workloads.AREA}/tenants_swap ] ||
	[ $(cat {workloads.AREA}/tenants_swap) -gt {int(FULL * AREA_MIB * 256)} ]; do
	sleep 0.01
done
snapshot "before {SWAPPED}"
section {SWAPPED}
alloc {workloads.BENCH} {SWAPPED_REPETITIONS} 0 load {" ".join(map(str, SIZES))}
snapshot "after {SWAPPED}"
"""

Samples = Mapping[int, Sequence[BenchSample]]  # by pages


def _guest(kernels: Kernels, variant: Variant) -> Guest:
    swap = workloads.SWAPS[variant.swap]
    memory = AREA_MIB + CACHE_MIB + KERNEL_MIB + FILES_MIB + swap.memory_mib(SWAP_MIB)
    return Guest(
        variant.name,
        kernels("prod"),
        Machine(memory, cpus=variant.cpus, area_mib=AREA_MIB, policy=variant.policy),
        SCRIPT.replace("@swap@", swap.on(SWAP_MIB)) + FULL_OF_SWAPPED * variant.swapped,
        workloads.files("job", "memory", "alloc", host=("mkfs.ext4", "mkswap")),
    )


def _states(variant: Variant) -> tuple[str, ...]:
    return (COMPILE, SWAPPED) if variant.swapped else (COMPILE,)


def _gained(output: Output, state: str) -> dict[str, int]:
    """What area and kernel counted while allocations were measured."""
    names = (f"before {state}", f"after {state}")
    return {**output.gained("vmstat", *names), **output.gained("area", *names)}


def _run(output: Output, variant: Variant) -> Run:
    costs: dict[str, Sequence[float]] = {}
    counters: dict[str, float] = {}
    wanted = ("pswpin", "pswpout", "stores", "stores_swap", "loads", "loads_swap", "revoked")
    for state in _states(variant):
        samples = output.ladder(state)
        for pages, of_size in samples.items():
            costs[f"{state} {pages} pages, instructions"] = measure.costs(of_size)
        gained = _gained(output, state)
        counters |= {f"{state} {name}": gained[name] for name in wanted if name in gained}
        counters[f"{state} failures"] = sum(map(measure.failures, samples.values()))
    return output.run(costs, counters)


def _table(title: str, by_variant: Mapping[str, Samples], note: str) -> Table:
    rows: list[list[Cell]] = []
    for pages in SIZES:
        for name, samples in by_variant.items():
            cost = stats.summary(measure.costs(samples[pages]))
            failed = measure.failures(samples[pages])
            rows.append(
                [pages, name, cost.min, cost.max, cost.median, round(cost.mean), failed],
            )
    columns = ("pages", "variant", "min", "max", "median", "average", "failed")
    return Table(title, columns, rows, note)


def _load_table(
    outputs: Mapping[str, Output], states: Mapping[str, Mapping[str, Samples]]
) -> Table:
    """What the area was in use for."""
    rows: list[list[Cell]] = []
    for state, by_variant in states.items():
        for name, samples in by_variant.items():
            gained = _gained(outputs[name], state)
            share = measure.held(samples, gained)
            rows.append(
                [
                    *(state, name, gained["pswpin"], gained["pswpout"]),
                    *(gained.get("loads"), gained.get("loads_swap")),
                    None if share is None else round(100 * share, 1),
                ]
            )
    columns = ("load", "variant", "pages swapped in", "out", "pages from the area", "of swap")
    return Table(
        "The load meanwhile",
        (*columns, "allocated pages that held a tenant, %"),
        rows,
        "Swapped in and out: read from the swap device and written to it.",
    )


def _plot(what: str, title: str, by_variant: Mapping[str, Samples]) -> Plot:
    lines = [
        Line(
            name,
            [
                (pages, getattr(stats.summary(measure.costs(samples[pages])), what))
                for pages in SIZES
            ],
        )
        for name, samples in by_variant.items()
    ]
    return Plot(title, "lines", "pages", "instructions", lines, log_x=True, log_y=True)


def values(states: Mapping[str, Mapping[str, Samples]]) -> dict[str, float]:
    """The figures: by state and variant."""
    largest = [
        stats.summary(measure.costs(states[COMPILE][variant.name][LARGEST]))
        for variant in (GCMA, ZRAM, GCMA_4)
    ]
    none, gcma = (states[SWAPPED][variant.name] for variant in (NONE, GCMA))
    return {
        "rfc-worst-median": max(cost.max / cost.median for cost in largest),
        "rfc-swapped-none-mean": max(
            stats.summary(measure.costs(gcma[pages])).mean
            / stats.summary(measure.costs(none[pages])).mean
            for pages in SIZES
        ),
    }


def rfc_table(kernels: Kernels) -> Outcome:
    """the RFC's latency table, of its variants and 4 CPUs: allocations beside a job that swaps"""
    guests = [_guest(kernels, variant) for variant in VARIANTS]
    outputs = run_all("rfc-table", guests, SECONDS)
    states = {
        state: {
            variant.name: measure.ladder(outputs[variant.name][state])
            for variant in VARIANTS
            if state in _states(variant)
        }
        for state in (COMPILE, SWAPPED)
    }
    share = measure.held(states[SWAPPED][GCMA.name], _gained(outputs[GCMA.name], SWAPPED))
    if share is None or share < HELD:
        raise LabError(f"only {100 * (share or 0):.0f} % of the allocated pages held a tenant")
    note = f"allocations of each size from an area of {AREA_MIB} MiB"
    return Outcome(
        [_run(outputs[variant.name], variant) for variant in VARIANTS],
        [
            _table(
                "Instructions of an allocation beside a compile job",
                states[COMPILE],
                f"{REPETITIONS} {note}, beside about {CACHE_MIB} MiB. {PROCESSES}"
                f" processes share {FILES_MIB} MiB of files and have {WORK_MIB} MiB of memory each."
                " Before each allocation as many pages and more were evicted. One CPU and swap on a"
                " disk, unless said. The RFC calls movable cma, and has no none, a reservation.",
            ),
            _table(
                "Instructions of an allocation, the area full of swapped-out pages",
                states[SWAPPED],
                f"{SWAPPED_REPETITIONS} {note}, beside a process that goes again and again through"
                f" {SWAPPED_MIB} MiB of memory. Written through to swap on a disk.",
            ),
            _load_table(outputs, states),
        ],
        [
            _plot("median", "Median allocation beside a compile job", states[COMPILE]),
            _plot("max", "Dearest allocation beside a compile job", states[COMPILE]),
        ],
        values(states),
    )
