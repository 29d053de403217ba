# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma setup`: the host made ready."""

import argparse

from lab import console, paths, setup, source
from lab.targets import TARGETS
from lab.verbs import add_json


def arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    parser.set_defaults(function=run, locked=True)


def run(_: argparse.Namespace) -> int:
    setup.install_packages()
    for linux in {target.linux for target in TARGETS.values()}:
        tree = source.pristine(linux, paths.cache())
        console.say(f"ready: Linux {tree.release} in {paths.cache()}")
    return 0
