# SPDX-License-Identifier: GPL-2.0-or-later
"""What an allocation costs: exact guests, counted in instructions around cma_alloc()."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from lab import measure, stats, workloads
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output, run_all
from lab.machine import POLICIES, Machine
from lab.measure import BenchSample
from lab.results import Cell, Line, Outcome, Plot, Run, Table

# Paper, Figure 4: 64 to 32768; RFC v2: 1, 512 ... 32000
SIZES = (1, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32000, 32768)
CPUS = (1, 4)
REPETITIONS = 30
AREA_MIB = 256
FILES_MIB = 416  # more than the page cache and the area can hold
DISK_MIB = FILES_MIB * 5 // 4  # only what is written takes memory
MEMORY_MIB = AREA_MIB + FILES_MIB + 160
PAUSE_US = 10000  # between two allocations, for the load
WARM_UP_S = 0.5  # in a guest's time: half a billion instructions
STATES = ("idle", "loaded")

CDF_PAGES = 1024
CDF_REPETITIONS = 300

# Readers, writers and a compile-like job, for ever
LOAD = f"""\
job uniform /disk {FILES_MIB} 2 &
job mix /disk {FILES_MIB} 3 &
job compile /disk {FILES_MIB} 4 &
sleep {WARM_UP_S}
"""

Samples = Mapping[int, Sequence[BenchSample]]  # by pages


def _script(sizes: Iterable[int], repetitions: int) -> str:
    wanted = " ".join(map(str, sizes))
    return f"""\
{workloads.ram_disk(DISK_MIB)}
section idle
alloc {workloads.BENCH} {repetitions} 100 - {wanted}
job fill /disk {FILES_MIB} 1 >/dev/null
{LOAD}
snapshot before
section loaded
alloc {workloads.BENCH} {repetitions} {PAUSE_US} /disk/data {wanted}
snapshot after
"""


def _guests(kernels: Kernels, cpus: Iterable[int], script: str) -> list[Guest]:
    files = workloads.files("job", "alloc", host=("mkfs.ext4",))
    kernel = kernels("prod")
    return [
        Guest(
            f"{policy}, {count} CPU",
            kernel,
            Machine(memory_mib=MEMORY_MIB, cpus=count, area_mib=AREA_MIB, policy=policy),
            script,
            files,
        )
        for count in cpus
        for policy in POLICIES
    ]


def _run(output: Output) -> Run:
    ladders = {state: output.ladder(state) for state in STATES}
    costs = {
        f"{state} {pages} pages, instructions": measure.costs(samples)
        for state, by_pages in ladders.items()
        for pages, samples in by_pages.items()
    }
    area = output.gained("area", "before", "after")
    counters: dict[str, float] = {
        name: area[name] for name in ("stores", "loads", "recycles", "revoked") if name in area
    }
    failures = {
        f"{state} failures": sum(map(measure.failures, by_pages.values()))
        for state, by_pages in ladders.items()
    }
    return output.run(costs, {**counters, **failures})


def load_table(outputs: Mapping[str, Output]) -> Table:
    """What the area was in use for; a LabError if it was not: then nothing had to go."""
    rows: list[list[Cell]] = []
    for name, output in outputs.items():
        area = output.gained("area", "before", "after")
        share = measure.held(measure.ladder(output["loaded"]), area)
        if share == 0:
            raise LabError(f"{name}: no page that was allocated under load held a tenant")
        percent = None if share is None else round(100 * share, 1)
        rows.append([name, *(area.get(what) for what in ("stores", "loads")), percent])
    columns = ("guest", "stores", "loads", "allocated pages that held a tenant, %")
    return Table("The area under load", columns, rows)


def _ladder_table(cpus: int, state: str, by_policy: Mapping[str, Samples]) -> Table:
    rows: list[list[str | float | None]] = []
    for pages in SIZES:
        for policy, samples in by_policy.items():
            cost = stats.summary(measure.costs(samples[pages]))
            failed = measure.failures(samples[pages])
            rows.append([pages, policy, cost.min, round(cost.mean), cost.p99, cost.max, failed])
    return Table(
        f"Instructions of an allocation, {state}, {cpus} CPU",
        ("pages", "policy", "min", "mean", "p99", "max", "failed"),
        rows,
        f"{REPETITIONS} allocations each; percentiles are nearest-rank.",
    )


def _ladder_plot(cpus: int, state: str, by_policy: Mapping[str, Samples]) -> Plot:
    lines = [
        Line(
            policy, [(pages, stats.summary(measure.costs(samples[pages])).mean) for pages in SIZES]
        )
        for policy, samples in by_policy.items()
    ]
    return Plot(
        f"Mean cost of an allocation, {state}, {cpus} CPU",
        "lines",
        "pages",
        "instructions of cma_alloc(), mean",
        lines,
        log_x=True,
        log_y=True,
    )


def _ratio(a: Samples, b: Samples, what: str, sizes: Iterable[int]) -> list[float]:
    """Of one number of two policies' summaries, for each size."""
    return [
        getattr(stats.summary(measure.costs(a[pages])), what)
        / getattr(stats.summary(measure.costs(b[pages])), what)
        for pages in sizes
    ]


