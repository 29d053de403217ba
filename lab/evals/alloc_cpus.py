# SPDX-License-Identifier: GPL-2.0-or-later
"""Does an allocation cost more the more CPUs there are? It has to know what each is doing."""

from dataclasses import dataclass

from lab import measure, stats, workloads
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output, run_all
from lab.machine import Machine
from lab.results import Cell, Line, Outcome, Plot, Table
from lab.stats import Summary

CPUS = (1, 4, 16, 64)
POLICIES = ("none", "gcma")
REPETITIONS = 30
AREA_MIB = 16
FILES_MIB = 24  # more than the area can hold
MEMORY_MIB = 256  # 64 CPUs need some
SECONDS = 30  # of a guest on an idle core, the mean of all

# Evict a file into the area, then allocate pages of it. Each page is kept after it was measured, so
# that the next allocation takes one that holds a tenant too.
SCRIPT = f"""\
{workloads.ram_disk(FILES_MIB * 5 // 4)}
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
group=/sys/fs/cgroup/job
mkdir $group
job fill /disk {FILES_MIB} 1 >/dev/null
echo 1 >/proc/sys/vm/drop_caches
sh -c "echo 0 >$group/cgroup.procs; job scan /disk {FILES_MIB} 1 {FILES_MIB * 256}"
poke $group/memory.reclaim {FILES_MIB}M
area before
section alloc
for i in $(seq {REPETITIONS}); do
	echo "1 $(bench 1 1)"
	echo 1 >{workloads.HOLD}
done
area after
"""


@dataclass(frozen=True)
class Cost:
    """What the allocations of one guest cost, and how many took a page with a tenant."""

    instructions: list[float]
    failed: int
    tenants: int

    @property
    def summary(self) -> Summary:
        return stats.summary(self.instructions)


def read(output: Output) -> Cost:
    samples = output.ladder("alloc")[1]
    tenants = output.gained("area", "before", "after").get("tenants_file", 0)
    if output.guest.machine.policy == "gcma" and -tenants < REPETITIONS:
        raise LabError(
            f"{output.guest.name}: only {-tenants} of {REPETITIONS} allocations took a page with a"
            " tenant: the area was not full"
        )
    return Cost(measure.costs(samples), measure.failures(samples), -tenants)


def _guest(kernels: Kernels, policy: str, cpus: int) -> Guest:
    return Guest(
        f"{policy}, {cpus} CPU",
        kernels("prod"),
        Machine(MEMORY_MIB + AREA_MIB, cpus, AREA_MIB, policy),
        SCRIPT,
        workloads.files("job", "poke", host=("mkfs.ext4",)),
    )


def alloc_cpus(kernels: Kernels) -> Outcome:
    """cost of an allocation of 1 page by the number of CPUs, in an area full of tenants"""
    guests = {(policy, cpus): _guest(kernels, policy, cpus) for cpus in CPUS for policy in POLICIES}
    outputs = run_all("alloc-cpus", list(guests.values()), SECONDS)
    costs = {key: read(outputs[guest.name]) for key, guest in guests.items()}
    rows: list[list[Cell]] = []
    for (policy, cpus), cost in costs.items():
        told = cost.summary
        rows.append([cpus, policy, told.min, round(told.mean), told.max, cost.failed, cost.tenants])
    means = {key: cost.summary.mean for key, cost in costs.items()}
    return Outcome(
        [
            outputs[guest.name].run(
                {"instructions": costs[key].instructions}, {"failures": costs[key].failed}
            )
            for key, guest in guests.items()
        ],
        [
            Table(
                "Instructions of an allocation of 1 page",
                ("CPUs", "policy", "min", "mean", "max", "failed", "tenants"),
                rows,
                f"{REPETITIONS} allocations each, in an area of {AREA_MIB} MiB. Tenants: those that"
                " had to go.",
            )
        ],
        [
            Plot(
                "Mean cost of 1 page",
                "lines",
                "CPUs",
                "instructions of cma_alloc(), mean",
                [
                    Line(policy, [(float(cpus), means[policy, cpus]) for cpus in CPUS])
                    for policy in POLICIES
                ],
                log_x=True,
            )
        ],
        {"alloc-cpus": max(means["gcma", cpus] / means["none", cpus] for cpus in CPUS)},
    )
