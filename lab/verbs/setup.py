# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma setup`: the host made ready."""

import argparse

from lab import console, paths, setup, source
from lab.targets import TARGETS
from lab.verbs import add_json, print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    parser.set_defaults(function=run, locked=True)


def run(args: argparse.Namespace) -> int:
    setup.install_packages()
    trees = [
        source.pristine(linux, paths.cache())
        for linux in dict.fromkeys(target.linux for target in TARGETS.values())
    ]
    if args.json:
        print_json([{"release": tree.release, "path": str(tree.path)} for tree in trees])
    else:
        for tree in trees:
            console.say(f"ready: Linux {tree.release} in {paths.cache()}")
    return 0
