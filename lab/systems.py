# SPDX-License-Identifier: GPL-2.0-or-later
"""The systems that this project adds to the kernel: one description each.

A system's patches lie in the folder of its name beside the series. A new system is an entry here,
its patches, its fragment and its files; nothing else in the lab names systems one by one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lab.errors import LabError

STOCK = "movable"  # the policy of a kernel without any system of ours


@dataclass(frozen=True)
class System:
    """What the lab has to know of a system to build, boot, test, measure and export it."""

    name: str
    symbol: str  # a kernel that has this configuration symbol has the system
    fragments: tuple[str, ...]  # below kernel/configs
    needs: tuple[str, ...] = ()  # systems that it is built on
    policies: tuple[str, ...] = ()  # what `cma_policy=` takes because of it
    suites: Mapping[str, str] = field(default_factory=dict)  # KUnit: suite -> its source
    selftests: str | None = None  # folder below tools/testing/selftests
    programs: tuple[str, ...] = ()  # of another's folder, those that are nothing without this
    resources: tuple[str, ...] = ()  # what tests find on a kernel that has it: see cma_util.c
    # Of the size evaluation: part -> the files that count for it, as globs. A system with parts
    # has all of its code in them, one without parts is not counted.
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hooks: str = "hooks"  # the part of what its patches add to files that Linux has


RESERVE = System(
    "reserve",
    symbol="CONFIG_CMA_RESERVE",
    fragments=("reserve",),
    policies=("none", STOCK),
    suites={"cma_reserve": "mm/cma_reserve_kunit.c"},
    parts={
        "reserve": ("mm/cma_reserve.[ch]", "include/linux/cma_policy.h"),
        "observability": ("mm/cma_reserve_*.[ch]", "include/trace/events/cma_reserve.h"),
    },
)
GCMA = System(
    "gcma",
    symbol="CONFIG_GCMA",
    fragments=("gcma",),
    needs=("reserve",),
    policies=("gcma",),
    suites={"gcma": "mm/gcma_kunit.c"},
    selftests="gcma",
    resources=("admission", "gcma"),
    parts={
        "gcma": ("mm/gcma.[ch]", "include/linux/gcma.h"),
        "admission": ("mm/gcma_admission.[ch]",),
        "observability": (
            *("mm/gcma_sysfs.c", "include/linux/gcma_counters.h"),
            "include/trace/events/gcma.h",
        ),
    },
)
SWAP = System(
    "swap",
    symbol="CONFIG_GCMA_SWAP",
    fragments=("swap",),
    needs=("gcma",),
    programs=("gcma_swap",),
    parts={"swap": ("mm/gcma_swap.c",)},
    hooks="swap",
)
DIRTY = System(
    "dirty",
    symbol="CONFIG_GCMA_DIRTY",
    fragments=("dirty",),
    needs=("swap",),
    resources=("dirty",),
    parts={"swap": ("mm/gcma_dirty.[ch]",)},  # counts with what it completes
    hooks="swap",
)
RENTAL = System(
    "rental",
    symbol="CONFIG_RENTAL",
    fragments=("rental",),
    needs=("reserve",),
    policies=("rental",),
    suites={"rental": "mm/rental_kunit.c"},
    selftests="rental",
    resources=("rental", "sample"),
    parts={"rental": ("mm/rental*", "include/linux/rental*", "include/trace/events/rental.h")},
    hooks="rental",
)
CAMC = System(
    "camc",
    symbol="CONFIG_CAMC",
    fragments=("camc", "camc-tests"),
    suites={"camc": "mm/camc_kunit.c"},
    selftests="camc",
    resources=("coloring",),
    parts={
        "camc": (
            *("mm/camc.[ch]", "mm/camc_map.c", "mm/camc_set.c"),
            *("include/linux/camc.h", "include/uapi/linux/camc.h"),
            "include/trace/events/camc.h",
        )
    },
    hooks="camc",
)
BENCH = System("bench", symbol="CONFIG_CMA_BENCH", fragments=("bench",), resources=("bench",))
COMPACTFIT = System(
    "compactfit",
    symbol="CONFIG_COMPACTFIT",
    fragments=("compactfit",),
    suites={"compactfit": "lib/compactfit/compactfit_kunit.c"},
)

SYSTEMS: Mapping[str, System] = {
    system.name: system for system in (RESERVE, GCMA, SWAP, DIRTY, RENTAL, BENCH, COMPACTFIT, CAMC)
}
POLICIES = tuple(policy for system in SYSTEMS.values() for policy in system.policies)


def find(name: str) -> System:
    if name not in SYSTEMS:
        raise LabError(f"unknown system {name}: choose of {', '.join(SYSTEMS)}")
    return SYSTEMS[name]


def with_needs(names: Iterable[str]) -> list[System]:
    """These systems and what they are built on, in the order of the table."""
    wanted: set[str] = set()
    rest = list(names)
    while rest:
        system = find(rest.pop())
        if system.name not in wanted:
            wanted.add(system.name)
            rest += system.needs
    return [system for system in SYSTEMS.values() if system.name in wanted]


def offering(policy: str) -> System:
    """The system that a kernel needs for this policy."""
    for system in SYSTEMS.values():
        if policy in system.policies:
            return system
    raise LabError(f"unknown policy {policy}: choose one of {', '.join(POLICIES)}")


def fragments(systems: Iterable[System]) -> tuple[str, ...]:
    """Their fragments, each once."""
    return tuple(dict.fromkeys(name for system in systems for name in system.fragments))
