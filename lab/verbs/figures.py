# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma figures`: what the project promises, and what was measured last."""

import argparse
from dataclasses import asdict

from lab import console, evals, figures, setup
from lab.verbs import add_json, print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    # who only reads them needs nothing for himself
    parser.add_argument("--run", dest="locked", action="store_true", help="take them all afresh")
    add_json(parser)
    parser.set_defaults(function=run)


def run(args: argparse.Namespace) -> int:
    promises = figures.read()
    if args.locked:
        setup.install_packages()
        for name in evals.EVALS:
            if any(promise.eval == name for promise in promises):
                evals.run(name)
    standings = figures.standings(promises, evals.latest())
    if args.json:
        print_json([{**asdict(standing.figure), "taken": standing.taken} for standing in standings])
    else:
        console.show(figures.table(standings))
    return 1 if any(standing.figure.holds is False for standing in standings) else 0
