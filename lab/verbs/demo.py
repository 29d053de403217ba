# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma demo`: photo shots under memory pressure, with each policy."""

import argparse
from pathlib import Path

from lab import demo, present, results, setup
from lab.verbs import add_json


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", default=".", metavar="DIR", help="for report.html, results.json"
    )
    add_json(parser)
    parser.set_defaults(function=run, locked=True)


def run(args: argparse.Namespace) -> int:
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    results.check_place(folder / "results.json")
    present.check_report(folder / "report.html")
    setup.install_packages()
    result = demo.run(folder)
    if args.json:
        print(results.to_json(result), end="")
    else:
        present.show(result)
        print(f"\n{folder / 'report.html'}  {folder / 'results.json'}")
    return 0
