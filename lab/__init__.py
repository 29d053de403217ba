# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab: builds, boots, tests and measures this project's systems on Linux.

Data flows one way, down the lines of this map: a module imports what stands above its own line.
A name stands for a module, or for all of a package that has no lines of its own.
"""

LAYERS = (
    "errors",
    "cpio kernellog stats",
    "ktap paths console dram dram.timings",
    "lock process targets systems measure areas results skips dram.maps",
    "setup source figures plots mutants_rust flavours checkpatch",
    "build export report",
    "machine stepwise present",
    "boot storage",
    "compactfit compactfit.build compactfit.traces compactfit.longest workloads kcsan"
    " dram.patterns",
    "compactfit.ceilings",
    "compactfit.judge compactfit.recording compactfit.tuning compactfit.experiments guests"
    " selftests dram.model",
    "compactfit.steps compactfit.programs tenants loads dram.recording",
    "compactfit.replays tests rental dram.boards",
    "trials rental_costs rental_anon",
    "reach",
    "mutants",
    "evals.alloc evals.alloc_cpus evals.allocators evals.both evals.camc_cost evals.camc_isolation"
    " evals.camc_purity evals.camc_schedule evals.camera evals.contention evals.dirty evals.large"
    " evals.mapped evals.memcg evals.mixed evals.nothing evals.overhead evals.phases"
    " evals.rental_apps evals.rental_return evals.rental_throughput evals.rfc evals.scale"
    " evals.size evals.swapped evals.system evals.tenancy evals.usual evals.zsmalloc",
    "evals",
    "demo",
    "verbs",
    "verbs.guest verbs.eval verbs.status",
    "verbs.build verbs.compactfit verbs.demo verbs.doctor verbs.export verbs.figures verbs.report"
    " verbs.run verbs.setup verbs.shell verbs.test verbs.top",
    "cli",
    "__main__",
)
