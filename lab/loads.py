# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads beside an idle area, and what they cost: exact guests, so counts repeat.

The disk takes no time of its own: the cycles of a job are its instructions. What it would take with
a disk of so much bandwidth and latency can be told from its requests and sectors.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import mean

from lab import measure, workloads
from lab.guests import Guest, Kernels, Output, run_all
from lab.machine import Machine
from lab.results import Cell, Run, Table

NONE, MOVABLE, GCMA, MORE = "none", "movable", "gcma", "more memory"
KERNEL_MIB = 62  # beside area, page cache and disk: kernel, initramfs, metadata
PAGES = 256  # of a MiB
# With memory cgroups the classic LRU goes by statistics that are two to four seconds old, which is
# how long these jobs take: by chance a list is long enough for what is read again, or not.
NO_GROUPS = "cgroup_disable=memory"
SAMPLE_KIB = 64  # each sample has so much less memory than the one before
# Variants of gcma whose tenants are not written to swap, and their swap policies
DIRTY = {f"{GCMA}, {way}": way for way in workloads.WAYS}
DIRTY_SWAP = "disk"  # what goes to zram is written through by all policies
CLASSIC, GENERATIONS = "classic", "generations"
SWITCH = "/sys/kernel/mm/lru_gen/enabled"
REQUEST_MS = 0.02  # what a request takes a fast flash disk
FAST_MS = 512 / (1 << 30) * 1000  # a sector, at 1 GiB/s
# A disk that stores nothing, so that it may be larger than memory
STREAM_MIB = 4096
STREAM = f"""\
stream=/sys/kernel/config/nullb/stream
mkdir -p $stream
echo {STREAM_MIB} >$stream/size
echo 0 >$stream/irqmode
echo 4096 >$stream/blocksize
echo {workloads.MAX_SECTORS} >$stream/max_sectors
echo 1 >$stream/power
"""


@dataclass(frozen=True)
class Setting:
    """Where a load runs."""

    filesystem: str = "ext4"
    lru: str = CLASSIC

    @property
    def name(self) -> str:
        return f"{self.filesystem}, {self.lru}"


FIRST = Setting()
BOTH_LRUS = (FIRST, Setting(lru=GENERATIONS))
EVERYWHERE = tuple(
    Setting(filesystem, lru) for filesystem in workloads.RAM_DISKS for lru in (CLASSIC, GENERATIONS)
)


@dataclass(frozen=True)
class Load:
    """What runs in a guest: jobs of a program of lab/guest, in which {seed} is a number.

    The steps are measured. What is `ready` before them is not: shell, in which `job` is a word.
    """

    name: str
    area_mib: int
    cache_mib: int  # about what the page cache can have beside the area
    disk_mib: int  # what its content takes of memory, 0: there is no disk
    ready: str
    steps: tuple[str, ...]
    labels: tuple[str, ...] = ()
    stream: bool = False  # read from /dev/stream
    settings: Sequence[Setting] = EVERYWHERE
    seeds: int = 3  # in the first setting
    elsewhere: int = 1  # each other setting is a sample more
    program: str = "job"  # of lab/guest, whose arguments the steps are
    host: tuple[str, ...] = ()  # programs of the host
    swap: str = ""  # where to: workloads.SWAPS
    swap_mib: int = 0  # how large that is
    further: tuple[str, ...] = ()  # variants in the first setting only, with `elsewhere` samples


@dataclass(frozen=True)
class Cost:
    """Of one step, or of several."""

    sectors: int
    requests: int
    instructions: int
    stores: int
    loads: int
    swap_ins: int = 0  # pages read from swap
    swap_outs: int = 0  # and written
    major_faults: int = 0  # also those that a tenant ended

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.sectors + other.sectors,
            self.requests + other.requests,
            self.instructions + other.instructions,
            self.stores + other.stores,
            self.loads + other.loads,
            self.swap_ins + other.swap_ins,
            self.swap_outs + other.swap_outs,
            self.major_faults + other.major_faults,
        )


