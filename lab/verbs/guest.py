# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of the verbs that boot a guest: `run` and `shell`."""

import argparse

from lab import build, machine


def add_options(parser: argparse.ArgumentParser) -> None:
    policies = ", ".join(machine.POLICIES)
    parser.add_argument("--policy", default="gcma", help=f"the area's policy: {policies}")
    parser.add_argument("--cma", default="128M", help="the area's size")
    parser.add_argument("--mem", default="512M", help="the guest's memory")
    parser.add_argument("--cpus", type=int, default=2, help="the guest's CPUs")
    parser.add_argument("--append", action="append", default=[], help="a further kernel argument")
    flavours = ", ".join(build.FLAVOURS)
    parser.add_argument("--flavour", default="prod", help=f"the kernel: {flavours}")
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
    )
    wanted.check()
    build.find(args.flavour)
    return wanted
