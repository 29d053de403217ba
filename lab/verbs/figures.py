# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma figures`: what the project promises, and what was measured last."""

import argparse
from dataclasses import asdict
from pathlib import Path

from lab import console, evals, figures, setup
from lab.verbs import add_json, print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    # who only reads them needs nothing for himself
    parser.add_argument("--run", dest="locked", action="store_true", help="take them all afresh")
    parser.add_argument(
        "--against",
        metavar="FILE",
        type=Path,
        help=f"fail if one is more than {figures.SLACK:.0%}% worse than in an earlier run, or gone:"
        " what `figures --json` printed then",
    )
    add_json(parser)
    parser.set_defaults(function=run)


def run(args: argparse.Namespace) -> int:
    promises = figures.read()
    before = figures.earlier(args.against) if args.against else {}
    if args.locked:
        setup.install_packages()
        for name in evals.EVALS:
            if any(promise.eval == name for promise in promises):
                evals.run(name)
    standings = figures.standings(promises, evals.latest(), before)
    if args.json:
        print_json(
            [
                {**asdict(each.figure), "taken": each.taken, "before": each.before}
                for each in standings
            ]
        )
    else:
        console.show(figures.table(standings))
    return 1 if any(each.figure.holds is False or each.worse for each in standings) else 0
