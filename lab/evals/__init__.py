# SPDX-License-Identifier: GPL-2.0-or-later
"""The evaluations: `./gcma eval NAME`. Each module makes guests, runs them and reads them."""

import hashlib
import os
import platform
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from lab import build, figures, paths, process, results, targets
from lab.errors import LabError
from lab.evals import (
    alloc,
    alloc_cpus,
    allocators,
    both,
    camc_cost,
    camc_irqs,
    camc_isolation,
    camc_purity,
    camc_schedule,
    camera,
    contention,
    dirty,
    large,
    mapped,
    memcg,
    mixed,
    nothing,
    overhead,
    phases,
    rental_apps,
    rental_return,
    rental_throughput,
    rfc,
    scale,
    size,
    swapped,
    system,
    tenancy,
    usual,
    zsmalloc,
)
from lab.guests import Kernels
from lab.results import Outcome, Result

RESULT_MB = 50  # a large one is 5
SOURCES = {".py", ".c", ".h", ".hpp", ".rs", ".txt"}  # of programs that measure and are measured

# In the order of the report
EVALS: Mapping[str, Callable[[Kernels], Outcome]] = {
    "photo": camera.photo,
    "photo-swap": camera.photo_swap,
    "background": camera.background,
    "background-swap": camera.background_swap,
    "alloc-ladder": alloc.ladder,
    "alloc-cdf": alloc.cdf,
    "alloc-cpus": alloc_cpus.alloc_cpus,
    "rfc-table": rfc.rfc_table,
    "pins": alloc.pins,
    "tenancy": tenancy.tenancy,
    "tenancy-phases": phases.phases,
    "tenancy-mixed": mixed.mixed,
    "tenancy-mmap": mapped.mapped,
    "tenancy-large": large.large,
    "tenancy-usual": usual.usual,
    "cost-of-nothing": nothing.nothing,
    "tenancy-swap": swapped.swapped,
    "tenancy-both": both.both,
    "dirty-tenants": dirty.dirty_tenants,
    "rental-return": rental_return.rental_return,
    "rental-throughput": rental_throughput.rental_throughput,
    "rental-apps": rental_apps.rental_apps,
    "camc-cost": camc_cost.camc_cost,
    "camc-irqs": camc_irqs.camc_irqs,
    "camc-isolation": camc_isolation.camc_isolation,
    "camc-purity": camc_purity.camc_purity,
    "camc-schedule": camc_schedule.camc_schedule,
    "contention": contention.contention,
    "memcg": memcg.memcg,
    "overhead": overhead.overhead,
    "scale": scale.scale,
    "system": system.system,
    "size": size.size,
    "compactfit": allocators.allocators,
    "compactfit-kernel": zsmalloc.evaluation,
}


def title(name: str) -> str:
    return EVALS[name].__doc__ or name


def find(name: str) -> None:
    if name not in EVALS:
        raise LabError(f"unknown evaluation {name}: choose one of {', '.join(EVALS)}")


def host() -> dict[str, str]:
    """What results depend on beside kernels: the machine, its tools, the lab and the library."""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*: (.*)$", cpuinfo, flags=re.M)
    tools = {"qemu": targets.DEFAULT.qemu, "gcc": "gcc"}
    digest = hashlib.sha256()
    for folder in ("lab", "compactfit"):
        for path in sorted((paths.REPO / folder).rglob("*")):
            if path.suffix in SOURCES and path.is_file() and "target" not in path.parts:
                digest.update(f"{path.relative_to(paths.REPO)}\0".encode() + path.read_bytes())
    return {
        "cpu": f"{os.cpu_count()} x {model[1] if model else platform.machine()}",
        **{
            name: process.run([tool, "--version"]).stdout.partition("\n")[0]
            for name, tool in tools.items()
        },
        "sources_sha256": digest.hexdigest(),
    }


def run(name: str) -> Result:
    """Take an evaluation afresh and keep its result."""
    find(name)
    promises = figures.read()
    paths.require_space(results.folder(), RESULT_MB, f"the result of {name}")
    taken_by = host()  # before anybody edits what is measured
    outcome = EVALS[name](cache(build.build))
    judged = figures.judged(name, outcome.values, promises)
    result = results.make(name, title(name), outcome, judged, taken_by)
    results.save(result)
    return result


def latest() -> dict[str, Result]:
    """The stored results, in the order of the report."""
    stored = {name: results.load(name) for name in EVALS}
    return {name: result for name, result in stored.items() if result}
