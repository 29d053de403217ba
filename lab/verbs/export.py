# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma export`: the kernel part as mails."""

import argparse
from pathlib import Path

from lab import export, paths, setup, source, targets
from lab.verbs import add_json, print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR")
    add_json(parser)
    parser.set_defaults(function=run, locked=True)


def run(args: argparse.Namespace) -> int:
    setup.install_packages()
    base = source.pristine(targets.DEFAULT.linux, paths.cache())
    mails = export.export(base, source.read_series(paths.KERNEL), Path(args.folder))
    if args.json:
        print_json([str(mail) for mail in mails])
    else:
        print("\n".join(map(str, mails)))
    return 0
