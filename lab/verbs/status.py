# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma status`: the contiguous areas of this machine, once."""

import argparse
from pathlib import Path

from lab import areas
from lab.verbs import add_json, print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    parser.set_defaults(function=run)


def add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sysfs", default=str(areas.SYSFS), help="a recorded tree")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    cma_areas = areas.read(Path(args.sysfs))
    if args.json:
        print_json(areas.as_json(cma_areas))
    else:
        print(areas.table(cma_areas), end="")
    return 0