@dataclass(frozen=True)
class Measured:
    """The steps of one load under one policy in one setting, each seed a sample."""

    load: Load
    setting: Setting
    variant: str
    samples: Sequence[Sequence[Cost]]  # by seed, then by step

    def totals(self, steps: slice = slice(None)) -> list[Cost]:
        """Of each seed."""
        return [sum(sample[steps][1:], sample[steps][0]) for sample in self.samples]

    def mean(self, what: Callable[[Cost], float], steps: slice = slice(None)) -> float:
        return mean(what(total) for total in self.totals(steps))

    def spread(self, what: Callable[[Cost], float], steps: slice = slice(None)) -> float:
        """From the least to the most, in percent of the mean."""
        values = [what(total) for total in self.totals(steps)]
        return 100 * (max(values) - min(values)) / mean(values) if mean(values) else 0.0


# By name of the load, setting and policy
Measurements = Mapping[tuple[str, Setting, str], Measured]


def sectors(cost: Cost) -> float:
    return cost.sectors


def requests(cost: Cost) -> float:
    return cost.requests


def instructions(cost: Cost) -> float:
    return cost.instructions


def hits(cost: Cost) -> float:
    return cost.loads


def pages(cost: Cost) -> float:
    """Those that came into the page cache."""
    return cost.loads + cost.sectors / BLOCK


def swap_ins(cost: Cost) -> float:
    return cost.swap_ins


def swap_outs(cost: Cost) -> float:
    return cost.swap_outs


def major_faults(cost: Cost) -> float:
    return cost.major_faults


def million_instructions(cost: Cost) -> float:
    return cost.instructions / 1e6


def milliseconds(cost: Cost) -> float:
    """On a disk that takes 20 us a request, at an instruction a nanosecond."""
    return cost.instructions / 1e6 + cost.requests * REQUEST_MS


def fast_milliseconds(cost: Cost) -> float:
    """On a disk of 1 GiB/s, at an instruction a nanosecond."""
    return cost.instructions / 1e6 + cost.sectors * FAST_MS


def script(load: Load, setting: Setting, seed: int) -> str:
    lines = [workloads.STEADY]
    if load.disk_mib:
        # with room to spare, which takes no memory: f2fs keeps a part for itself
        mib = 2 * load.disk_mib + 64
        lines.append(workloads.ram_disk(mib, setting.filesystem, wait=False))
    if load.swap:
        lines.append(workloads.SWAPS[load.swap].on(load.swap_mib, wait=False))
    if load.stream:
        lines.append(STREAM)
    lines.append(f"echo {'y' if setting.lru == GENERATIONS else 'n'} >{SWITCH}")
    lines.append(load.ready.format(seed=seed))
    lines.append("snapshot 0")
    for number, step in enumerate(load.steps, 1):
        command = f"{load.program} {step.format(seed=seed)}"
        lines += [f"section job {number}", command, f"snapshot {number}"]
    return "\n".join(lines) + "\n"


def guest(kernels: Kernels, load: Load, setting: Setting, variant: str, seed: int) -> Guest:
    policy = {NONE: "none", **dict.fromkeys((GCMA, *DIRTY), "gcma")}.get(variant, "movable")
    frames = load.area_mib * PAGES
    choice = workloads.swap_policy(DIRTY[variant], frames) if variant in DIRTY else ""
    memory = load.area_mib + load.cache_mib + KERNEL_MIB + load.disk_mib
    if load.swap:
        memory += workloads.SWAPS[load.swap].memory_mib(load.swap_mib)
    area = 0 if variant == MORE else load.area_mib
    programs = dict.fromkeys((*(["job"] if load.disk_mib else []), load.program))
    mkfs = (workloads.RAM_DISKS[setting.filesystem].split()[0],) if load.disk_mib else ()
    return Guest(
        f"{load.name}, {setting.name}, {variant}, seed {seed}",
        kernels("prod"),
        Machine(
            memory,
            cpus=1,
            area_mib=area,
            policy=policy,
            args=(NO_GROUPS,),
            # without random numbers a load is chaotic all the same: it keeps other pages then
            less_kib=SAMPLE_KIB * (seed - 1),
        ),
        choice + script(load, setting, seed),
        workloads.files(*programs, host=(*mkfs, *load.host)),
        seed=seed,
    )


