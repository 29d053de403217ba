# SPDX-License-Identifier: GPL-2.0-or-later
"""The compact-fit library: built by its own CMake project in the cache, its tests run."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lab import console, ktap, lock, paths
from lab.errors import LabError
from lab.ktap import Case

SOURCE = paths.REPO / "compactfit"
PORTABLE_PROGRAMS = ("test_compactfit", "test_internals", "soak_bound")
PROGRAMS = (*PORTABLE_PROGRAMS, "test_rivals", "test_cpp", "test_cpp_exceptions", "test_threads")
THREAD_PROGRAMS = ("test_threads",)
TOOL_PROGRAMS = ("test_traces",)
OPERATIONS = 20_000  # random ones, of each configuration of a heap
SOAK_OPERATIONS = 10_000_000
LEAN = {"soak_bound": 10}  # times as many, as little is checked between them
FUZZ_SECONDS = 10
SOAK_FUZZ_SECONDS = 3600
FUZZ_BYTES = 1024  # of an input
LIMIT_SECONDS = 600  # of a command that is no soak: what takes longer hangs
TIMED_OUT = 124  # as status, as timeout(1) has it
LEVELS = ("-O0", "-Os", "-O2", "-O3")
CARGO_RESULT = re.compile(r"test (?P<name>.+) \.\.\. (?P<result>ok|ignored|FAILED)\b")
FUZZ_WRONG = re.compile(r"fuzz\.c:\d+: |runtime error: |ERROR: |Test unit written")
REPLAYED = ("cfm", "cfnm", "tlsf", "o1heap", "dlmalloc", "rlsf", "talc", "glibc")
SMALL = 3000  # objects of a trace
BRANCHES = 95.0  # percent of the library's that the tests have to take


@dataclass(frozen=True)
class Flavour:
    """One way to compile the library and its tests."""

    name: str
    flags: str
    programs: tuple[str, ...] = PROGRAMS
    others: tuple[str, ...] = ()  # what else is to be built
    bench: bool = False  # programs of the benchmark: just these are built
    tools: bool = False  # those for traces
    toolchain: str = ""  # for another machine: what its tools' names begin with
    more: tuple[str, ...] = ()  # for cmake
    calls: frozenset[str] = frozenset()  # what the library may need of the compiler's own

    @property
    def options(self) -> list[str]:
        """What cmake is told."""
        bench, tools = ("ON" if wanted else "OFF" for wanted in (self.bench, self.tools))
        options = [
            *self.more,
            "-DCMAKE_BUILD_TYPE=None",
            f"-DCMAKE_C_FLAGS_NONE={self.flags}",  # beside those of the toolchain
            f"-DCMAKE_CXX_FLAGS_NONE={self.flags}",
            f"-DCF_BENCH={bench}",
            f"-DCF_TOOLS={tools}",
            "-DBUILD_TESTING=" + ("ON" if self.programs and not self.bench else "OFF"),
        ]
        if self.toolchain:
            options.append(f"-DCMAKE_TOOLCHAIN_FILE={SOURCE}/cmake/{self.toolchain}.cmake")
        return options

    @property
    def targets(self) -> list[str]:
        """What cmake is told to build: all, if nothing."""
        return ["--target", *self.programs, *self.others] if self.bench else []


SANITIZED = Flavour(
    "sanitized",
    "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all",
    (*PROGRAMS, *TOOL_PROGRAMS),
    tools=True,
)
# each branch once; threads would spoil the counts, which are not atomic
COVERED = Flavour(
    "covered",
    "-O0 -g --coverage -DCF_INLINE=static",
    tuple(name for name in PROGRAMS if name not in THREAD_PROGRAMS),
)
OPTIMISED = Flavour("optimised", "-O2 -Werror", (*PROGRAMS, *TOOL_PROGRAMS), tools=True)
TOOLS = Flavour("tools", "-O2", (), tools=True)
THREADS = Flavour("threads", "-O1 -g -fsanitize=thread", THREAD_PROGRAMS)
CEILINGS = Flavour("ceilings", "-O2", ("test_ceilings",), bench=True)
RIVALS = Flavour("rivals", "-O2", ("test_crates",), ("replay",), bench=True)
BENCH = Flavour("bench", "-O2", (), ("bench", "bench_copying", "replay"), bench=True)
X86_32 = Flavour(
    "x86-32",
    "-O2",
    PORTABLE_PROGRAMS,
    toolchain="i686-linux-gnu",
    calls=frozenset({"_GLOBAL_OFFSET_TABLE_"}),
)
AARCH64 = Flavour(
    "AArch64",
    "-O2",
    PORTABLE_PROGRAMS,
    toolchain="aarch64-linux-gnu",
    calls=frozenset({"__aarch64_cas4_relax"}),  # or its instruction, with -mno-outline-atomics
)
CORTEX_M0 = Flavour(
    "Cortex-M0",
    "-Os",
    PORTABLE_PROGRAMS,
    toolchain="arm-none-eabi",
    more=("-DCF_CPU=cortex-m0",),
    calls=frozenset(  # it has no instructions for these: divide, find a bit, multiply to 64 bits
        {"__aeabi_idiv", "__aeabi_uidiv", "__aeabi_uidivmod", "__clzsi2", "__ctzsi2"}
        | {"__aeabi_lmul"}
    ),
)
CORTEX_M3 = replace(CORTEX_M0, name="Cortex-M3", more=("-DCF_CPU=cortex-m3",), calls=frozenset())
CORTEX_M33 = replace(CORTEX_M3, name="Cortex-M33", more=("-DCF_CPU=cortex-m33",))
FUZZED = Flavour("fuzzed", "", more=("-DCMAKE_C_COMPILER=clang", "-DCF_FUZZ=ON"))


@dataclass(frozen=True)
class Found:
    """What a step found: its cases, and what to read if one failed."""

    cases: list[Case]
    detail: str = ""


def test(*, debug: bool, soak: bool) -> tuple[list[Case], str]:
    """The cases of all steps of a round, and failures' detail."""
    steps = DEBUG_STEPS if debug else STEPS
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda step: step(soak), steps))
    details = [one.detail for one in found if one.detail]
    return [case for one in found for case in one.cases], "\n".join(details)


