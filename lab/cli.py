# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: its verbs, and what becomes of their mistakes.

Results go to stdout, progress to stderr.
"""

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from lab import console
from lab.errors import LabError

# Each has a module in lab/verbs, which is imported if it is used
VERBS = {
    "setup": "install the Debian packages and unpack the kernel source",
    "doctor": "say what is missing, and the command that mends it",
    "build": "build a kernel",
    "run": "run one command in a guest",
    "shell": "an interactive root shell in a guest",
    "test": "run the tests",
    "export": "write the kernel part as mails for `git am`",
    "status": "the contiguous areas of this machine, once",
    "top": "the contiguous areas of this machine, live",
    "demo": "photo shots under memory pressure, with each policy",
    "eval": "take one evaluation afresh",
    "compactfit": "the compact-fit library: its benchmark, traces of programs, K for one",
    "figures": "what the project promises, and what was measured last",
    "report": "write a page of all results",
}


class _VerbParser(argparse.ArgumentParser):
    """A verb's parser, which gets its arguments from the verb's module when it has to parse."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        verb = self.prog.split()[-1]
        import_module(f"lab.verbs.{verb}").arguments(self)
        return super().parse_known_args(args, namespace)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="gcma", description="Guaranteed contiguous memory allocation on Linux."
    )
    top.add_argument("--verbose", action="store_true", help="print every command that is run")
    top.set_defaults(locked=False)
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB", parser_class=_VerbParser)
    for name, text in VERBS.items():
        verbs.add_parser(name, help=text, description=text)
    return top


def _parsed(argv: Sequence[str]) -> argparse.Namespace:
    top = parser()
    args, unknown = top.parse_known_args(argv)
    if unknown:
        hint = ""
        if getattr(args, "command", None):
            hint = ": options of the COMMAND's own come after --, as in -- ls -l"
        top.error(f"unrecognized arguments: {shlex.join(unknown)}{hint}")
    return args


def main(argv: Sequence[str]) -> int:
    """Run one command; every error a user can cause is one line."""
    try:
        status = _main(argv)
        print(end="", flush=True)
        return status
    except BrokenPipeError:  # who reads it has seen enough, as `head` has: of what is left, too
        with suppress(OSError):
            pipe = sys.stdout.fileno()
            os.dup2(os.open(os.devnull, os.O_WRONLY), pipe)
        return 1


def _main(argv: Sequence[str]) -> int:
    args = _parsed(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # children must not outlive us
    console.Settings.verbose = args.verbose
    try:
        if args.locked:
            from lab import lock, paths  # noqa: PLC0415 (not for the status)

            with lock.exclusive(paths.cache(), shlex.join(argv)):
                return int(args.function(args))
        return int(args.function(args))
    except LabError as error:
        print(f"gcma: {error.message}", file=sys.stderr)
        if error.detail:
            print(error.detail, file=sys.stderr)
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk, a folder that is not ours
        where = f"{error.filename}: " if error.filename else ""
        print(f"gcma: {where}{error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("gcma: interrupted", file=sys.stderr)
    return 1
