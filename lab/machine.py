# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine a guest sees, refused before booting if it cannot be."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from lab.build import Kernel
from lab.errors import LabError

POLICIES = ("none", "movable", "gcma")
UNITS = {"K": 1 / 1024, "M": 1, "G": 1024}
MAX_CPUS = 8  # CONFIG_NR_CPUS
KERNEL_MIB = 64  # what a guest needs beside its area to boot at all
# QEMU's q35: a machine with more than the first has the second below 4 GiB and the rest above
ONE_PIECE_MIB = 2816
LOW_MIB = 2048


def parse_mib(text: str) -> int:
    """'128M', '1G' -> MiB."""
    match = re.fullmatch(r"(\d+)([KMG])B?", text.strip(), flags=re.I)
    if not match:
        raise LabError(f"{text!r} is not a size: write 128M or 1G")
    mib = int(match[1]) * UNITS[match[2].upper()]
    if mib != int(mib):
        raise LabError(f"{text} is not a whole number of MiB")
    return int(mib)


@dataclass(frozen=True)
class Disk:
    """A raw image as a virtio disk; `serial` names it in /dev/disk/by-id/virtio-SERIAL."""

    path: Path
    serial: str
    bytes_per_second: int | None = None  # QEMU's throttling: as slow as an SD card
    readonly: bool = False

    def qemu_args(self, number: int) -> list[str]:
        drive = f"file={self.path},if=none,id=d{number},format=raw"
        if self.readonly:
            drive += ",readonly=on"
        if self.bytes_per_second:
            drive += f",throttling.bps-total={self.bytes_per_second}"
        return ["-drive", drive, "-device", f"virtio-blk-pci,drive=d{number},serial={self.serial}"]


@dataclass(frozen=True)
class Machine:
    """Size, area and policy of one guest.

    `args` are further kernel arguments; a `cma_policy=` among them replaces the policy.
    """

    memory_mib: int = 512
    cpus: int = 2
    area_mib: int = 128  # 0: no area
    policy: str = "movable"
    args: tuple[str, ...] = ()
    disks: tuple[Disk, ...] = field(default=())
    accel: str = "tcg"  # "kvm" only if the user asked for it

    def check(self) -> None:
        """Refuse, before anything is built or booted, what cannot work."""
        if self.policy not in POLICIES:
            raise LabError(f"unknown policy {self.policy}: choose one of {', '.join(POLICIES)}")
        if not 1 <= self.cpus <= MAX_CPUS:
            raise LabError(f"{self.cpus} CPUs: this kernel takes 1 to {MAX_CPUS}")
        if self.area_mib + KERNEL_MIB > self.memory_mib:
            raise LabError(
                f"an area of {self.area_mib} MiB does not fit into {self.memory_mib} MiB of memory:"
                f" the guest needs {KERNEL_MIB} MiB for itself"
            )
        one_piece = max(self.memory_mib - LOW_MIB, LOW_MIB)
        if self.memory_mib > ONE_PIECE_MIB and self.area_mib + KERNEL_MIB > one_piece:
            raise LabError(
                f"an area of {self.area_mib} MiB does not fit into {self.memory_mib} MiB of memory,"
                f" of which {LOW_MIB} lie below 4 GiB and the others above: give the guest"
                f" {LOW_MIB + self.area_mib + KERNEL_MIB} MiB"
            )

    def kernel_args(self, kernel: Kernel) -> list[str]:
        """The kernel's command line for this machine."""
        self.check()
        if self.policy != "movable" and not kernel.has_gcma:
            raise LabError(
                f"the {kernel.flavour.name} kernel has no GCMA: it knows no policy but movable"
            )
        area = [f"cma={self.area_mib}M"]
        own_policy = any(arg.startswith("cma_policy=") for arg in self.args)
        if kernel.has_gcma and not own_policy:
            area.append(f"cma_policy={self.policy}")
        return [*area, *kernel.flavour.kernel_args, *self.args]


def beside(memory_mib: int, area_mib: int, cpus: int, policy: str) -> Machine:
    """A machine with so much memory beside its area, however large the area."""
    if memory_mib + area_mib <= ONE_PIECE_MIB:
        return Machine(memory_mib + area_mib, cpus, area_mib, policy)
    # The area lies above 4 GiB, with its struct pages and half of the memory beside it, for that is
    # the zone the kernel prefers. Of what lies below only the other half is used.
    low = memory_mib // 2
    hidden = f"memmap={LOW_MIB - low}M${low}M"
    high = area_mib + area_mib // 64 + memory_mib - low + KERNEL_MIB
    return Machine(LOW_MIB + high, cpus, area_mib, policy, (hidden,))
