# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma export`: the kernel part as mails."""

import argparse
import tempfile
from pathlib import Path

from lab import (
    build,
    checkpatch,
    console,
    export,
    paths,
    setup,
    source,
    stepwise,
    systems,
    targets,
    tests,
)
from lab.errors import LabError
from lab.verbs import add_json, print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR")
    names = ",".join(systems.SYSTEMS)
    parser.add_argument(
        "--only", metavar="NAMES", default="", help=f"these systems and what they need: {names}"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="checkpatch each mail, and compile what each patch touches: W=1, sparse",
    )
    parser.add_argument(
        "--test", action="store_true", help="run the tests on a kernel of these patches alone"
    )
    add_json(parser)
    parser.set_defaults(function=run, locked=True)


def run(args: argparse.Namespace) -> int:
    only = [name.strip() for name in args.only.split(",")] if args.only else []
    systems.with_needs(only)
    export.check_place(Path(args.folder))
    setup.install_packages()
    base = source.pristine(targets.DEFAULT.linux, paths.cache())
    series = source.read_series(paths.KERNEL)
    if args.check:
        with tempfile.TemporaryDirectory(prefix="gcma-mails-") as folder:
            mails = export.export(base, series, Path(folder), only)
            checkpatch.check(mails, base.path, whole=not only)
        stepwise.check(export.selected(series, only), targets.DEFAULT)
    if args.test:
        results = tests.alone(build.alone(export.selected(series, only)))
        total = tests.total(results)
        console.say(str(total))
        if total.failed:
            raise LabError("the tests of these patches alone fail: nothing was exported")
    mails = export.export(base, series, Path(args.folder), only)
    if args.json:
        print_json([str(mail) for mail in mails])
    else:
        print("\n".join(map(str, mails)))
    return 0
