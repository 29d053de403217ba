# SPDX-License-Identifier: GPL-2.0-or-later
"""The verbs of the command line, a module each, imported when it is used.

A verb has `arguments(parser)`, which also sets its defaults `function` and, if it needs the cache
for itself, `locked`; and a function that does it, by the name of `run()` where there is one only.
"""

import argparse
from typing import Any


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the result as JSON")


def print_json(value: Any) -> None:
    import json  # noqa: PLC0415 (felt by `gcma status` on a small board)

    print(json.dumps(value, indent=2))