def costs(load: Load, output: Output) -> list[Cost]:
    """Of each step."""
    disks = ["stream"] if load.stream else []
    disks += ["disk"] if load.disk_mib else []
    steps = []
    for number in range(1, len(load.steps) + 1):
        before, after = str(number - 1), str(number)
        read = [
            [measure.diskstats(output[f"diskstats {name}"], disk) for name in (before, after)]
            for disk in disks
        ]
        area = output.gained("area", before, after) if f"area {after}" in output.sections else {}
        events = output.gained("vmstat", before, after)
        steps.append(
            Cost(
                sum(last.sectors_read - first.sectors_read for first, last in read),
                sum(last.reads - first.reads for first, last in read),
                measure.job(output[f"job {number}"])[1],
                area.get("stores", 0),
                area.get("loads", 0),
                *(events[name] for name in ("pswpin", "pswpout", "pgmajfault")),
            )
        )
    return steps


def plan(
    loads: Sequence[Load], variants: Sequence[str]
) -> dict[tuple[Load, Setting, str], Sequence[int]]:
    """The guests: for each load, setting and variant its seeds."""
    seeds: dict[tuple[Load, Setting, str], Sequence[int]] = {}
    for load in loads:
        for setting in load.settings:
            first = setting == FIRST
            samples = range(1, 1 + (load.seeds if first else load.elsewhere))
            seeds |= {(load, setting, variant): samples for variant in variants}
            if first:
                few = range(1, 1 + load.elsewhere)
                seeds |= {(load, setting, variant): few for variant in load.further}
    return seeds


def run(
    title: str, kernels: Kernels, loads: Sequence[Load], variants: Sequence[str]
) -> tuple[list[Run], Measurements]:
    """Every load under every policy in its settings."""
    seeds = plan(loads, variants)
    guests = {(*key, seed): guest(kernels, *key, seed) for key, of in seeds.items() for seed in of}
    outputs = run_all(title, list(guests.values()), 20)
    runs, measured = [], {}
    for key, of in seeds.items():
        load, setting, variant = key
        samples = []
        for seed in of:
            output = outputs[guests[*key, seed].name]
            steps = costs(load, output)
            runs.append(output.run(counters=asdict(sum(steps[1:], steps[0]))))
            samples.append(steps)
        measured[load.name, setting, variant] = Measured(load, setting, variant, samples)
    return runs, measured


def ratio(cost: float, other: float, grain: float = 0) -> float:
    """Of two costs: nothing is as much as nothing, and no more than `grain` more is as much."""
    if other <= cost <= other + grain:
        return 1.0
    return cost / other if other else float("inf")


def worst(
    measured: Measurements,
    what: Callable[[Cost], float],
    grain: float = 0,
    steps: slice = slice(None),
) -> float:
    """Of all loads and settings that have these steps: gcma / none, see ratio()."""
    return max(
        ratio(gcma.mean(what, steps), measured[load, setting, NONE].mean(what, steps), grain)
        for (load, setting, variant), gcma in measured.items()
        if variant == GCMA and gcma.load.steps[steps]
    )


def beside(
    measured: Measurements, name: str, setting: Setting, variants: Sequence[str]
) -> list[Measured]:
    """These variants of a load, by the seeds that all of them have; none, if one was not run."""
    present = [measured[name, setting, v] for v in variants if (name, setting, v) in measured]
    if len(present) < len(variants):
        return []
    fewest = min(len(measurement.samples) for measurement in present)
    return [replace(measurement, samples=measurement.samples[:fewest]) for measurement in present]


