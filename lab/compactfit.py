# SPDX-License-Identifier: GPL-2.0-or-later
"""The compact-fit library: built by its own CMake project in the cache, its tests run."""

import json
import os
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
PROGRAMS = ("test_compactfit", "test_internals", "test_rivals", "test_cpp")
TOOL_PROGRAMS = ("test_traces",)
BENCH_PROGRAMS = ("test_ceilings",)  # they count instructions
OPERATIONS = 20_000  # random ones, of each configuration of a heap
SOAK_OPERATIONS = 10_000_000
LEVELS = ("-O0", "-Os", "-O2", "-O3")
REPLAYED = ("cfm", "cfnm", "tlsf", "glibc")
SMALL = 3000  # objects of a trace
BRANCHES = 95.0  # percent of the library's that the tests have to take


@dataclass(frozen=True)
class Flavour:
    """One way to compile the library and its tests."""

    name: str
    flags: str
    bench: bool = False
    tools: bool = False  # a recorder with the flags of sanitizers cannot be loaded everywhere
    tests: bool = True

    @property
    def programs(self) -> tuple[str, ...]:
        if self.bench:
            return BENCH_PROGRAMS
        return (*PROGRAMS, *TOOL_PROGRAMS) if self.tools else PROGRAMS

    @property
    def options(self) -> list[str]:
        """What cmake is told."""
        bench, tools = ("ON" if wanted else "OFF" for wanted in (self.bench, self.tools))
        return [
            "-DCMAKE_BUILD_TYPE=None",
            f"-DCMAKE_C_FLAGS={self.flags}",
            f"-DCMAKE_CXX_FLAGS={self.flags}",
            f"-DCF_BENCH={bench}",
            f"-DCF_TOOLS={tools}",
            "-DBUILD_TESTING=" + ("ON" if self.tests and not self.bench else "OFF"),
        ]


SANITIZED = Flavour("sanitized", "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all")
COVERED = Flavour("covered", "-O0 -g --coverage -DCF_INLINE=static")  # each branch once
OPTIMISED = Flavour("optimised", "-O2 -Werror", tools=True)
TOOLS = Flavour("tools", "-O2", tools=True, tests=False)
BENCH = Flavour("bench", "-O2", bench=True)


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


def covered(_: bool) -> Found:
    """Everything once, and which branches of the library that took."""
    found = run(COVERED)
    return Found([*found.cases, coverage(folder_of(COVERED))], found.detail)


def optimised(soak: bool) -> Found:
    """As users build it, and the single header without anything."""
    found = run(OPTIMISED, SOAK_OPERATIONS if soak else OPERATIONS)
    levels = [freestanding(folder_of(OPTIMISED), level) for level in LEVELS]
    return Found([*found.cases, *levels], found.detail)


def counted(_: bool) -> Found:
    """Ceilings of instructions, and a trace that is replayed."""
    found = run(BENCH)
    folder = folder_of(BENCH)
    trace = folder / "small.cftrace"
    trace.write_bytes(small_trace())
    return Found(
        [*found.cases, *(replayed(folder, trace, name) for name in REPLAYED)], found.detail
    )


Step = Callable[[bool], Found]  # told whether this is a soak
# The longest first. Those for bugs that show rarely belong to the debug kernel's round.
STEPS: tuple[Step, ...] = (covered, counted, optimised)
DEBUG_STEPS: tuple[Step, ...] = (sanitized,)


def run(flavour: Flavour, operations: int = OPERATIONS) -> Found:
    """Build a flavour and run its programs."""
    cases: list[Case] = []
    details: list[str] = []
    folder = build(flavour)
    for program in flavour.programs:
        answer = _command([str(folder / program), str(operations)], folder)
        found = ktap.parse(answer.stdout)
        if answer.returncode and all(case.passed for case in found):
            found.append(Case(f"{program} ends well", passed=False))
            details.append(answer.stderr)
        cases += [replace(case, name=f"{case.name} ({flavour.name})") for case in found]
    return Found(cases, "\n".join(details))


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
    if anew:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    for command in (
        ["cmake", "-S", str(SOURCE), "-B", str(folder), *flavour.options],
        ["cmake", "--build", str(folder), f"-j{os.cpu_count()}"],
    ):
        answer = _command(command, folder)
        if answer.returncode:
            raise LabError(f"building compactfit ({flavour.name}) failed", answer.stderr.strip())
    return folder


def freestanding(folder: Path, level: str) -> Case:
    """Does the single header compile alone, and call nothing but itself?"""
    name = f"the single header needs nothing else ({level})"
    unit = folder / "single.c"
    unit.write_text('#define COMPACTFIT_IMPLEMENTATION\n#include "compactfit_single.h"\n')
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


def _command(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    console.show_command(command)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
