# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma doctor`: what is missing on the host."""

import argparse
from dataclasses import asdict

from lab import setup
from lab.verbs import add_json, print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    parser.set_defaults(function=run)


def run(args: argparse.Namespace) -> int:
    checks = setup.doctor()
    if args.json:
        print_json([asdict(check) for check in checks])
    else:
        for check in checks:
            mark, more = ("ok", check.found) if check.ok else ("MISSING", f"run: {check.mend}")
            print(f"{mark:8}{check.name:16}{more}")
    return 0 if all(check.ok for check in checks) else 1
