# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma build`: a kernel."""

import argparse

from lab import build, flavours, setup, systems
from lab.verbs import add_json, print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("flavour", nargs="?", default="prod", help=", ".join(flavours.FLAVOURS))
    add_json(parser)
    parser.set_defaults(function=run, locked=True)


def run(args: argparse.Namespace) -> int:
    flavours.find(args.flavour)
    setup.install_packages()
    kernel = build.build(args.flavour)
    known = {
        "flavour": args.flavour,
        "release": kernel.release,
        "image": str(kernel.image),
        "systems": [system.name for system in systems.SYSTEMS.values() if kernel.has(system)],
    }
    if args.json:
        print_json(known)
    else:
        print(kernel.image)
    return 0