def sanitized(_: bool) -> Found:
    return run(SANITIZED)


def threads(_: bool) -> Found:
    return run(THREADS)


def covered(_: bool) -> Found:
    """Everything once, and which branches of the library that took."""
    found = run(COVERED)
    return Found([*found.cases, coverage(folder_of(COVERED))], found.detail)


def optimised(soak: bool) -> Found:
    """As users build it, and the single header without anything."""
    found = run(OPTIMISED, SOAK_OPERATIONS if soak else OPERATIONS)
    levels = [freestanding(folder_of(OPTIMISED), level) for level in LEVELS]
    return Found([*found.cases, *levels], found.detail)


def ceilings(_: bool) -> Found:
    return run(CEILINGS)


def rivals(_: bool) -> Found:
    """The allocators of crates.io that the library is compared with; a trace that is replayed."""
    found = run(RIVALS)
    folder = folder_of(RIVALS)
    trace = folder / "small.cftrace"
    trace.write_bytes(small_trace())
    return Found(
        [*found.cases, *(replayed(folder, trace, name) for name in REPLAYED)], found.detail
    )


def rust(_: bool) -> Found:
    """The Rust crate: cargo's tests, those of its documentation among them."""
    answer = _command(
        ["cargo", "test", "--locked", "--manifest-path", str(SOURCE / "bindings/rust/Cargo.toml")],
        paths.cache(),
        {"CARGO_TARGET_DIR": f"{paths.cache()}/compactfit/cargo"},
    )
    cases = cargo_cases(answer.stdout)
    if answer.returncode or not cases:
        cases.append(Case("cargo test ends well", passed=False))
        return Found(cases, answer.stdout + answer.stderr)
    return Found(cases)


