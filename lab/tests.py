# SPDX-License-Identifier: GPL-2.0-or-later
"""`./gcma test`: every test of the project, in parts that report alike."""

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from lab import (
    boot,
    build,
    console,
    kcsan,
    ktap,
    paths,
    process,
    selftests,
    skips,
    systems,
)
from lab.compactfit import steps
from lab.errors import LabError
from lab.ktap import Case, Summary
from lab.machine import Machine
from lab.selftests import Form

MEMORY = {"debug": 2, "camc-debug": 2, "kcsan": 2}  # shadow and redzones: so many times as much
KUNIT_SECONDS = 1200  # what takes longer hangs, on any kernel and beside other work
WORKERS = boot.GUESTS  # parts side by side
# Half of what the lab's own tests take: machines that are simulated, and their address maps
SIMULATED = tuple(f"tests/test_{name}.py" for name in ("camc_evals", "camc_maps", "dram"))
# Selftests in which it is chance what meets what
RACY = ("gcma_race", "gcma_fsx", "gcma_swap", "rental_race", "camc_colors", "lent_colors")
# On the kcsan kernel these, and all of rental memory: hooks run beside writers, faults and reclaim
FOR_KCSAN = (*RACY, "rental_writes", "rental_returns", "rental_failure")


@dataclass(frozen=True)
class Options:
    """What the command line asked for."""

    debug: bool = False
    kcsan: bool = False
    long: bool = False
    soak: bool = False
    quick: bool = False
    camc: bool = False
    minutes: int | None = None  # later, no program of the selftests begins

    @property
    def flavour(self) -> str:
        kernels = {"kcsan": self.kcsan, "camc": self.camc, "debug": self.debug}
        return "-".join(name for name, wanted in kernels.items() if wanted) or "prod"

    @property
    def special(self) -> bool:
        """A kernel for some of the tests, which is not taken for others."""
        return self.kcsan or self.camc

    @property
    def form(self) -> Form:
        """How much of everything. Who asks for another kernel than the usual has the time."""
        if self.soak:
            return Form.SOAK
        return Form.LONG if self.long or self.flavour != "prod" else Form.SHORT

    @property
    def complete(self) -> bool:
        """Whether all cases are met: a short form, and a kernel that checks each access, leaves
        some of the selftests out.
        """
        return self.soak or (self.long and self.flavour == "prod")

    def check(self) -> None:
        """Refuse what contradicts itself."""
        if self.kcsan and (self.debug or self.camc):
            raise LabError("--kcsan is a kernel of its own: leave --debug and --camc out")
        if self.soak + self.long + self.quick > 1:
            raise LabError("--quick, --long and --soak are three: choose one")
        if self.minutes is not None and self.minutes < 0:
            raise LabError("--minutes takes the time there is: 0 or more")
        if self.minutes is not None and self.flavour == "prod":
            raise LabError("--minutes is for kernels whose selftests take long: --debug, --kcsan")


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
    """What the parts of one run share."""

    options: Options
    built: build.Kernel | LabError | None = None
    named: bool = False  # the part was asked for by its name
    advance: Callable[[float], None] = field(
        default=lambda _: None
    )  # of the selftests: their share

    @property
    def kernel(self) -> build.Kernel:
        """The kernel to test, or why there is none."""
        if isinstance(self.built, build.Kernel):
            return self.built
        raise self.built or LabError("no kernel was built")


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


def lab(context: Context) -> PartResult:
    """pytest over the lab, without guests, in two halves side by side; who is quick has one."""
    halves: dict[str, Sequence[str]] = {"lab": [f"--ignore={name}" for name in SIMULATED]}
    if not context.options.quick:
        halves["lab-simulated"] = SIMULATED
    with ThreadPoolExecutor(len(halves)) as pool:
        done = list(
            pool.map(
                lambda part: _pytest(part, "not guest and not model", {}, *halves[part]), halves
            )
        )
    details = filter(None, (half.detail for half in done))
    return PartResult(
        "lab", [case for half in done for case in half.cases], detail="\n".join(details)
    )


def models(_: Context) -> PartResult:
    """pytest over the models of the kernel's protocols, which spin searches to the end."""
    return _pytest("models", "model", {})


def library(context: Context) -> PartResult:
    """The tests of the compact-fit library."""
    options = context.options
    cases, detail = steps.run(debug=options.debug, soak=options.soak, again=context.named)
    return PartResult("compactfit", cases, detail=detail)


def guests(context: Context) -> PartResult:
    """pytest over both ways to boot; of memory coloring only, if the kernel is for that."""
    return _guests(context, *(("-k", "test_camc_guests") if context.options.camc else ()))


def some_guests(context: Context, word: str) -> PartResult:
    """Of the guests those that have this in their names, or in their file's."""
    return _guests(context, "-k", word)


def _guests(context: Context, *options: str) -> PartResult:
    kernel = context.kernel
    environment = {
        "GCMA_TEST_FLAVOUR": kernel.flavour.name,
        "GCMA_TEST_OBJECTS": str(kernel.objects),
    }
    form = context.options.form
    if form is Form.SOAK:
        environment["GCMA_SOAK"] = "1"
    marker = "guest and not long" if form is Form.SHORT else "guest"
    return _pytest("guests", marker, environment, *options)


