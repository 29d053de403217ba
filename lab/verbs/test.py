# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma test`: the tests."""

import argparse
from dataclasses import asdict

from lab import mutants, mutants_rust, paths, setup, tests
from lab.errors import LabError
from lab.ktap import Case
from lab.verbs import add_json, print_json

RUST = "rust"  # with --mutants --only: the Rust crate's copy of the C header


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--debug", action="store_true", help="on the debug kernel")
    parser.add_argument("--kcsan", action="store_true", help="for data races, on the kcsan kernel")
    parser.add_argument(
        "--camc", action="store_true", help="of memory coloring, which has kernels of its own"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="in a minute: lint, kunit, lab without machines that are simulated",
    )
    parser.add_argument("--long", action="store_true", help="more of each, as CI: ten minutes")
    parser.add_argument("--soak", action="store_true", help="for hours")
    parser.add_argument(
        "--minutes",
        type=int,
        metavar="N",
        help="selftests that have not begun after so many are skipped",
    )
    parser.add_argument(
        "--mutants",
        action="store_true",
        help="take each hook out of the kernel in turn: does a test notice? Hours, resumed; "
        "with --long: what survived meets more of each",
    )
    parser.add_argument("--list", action="store_true", help="with --mutants: only tell of them")
    parts = ", ".join(tests.PARTS)
    help_only = f"one part: {parts}; with --mutants: patches with this in their names, or {RUST}"
    parser.add_argument("--only", metavar="NAME", help=help_only)
    add_json(parser)
    parser.set_defaults(function=run, locked=True)


def run(args: argparse.Namespace) -> int:
    options = tests.Options(
        args.debug, args.kcsan, args.long, args.soak, args.quick, args.camc, args.minutes
    )
    options.check()
    if args.mutants:
        return run_mutants(args, options)
    if args.list:
        raise LabError("--list tells of the mutants: write ./gcma test --mutants --list")
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


def run_mutants(args: argparse.Namespace, options: tests.Options) -> int:
    only = args.only or ""
    if options.quick or options.kcsan:
        raise LabError("--mutants takes no --quick and no --kcsan: their tests miss too much")
    rust = only == RUST or (not only and not options.camc)
    setup.install_packages()
    if args.list:
        names = [] if only == RUST else mutants.listing(options, only)
        if rust:
            names += [f"sys.rs: {mutant.name}" for mutant in mutants_rust.mutants()]
        print_json(names) if args.json else print("\n".join(names))
        return 0
    cases = [] if only == RUST else mutants.run(options, only)
    if rust:
        cases += _rust_cases()
    result = tests.PartResult(mutants.PART, cases)
    survivors = [case for case in result.cases if not case.passed]
    if args.json:
        print_json({"survivors": [asdict(case) for case in survivors], **asdict(result.summary)})
    else:
        for case in survivors:
            print(f"{case.name}: {case.why}")
        print(result.summary)
    return 1 if survivors else 0


def _rust_cases() -> list[Case]:
    folder = paths.cache() / "mutants-rust"
    folder.mkdir(exist_ok=True)
    return [
        Case(f"sys.rs: {verdict.mutant.name}", verdict.killed, why="no test misses it")
        for verdict in mutants_rust.run_all(folder)
    ]