def cargo_cases(text: str) -> list[Case]:
    """The cases in what `cargo test` prints."""
    found = [CARGO_RESULT.match(line) for line in text.splitlines()]
    return [
        Case(f"{match['name']} (rust)", match["result"] != "FAILED", match["result"] == "ignored")
        for match in found
        if match
    ]


def examples(_: bool) -> Found:
    """The examples, built as users would: by the installed library alone."""
    folder = paths.cache() / "compactfit" / "examples"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    installed = folder / "installed"
    prefix = [f"-DCMAKE_INSTALL_PREFIX={installed}", "-DCMAKE_INSTALL_LIBDIR=lib"]
    found = {"PKG_CONFIG_PATH": f"{installed}/lib/pkgconfig", "CARGO_TARGET_DIR": f"{folder}/cargo"}
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
    cases, details = [], []
    for name, steps in commands.items():
        for command in steps:
            answer = _command(command, folder, found)
            if answer.returncode:
                details.append(answer.stdout + answer.stderr)
                break
        cases.append(Case(name, answer.returncode == 0))
    return Found(cases, "\n".join(details))


def x86_32(_: bool) -> Found:
    return run_elsewhere(X86_32)


def aarch64(_: bool) -> Found:
    return run_elsewhere(AARCH64)


def cortex_m0(_: bool) -> Found:
    return run_elsewhere(CORTEX_M0)


def cortex_m3(_: bool) -> Found:
    return run_elsewhere(CORTEX_M3)


def cortex_m33(_: bool) -> Found:
    return run_elsewhere(CORTEX_M33)


def fuzzed(soak: bool) -> Found:
    """libFuzzer, which begins with what earlier runs found worth keeping."""
    seconds = SOAK_FUZZ_SECONDS if soak else FUZZ_SECONDS
    folder = build(FUZZED)
    corpus = folder.parent / "corpus"
    corpus.mkdir(exist_ok=True)
    options = [f"-max_total_time={seconds}", f"-max_len={FUZZ_BYTES}", "-len_control=0"]
    options += ["-timeout=60", f"-artifact_prefix={folder.parent}/fuzz-", str(corpus)]
    answer = _command([str(folder / "fuzz"), *options], folder, limit=seconds + LIMIT_SECONDS)
    case = Case(f"fuzzing for {seconds} s finds nothing", answer.returncode == 0)
    if case.passed:
        return Found([case])
    wrong = [line for line in answer.stderr.splitlines() if FUZZ_WRONG.search(line)]
    return Found([replace(case, why="; ".join(wrong[:3]))], answer.stderr[-4000:])