def _pytest(part: str, marker: str, environment: dict[str, str], *more: str) -> PartResult:
    report = paths.cache() / f"pytest-{part}.xml"
    report.unlink(missing_ok=True)
    options = ["-p", "no:cacheprovider", "-m", marker, f"--junit-xml={report}", *more]
    answer = _python(["-m", "pytest", *options], environment)
    if not report.exists():
        case = Case("pytest runs", passed=False)
        return PartResult(part, [case], detail=answer.stdout + answer.stderr)
    cases = read_junit(report)
    if answer.returncode and all(case.passed for case in cases):
        # it was ended, or collected nothing
        why = f"it ended with {answer.returncode}"
        cases.append(Case("pytest ends well", passed=False, why=why))
    failed = not all(case.passed for case in cases)
    return PartResult(part, cases, detail=answer.stdout + answer.stderr if failed else "")


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


_started: set[subprocess.Popen[str]] = set()


def _python(
    arguments: list[str], environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a module of Python's. It ends its own guests if it is interrupted."""
    command = [sys.executable, *arguments]
    console.show_command(command)
    with subprocess.Popen(
        command,
        cwd=paths.REPO,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        _started.add(child)
        try:
            output, errors = child.communicate()
        finally:
            _started.discard(child)
    return subprocess.CompletedProcess(command, child.returncode, output, errors)


# KUnit


def kunit(context: Context) -> PartResult:
    """The kernel's unit tests, in an exact guest: they run at boot, the log is the result."""
    return unit_tests(context)[0]


def unit_tests(
    context: Context,
    system: systems.System | None = None,
    script: str = "true",
    within: float | None = None,
) -> tuple[PartResult, str]:
    """Those of one system, or all: the fragments ask for this project's only.

    Also what the script printed, which the guest runs behind them. If they have to end `within` so
    many seconds, they end at the first failure, too.
    """
    kernel = context.kernel
    wanted = [each for each in systems.SYSTEMS.values() if system in (None, each)]
    filters = [f"kunit.filter_glob={suite}" for suite in system.suites] if system else []
    policy = "gcma" if kernel.has(systems.GCMA) else systems.STOCK
    options = ["page_owner=on"] if kernel.config.get("CONFIG_PAGE_OWNER") == "y" else []
    machine = Machine(policy=policy, args=("kunit.enable=1", *options, *filters))
    seconds = within or KUNIT_SECONDS
    enough = ktap.any_failed if within else None
    result = boot.exact(kernel, enlarged(machine, context), script, timeout=seconds, enough=enough)
    result, races = kcsan.judge(kernel, result)
    cases = ktap.parse(result.console)
    for each in wanted:
        if kernel.flavour.should_have(each):
            expected = {
                suite: ktap.declared((paths.KERNEL / "files" / source).read_text(), kernel.config)
                for suite, source in each.suites.items()
            }
            cases += ktap.lacking(cases, expected)
    cases += races
    detail = ""
    try:
        result.check()
    except LabError as error:
        cases.append(Case("the kernel is silent", passed=False, why=error.message))
        detail = error.detail
    return PartResult("kunit", cases, detail=detail), result.output


def enlarged(machine: Machine, context: Context) -> Machine:
    """The machine with the memory that the kernel under test takes beside."""
    times = MEMORY.get(context.options.flavour, 1)
    return replace(machine, memory_mib=times * machine.memory_mib)


# Selftests


def programs(options: Options) -> list[str]:
    """Build the programs below tools/testing/selftests: those that are for the kernel."""
    built = selftests.build()
    if options.kcsan:
        return [name for name in built if name in FOR_KCSAN]
    if options.camc:
        rounds = [each for each in selftests.ROUNDS if each.system is systems.CAMC]
        return [name for name in built if any(each.runs(name) for each in rounds)]
    return built


def kernel_selftests(context: Context) -> PartResult:
    """The selftests, in system guests with areas they are for."""

    def adapt(machine: Machine) -> Machine:
        return enlarged(machine, context)

    form, advance = context.options.form, context.advance
    minutes = context.options.minutes
    cases, detail = selftests.run(
        context.kernel,
        programs(context.options),
        adapt,
        form,
        advance=advance,
        within=None if minutes is None else 60.0 * minutes,
    )
    return PartResult("selftests", cases, detail=detail)


# A part of the series


def alone(kernel: build.Kernel) -> list[PartResult]:
    """The unit tests and selftests that a kernel of a part of the series has."""
    context = Context(Options(long=True), kernel)
    # as the flavours that the system has else: what it may skip on any of them
    listed = [replace(skip, flavours=()) for skip in skips.read()]
    results = []
    for test in (kunit, kernel_selftests):
        start = time.monotonic()
        result = test(context)
        result.cases = skips.judge(result.name, kernel.flavour.name, result.cases, listed)
        result.seconds = time.monotonic() - start
        _tell(result)
        results.append(result)
    return results


# All of them


@dataclass(frozen=True)
class Part:
    """Something that can be tested alone."""

    test: Callable[[Context], PartResult]
    seconds: int  # in the short form, beside another part, on a 2-core machine
    long: int | None = None  # in the others, if that is more
    kernel: bool = False  # it needs one
    quick: bool = False  # it is for whoever has just changed something
    special: bool = False  # it is what kernels of some tests are for
    camc: bool = False  # of those, the ones with memory coloring
    known: Callable[[Options], bool] | None = None  # whether it passed, and need not run

    def runs(self, options: Options) -> bool:
        """Without being asked for by its name."""
        if options.quick and not self.quick:
            return False
        return self.special or not options.special or (self.camc and options.camc)


def library_is_known(options: Options) -> bool:
    with suppress(LabError):  # which the part will tell
        return not options.soak and steps.passed(debug=options.debug).exists()
    return False


# the longest first
PARTS = {
    "guests": Part(guests, 160, 385, kernel=True, camc=True),
    "selftests": Part(kernel_selftests, 200, 515, kernel=True, special=True),
    "models": Part(models, 64),
    "compactfit": Part(library, 140, known=library_is_known),
    "lab": Part(lab, 66, quick=True),
    "kunit": Part(kunit, 24, kernel=True, quick=True, special=True),
    "lint": Part(lint, 1, quick=True),
}
# Seconds on other kernels
ELSEWHERE = {
    "debug": {"selftests": 690, "kunit": 60},
    "kcsan": {"selftests": 2400, "kunit": 210},
    "camc": {"selftests": 290},
}
# More of a soak is not known before: hours, each of these at least
SOAK = {"selftests": 3600, "compactfit": steps.SOAK_FUZZ_SECONDS}


def expected(name: str, options: Options, *, named: bool) -> int:
    """Seconds that a part will take."""
    part = PARTS[name]
    if options.soak and name in SOAK:
        return SOAK[name]
    if part.known and not named and part.known(options):
        return 0
    usual = part.seconds if options.form is Form.SHORT else part.long or part.seconds
    return ELSEWHERE.get(options.flavour, {}).get(name, usual)


def selected(options: Options, only: str | None) -> list[str]:
    """The names of the parts to run."""
    if only is not None and only not in PARTS:
        raise LabError(f"unknown part {only}: choose one of {', '.join(PARTS)}")
    if only:
        return [only]
    return [name for name, part in PARTS.items() if part.runs(options)]


def run(options: Options, only: str | None = None) -> list[PartResult]:
    """Run the parts side by side, telling each one's failures as it ends."""
    names = selected(options, only)
    context = Context(options, named=only is not None)
    if any(PARTS[name].kernel for name in names):
        try:
            context.built = build.build(options.flavour)
        except LabError as error:  # parts without a kernel still tell
            context.built = error
    listed = skips.read()
    whole = only is None and not options.quick and not options.special
    done = dict.fromkeys(names, 0.0)
    seconds = {name: expected(name, options, named=context.named) for name in names}
    work = sum(seconds.values())
    results = []
    with (
        console.progress("testing", work, max(work / WORKERS, *seconds.values())) as step,
        ThreadPoolExecutor(WORKERS) as pool,
    ):

        def advance(name: str, share: float) -> None:
            done[name] = share
            step.update(sum(share * seconds[part] for part, share in done.items()))

        context.advance = lambda share: advance("selftests", share)
        pending = [pool.submit(_run, name, context) for name in names]
        try:
            for future in as_completed(pending):
                result = future.result()
                if whole and options.complete:
                    flavour = options.flavour
                    result.cases += skips.unused(result.name, flavour, result.cases, listed)
                result.cases = skips.judge(result.name, options.flavour, result.cases, listed)
                advance(result.name, 1.0)
                _tell(result)
                results.append(result)
        except BaseException:
            abandon(pool, pending)
            raise
    return results


def _run(name: str, context: Context) -> PartResult:
    start = time.monotonic()
    try:
        result = PARTS[name].test(context)
    except LabError as error:  # a part that cannot run has failed; the others still tell
        case = Case(f"{name} can run", passed=False, why=error.message)
        result = PartResult(name, [case], detail=error.detail)
    except Exception as error:  # so has one with a mistake of ours, or on a full disk
        case = Case(f"{name} can run", passed=False, why=repr(error))
        result = PartResult(name, [case], detail=traceback.format_exc())
    if not result.cases:
        result.cases.append(Case(f"{name} tests something", passed=False))
    result.seconds = time.monotonic() - start
    return result


def abandon(pool: ThreadPoolExecutor, pending: Sequence[Future[Any]]) -> None:
    """End what other threads wait for: only the main thread is interrupted."""
    pool.shutdown(wait=False, cancel_futures=True)  # or what ends makes room for the next
    for child in list(_started):
        with suppress(ProcessLookupError):
            child.send_signal(signal.SIGINT)
    process.abandon(pool, pending)


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
