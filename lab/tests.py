# SPDX-License-Identifier: GPL-2.0-or-later
"""`./gcma test`: every test of the project, in parts that report alike."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from xml.etree import ElementTree

from lab import boot, build, console, ktap, paths, selftests
from lab.compactfit import steps
from lab.errors import LabError
from lab.ktap import Case, Summary
from lab.machine import Machine

DEBUG_MEMORY = 2  # KASAN's shadow and redzones: this many times the memory
KUNIT_SECONDS = 120


@dataclass(frozen=True)
class Options:
    """What the command line asked for."""

    debug: bool = False
    soak: bool = False

    @property
    def flavour(self) -> str:
        return "debug" if self.debug else "prod"


@dataclass
class PartResult:
    """One part's cases, and what to read if one failed."""

    name: str
    cases: list[Case]
    seconds: float = 0.0
    detail: str = ""

    @property
    def summary(self) -> Summary:
        return ktap.summary(self.cases)


@dataclass
class Context:
    """Shared by the parts of one run: the kernel is built for the first part that needs it."""

    options: Options

    @cached_property
    def kernel(self) -> build.Kernel:
        return build.build(self.options.flavour)


# Parts without a guest


def lint(_: Context) -> PartResult:
    """ruff and mypy over the lab."""
    commands = {
        "ruff check": ["-m", "ruff", "check", "--no-cache", "lab", "tests"],
        "ruff format": ["-m", "ruff", "format", "--no-cache", "--check", "lab", "tests"],
        "mypy --strict": ["-m", "mypy", f"--cache-dir={paths.cache()}/mypy", "lab"],
    }
    cases, details = [], []
    for name, command in commands.items():
        answer = _python(command)
        cases.append(Case(name, answer.returncode == 0))
        if answer.returncode:
            details.append(answer.stdout + answer.stderr)
    return PartResult("lint", cases, detail="\n".join(details))


def lab(_: Context) -> PartResult:
    """pytest over the lab, without guests."""
    return _pytest("lab", "not guest", {})


def library(context: Context) -> PartResult:
    """The tests of the compact-fit library."""
    cases, detail = steps.run(debug=context.options.debug, soak=context.options.soak)
    return PartResult("compactfit", cases, detail=detail)


def guests(context: Context) -> PartResult:
    """pytest over both ways to boot."""
    # built here, in a process that holds the lock: the tests find it up to date
    flavour = context.kernel.flavour.name
    return _pytest("guests", "guest", {"GCMA_TEST_FLAVOUR": flavour})


def _pytest(part: str, marker: str, environment: dict[str, str]) -> PartResult:
    report = paths.cache() / f"pytest-{part}.xml"
    report.unlink(missing_ok=True)
    options = ["-p", "no:cacheprovider", "-m", marker, f"--junit-xml={report}"]
    answer = _python(["-m", "pytest", *options], environment)
    if not report.exists():
        case = Case("pytest runs", passed=False)
        return PartResult(part, [case], detail=answer.stdout + answer.stderr)
    cases = read_junit(report)
    failed = not all(case.passed for case in cases)
    return PartResult(part, cases, detail=answer.stdout if failed else "")


def read_junit(report: Path) -> list[Case]:
    """The cases of a JUnit XML file, as pytest writes it."""
    root = ElementTree.parse(report).getroot()  # noqa: S314 (our own pytest wrote it)
    cases = []
    for case in root.iter("testcase"):
        name = f"{case.get('classname', '').removeprefix('tests.')}.{case.get('name')}"
        failed = any(case.find(tag) is not None for tag in ("failure", "error"))
        skipped = case.find("skipped")
        why = skipped.get("message", "") if skipped is not None else ""
        cases.append(Case(name, not failed, skipped is not None, why))
    return cases


def _python(
    arguments: list[str], environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    console.show_command(command)
    return subprocess.run(
        command,
        cwd=paths.REPO,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )


# KUnit


def kunit(context: Context) -> PartResult:
    """The kernel's unit tests, in an exact guest: they run at boot, the log is the result."""
    kernel = context.kernel
    if kernel.config.get("CONFIG_GCMA_KUNIT_TEST") != "y":
        return _skipped("kunit", "this kernel has no CONFIG_GCMA_KUNIT_TEST")
    # all suites: the fragments ask for this project's only
    machine = Machine(policy="gcma", args=("kunit.enable=1",))
    result = boot.exact(kernel, _enlarged(machine, context), "true", timeout=KUNIT_SECONDS)
    cases = ktap.parse(result.console)
    if not cases:
        cases.append(Case("the kernel reports its unit tests", passed=False))
    try:
        result.check()
    except LabError as error:
        cases.append(Case("the kernel is silent", passed=False, why=error.message))
        return PartResult("kunit", cases, detail=error.detail)
    return PartResult("kunit", cases)


def _enlarged(machine: Machine, context: Context) -> Machine:
    if not context.options.debug:
        return machine
    return replace(machine, memory_mib=DEBUG_MEMORY * machine.memory_mib)


def _skipped(part: str, why: str) -> PartResult:
    return PartResult(part, [Case(part, passed=True, skipped=True, why=why)])


# Selftests


def kernel_selftests(context: Context) -> PartResult:
    """The programs of tools/testing/selftests/gcma, in system guests with a gcma area."""
    programs = selftests.build()
    if not programs:
        return _skipped("selftests", "tools/testing/selftests/gcma has no programs yet")

    def adapt(machine: Machine) -> Machine:
        return _enlarged(machine, context)

    cases, detail = selftests.run(context.kernel, programs, adapt, soak=context.options.soak)
    return PartResult("selftests", cases, detail=detail)


# All of them


PARTS: dict[str, Callable[[Context], PartResult]] = {
    "lint": lint,
    "lab": lab,
    "compactfit": library,
    "kunit": kunit,
    "guests": guests,
    "selftests": kernel_selftests,
}


def selected(only: str | None) -> list[str]:
    """The names of the parts to run."""
    if only is not None and only not in PARTS:
        raise LabError(f"unknown part {only}: choose one of {', '.join(PARTS)}")
    return [only] if only else list(PARTS)


def run(options: Options, only: str | None = None) -> list[PartResult]:
    """Run the parts in order, telling each one's failures as it ends."""
    context = Context(options)
    results = []
    for name in selected(only):
        start = time.monotonic()
        try:
            result = PARTS[name](context)
        except LabError as error:  # a part that cannot run has failed; the others still tell
            case = Case(f"{name} can run", passed=False, why=error.message)
            result = PartResult(name, [case], detail=error.detail)
        result.seconds = time.monotonic() - start
        _tell(result)
        results.append(result)
    return results


def _tell(result: PartResult) -> None:
    for case in result.cases:
        for leaf in case.leaves():
            if not leaf.passed or leaf.skipped:
                word = "skipped" if leaf.skipped else "FAILED"
                console.say(
                    f"{result.name}: {word}: {leaf.name}{': ' + leaf.why if leaf.why else ''}"
                )
                for note in leaf.notes:
                    console.say(f"    {note}")
    if result.detail:
        console.say(result.detail)
    console.say(f"{result.name}: {result.summary} in {console.duration(result.seconds)}")


def total(results: list[PartResult]) -> Summary:
    return sum((result.summary for result in results), Summary())
