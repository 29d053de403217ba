# SPDX-License-Identifier: GPL-2.0-or-later
"""Does the machine become slower (paper Table 3)? The fixed mix in parts, on each policy."""

from lab import measure, workloads
from lab.guests import Guest, Kernels, run_all
from lab.machine import POLICIES, Machine
from lab.results import Cell, Outcome, Table

AREA_MIB = 64
MEMORY_MIB = 256

SCRIPT = f"""\
{workloads.ram_disk(32)}
job fill /disk 16 1 >/dev/null
primitives /disk/data >/dev/null
section primitives
primitives /disk/data
"""

NAMES = {
    "context_switch": "context switch",
    "file_read": "file read, 4 KiB",
    "memory_read": "memory read, 4 KiB",
    "memory_write": "memory write, 4 KiB",
}


def system(kernels: Kernels) -> Outcome:
    """context switch, file read, memory read and write on each policy (paper Table 3)"""
    files = workloads.files("job", "primitives", host=("mkfs.ext4",))
    guests = [
        Guest(
            p,
            kernels("prod"),
            Machine(MEMORY_MIB, cpus=1, area_mib=AREA_MIB, policy=p),
            SCRIPT,
            files,
        )
        for p in POLICIES
    ]
    outputs = run_all("system", guests, 10)
    costs = {policy: measure.counters(outputs[policy]["primitives"]) for policy in POLICIES}
    rows: list[list[Cell]] = [
        [what, *(costs[policy][name] for policy in POLICIES)] for name, what in NAMES.items()
    ]
    return Outcome(
        [outputs[policy].run(counters=costs[policy]) for policy in POLICIES],
        [Table("Instructions", ("what", *POLICIES), rows, "Mean of 2,000 of each.")],
    )
