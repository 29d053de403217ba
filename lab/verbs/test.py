# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma test`: the tests."""

import argparse
from dataclasses import asdict

from lab import setup, tests
from lab.verbs import add_json, print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--debug", action="store_true", help="on the debug kernel")
    parser.add_argument("--kcsan", action="store_true", help="for data races, on the kcsan kernel")
    parser.add_argument("--soak", action="store_true", help="the long forms")
    parser.add_argument("--quick", action="store_true", help="in a minute: lint, lab, kunit")
    parser.add_argument("--only", metavar="NAME", help="one part: " + ", ".join(tests.PARTS))
    add_json(parser)
    parser.set_defaults(function=run, locked=True)


def run(args: argparse.Namespace) -> int:
    options = tests.Options(args.debug, args.kcsan, args.soak, args.quick)
    options.check()
    tests.selected(options, args.only)
    setup.install_packages()
    results = tests.run(options, args.only)
    total = tests.total(results)
    if args.json:
        parts = {
            result.name: {**asdict(result.summary), "seconds": round(result.seconds, 1)}
            for result in results
        }
        print_json({"parts": parts, "total": asdict(total)})
    else:
        print(total)
    return 1 if total.failed else 0
