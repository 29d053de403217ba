# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: one verb, one function. Results go to stdout, progress to stderr."""

import argparse
import json
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lab import (
    areas,
    boot,
    build,
    console,
    demo,
    evals,
    export,
    figures,
    lock,
    machine,
    paths,
    results,
    setup,
    source,
    tests,
    traces,
)
from lab.errors import LabError

LOCKED = ("setup", "build", "run", "shell", "test", "export", "demo", "eval", "figures", "report")


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


def cmd_setup(_: argparse.Namespace) -> int:
    """install the Debian packages and unpack the kernel source"""
    setup.install_packages()
    tree = source.pristine(paths.TARBALL, paths.cache())
    console.say(f"ready: Linux {tree.release} in {paths.cache()}")
    return 0


def cmd_doctor(args: argparse.Namespace) -> int:
    """say what is missing, and the command that mends it"""
    checks = setup.doctor()
    if args.json:
        _print_json([asdict(check) for check in checks])
    else:
        for check in checks:
            mark, more = ("ok", check.found) if check.ok else ("MISSING", f"run: {check.mend}")
            print(f"{mark:8}{check.name:16}{more}")
    return 0 if all(check.ok for check in checks) else 1


def cmd_build(args: argparse.Namespace) -> int:
    """build a kernel"""
    build.find(args.flavour)
    setup.install_packages()
    kernel = build.build(args.flavour)
    known = {
        "flavour": args.flavour,
        "release": kernel.release,
        "image": str(kernel.image),
        "gcma": kernel.has_gcma,
    }
    if args.json:
        _print_json(known)
    else:
        print(kernel.image)
    return 0


def cmd_run(args: argparse.Namespace) -> int:
    """run one command in a guest"""
    if not args.command:
        raise LabError("nothing to run: ./gcma run -- COMMAND")
    wanted = _machine(args)
    setup.install_packages()
    kernel = build.build(args.flavour)
    wanted.kernel_args(kernel)
    # one word is a line of shell, several are a command and its arguments
    script = args.command[0] if len(args.command) == 1 else shlex.join(args.command)
    listener = None if args.json else _echo
    boot_way = boot.exact if args.exact else boot.system
    result = boot_way(kernel, wanted, script + "\n", timeout=args.timeout, listener=listener)
    if args.json:
        _print_json(asdict(result))
    else:
        sys.stderr.write(result.errors)
    if result.status is None or result.panic:
        result.check()
    return result.status or 0