def ladder(kernels: Kernels) -> Outcome:
    """cost of an allocation by size, idle and loaded (paper Fig. 4, RFC's latency table)"""
    outputs = run_all("alloc-ladder", _guests(kernels, CPUS, _script(SIZES, REPETITIONS)), 400)
    ladders = {
        (cpus, state): {
            policy: measure.ladder(outputs[f"{policy}, {cpus} CPU"][state]) for policy in POLICIES
        }
        for cpus in CPUS
        for state in STATES
    }
    everywhere = [(by_policy["gcma"], by_policy["none"]) for by_policy in ladders.values()]
    loaded = [ladders[cpus, "loaded"] for cpus in CPUS]
    costs = [stats.summary(measure.costs(by_policy["gcma"][CDF_PAGES])) for by_policy in loaded]
    return Outcome(
        runs=[_run(output) for output in outputs.values()],
        tables=[
            *(_ladder_table(*key, by_policy) for key, by_policy in ladders.items()),
            load_table(outputs),
        ],
        plots=[_ladder_plot(*key, by_policy) for key, by_policy in ladders.items()],
        values={
            "alloc-gcma-none-mean": max(
                max(_ratio(gcma, none, "mean", SIZES)) for gcma, none in everywhere
            ),
            "alloc-gcma-none-max": max(
                max(_ratio(gcma, none, "max", SIZES)) for gcma, none in everywhere
            ),
            "alloc-movable-gcma-1024": min(
                _ratio(by_policy["movable"], by_policy["gcma"], "mean", [1024])[0]
                for by_policy in loaded
            ),
            "alloc-movable-gcma-32768": min(
                _ratio(by_policy["movable"], by_policy["gcma"], "mean", [32768])[0]
                for by_policy in loaded
            ),
            "alloc-gcma-worst-median": max(cost.max / cost.median for cost in costs),
        },
    )


def cdf(kernels: Kernels) -> Outcome:
    """distribution of the cost of 1,024 pages, idle and loaded (paper Fig. 5)"""
    guests = _guests(kernels, [1], _script([CDF_PAGES], CDF_REPETITIONS))
    outputs = run_all("alloc-cdf", guests, 60)
    tables, plots = [], []
    for state in STATES:
        rows: list[list[str | float | None]] = []
        lines = []
        for policy in POLICIES:
            samples = measure.ladder(outputs[f"{policy}, 1 CPU"][state])[CDF_PAGES]
            cost = stats.summary(measure.costs(samples))
            failed = measure.failures(samples)
            rows.append([policy, cost.min, cost.median, cost.p99, cost.max, failed])
            lines.append(Line(policy, stats.cdf(measure.costs(samples))))
        columns = ("policy", "min", "median", "p99", "max", "failed")
        tables.append(Table(f"Instructions for {CDF_PAGES} pages, {state}", columns, rows))
        title = f"{CDF_PAGES} pages, {state}"
        plots.append(Plot(title, "cdf", "instructions", "share of allocations", lines, log_x=True))
    tables.append(load_table(outputs))
    return Outcome([_run(output) for output in outputs.values()], tables, plots)


# References to pages

PINS_ALLOCATIONS = {"gcma": 10_000, "none": 300}
PINS_FEW = 8  # of policies that can fail: each then takes some hundred million instructions
PINS_PIPES = 48  # of 256 pages: a fifth of the area's pages
PINS_LARGEST = 32768
PINS_MEMORY_MIB = MEMORY_MIB + 128


def _pins_script(policy: str) -> str:
    return f"""\
{workloads.ram_disk(DISK_MIB)}
job fill /disk {FILES_MIB} 1 >/dev/null
hold /disk/data {PINS_PIPES} >/tmp/hold &
{LOAD}
until grep -q holding /tmp/hold; do sleep 0.01; done
snapshot before
section alloc
alloc {workloads.BENCH} {PINS_ALLOCATIONS.get(policy, PINS_FEW)} 200 - r{PINS_LARGEST}
snapshot after
"""


def pins(kernels: Kernels) -> Outcome:
    """failures of allocations while pipes hold references to pages"""
    kernel = kernels("prod")
    guests = [
        Guest(
            policy,
            kernel,
            Machine(memory_mib=PINS_MEMORY_MIB, cpus=1, area_mib=AREA_MIB, policy=policy),
            _pins_script(policy),
            workloads.files("job", "alloc", "hold", host=("mkfs.ext4",)),
        )
        for policy in POLICIES
    ]
    outputs = run_all("pins", guests, 90)
    rows: list[list[str | float | None]] = []
    runs, failures = [], {}
    for policy, output in outputs.items():
        samples = [*chain.from_iterable(measure.ladder(output["alloc"]).values())]
        costs = measure.costs(samples)
        cost = stats.summary(costs)
        failures[policy] = measure.failures(samples)
        rows.append([policy, len(samples), failures[policy], cost.median, cost.max])
        runs.append(output.run({"instructions": costs}, {"failures": failures[policy]}))
    table = Table(
        "Allocations while pipes hold references to page-cache and anonymous pages",
        ("policy", "allocations", "failed", "median instructions", "max"),
        rows,
        f"Sizes from 1 to {PINS_LARGEST} pages in an area of {AREA_MIB} MiB of which no primary"
        f" holds anything; {PINS_PIPES} pipes hold 256 pages each, and change them.",
    )
    values = {"pins-gcma-failures": failures["gcma"], "pins-movable-failures": failures["movable"]}
    return Outcome(runs, [table], values=values)
