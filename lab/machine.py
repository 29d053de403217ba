# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine a guest sees, refused before booting if it cannot be."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lab import systems, targets
from lab.errors import LabError
from lab.targets import Target

if TYPE_CHECKING:
    from lab.build import Kernel

POLICIES = systems.POLICIES
UNITS = {"K": 1 / 1024, "M": 1, "G": 1024}
MAX_CPUS = 64  # CONFIG_NR_CPUS
SHARE = "/run/gcma"  # the shared folder, as a system guest sees it
SHARED = f"{SHARE}/share"  # the user's
KERNEL_MIB = 64  # what a guest needs beside its area to boot at all


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
        path = str(self.path).replace(",", ",,")  # QEMU's way to have one in a value
        drive = f"file={path},if=none,id=d{number},format=raw"
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
    policy: str = systems.STOCK
    args: tuple[str, ...] = ()
    disks: tuple[Disk, ...] = field(default=())
    accel: str = "tcg"  # "kvm" only if the user asked for it
    less_kib: int = 0  # so much of it less, of a machine whose memory is in one piece
    nodes: int = 1  # of memory (NUMA), each with its share of memory and CPUs

    @property
    def smp(self) -> str:
        """QEMU's -smp. CPUs of several nodes share no cache: each has a socket of its own."""
        return f"{self.cpus},sockets={self.cpus}" if self.nodes > 1 else str(self.cpus)

    def check(self, target: Target = targets.DEFAULT) -> None:
        """Refuse, before anything is built or booted, what cannot work."""
        systems.offering(self.policy)
        if not 1 <= self.cpus <= MAX_CPUS:
            raise LabError(f"{self.cpus} CPUs: this kernel takes 1 to {MAX_CPUS}")
        if self.area_mib + KERNEL_MIB > self.memory_mib:
            raise LabError(
                f"an area of {self.area_mib} MiB does not fit into {self.memory_mib} MiB of memory:"
                f" the guest needs {KERNEL_MIB} MiB for itself"
            )
        low = target.low_mib
        one_piece = max(self.memory_mib - low, low)
        if self.memory_mib > target.one_piece_mib and self.area_mib + KERNEL_MIB > one_piece:
            raise LabError(
                f"an area of {self.area_mib} MiB does not fit into {self.memory_mib} MiB of memory,"
                f" of which {low} lie below 4 GiB and the others above: give the guest"
                f" {low + self.area_mib + KERNEL_MIB} MiB"
            )
        if self.less_kib and self.memory_mib > target.one_piece_mib:
            raise LabError(f"less of {self.memory_mib} MiB, which are not in one piece")
        self._check_nodes()

    def _check_nodes(self) -> None:
        if self.nodes < 1:
            raise LabError(f"{self.nodes} nodes of memory: a guest has at least one")
        node = self.memory_mib // self.nodes
        if self.nodes > 1 and max(self.area_mib, 1) + KERNEL_MIB > node:
            raise LabError(
                f"an area of {self.area_mib} MiB does not fit into one of {self.nodes} nodes of"
                f" {node} MiB: give the guest {self.nodes * (self.area_mib + KERNEL_MIB)} MiB"
            )

    def kernel_args(self, kernel: "Kernel") -> list[str]:
        """The kernel's command line for this machine."""
        self.check(kernel.target)
        able = kernel.has(systems.offering(self.policy))
        if self.policy != systems.STOCK and not able:
            raise LabError(
                f"the {kernel.flavour.name} kernel does not know the policy {self.policy}: it has"
                f" {systems.STOCK}"
            )
        area = [f"cma={self.area_mib}M"]
        own_policy = any(arg.startswith("cma_policy=") for arg in self.args)
        if able and not own_policy:
            area.append(f"cma_policy={self.policy}")
        if self.less_kib:
            kib = 1024 * self.memory_mib - kernel.target.firmware_kib - self.less_kib
            area.append(f"mem={kib}K")
        return [*area, *kernel.flavour.kernel_args, *self.args]

    def qemu_args(self) -> list[str]:
        """QEMU's options for the nodes and the disks."""
        args = []
        if self.nodes > 1:
            for node in range(self.nodes):
                first, end = (self.cpus * n // self.nodes for n in (node, node + 1))
                size = self.memory_mib * (node + 1) // self.nodes
                size -= self.memory_mib * node // self.nodes
                args += ["-object", f"memory-backend-ram,id=node{node},size={size}M"]
                cpus = f",cpus={first}-{end - 1}" if end > first else ""
                args += ["-numa", f"node,nodeid={node},memdev=node{node}{cpus}"]
        for number, disk in enumerate(self.disks):
            args += disk.qemu_args(number)
        return args


def beside(
    memory_mib: int, area_mib: int, cpus: int, policy: str, target: Target = targets.DEFAULT
) -> Machine:
    """A machine with so much memory beside its area, however large the area."""
    if memory_mib + area_mib <= target.one_piece_mib:
        return Machine(memory_mib + area_mib, cpus, area_mib, policy)
    # The area lies above 4 GiB, with its struct pages and half of the memory beside it, for that is
    # the zone the kernel prefers. Of what lies below only the other half is used.
    low = memory_mib // 2
    hidden = target.hide.format(size=target.low_mib - low, start=low)
    high = area_mib + area_mib // 64 + memory_mib - low + KERNEL_MIB
    return Machine(target.low_mib + high, cpus, area_mib, policy, (hidden,))
