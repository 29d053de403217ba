# SPDX-License-Identifier: GPL-2.0-or-later
"""Do costs grow with the area or with the CPUs? Exact guests."""

from lab import machine, measure, stats, tenants, workloads
from lab.guests import Guest, Kernels, Output, run_all
from lab.machine import POLICIES
from lab.results import Cell, Line, Outcome, Plot, Table

AREAS_MIB = (64, 256, 1024, 4096)
CPUS = (1, 2, 4)
CPUS_AREA_MIB = 256  # the area while the CPUs vary
REPETITIONS = 10
SIZES = (1, 1024, 16384)  # pages; the last fits into the smallest area
FILES_MIB = 96
MEMORY_MIB = 256

# the files fill what memory they can, so that frames hold tenants; then allocations beside a reader
SCRIPT = f"""\
{workloads.ram_disk(FILES_MIB * 5 // 4)}
job fill /disk {FILES_MIB} 1 >/dev/null
job uniform /disk {FILES_MIB} 2 &
sleep 0.05
section alloc
alloc {workloads.BENCH} {REPETITIONS} 2000 - {" ".join(map(str, SIZES))}
"""


def _shapes() -> list[tuple[int, int]]:
    """(area, CPUs): one varies while the other stands."""
    shapes = [(area, 1) for area in AREAS_MIB] + [(CPUS_AREA_MIB, cpus) for cpus in CPUS]
    return list(dict.fromkeys(shapes))


def _alloc_guest(kernels: Kernels, policy: str, area: int, cpus: int) -> Guest:
    return Guest(
        f"{policy}, {area} MiB, {cpus} CPU",
        kernels("prod"),
        machine.beside(MEMORY_MIB, area, cpus, policy),
        SCRIPT,
        workloads.files("job", "alloc", host=("mkfs.ext4",)),
    )


def _medians(output: Output) -> dict[int, float]:
    return {
        pages: stats.percentile(measure.costs(samples), 50)
        for pages, samples in output.ladder("alloc").items()
    }


def scale(kernels: Kernels) -> Outcome:
    """cost of allocations, stores and loads by size of the area and number of CPUs"""
    shapes = _shapes()
    guests = [_alloc_guest(kernels, policy, *shape) for shape in shapes for policy in POLICIES]
    pairs = {
        (policy, shape): tenants.guest(
            kernels, f"tenants, {policy}, {shape[0]} MiB, {shape[1]} CPU", policy, *shape
        )
        for shape in shapes
        for policy in ("none", "gcma")
    }
    outputs = run_all("scale", [*guests, *pairs.values()], 25)
    rows: list[list[Cell]] = []
    tenant_rows: list[list[Cell]] = []
    runs = []
    for area, cpus in shapes:
        for policy in POLICIES:
            output = outputs[f"{policy}, {area} MiB, {cpus} CPU"]
            medians = _medians(output)
            rows.append([area, cpus, policy, *medians.values()])
            runs.append(output.run(counters={f"{n} pages": cost for n, cost in medians.items()}))
        none, gcma = (outputs[pairs[policy, (area, cpus)].name] for policy in ("none", "gcma"))
        store, load = tenants.store_cost(none, gcma), tenants.load_cost(none, gcma)
        tenant_rows.append([area, cpus, round(store), round(load)])
        runs += [none.run(), gcma.run(counters={"store": store, "load": load})]
    head = ("area, MiB", "CPUs")
    plot = Plot(
        f"Median cost of {SIZES[1]} pages, 1 CPU",
        "lines",
        "area, MiB",
        "instructions",
        [
            Line(p, [(float(row[0]), float(row[4])) for row in rows if row[2] == p and row[1] == 1])  # type: ignore[arg-type]
            for p in POLICIES
        ],
        log_x=True,
        log_y=True,
    )
    return Outcome(
        runs,
        [
            Table(
                "Instructions of an allocation beside a reader, median",
                (*head, "policy", *(f"{size} pages" for size in SIZES)),
                rows,
            ),
            Table("Instructions of a page", (*head, "store", "load"), tenant_rows),
        ],
        [plot],
    )