def _echo(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def cmd_shell(args: argparse.Namespace) -> int:
    """an interactive root shell in a guest"""
    if not sys.stdin.isatty():
        raise LabError("a shell needs a terminal; for scripts: ./gcma run -- COMMAND")
    wanted = _machine(args)
    setup.install_packages()
    return boot.shell(build.build(args.flavour), wanted)


def cmd_test(args: argparse.Namespace) -> int:
    """run the tests"""
    tests.selected(args.only)
    setup.install_packages()
    results = tests.run(tests.Options(args.debug, args.soak), args.only)
    total = tests.total(results)
    if args.json:
        parts = {
            result.name: {**asdict(result.summary), "seconds": round(result.seconds, 1)}
            for result in results
        }
        _print_json({"parts": parts, "total": asdict(total)})
    else:
        print(total)
    return 1 if total.failed else 0


def cmd_export(args: argparse.Namespace) -> int:
    """write the kernel part as mails for `git am`"""
    setup.install_packages()
    base = source.pristine(paths.TARBALL, paths.cache())
    mails = export.export(base, source.read_series(paths.KERNEL), Path(args.folder))
    if args.json:
        _print_json([str(mail) for mail in mails])
    else:
        print("\n".join(map(str, mails)))
    return 0


def cmd_status(args: argparse.Namespace) -> int:
    """the contiguous areas of this machine, once"""
    found = areas.read(Path(args.sysfs))
    if args.json:
        _print_json(areas.as_json(found))
    else:
        console.out.print(areas.table(found))
    return 0


def cmd_top(args: argparse.Namespace) -> int:
    """the contiguous areas of this machine, live"""
    if args.json or not console.out.is_terminal:
        return cmd_status(args)
    areas.watch(Path(args.sysfs), args.interval)
    return 0


def cmd_demo(args: argparse.Namespace) -> int:
    """photo shots under memory pressure, with each policy"""
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    results.check_place(folder / "results.json")
    setup.install_packages()
    result = demo.run(folder)
    if args.json:
        print(results.to_json(result), end="")
    else:
        demo.show(result)
        print(f"\n{folder / 'report.html'}  {folder / 'results.json'}")
    return 0


def cmd_eval(args: argparse.Namespace) -> int:
    """take one evaluation afresh"""
    evals.find(args.name)
    if args.json and args.json != "-":
        results.check_place(Path(args.json))
    setup.install_packages()
    result = evals.run(args.name)
    if args.json == "-":
        print(results.to_json(result), end="")
        return 0
    demo.show(result)
    if args.json:
        results.write_file(Path(args.json), results.to_json(result))
    return 0


def cmd_compactfit_bench(args: argparse.Namespace) -> int:
    """the compact-fit library beside other allocators: what `gcma eval compactfit` takes"""
    args.name = "compactfit"
    return cmd_eval(args)


def cmd_compactfit_record(args: argparse.Namespace) -> int:
    """run a program and record its allocations, a trace for each process"""
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise LabError("nothing to record: ./gcma compactfit record -- COMMAND")
    setup.install_packages()
    status, found = traces.record(command, Path(args.output), quiet=args.json)
    if args.json:
        _print_json({"status": status, "traces": list(map(str, found))})
    else:
        for trace in found:
            console.say(f"recorded {trace}")
    return status


def cmd_compactfit_tune(args: argparse.Namespace) -> int:
    """choose K for each size-class by a trace, and tell the dearest calls that were found"""
    memory = traces.parse_bytes(args.memory) if args.memory else None
    setup.install_packages()
    found = traces.tune(Path(args.trace), memory)
    if args.json:
        _print_json(found)
    else:
        traces.show(found)
    return 0


def cmd_figures(args: argparse.Namespace) -> int:
    """what the project promises, and what was measured last"""
    promises = figures.read()
    if args.run:
        setup.install_packages()
        for name in evals.EVALS:
            if any(promise.eval == name for promise in promises):
                evals.run(name)
    found = figures.standings(promises, evals.latest())
    if args.json:
        _print_json([{**asdict(one.figure), "taken": one.taken} for one in found])
    else:
        console.out.print(figures.table(found))
    return 1 if any(one.figure.holds is False for one in found) else 0


def cmd_report(args: argparse.Namespace) -> int:
    """write a page of all results"""
    latest = evals.latest()
    if not latest:
        raise LabError("nothing was measured yet: run ./gcma eval NAME, or ./gcma demo")
    chosen = list(latest.values())
    demo.write_report(Path(args.file), chosen)
    pictures = demo.write_pictures(Path(args.plots), chosen) if args.plots else []
    if args.json:
        known = {"report": args.file, "evals": list(latest), "plots": list(map(str, pictures))}
        _print_json(known)
    else:
        print(args.file, *pictures, sep="\n")
    return 0


def _machine(args: argparse.Namespace) -> machine.Machine:
    wanted = machine.Machine(
        memory_mib=machine.parse_mib(args.mem),
        cpus=args.cpus,
        area_mib=machine.parse_mib(args.cma),
        policy=args.policy,
        args=tuple(args.append),
        accel=args.accel,
    )
    wanted.check()
    build.find(args.flavour)
    return wanted


# Arguments


def _add_guest_options(verb: argparse.ArgumentParser) -> None:
    policies = ", ".join(machine.POLICIES)
    verb.add_argument("--policy", default="gcma", help=f"the area's policy: {policies}")
    verb.add_argument("--cma", default="128M", help="the area's size")
    verb.add_argument("--mem", default="512M", help="the guest's memory")
    verb.add_argument("--cpus", type=int, default=2, help="the guest's CPUs")
    verb.add_argument("--append", action="append", default=[], help="a further kernel argument")
    verb.add_argument("--flavour", default="prod", help="the kernel: " + ", ".join(build.FLAVOURS))
    verb.add_argument("--accel", choices=("tcg", "kvm"), default="tcg", help="never kvm by itself")


def parser() -> argparse.ArgumentParser:
    """All verbs. A later module adds its own with `add_verb()`."""
    top = argparse.ArgumentParser(
        prog="gcma", description="Guaranteed contiguous memory allocation on Linux 6.12."
    )
    top.add_argument("--verbose", action="store_true", help="print every command that is run")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")

    add_verb(verbs, "setup", cmd_setup)
    add_verb(verbs, "doctor", cmd_doctor)
    verb = add_verb(verbs, "build", cmd_build)
    verb.add_argument("flavour", nargs="?", default="prod", help=", ".join(build.FLAVOURS))
    verb = add_verb(verbs, "run", cmd_run)
    _add_guest_options(verb)
    verb.add_argument("--exact", action="store_true", help="busybox and counted instructions")
    verb.add_argument("--timeout", type=float, default=300, help="time limit in seconds")
    verb.add_argument("command", nargs="*", metavar="COMMAND", help="after --")
    verb = add_verb(verbs, "shell", cmd_shell)
    _add_guest_options(verb)
    verb = add_verb(verbs, "test", cmd_test)
    verb.add_argument("--debug", action="store_true", help="on the debug kernel")
    verb.add_argument("--soak", action="store_true", help="the long forms")
    verb.add_argument("--only", metavar="NAME", help="one part: " + ", ".join(tests.PARTS))
    verb = add_verb(verbs, "export", cmd_export)
    verb.add_argument("folder", metavar="DIR")
    for name, function in (("status", cmd_status), ("top", cmd_top)):
        verb = add_verb(verbs, name, function)
        verb.add_argument("--sysfs", default=str(areas.SYSFS), help="a recorded tree")
        verb.add_argument("--interval", type=float, default=1.0, help="seconds (top)")
    verb = add_verb(verbs, "demo", cmd_demo)
    verb.add_argument("--output", default=".", metavar="DIR", help="for report.html, results.json")
    verb = verbs.add_parser("eval", help=cmd_eval.__doc__, description=cmd_eval.__doc__)
    verb.set_defaults(function=cmd_eval)
    verb.add_argument("name", metavar="NAME", help=", ".join(evals.EVALS))
    verb.add_argument("--json", metavar="FILE", help="the result as JSON; -: to stdout")
    _add_compactfit(verbs)
    verb = add_verb(verbs, "figures", cmd_figures)
    verb.add_argument("--run", action="store_true", help="take them all afresh")
    verb = add_verb(verbs, "report", cmd_report)
    verb.add_argument(
        "file", nargs="?", default="report.html", metavar="FILE", help="the page: report.html"
    )
    verb.add_argument("--plots", metavar="DIR", help="its plots too, an SVG file each")
    return top


def _add_compactfit(verbs: Any) -> None:
    text = "the compact-fit library: its benchmark, traces of programs, K for one"
    group = verbs.add_parser("compactfit", help=text, description=text)
    parts = group.add_subparsers(dest="part", required=True, metavar="VERB")
    verb = parts.add_parser(
        "bench", help=cmd_compactfit_bench.__doc__, description=cmd_compactfit_bench.__doc__
    )
    verb.set_defaults(function=cmd_compactfit_bench)
    verb.add_argument(
        "--json", nargs="?", const="-", metavar="FILE", help="the result as JSON, to stdout or FILE"
    )
    verb = add_verb(parts, "record", cmd_compactfit_record)
    verb.add_argument(
        *("-o", "--output"),
        default="traces",
        metavar="DIR",
        help="for the traces (default: traces)",
    )
    verb.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="COMMAND", help="with its arguments, after --"
    )
    verb = add_verb(parts, "tune", cmd_compactfit_tune)
    verb.add_argument("trace", metavar="TRACE", help="a file that was recorded")
    verb.add_argument("--memory", metavar="SIZE", help="what the heap may have: 512K, 4M, ...")


def add_verb(verbs: Any, name: str, function: Any) -> argparse.ArgumentParser:
    """One verb whose help is its function's docstring; every verb knows --json."""
    verb: argparse.ArgumentParser = verbs.add_parser(
        name, help=function.__doc__, description=function.__doc__
    )
    verb.set_defaults(function=function)
    verb.add_argument("--json", action="store_true", help="the result as JSON")
    return verb


def main(argv: Sequence[str]) -> int:
    """Run one command; every error a user can cause is one line."""
    args = parser().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # children must not outlive us
    console.Settings.verbose = args.verbose
    try:
        if args.verb in LOCKED or args.function is cmd_compactfit_bench:
            with lock.exclusive(paths.cache(), shlex.join(argv)):
                return int(args.function(args))
        return int(args.function(args))
    except LabError as error:
        print(f"gcma: {error.message}", file=sys.stderr)
        if error.detail:
            print(error.detail, file=sys.stderr)
    except OSError as error:  # a full disk, a folder that is not ours
        where = f"{error.filename}: " if error.filename else ""
        print(f"gcma: {where}{error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("gcma: interrupted", file=sys.stderr)
    return 1
