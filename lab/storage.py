# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest has beside memory to try a program on: a disk, swap."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from lab import paths
from lab.errors import LabError
from lab.machine import Disk, Machine, parse_mib

MOUNT = "/mnt"  # of a fresh disk, in the guest
DISK = "gcma.disk"  # serial numbers
SWAP = "gcma.swap"
ZRAM = "zram"


@dataclass(frozen=True)
class Filesystem:
    """How an image gets it, and how small that may be."""

    mkfs: tuple[str, ...]
    least_mib: int


FILESYSTEMS = {
    "ext4": Filesystem(("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0"), 8),
    "xfs": Filesystem(("mkfs.xfs", "-q", "-f"), 300),
    "f2fs": Filesystem(("mkfs.f2fs", "-q", "-f"), 64),
    "btrfs": Filesystem(("mkfs.btrfs", "-q", "-f"), 128),
}


@dataclass(frozen=True)
class Storage:
    """What was asked for, each if at all."""

    image: Path | None = None  # a disk that there is, attached as it is
    disk_mib: int = 0  # a fresh one
    filesystem: str = "ext4"
    swap_mib: int = 0  # on a disk
    zram: bool = False  # swap in compressed memory, half as large as memory

    def check(self) -> None:
        """Refuse, before anything is built, what cannot be."""
        if self.filesystem not in FILESYSTEMS:
            raise LabError(
                f"unknown filesystem {self.filesystem}: choose one of {', '.join(FILESYSTEMS)}"
            )
        least = FILESYSTEMS[self.filesystem].least_mib
        if self.disk_mib and self.disk_mib < least:
            raise LabError(f"a disk of {self.disk_mib} MiB: {self.filesystem} needs {least} MiB")
        if self.image and not os.access(self.image, os.R_OK | os.W_OK):
            raise LabError(
                f"{self.image} cannot be read and written: name a file that can, or a size"
            )

    @property
    def has_disks(self) -> bool:
        return bool(self.image or self.disk_mib or self.swap_mib)

    def attached(self, machine: Machine, folder: Path) -> tuple[Machine, str]:
        """The machine with its disks, made in this folder, and what its guest has to run first."""
        disks = list(machine.disks)
        lines: list[str] = []
        if self.image:
            disks.append(Disk(self.image.resolve(), DISK))
            lines.append("trap sync EXIT")  # a guest is not shut down, it is switched off
        if self.disk_mib:
            disks.append(_fresh(folder / DISK, self.disk_mib, FILESYSTEMS[self.filesystem].mkfs))
            lines.append(f"mount -t {self.filesystem} $(gcma_disk {DISK}) {MOUNT}")
        if self.swap_mib:
            disks.append(_fresh(folder / SWAP, self.swap_mib, ("mkswap", "-q")))
            lines.append(f"swapon $(gcma_disk {SWAP})")
        if self.zram:
            lines.append(f"echo {machine.memory_mib // 2}M >/sys/block/zram0/disksize")
            lines.append("mkswap /dev/zram0 >/dev/null")
            lines.append("swapon /dev/zram0")
        script = "".join(f"{line} || exit 1\n" for line in lines)
        return replace(machine, disks=tuple(disks)), FIND_DISK + script if lines else ""


# The guest has no udev that would name a disk by its serial number.
FIND_DISK = """\
gcma_disk() {
	for each in /sys/block/vd*; do
		[ "$(cat $each/serial)" = "$1" ] && echo /dev/${each##*/}
	done
}
"""


def wanted(disk: str | None, swap: str | None) -> Storage:
    """What the command line asks for: '64M', '1G:xfs' or an image; '64M' or 'zram'."""
    storage = Storage()
    if disk is not None:
        storage = _with_disk(storage, disk)
    if swap == ZRAM:
        storage = replace(storage, zram=True)
    elif swap is not None:
        storage = replace(storage, swap_mib=parse_mib(swap))
        if not storage.swap_mib:
            raise LabError(f"{swap} of swap is none")
    storage.check()
    return storage


def _with_disk(storage: Storage, text: str) -> Storage:
    path = Path(text)
    if path.is_file() or path.is_block_device():
        return replace(storage, image=path)
    if not text[:1].isdigit():
        raise LabError(
            f"{text} is no disk: give a size (256M, 1G:xfs) or the name of an image that there is"
        )
    size, _, filesystem = text.partition(":")
    mib = parse_mib(size)
    if not mib:
        raise LabError(f"{text} is no disk: it would be empty")
    return replace(storage, disk_mib=mib, filesystem=filesystem or storage.filesystem)


def _fresh(path: Path, mib: int, mkfs: tuple[str, ...]) -> Disk:
    from lab import process  # noqa: PLC0415 (not for the help of `gcma run`)

    paths.require_space(path.parent, mib, "the guest's disk")
    with path.open("wb") as file:
        file.truncate(mib << 20)
    path.chmod(0o600)  # mkswap warns otherwise
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    process.run([*mkfs, str(path)], env=environment)
    return Disk(path, path.name)
