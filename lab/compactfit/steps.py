# SPDX-License-Identifier: GPL-2.0-or-later
"""The steps of the library's tests: each builds something, runs it and has it judged."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from lab import console, paths, process
from lab.compactfit import build, judge, traces
from lab.compactfit import ceilings as derive
from lab.compactfit.build import LIMIT_SECONDS, SOURCE, Preset
from lab.compactfit.judge import StepResult
from lab.compactfit.longest import Code
from lab.ktap import Case
from lab.process import Finished

OPERATIONS = 20_000  # random ones, of each configuration of a heap
SOAK_OPERATIONS = 10_000_000
LEAN = {"soak_bound": 10}  # times as many, as little is checked between them
FUZZ_SECONDS = 10
SOAK_FUZZ_SECONDS = 3600
SEARCH_SECONDS = 60  # for operations dearer than their ceilings
SOAK_SEARCH_SECONDS = 3600
FUZZ_BYTES = 1024  # of an input
LEVELS = ("-O0", "-Os", "-O2", "-O3")
REPLAYED = ("cfm", "cfnm", "tlsf", "o1heap", "dlmalloc", "rlsf", "talc", "glibc")


def run(*, debug: bool, soak: bool) -> tuple[list[Case], str]:
    """The cases of all steps of a round, and failures' detail."""
    steps = DEBUG_STEPS if debug else STEPS
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda step: step(soak), steps))
    cases = [case for result in results for case in result.cases]
    return cases, "\n".join(result.detail for result in results if result.detail)


# On this machine


def sanitized(_: bool) -> StepResult:
    return _run_programs(build.SANITIZED)


def threads(_: bool) -> StepResult:
    return _run_programs(build.THREADS)


def covered(_: bool) -> StepResult:
    """Everything once, and which branches of the library that took."""
    result = _run_programs(build.COVERED)
    return replace(result, cases=[*result.cases, _coverage(build.folder_of(build.COVERED))])


def optimised(soak: bool) -> StepResult:
    """As users build it, and the single header without anything."""
    result = _run_programs(build.OPTIMISED, SOAK_OPERATIONS if soak else OPERATIONS)
    levels = [_freestanding(build.folder_of(build.OPTIMISED), level) for level in LEVELS]
    return replace(result, cases=[*result.cases, *levels])


def ceilings(soak: bool) -> StepResult:
    """Patterns that are dear, the longest paths through the code, and a search."""
    result = _run_programs(build.CEILINGS)
    folder = build.folder_of(build.CEILINGS)
    program = str(folder / "test_ceilings")
    code = Code.read(build.output(["objdump", "-d", "--no-show-raw-insn", program]))
    listed = build.output([program, "list"]).splitlines()
    derived = [
        judge.ceiling(ceiling)
        for line in listed
        for ceiling in derive.ceilings(code, derive.Configuration.read(line))
    ]
    seconds = SOAK_SEARCH_SECONDS if soak else SEARCH_SECONDS
    search = [str(folder / "search_ceilings"), str(seconds)]
    answers = {"search_ceilings": _command(search, folder, limit=2 * seconds + LIMIT_SECONDS)}
    found = judge.programs(build.CEILINGS, answers)
    return StepResult([*result.cases, *derived, *found.cases], result.detail + found.detail)


def rivals(_: bool) -> StepResult:
    """The allocators of crates.io that the library is compared with; a trace that is replayed."""
    result = _run_programs(build.RIVALS)
    folder = build.folder_of(build.RIVALS)
    trace = folder / f"small{traces.SUFFIX}"
    trace.write_bytes(traces.small())
    replays = [
        judge.replay(name, _command([str(folder / "replay"), str(trace), name, "1", "500"], folder))
        for name in REPLAYED
    ]
    return replace(result, cases=[*result.cases, *replays])


def _run_programs(preset: Preset, operations: int = OPERATIONS) -> StepResult:
    """Build the preset's programs and run them."""
    folder = build.build(preset)
    answers = {
        program: _command(
            [str(folder / program), str(operations * LEAN.get(program, 1))],
            folder,
            limit=LIMIT_SECONDS + operations // 1000,
        )
        for program in preset.programs
    }
    return judge.programs(preset, answers)


