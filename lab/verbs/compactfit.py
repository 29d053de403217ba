# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma compactfit`: the library's benchmark, traces of programs, K for one."""

import argparse
from pathlib import Path
from typing import Any

from lab import console, setup
from lab.compactfit import recording, tuning
from lab.errors import LabError
from lab.verbs import add_json, print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(
        dest="part", required=True, metavar="VERB", parser_class=argparse.ArgumentParser
    )
    part = _add(parts, "bench", "the library beside others: what `gcma eval compactfit` takes")
    part.add_argument(
        "--json", nargs="?", const="-", metavar="FILE", help="the result as JSON, to stdout or FILE"
    )
    part.set_defaults(function=_bench, locked=True)
    part = _add(parts, "record", "run a program and record its allocations, a trace a process")
    part.add_argument(
        *("-o", "--output"),
        default="traces",
        metavar="DIR",
        help="for the traces (default: traces)",
    )
    part.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="COMMAND", help="with its arguments, after --"
    )
    add_json(part)
    part.set_defaults(function=_record)
    part = _add(parts, "tune", "choose K for each size-class by a trace, and tell what it costs")
    part.add_argument("trace", metavar="TRACE", help="a file that was recorded")
    part.add_argument("--memory", metavar="SIZE", help="what the heap may have: 512K, 4M, ...")
    add_json(part)
    part.set_defaults(function=_tune)


def _add(parts: Any, name: str, text: str) -> argparse.ArgumentParser:
    part: argparse.ArgumentParser = parts.add_parser(name, help=text, description=text)
    return part


def _bench(args: argparse.Namespace) -> int:
    from lab.verbs import eval as evaluation  # noqa: PLC0415 (the other two do without)

    args.name = "compactfit"
    return evaluation.run(args)


def _record(args: argparse.Namespace) -> int:
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise LabError("nothing to record: ./gcma compactfit record -- COMMAND")
    setup.install_packages()
    status, traces = recording.record(command, Path(args.output), quiet=args.json)
    if args.json:
        print_json({"status": status, "traces": list(map(str, traces))})
    else:
        for trace in traces:
            console.say(f"recorded {trace}")
    return status


def _tune(args: argparse.Namespace) -> int:
    memory = tuning.parse_bytes(args.memory) if args.memory else None
    setup.install_packages()
    choice = tuning.tune(Path(args.trace), memory)
    if args.json:
        print_json(choice)
    else:
        tuning.show(choice)
    return 0
