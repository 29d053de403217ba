# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma top`: the contiguous areas of this machine, live."""

import argparse
import sys
from pathlib import Path

from lab import areas
from lab.errors import LabError
from lab.verbs import status

LONGEST = 86_400  # seconds


def arguments(parser: argparse.ArgumentParser) -> None:
    status.add_source(parser)
    parser.add_argument("--interval", type=float, default=1.0, help="seconds")
    parser.set_defaults(function=run)


def run(args: argparse.Namespace) -> int:
    if not 0 < args.interval <= LONGEST:  # nan is not either
        raise LabError(f"an interval of {args.interval:g} s: write 0.5, or 10")
    if args.json or not sys.stdout.isatty():
        return status.run(args)
    areas.watch(Path(args.sysfs), args.interval)
    return 0
