# SPDX-License-Identifier: GPL-2.0-or-later
"""What GCMA costs: those who do not use it, and each page that is stored or loaded."""

from collections.abc import Mapping

from lab import measure, tenants, workloads
from lab.guests import Guest, Kernels, Output, run_all
from lab.machine import Machine
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


def _parts(output: Output) -> dict[str, int]:
    return measure.counters(output["mix"])


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
    pair = [tenants.guest(kernels, f"tenants, {p}", p, AREA_MIB) for p in ("none", "gcma")]
    outputs = run_all("overhead", [*_mix_guests(kernels), *pair], 25)
    parts = {name: _parts(outputs[name]) for name in (UNPATCHED, OFF, NO_AREA, IDLE)}
    none, gcma = (outputs[guest.name] for guest in pair)
    copy = tenants.page_copy(gcma)
    costs = {"store": tenants.store_cost(none, gcma), "load": tenants.load_cost(none, gcma)}
    rows: list[list[Cell]] = [
        [name, round(cost), copy, cost / (copy + 400)] for name, cost in costs.items()
    ]
    runs: list[Run] = [outputs[name].run(counters=parts[name]) for name in parts]
    runs += [none.run(), gcma.run(counters=costs)]
    return Outcome(
        runs,
        [
            _mix_table(parts),
            Table(
                "Instructions of a page",
                ("what", "instructions", "bare page copy", "of one copy plus 400"),
                rows,
                "Store: what memory.reclaim takes for a page more than with policy none. Load: what"
                " the way of a page into the page cache takes more. Copy: copy_page().",
            ),
        ],
        values={
            "overhead-n": _more(parts, OFF),
            "overhead-y": _more(parts, NO_AREA),
            "store-copy": costs["store"] / (copy + 400),
            "load-copy": costs["load"] / (copy + 400),
        },
    )