def read(_: bool) -> Found:
    """What clang-tidy and cppcheck have to say; about the C++ header, as a test uses it."""
    # test_internals.c includes the library; traced.c does what recorded programs may, misuse too,
    # and record.c defines functions of libc, which names their parameters otherwise
    misuse = SOURCE / "tests/traced.c"
    others = (misuse, SOURCE / "tools/record.c")
    units = sorted(
        str(one)
        for name in ("tests", "bench", "tools")
        for one in (SOURCE / name).glob("*.c")
        if one not in others
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
    cases, details = [], []
    for name, command in commands.items():
        answer = _command(command, SOURCE)
        cases.append(Case(name, answer.returncode == 0))
        if answer.returncode:
            details.append(answer.stdout + answer.stderr)
    return Found(cases, "\n".join(details))


Step = Callable[[bool], Found]  # told whether this is a soak
# The longest first. Those for bugs that show rarely belong to the debug kernel's round.
STEPS: tuple[Step, ...] = (covered, ceilings, optimised, rust, x86_32)
DEBUG_STEPS: tuple[Step, ...] = (
    *(read, sanitized, fuzzed, rivals, cortex_m0, aarch64),
    *(cortex_m33, cortex_m3, threads, examples),
)


def run(flavour: Flavour, operations: int = OPERATIONS) -> Found:
    """Build a flavour and run its programs."""
    folder = build(flavour)
    return collect(
        flavour.name,
        {
            program: _command(
                [str(folder / program), str(operations * LEAN.get(program, 1))],
                folder,
                limit=LIMIT_SECONDS + operations // 1000,
            )
            for program in flavour.programs
        },
    )


def run_elsewhere(flavour: Flavour) -> Found:
    """Build a flavour for another machine; its toolchain file names what runs the programs."""
    folder = build(flavour)
    said = {}
    for program in flavour.programs:
        answer = _command(["ctest", "-V", "-R", f"^{program}$"], folder)
        answer.stdout = re.sub(r"^\d+: ", "", answer.stdout, flags=re.M)
        said[program] = answer
    found = collect(flavour.name, said)
    return replace(found, cases=[*found.cases, needs(flavour)])


def collect(name: str, said: dict[str, subprocess.CompletedProcess[str]]) -> Found:
    """The cases that programs reported. One that reports no failure has to end well."""
    cases: list[Case] = []
    details: list[str] = []
    for program, answer in said.items():
        found = ktap.parse(answer.stdout)
        if not found or (answer.returncode and all(case.passed for case in found)):
            found.append(Case(f"{program} ends well", passed=False))
            details.append(answer.stdout + answer.stderr)
        cases += [replace(case, name=f"{case.name} ({name})") for case in found]
    return Found(cases, "\n".join(details))


def needs(flavour: Flavour) -> Case:
    """Does the library for another machine call nothing but what its compiler has to bring?"""
    library = str(folder_of(flavour) / "libcompactfit.a")
    code = output([f"{flavour.toolchain}-size", library]).splitlines()[1].split()[0]
    console.say(f"compactfit: {code} bytes of code for {flavour.name} ({flavour.flags})")
    said = output([f"{flavour.toolchain}-nm", "-u", library])
    wanted = set(re.findall(r"^ +U (\S+)$", said, flags=re.M)) - flavour.calls
    name = f"the library needs nothing else ({flavour.name})"
    return Case(name, not wanted, why=" ".join(sorted(wanted)))


def folder_of(flavour: Flavour) -> Path:
    return paths.cache() / "compactfit" / flavour.name


def tools() -> Path:
    """The folder of the recorder and of compactfit-tune, up to date."""
    folder = folder_of(TOOLS)
    folder.mkdir(parents=True, exist_ok=True)
    with lock.exclusive(folder, "compactfit"):
        return build(TOOLS, anew=False)


def build(flavour: Flavour, *, anew: bool = True) -> Path:
    """Build the library and its tests in the cache; the folder."""
    folder = folder_of(flavour)
    if anew or not _is_of_here(folder):
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    for command in (
        ["cmake", "-S", str(SOURCE), "-B", str(folder), *flavour.options],
        ["cmake", "--build", str(folder), f"-j{os.cpu_count()}", *flavour.targets],
    ):
        answer = _command(command, folder)
        if answer.returncode:
            raise LabError(f"building compactfit ({flavour.name}) failed", answer.stderr.strip())
    return folder


def _is_of_here(folder: Path) -> bool:
    """Not of another clone of the repository: cmake refuses that."""
    try:
        return (
            f"CMAKE_HOME_DIRECTORY:INTERNAL={SOURCE}\n" in (folder / "CMakeCache.txt").read_text()
        )
    except FileNotFoundError:
        return False


def freestanding(folder: Path, level: str) -> Case:
    """Does the single header compile alone, and call nothing but itself?"""
    name = f"the single header needs nothing else ({level})"
    unit = folder / "single.c"
    include = '#include "compactfit_single.h"\n'
    unit.write_text(f"#define COMPACTFIT_IMPLEMENTATION\n{include}{include}")
    flags = ["-std=c11", "-ffreestanding", "-Wall", "-Wextra", "-Werror", level, "-c"]
    answer = _command(["cc", *flags, str(unit), "-o", str(folder / "single.o")], folder)
    if answer.returncode:
        return Case(name, passed=False, why=answer.stderr.strip())
    wanted = output(["nm", "-u", str(folder / "single.o")]).split()
    return Case(name, not wanted, why=" ".join(wanted))


def small_trace() -> bytes:
    """A trace as tools/trace.h describes it: allocate, resize each third, free each second."""

    def record(*numbers: int) -> bytes:
        text = bytearray()
        for number in numbers:
            rest = number
            while rest >= 128:
                text.append(rest & 127 | 128)
                rest >>= 7
            text.append(rest)
        return bytes(text)

    header = b"cftrace\n" + struct.pack("<4I", 1, 24, 1, 1)
    allocated = [record(1, 100) for _ in range(SMALL)]
    resized = [record(5, SMALL - number, 700) for number in range(0, SMALL, 3)]
    freed = [record(4, SMALL - number) for number in range(0, SMALL, 2)]
    return b"".join([header, *allocated, *resized, *freed])


def replayed(folder: Path, trace: Path, allocator: str) -> Case:
    """Replay the small trace: is what is known of it found?"""
    name = f"a trace is replayed on {allocator}"
    answer = _command([str(folder / "replay"), str(trace), allocator, "1", "500"], folder)
    if answer.returncode:
        return Case(name, passed=False, why=answer.stderr.strip())
    return judge_replay(name, json.loads(answer.stdout))


def judge_replay(name: str, found: dict[str, Any]) -> Case:
    """Is this what a replay of the small trace says?"""
    peak = 100 * SMALL + 600 * (SMALL // 3)
    least = found["least_memory"]
    holds = (
        found["peak"] == peak
        and found["calls"] == SMALL + SMALL // 3 + SMALL // 2
        and found["failed"] == found["refused"] == 0
        and (least is None or peak <= least <= 2 * peak)
        and found["footprint"]["peak"] >= peak
        and all(found[call]["mean"] > 10 for call in ("malloc", "free", "realloc"))
    )
    return Case(name, holds, why="" if holds else json.dumps(found))


def coverage(folder: Path) -> Case:
    """The branches of the library that the tests of `folder` took, judged."""
    report = ["-r", str(SOURCE), "--filter", f"{SOURCE}/src/", "--json-summary", "-"]
    answer = _command([sys.executable, "-m", "gcovr", *report, str(folder)], folder)
    if answer.returncode:
        return Case("gcovr counts branches", passed=False, why=answer.stderr.strip())
    return judge_coverage(float(json.loads(answer.stdout)["branch_percent"]))


def judge_coverage(percent: float) -> Case:
    """Are these percent of the library's branches enough?"""
    console.say(f"compactfit: the tests take {percent} % of the library's branches")
    why = "" if percent >= BRANCHES else f"they take {percent} %"
    return Case(
        f"the tests take {BRANCHES:g} % of the library's branches", percent >= BRANCHES, why=why
    )


def output(command: list[str]) -> str:
    """What a program of the benchmark prints."""
    answer = _command(command, paths.cache())
    if answer.returncode:
        raise LabError(f"{Path(command[0]).name} failed", answer.stderr.strip())
    return answer.stdout


def _command(
    command: list[str],
    folder: Path,
    environment: dict[str, str] | None = None,
    limit: float = LIMIT_SECONDS,
) -> subprocess.CompletedProcess[str]:
    console.show_command(command)
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=limit,
        )
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"").decode(errors="replace")
        why = f"{Path(command[0]).name} did not end within {limit:g} s"
        return subprocess.CompletedProcess(command, TIMED_OUT, said, why)
