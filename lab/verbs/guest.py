# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of the verbs that boot a guest: `run` and `shell`."""

import argparse
from pathlib import Path

from lab import flavours, machine, paths, storage, systems
from lab.errors import LabError
from lab.storage import FILESYSTEMS, MOUNT, Storage


def add_options(parser: argparse.ArgumentParser) -> None:
    policies = ", ".join(machine.POLICIES)
    parser.add_argument("--policy", default="gcma", help=f"the area's policy: {policies}")
    parser.add_argument("--cma", default="128M", help="the area's size")
    parser.add_argument("--mem", default="512M", help="the guest's memory")
    parser.add_argument("--cpus", type=int, default=2, help="the guest's CPUs")
    parser.add_argument(
        "--numa", type=int, default=1, metavar="N", help="nodes of memory, all of one size"
    )
    filesystems = ", ".join(FILESYSTEMS)
    parser.add_argument(
        "--disk",
        metavar="SIZE[:FS]|FILE",
        help=f"a fresh disk, mounted on {MOUNT} ({filesystems}); or an image as it is, /dev/vda",
    )
    parser.add_argument("--swap", metavar="SIZE|zram", help="swap on a disk or in memory")
    parser.add_argument(
        "--share", metavar="DIR", help=f"a folder that the guest may write, as {machine.SHARED}"
    )
    parser.add_argument("--append", action="append", default=[], help="a further kernel argument")
    names = ", ".join(flavours.FLAVOURS)
    parser.add_argument("--flavour", default="prod", help=f"the kernel: {names}")
    parser.add_argument(
        "--accel", choices=("tcg", "kvm"), default="tcg", help="never kvm by itself"
    )


def machine_of(args: argparse.Namespace) -> machine.Machine:
    """The machine asked for, refused if it cannot be."""
    wanted = machine.Machine(
        memory_mib=machine.parse_mib(args.mem),
        cpus=args.cpus,
        area_mib=machine.parse_mib(args.cma),
        policy=args.policy,
        args=tuple(args.append),
        accel=args.accel,
        nodes=args.numa,
    )
    wanted.check()
    flavour = flavours.find(args.flavour)
    stock = args.policy == systems.STOCK
    if not stock and not flavour.should_have(systems.offering(args.policy)):
        raise LabError(
            f"the {flavour.name} kernel does not know the policy {args.policy}: write --policy"
            f" {systems.STOCK}, or choose another --flavour"
        )
    return wanted


def storage_of(args: argparse.Namespace) -> Storage:
    """The disk and swap asked for, refused before anything is built if there is no room."""
    wanted = storage.wanted(args.disk, args.swap)
    room = (wanted.disk_mib + wanted.swap_mib) * (1 << 20) // paths.MB
    if room:
        paths.require_space(paths.cache(), room, "the guest's storage")
    return wanted


def share_of(args: argparse.Namespace) -> Path | None:
    if args.share is None:
        return None
    share = Path(args.share)
    if not share.is_dir():
        raise LabError(f"{share} is no folder: --share takes one that exists")
    return share
