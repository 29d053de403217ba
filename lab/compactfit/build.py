# SPDX-License-Identifier: GPL-2.0-or-later
"""The library's own CMake project, configured in the ways that tests and benchmarks need."""

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from lab import lock, paths, process

SOURCE = paths.REPO / "compactfit"
PORTABLE_PROGRAMS = (
    *("test_compactfit", "test_internals", "soak_bound"),
    *("test_memory", "test_without"),
)
THREAD_PROGRAMS = ("test_threads", "test_cpp_threads", "test_cpp_threads_debug")
PROGRAMS = (
    *(*PORTABLE_PROGRAMS, "test_rivals", "test_cpp", "test_cpp_exceptions"),
    *THREAD_PROGRAMS,
)
TOOL_PROGRAMS = ("test_traces",)
LIMIT_SECONDS = 600  # of a command that is no soak: what takes longer hangs


@dataclass(frozen=True)
class Preset:
    """One way to configure and compile the library and its tests."""

    name: str
    flags: str
    programs: tuple[str, ...] = PROGRAMS
    others: tuple[str, ...] = ()  # what else is to be built
    bench: bool = False  # programs of the benchmark: just these are built
    tools: bool = False  # those for traces
    toolchain: str = ""  # for another machine: what its tools' names begin with
    more: tuple[str, ...] = ()  # for cmake
    calls: frozenset[str] = frozenset()  # what the library may need of the compiler's own
    smallest: int = 0  # bytes of code that it may have without its parts; 0: not asked

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


SANITIZED = Preset(
    "sanitized",
    "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all",
    (*PROGRAMS, *TOOL_PROGRAMS),
    tools=True,
)
# each branch once; threads would spoil the counts, which are not atomic
COVERED = Preset(
    "covered",
    "-O0 -g --coverage -DCF_INLINE=static",
    tuple(name for name in PROGRAMS if name not in THREAD_PROGRAMS),
)
OPTIMISED = Preset("optimised", "-O2 -Werror", (*PROGRAMS, *TOOL_PROGRAMS), tools=True)
TOOLS = Preset("tools", "-O2", (), tools=True)
THREADS = Preset("threads", "-O1 -g -fsanitize=thread", THREAD_PROGRAMS)
CEILINGS = Preset("ceilings", "-O2", ("test_ceilings",), ("search_ceilings",), bench=True)
RIVALS = Preset("rivals", "-O2", ("test_crates",), ("replay",), bench=True)
BENCH = Preset("bench", "-O2", (), ("bench", "bench_copying", "replay", "speed"), bench=True)
X86_32 = Preset(
    "x86-32",
    # what is undefined ends the program: in 32 bits a made up place may be beyond all addresses
    "-O2 -fsanitize=undefined -fsanitize-undefined-trap-on-error",
    PORTABLE_PROGRAMS,
    toolchain="i686-linux-gnu",
    calls=frozenset({"_GLOBAL_OFFSET_TABLE_"}),
)
AARCH64 = Preset(
    "AArch64",
    "-O2",
    PORTABLE_PROGRAMS,
    toolchain="aarch64-linux-gnu",
    calls=frozenset({"__aarch64_cas4_relax"}),  # or its instruction, with -mno-outline-atomics
)
CORTEX_M0 = Preset(
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
CORTEX_M3 = replace(
    CORTEX_M0,
    name="Cortex-M3",
    more=("-DCF_CPU=cortex-m3",),
    calls=frozenset(),
    smallest=6 * 1024,
)
CORTEX_M33 = replace(CORTEX_M3, name="Cortex-M33", more=("-DCF_CPU=cortex-m33",))
FUZZED = Preset("fuzzed", "", more=("-DCMAKE_C_COMPILER=clang", "-DCF_FUZZ=ON"))


def folder_of(preset: Preset) -> Path:
    return paths.cache() / "compactfit" / preset.name


def tools() -> Path:
    """The folder of the recorder and of compactfit-tune, up to date."""
    folder = folder_of(TOOLS)
    folder.mkdir(parents=True, exist_ok=True)
    with lock.exclusive(folder, "compactfit"):
        return build(TOOLS, anew=False)


def build(preset: Preset, *, anew: bool = True) -> Path:
    """Build the library and its tests in the cache; the folder."""
    folder = folder_of(preset)
    if anew or not _is_of_here(folder):
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    for command in (
        ["cmake", "-S", str(SOURCE), "-B", str(folder), *preset.options],
        ["cmake", "--build", str(folder), f"-j{os.cpu_count()}", *preset.targets],
    ):
        process.run(
            command,
            failure=f"building compactfit ({preset.name}) failed",
            cwd=folder,
            timeout=LIMIT_SECONDS,
        )
    return folder


def _is_of_here(folder: Path) -> bool:
    """Not of another clone of the repository: cmake refuses that."""
    try:
        return (
            f"CMAKE_HOME_DIRECTORY:INTERNAL={SOURCE}\n" in (folder / "CMakeCache.txt").read_text()
        )
    except FileNotFoundError:
        return False


def output(command: list[str]) -> str:
    """What a program of the benchmark prints."""
    return process.run(command, cwd=paths.cache(), timeout=LIMIT_SECONDS).stdout
