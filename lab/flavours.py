# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernels that the lab knows."""

from dataclasses import dataclass

from lab import systems
from lab.errors import LabError
from lab.systems import System

PLAIN = ("base", "memory", "storage", "media", "observe")


def _ours(*without: System) -> tuple[str, ...]:
    return systems.fragments(s for s in systems.SYSTEMS.values() if s not in without)


# All but memory coloring, which is in a kernel of its own: the others are what it is set beside.
OURS = _ours(systems.CAMC)
STRICT = ("panic_on_warn=1",)  # kernels with the fragment "debug"


@dataclass(frozen=True)
class Flavour:
    """One kernel that the lab knows how to build. Expectations are for 2 idle cores."""

    name: str
    what: str
    fragments: tuple[str, ...]  # below kernel/configs, each with what the target adds to it
    patched: bool = True
    kernel_args: tuple[str, ...] = ()
    objects: int = 1700  # compiled in a full build
    seconds: int = 300  # of a full build
    megabytes: int = 1000  # of its objects

    def should_have(self, system: System) -> bool:
        return set(system.fragments) <= set(self.fragments)


FLAVOURS = {
    flavour.name: flavour
    for flavour in (
        Flavour("prod", "as it would be used", (*PLAIN, *OURS)),
        Flavour(
            "debug",
            "KASAN, lockdep, DEBUG_VM, fault injection; a warning is a panic",
            (*PLAIN, *OURS, "debug"),
            kernel_args=STRICT,
            objects=1800,
            seconds=600,
            megabytes=2000,
        ),
        Flavour(
            "kcsan",
            "KCSAN: tells of data races; with memory coloring, for nothing is measured on it",
            (*PLAIN, *OURS, *systems.CAMC.fragments, "kcsan"),
            objects=1800,
            seconds=600,
            megabytes=3500,
        ),
        Flavour(
            "gcov",
            "camc that counts, in some files, how often each line runs",
            (*PLAIN, *OURS, *systems.CAMC.fragments, "gcov"),
        ),
        Flavour(
            "lockstat",
            "tells how long locks were waited for, and held",
            (*PLAIN, *OURS, "lockstat"),
        ),
        Flavour("camc", "prod with memory coloring", (*PLAIN, *OURS, *systems.CAMC.fragments)),
        Flavour(
            "camc-debug",
            "debug with memory coloring",
            (*PLAIN, *OURS, *systems.CAMC.fragments, "debug", "io"),
            kernel_args=STRICT,
            objects=1800,
            seconds=600,
            megabytes=2000,
        ),
        Flavour(
            "camc-irqs",
            "camc that tells how long interrupts are off",
            (*PLAIN, *OURS, *systems.CAMC.fragments, "irqs"),
        ),
        Flavour(
            "nocamc",
            "camc without memory coloring, and else with all that it has",
            (*PLAIN, *OURS, "camc-tests"),
        ),
        Flavour(
            "norental", "prod without rental memory", (*PLAIN, *_ours(systems.CAMC, systems.RENTAL))
        ),
        Flavour("nogcma", "patched, none of our systems configured", PLAIN),
        Flavour("nocma", "patched, without CMA and most of what ours are for", ("base",)),
        Flavour("unpatched", "Debian's source as it is", PLAIN, patched=False),
    )
}


def find(name: str) -> Flavour:
    if name not in FLAVOURS:
        raise LabError(f"unknown flavour {name}: choose one of {', '.join(FLAVOURS)}")
    return FLAVOURS[name]