SWAPPED = {"in": swap_ins, "out": swap_outs, "million instructions": million_instructions}


def swap_table(
    title: str,
    measured: Measurements,
    variants: Sequence[str],
    note: str,
    told: Mapping[str, Callable[[Cost], float]] = SWAPPED,
) -> Table:
    """One row a load and setting: what is `told` of each variant.

    Only of those in which all variants were run, and by the seeds that all of them have.
    """
    rows: list[list[Cell]] = []
    for (name, setting, variant), first in measured.items():
        if variant != variants[0]:
            continue
        by = beside(measured, name, setting, variants)
        if not by:
            continue
        rows.append(
            [
                *(name, first.load.swap, setting.lru),
                *(round(measurement.mean(what)) for what in told.values() for measurement in by),
            ]
        )
    columns = ("load", "swap", "LRU", *(f"{v}, {name}" for name in told for v in variants))
    return Table(title, columns, rows, note)


def table(title: str, measured: Measurements, variants: Sequence[str], note: str) -> Table:
    """One row a load, setting and step: means of sectors; what else it costs beside none."""
    rows: list[list[Cell]] = []
    for (name, setting, variant), first in measured.items():
        if variant != variants[0]:
            continue
        by = {v: measured[name, setting, v] for v in variants}
        load = first.load
        for number in range(len(load.steps)):
            step = slice(number, number + 1)
            label = f", {load.labels[number]}" if load.labels else ""
            gcma, none = by[GCMA], by[NONE]
            rows.append(
                [
                    *(f"{name}{label}", setting.name),
                    *(round(by[v].mean(sectors, step)) for v in variants),
                    len(gcma.samples),
                    round(gcma.spread(sectors, step), 1) if len(gcma.samples) > 1 else None,
                    round(ratio(gcma.mean(requests, step), none.mean(requests, step), 1), 3),
                    round(ratio(gcma.mean(instructions, step), none.mean(instructions, step)), 3),
                    round(ratio(gcma.mean(milliseconds, step), none.mean(milliseconds, step)), 3),
                ]
            )
    columns = (
        *("load", "setting"),
        *(f"{v}, sectors" for v in variants),
        *("random sequences", "spread of gcma, %"),
        *("requests, gcma / none", "instructions, gcma / none", "time, gcma / none"),
    )
    return Table(title, columns, rows, f"{note} Time: 20 us a request, 1 ns an instruction.")


def of_possible(none: float, cost: float, best: float) -> float:
    """Of what `best` avoids, what is avoided, in percent.

    Where it avoids nothing that is all, unless there is more than with none.
    """
    if none > best:
        return 100 * (none - cost) / (none - best)
    return 100.0 if cost <= none else 0.0


def avoided(
    none: Measured, gcma: Measured, more: Measured, *, what: Callable[[Cost], float] = sectors
) -> float:
    """Of the reads that more memory avoids, those that gcma avoids, in percent."""
    return of_possible(none.mean(what), gcma.mean(what), more.mean(what))


BLOCK = 8  # sectors: one of the filesystem's own that is read again or not is chance
HARDLY = 0.01  # hits, of the pages that were read or loaded: less is none


def harm(name: str, measured: Measurements) -> dict[str, float]:
    """The figures that every evaluation of loads has: the worst of gcma / none."""
    useless = {
        key: m
        for key, m in measured.items()
        if (gcma := measured[*key[:2], GCMA]).mean(hits) < HARDLY * gcma.mean(pages)
    }
    figures = {
        f"{name}-sectors": worst(measured, sectors, BLOCK),
        f"{name}-requests": worst(measured, requests, 1),
        f"{name}-slowdown": worst(measured, milliseconds),
    }
    # if there is such a load
    return figures | ({f"{name}-instructions": worst(useless, instructions)} if useless else {})