def _coverage(folder: Path) -> Case:
    """The branches of the library that the tests of `folder` took, judged."""
    report = ["-r", str(SOURCE), "--filter", f"{SOURCE}/src/", "--json-summary", "-"]
    return judge.coverage(_command([sys.executable, "-m", "gcovr", *report, str(folder)], folder))


def _freestanding(folder: Path, level: str) -> Case:
    """Does the single header compile alone, and call nothing but itself?"""
    name = f"the single header needs nothing else ({level})"
    unit = folder / "single.c"
    include = '#include "compactfit_single.h"\n'
    unit.write_text(f"#define COMPACTFIT_IMPLEMENTATION\n{include}{include}")
    flags = ["-std=c11", "-ffreestanding", "-Wall", "-Wextra", "-Werror", level, "-c"]
    answer = _command(["cc", *flags, str(unit), "-o", str(folder / "single.o")], folder)
    if answer.returncode:
        return Case(name, passed=False, why=answer.stderr.strip())
    undefined = build.output(["nm", "-u", str(folder / "single.o")]).split()
    return Case(name, not undefined, why=" ".join(undefined))


# As users take it


def rust(_: bool) -> StepResult:
    """The Rust crate: cargo's tests, those of its documentation among them."""
    manifest = SOURCE / "bindings/rust/Cargo.toml"
    return judge.cargo(
        _command(
            ["cargo", "test", "--locked", "--manifest-path", str(manifest)],
            paths.cache(),
            {"CARGO_TARGET_DIR": f"{paths.cache()}/compactfit/cargo"},
        )
    )


def examples(_: bool) -> StepResult:
    """The examples, built as users would: by the installed library alone."""
    folder = paths.cache() / "compactfit" / "examples"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    installed = folder / "installed"
    prefix = [f"-DCMAKE_INSTALL_PREFIX={installed}", "-DCMAKE_INSTALL_LIBDIR=lib"]
    environment = {
        "PKG_CONFIG_PATH": f"{installed}/lib/pkgconfig",
        "CARGO_TARGET_DIR": f"{folder}/cargo",
    }
    source = SOURCE / "examples"
    messages = 'cc -Wall -Wextra -Werror -o messages "$0" $(pkg-config --cflags --libs compactfit)'
    commands = {
        "the library is installed": [
            ["cmake", "-S", str(SOURCE), "-B", "build", "-DBUILD_TESTING=OFF", *prefix],
            ["cmake", "--build", "build"],
            ["cmake", "--install", "build"],
        ],
        "the C example runs": [
            ["sh", "-c", messages, f"{source}/c/messages.c"],
            ["./messages"],
        ],
        "the C++ example runs": [
            ["cmake", "-S", f"{source}/cpp", "-B", "cpp", f"-DCMAKE_PREFIX_PATH={installed}"],
            ["cmake", "--build", "cpp"],
            ["cpp/sessions"],
        ],
        "the Rust example runs": [
            ["cargo", "run", "--locked", "--manifest-path", f"{source}/rust/Cargo.toml"],
        ],
    }
    return judge.commands(
        {name: _first_failure(chain, folder, environment) for name, chain in commands.items()}
    )


def _first_failure(
    commands: list[list[str]], folder: Path, environment: Mapping[str, str]
) -> Finished:
    """Run the commands up to one that fails; what the last of them answered."""
    for command in commands:
        answer = _command(command, folder, environment)
        if answer.returncode:
            break
    return answer


# For other machines


def x86_32(_: bool) -> StepResult:
    return _run_elsewhere(build.X86_32)


def aarch64(_: bool) -> StepResult:
    return _run_elsewhere(build.AARCH64)


def cortex_m0(_: bool) -> StepResult:
    return _run_elsewhere(build.CORTEX_M0)


def cortex_m3(_: bool) -> StepResult:
    return _run_elsewhere(build.CORTEX_M3)


def cortex_m33(_: bool) -> StepResult:
    return _run_elsewhere(build.CORTEX_M33)


