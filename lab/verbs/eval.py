# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma eval`: one evaluation, taken afresh."""

import argparse
from pathlib import Path

from lab import evals, present, results, setup


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help=", ".join(evals.EVALS))
    parser.add_argument("--json", metavar="FILE", help="the result as JSON; -: to stdout")
    parser.set_defaults(function=run, locked=True)


def run(args: argparse.Namespace) -> int:
    evals.find(args.name)
    if args.json and args.json != "-":
        results.check_place(Path(args.json))
    setup.install_packages()
    result = evals.run(args.name)
    if args.json == "-":
        print(results.to_json(result), end="")
        return 0
    if args.json:  # first: who reads the tables may not wait for their end
        results.write_file(Path(args.json), results.to_json(result))
    present.show(result)
    return 0
