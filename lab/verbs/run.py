# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma run`: one command in a guest."""

import argparse
import shlex
import sys
from dataclasses import asdict
from functools import partial

from lab.errors import LabError
from lab.verbs import add_json, guest, print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    guest.add_options(parser)
    parser.add_argument("--exact", action="store_true", help="busybox and counted instructions")
    parser.add_argument("--timeout", type=float, default=300, help="time limit in seconds")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="after --")
    add_json(parser)
    parser.set_defaults(function=run, locked=True)


def run(args: argparse.Namespace) -> int:
    if not args.command:
        raise LabError("nothing to run: ./gcma run -- COMMAND")
    if not args.timeout > 0:  # nan is not either
        raise LabError(f"a time limit of {args.timeout:g} s: no guest ends within it")
    wanted, extra, share = guest.machine_of(args), guest.storage_of(args), guest.share_of(args)
    if args.exact and (extra.has_disks or share):
        raise LabError("an exact guest has no disks and shares nothing: real I/O is not repeatable")
    from lab import boot, build, setup  # noqa: PLC0415 (not for its help)

    setup.install_packages()
    kernel = build.build(args.flavour)
    wanted.kernel_args(kernel)
    # one word is a line of shell, several are a command and its arguments
    script = args.command[0] if len(args.command) == 1 else shlex.join(args.command)
    listener = None if args.json else _echo
    with boot.scratch() as folder:
        machine, prepare = extra.attached(wanted, folder)
        lasting = bool(extra.image or share)  # what the script does to them stays
        system = partial(boot.system, share=share, twice=not lasting)
        boot_way = boot.exact if args.exact else system
        result = boot_way(
            kernel, machine, f"{prepare}{script}\n", timeout=args.timeout, listener=listener
        )
    if args.json:
        print_json(asdict(result))
    else:
        sys.stderr.write(result.errors)
    if result.status is None or result.panic:
        result.check()
    return result.status or 0


def _echo(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