def _run_elsewhere(preset: Preset) -> StepResult:
    """Build for another machine; the preset's toolchain file names what runs the programs."""
    folder = build.build(preset)
    answers = {}
    for program in preset.programs:
        answer = _command(["ctest", "-V", "-R", f"^{program}$"], folder)
        answer.stdout = re.sub(r"^\d+: ", "", answer.stdout, flags=re.M)
        answers[program] = answer
    result = judge.programs(preset, answers)
    library = str(folder / "libcompactfit.a")
    code = _code_bytes(preset, library)
    console.say(f"compactfit: {code} bytes of code for {preset.name} ({preset.flags})")
    symbols = build.output([f"{preset.toolchain}-nm", "-u", library])
    cases = [*result.cases, judge.needs(preset, symbols)]
    if preset.smallest:
        least = _code_bytes(preset, str(folder / "libwithout.a"))
        cases.append(judge.smallest(preset, least))
    return replace(result, cases=cases)


def _code_bytes(preset: Preset, library: str) -> int:
    return int(build.output([f"{preset.toolchain}-size", library]).splitlines()[1].split()[0])


# Looking for more


def fuzzed(soak: bool) -> StepResult:
    """libFuzzer, which begins with what earlier runs found worth keeping."""
    seconds = SOAK_FUZZ_SECONDS if soak else FUZZ_SECONDS
    folder = build.build(build.FUZZED)
    corpus = folder.parent / "corpus"
    corpus.mkdir(exist_ok=True)
    options = [f"-max_total_time={seconds}", f"-max_len={FUZZ_BYTES}", "-len_control=0"]
    options += ["-timeout=60", f"-artifact_prefix={folder.parent}/fuzz-", str(corpus)]
    answer = _command([str(folder / "fuzz"), *options], folder, limit=seconds + LIMIT_SECONDS)
    return judge.fuzzing(seconds, answer)


def read(_: bool) -> StepResult:
    """What clang-tidy and cppcheck have to say; about the C++ header, as a test uses it."""
    # test_internals.c includes the library; traced.c does what recorded programs may, misuse too,
    # and record.c defines functions of libc, which names their parameters otherwise
    misuse = SOURCE / "tests/traced.c"
    left_out = (misuse, SOURCE / "tools/record.c")
    units = sorted(
        str(unit)
        for name in ("tests", "bench", "tools")
        for unit in (SOURCE / name).glob("*.c")
        if unit not in left_out
    )
    include = f"-I{SOURCE}/include"
    cppcheck = ["cppcheck", "-q", "--enable=warning,performance,portability", "--inline-suppr"]
    cppcheck += [f"-i{misuse}"]
    folders = [str(SOURCE / name) for name in ("src", "include", "tests", "bench", "tools")]
    commands = {
        "clang-tidy finds nothing in C": [
            *("clang-tidy", "--quiet", *units, "--", "-std=gnu11", include),
        ],
        "clang-tidy finds nothing in C++": [
            *("clang-tidy", "--quiet", str(SOURCE / "tests/test_cpp.cpp")),
            *("--", "-std=c++17", include),
        ],
        "cppcheck finds nothing": [*cppcheck, "--error-exitcode=1", include, *folders],
    }
    return judge.commands({name: _command(words, SOURCE) for name, words in commands.items()})


def _command(
    command: list[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    limit: float = LIMIT_SECONDS,
) -> Finished:
    """Run a command whose status is judged, not raised; what hangs is ended."""
    whole = {**os.environ, **(environment or {})}
    return process.run(command, check=False, cwd=folder, env=whole, timeout=limit)


Step = Callable[[bool], StepResult]  # told whether this is a soak
# The longest first. Those for bugs that show rarely belong to the debug kernel's round.
STEPS: tuple[Step, ...] = (covered, ceilings, optimised, rust, x86_32)
DEBUG_STEPS: tuple[Step, ...] = (
    *(read, sanitized, fuzzed, rivals, cortex_m0, aarch64),
    *(cortex_m33, cortex_m3, threads, examples),
)
