# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma shell`: an interactive root shell in a guest."""

import argparse
import sys

from lab.errors import LabError
from lab.verbs import guest


def arguments(parser: argparse.ArgumentParser) -> None:
    guest.add_options(parser)
    parser.set_defaults(function=run, locked=True)


def run(args: argparse.Namespace) -> int:
    if not sys.stdin.isatty():
        raise LabError("a shell needs a terminal; for scripts: ./gcma run -- COMMAND")
    wanted, extra, share = guest.machine_of(args), guest.storage_of(args), guest.share_of(args)
    from lab import boot, build, setup  # noqa: PLC0415 (not for its help)

    setup.install_packages()
    kernel = build.build(args.flavour)
    with boot.scratch() as folder:
        machine, prepare = extra.attached(wanted, folder)
        return boot.shell(kernel, machine, prepare, share)
