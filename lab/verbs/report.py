# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma report`: a page of all results."""

import argparse
from pathlib import Path

from lab import evals, present
from lab.errors import LabError
from lab.verbs import add_json, print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", default="report.html", metavar="FILE", help="the page: report.html"
    )
    parser.add_argument("--plots", metavar="DIR", help="its plots too, an SVG file each")
    add_json(parser)
    parser.set_defaults(function=run, locked=True)


def run(args: argparse.Namespace) -> int:
    latest = evals.latest()
    if not latest:
        raise LabError("nothing was measured yet: run ./gcma eval NAME, or ./gcma demo")
    chosen = list(latest.values())
    present.write_report(Path(args.file), chosen)
    pictures = present.write_pictures(Path(args.plots), chosen) if args.plots else []
    if args.json:
        known = {"report": args.file, "evals": list(latest), "plots": list(map(str, pictures))}
        print_json(known)
    else:
        print(args.file, *pictures, sep="\n")
    return 0
