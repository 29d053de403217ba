# SPDX-License-Identifier: GPL-2.0-or-later
"""The steps of the library's tests: each builds something, runs it and has it judged."""

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from lab import console, ktap, paths, process
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
SINGLE_COMPILERS = {  # with the oldest language that they are to take
    **dict.fromkeys(("gcc", "clang"), "-std=c11"),
    **dict.fromkeys(("g++", "clang++"), "-std=c++11"),
}
LEVELS = ("-O0", "-Os", "-O2", "-O3")
INSTALLED = {  # documentation, with a word of each
    "README.md": "compactfit",
    "compactfit.md": "Invariant 1",
    "LICENSE-MIT": "MIT License",
    "LICENSE-GPL-2.0-only": "GNU GENERAL PUBLIC LICENSE",
    "examples/c/messages.c": "cf_malloc",
}
CRATE = SOURCE / "bindings/rust"
OLDEST_RUST = "/usr/bin:/bin"  # where Debian's is: 1.63, the oldest that the crate supports
THUMB = "thumbv7em-none-eabi"
WRONG_COMPILERS = {  # for a Cortex-M4
    "this machine's": {"CC": "gcc"},
    "AArch64's": {"CC": "aarch64-linux-gnu-gcc"},
    "ARM code": {"CFLAGS": "-march=armv7-a -marm"},
    "another convention": {"CFLAGS": "-mfpu=fpv4-sp-d16 -mfloat-abi=hard"},
    "none": {"CC": "no-such-compiler"},
}
BESIDE = (Path(ktap.__file__), Path(process.__file__), paths.REPO / "lab/requirements.txt")
TOOLS = ("gcc", "g++", "clang", "clang++", "clang-tidy", "cmake", "cargo", "rustc")
CHOOSING = re.compile(r"CC|CXX|AR$|LD|CPPFLAGS|CFLAGS|CMAKE|CARGO|RUST|\w+SAN_OPTIONS")
REPLAYED = ("cfm", "cfnm", "tlsf", "o1heap", "dlmalloc", "rlsf", "talc", "glibc")


def run(*, debug: bool, soak: bool, again: bool = True) -> tuple[list[Case], str]:
    """The cases of all steps of a round, and failures' detail.

    Unless it is to run `again`, or for long, a round that passed is not run as long as nothing is
    different: who works on the kernel need not wait for it.
    """
    known = passed(debug=debug)
    if known.exists() and not (again or soak):
        console.say(
            "compactfit: passed before, and nothing is different: --only compactfit runs it"
        )
        return [Case(**case) for case in json.loads(known.read_text())], ""
    steps = DEBUG_STEPS if debug else STEPS
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda step: step(soak), steps))
    whole = judge.together(results)
    cases = [leaf for case in whole.cases for leaf in case.leaves()]
    if all(case.passed for case in cases) and not soak:
        kept = [{"name": c.name, "passed": True, "skipped": c.skipped, "why": c.why} for c in cases]
        known.parent.mkdir(exist_ok=True)
        part = known.with_suffix(".part")
        part.write_text(json.dumps(kept))
        part.rename(known)
    return whole.cases, whole.detail


def passed(*, debug: bool) -> Path:
    """Where a round as it is now is kept, if it has passed."""
    return paths.cache() / "compactfit" / f"passed-{_content(debug=debug)}.json"


def _content(*, debug: bool) -> str:
    """What a round depends on: the library, these steps, all that is installed, and what chooses
    between that.
    """
    digest = hashlib.sha256(repr(debug).encode())
    for folder in (SOURCE, Path(__file__).parent):
        for file in sorted(folder.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(folder)}\0".encode() + file.read_bytes())
    for file in BESIDE:
        digest.update(file.read_bytes())
    digest.update(build.output(["dpkg-query", "-W"]).encode())
    for tool in filter(None, map(shutil.which, TOOLS)):  # rustup's are in no package
        digest.update(f"{tool}\0{build.output([tool, '--version'])}".encode())
    chosen = sorted(pair for pair in os.environ.items() if CHOOSING.match(pair[0]))
    digest.update(repr(chosen).encode())
    return digest.hexdigest()[:24]


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
    folder = build.folder_of(build.OPTIMISED)
    single = [
        _freestanding(folder, compiler, level)
        for compiler in SINGLE_COMPILERS
        for level in LEVELS
        if ("clang" in compiler, level) != (True, "-O0")  # there it copies any struct by memcpy()
    ]
    return replace(result, cases=[*result.cases, *single, _single_in_cpp(folder)])


def ceilings(soak: bool) -> StepResult:
    """Patterns that are dear, the longest paths through the code, and a search."""
    folder = build.build(build.CEILINGS)
    program = str(folder / "test_ceilings")
    patterns = _command([program, "all" if soak else "few"], folder)
    result = judge.programs(build.CEILINGS, {"test_ceilings": patterns})
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
    searched = judge.programs(build.CEILINGS, answers)
    return StepResult([*result.cases, *derived, *searched.cases], result.detail + searched.detail)


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


def _freestanding(folder: Path, compiler: str, level: str) -> Case:
    """Does the single header compile alone, and call nothing but itself?"""
    name = f"the single header needs nothing else ({compiler} {level})"
    include = '#include "compactfit_single.h"\n'
    unit = folder / ("single.cpp" if "++" in compiler else "single.c")
    unit.write_text(f"#define COMPACTFIT_IMPLEMENTATION\n{include}{include}")
    flags = ["-ffreestanding", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", level]
    compile_it = [compiler, SINGLE_COMPILERS[compiler], *flags, "-c", str(unit)]
    answer = _command([*compile_it, "-o", str(folder / "single.o")], folder)
    if answer.returncode:
        return Case(name, passed=False, why=answer.stderr.strip())
    undefined = build.output(["nm", "-u", str(folder / "single.o")]).split()
    return Case(name, not undefined, why=" ".join(undefined))


def _single_in_cpp(folder: Path) -> Case:
    """The test of the C++ header, with the single header's implementation compiled as C++."""
    compile_it = ["g++", "-std=c++17", "-O2", f"-I{SOURCE}/include"]
    sources = [f"{SOURCE}/tests/test_cpp.cpp", str(folder / "single.cpp")]
    program = str(folder / "test_single")
    answer = _first_failure([[*compile_it, *sources, "-o", program], [program]], folder, {})
    why = answer.stdout + answer.stderr if answer.returncode else ""
    return Case("the single header is C++ too", not answer.returncode, why=why)


# As users take it


def rust(_: bool) -> StepResult:
    """The Rust crate: cargo's tests, those of its documentation among them; lints; its package."""
    folder = paths.cache() / "compactfit" / "cargo"
    manifest = ["--locked", "--manifest-path", f"{CRATE}/Cargo.toml"]
    checks = {
        "clippy finds nothing in the Rust crate": [
            *("cargo", "clippy", "--quiet", *manifest, "--all-targets", "--", "-Dwarnings"),
        ],
        "the Rust crate is formatted": ["cargo", "fmt", "--check", *manifest[1:]],
        "the Rust crate is documented": ["cargo", "doc", "--quiet", *manifest, "--no-deps"],
        "the Rust crate's package builds": [
            *("cargo", "package", "--quiet", *manifest, "--offline", "--allow-dirty"),
        ],
    }
    environment = {"CARGO_TARGET_DIR": str(folder), "RUSTDOCFLAGS": "-Dwarnings"}
    answers = {name: _command(words, folder.parent, environment) for name, words in checks.items()}
    answers["the Rust crate builds where git makes no symbolic links"] = _without_links(folder)
    return judge.together([_cargo_test("", folder, {}), judge.commands(answers)])


def oldest_rust(_: bool) -> StepResult:
    """The Rust crate's tests by the oldest compiler that it supports."""
    folder = paths.cache() / "compactfit" / "cargo-oldest"
    return _cargo_test(", oldest", folder, {"PATH": OLDEST_RUST})


def _cargo_test(which: str, folder: Path, environment: Mapping[str, str]) -> StepResult:
    command = ["cargo", "test", "--locked", "--manifest-path", f"{CRATE}/Cargo.toml"]
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**environment, "CARGO_TARGET_DIR": str(folder)}
    return judge.cargo(_command(command, folder, environment), which)


def _without_links(folder: Path) -> Finished:
    """Build the crate in a copy of the sources that has text for links, as git on Windows has."""
    copy = folder / "without-links"
    shutil.rmtree(copy, ignore_errors=True)
    ignored = shutil.ignore_patterns("target")
    shutil.copytree(SOURCE, copy, symlinks=True, ignore=ignored)
    for link in [path for path in copy.rglob("*") if path.is_symlink()]:
        text = link.readlink()
        link.unlink()
        link.write_text(str(text))
    command = ["cargo", "test", "--quiet", "--locked", "--test", "heap", "--test", "header"]
    crate = copy / CRATE.relative_to(SOURCE)
    return _command(command, crate, {"CARGO_TARGET_DIR": str(folder)})


def refused(_: bool) -> StepResult:
    """Types that the C++ header must not accept, by both compilers."""
    source = SOURCE / "tests/refused.cpp"
    flags = ["-std=c++17", "-fsyntax-only", f"-I{SOURCE}/include", str(source)]
    compilers = {"g++": "-fmax-errors=0", "clang++": "-ferror-limit=0"}
    results = [
        judge.refusals(
            f"objects that cannot be moved as bytes do not compile ({compiler})",
            source.read_text(),
            _command([compiler, limit, *flags], SOURCE),
        )
        for compiler, limit in compilers.items()
    ]
    without = ["-std=c++17", "-fsyntax-only", "-DCF_WITH_PINS=0", "-xc++"]
    pins = [
        judge.refusal(
            f"without pins the header says what to do ({compiler})",
            _command([compiler, *without, f"{SOURCE}/include/compactfit.hpp"], SOURCE),
            "do not set CF_WITH_PINS=0",
        )
        for compiler in compilers
    ]
    return judge.together([*results, StepResult(pins)])


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
    whole = folder / "whole"
    whole_prefix = [f"-DCMAKE_INSTALL_PREFIX={whole}", "-DCMAKE_INSTALL_LIBDIR=lib"]
    trace = folder / f"small{traces.SUFFIX}"
    trace.write_bytes(traces.small())
    messages = 'cc -Wall -Wextra -Werror -o messages "$0" $(pkg-config --cflags --libs compactfit)'
    commands = {
        "the library is installed": [
            ["cmake", "-S", str(SOURCE), "-B", "build", "-DBUILD_TESTING=OFF", *prefix],
            ["cmake", "--build", "build"],
            ["cmake", "--install", "build"],
            *(
                ["grep", "-q", text, str(installed / "share/doc/compactfit" / name)]
                for name, text in INSTALLED.items()
            ),
        ],
        "a project that has the library as a part installs both": [
            ["cmake", "-S", f"{SOURCE}/tests/subproject", "-B", "sub", *whole_prefix],
            ["cmake", "--build", "sub"],
            ["cmake", "--install", "sub"],
            [
                *("cmake", "-S", f"{SOURCE}/tests/subproject/user", "-B", "user"),
                f"-DCMAKE_PREFIX_PATH={whole}",
            ],
            ["cmake", "--build", "user"],
            ["user/user"],
        ],
        "cmake leaves out what it is told to": [
            ["cmake", "-S", str(SOURCE), "-B", "parts", "-DCF_WITH_PINS=0", "-DCF_WITH_LARGE=0"],
            ["cmake", "--build", "parts"],
            ["sh", "-c", "! nm parts/libcompactfit.a | grep -w cf_pin"],
            ["parts/compactfit-tune", str(trace)],
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


def firmware(_: bool) -> StepResult:
    """The Rust crate for a Cortex-M4: what it takes for a compiler, and that it runs in QEMU."""
    folder = paths.cache() / "compactfit" / "firmware"
    folder.mkdir(parents=True, exist_ok=True)
    sysroot = _thumb_sysroot()
    source = SOURCE / "tests/cortex-m"
    environment = {
        "PATH": OLDEST_RUST,  # it is of the same version as the source of core that Debian has
        "RUSTFLAGS": f"--sysroot={sysroot}",
        "CARGO_TARGET_DIR": str(folder / "cargo"),
    }
    manifest = ["--manifest-path", f"{source}/rust/Cargo.toml"]
    cargo = ["cargo", "build", "--locked", "--target", THUMB, *manifest]
    library = str(folder / f"cargo/{THUMB}/debug/libfirmware.a")
    link = [
        *("arm-none-eabi-gcc", "-mthumb", "-march=armv7e-m", "--specs=rdimon.specs"),
        "-Wl,--gc-sections,--defsym=CF_TEST_CODE=0,--defsym=CF_TEST_DATA=0x21000000",
        *("-T", f"{source}/mps2.ld", f"{source}/startup.c", library, "-o", "firmware.elf"),
    ]
    qemu = ["qemu-system-arm", "-machine", "mps2-an386", "-display", "none", "-monitor", "none"]
    qemu += ["-serial", "none", "-semihosting-config", "enable=on,target=native"]
    run = [cargo, link, [*qemu, "-kernel", "firmware.elf"]]
    # a compiler that is told, one that is guessed, and one for every machine
    compilers: list[dict[str, str]] = [{"CC": "arm-none-eabi-gcc"}, {}, {"CC": "clang"}]
    runs = {
        f"Rust runs on a Cortex-M4 ({told.get('CC', 'no CC')})": _first_failure(
            run, folder, {**environment, **told}
        )
        for told in compilers
    }
    refusals = [
        judge.refusal(
            f"C is not compiled for another machine ({what})",
            _command(cargo, folder, {**environment, **told}),
            "is no good for",
            "set CC_",
        )
        for what, told in WRONG_COMPILERS.items()
    ]
    result = judge.commands(runs)
    return replace(result, cases=[*result.cases, *refusals])


def _thumb_sysroot() -> Path:
    """Rust's core for a Cortex-M4, made of Debian's source once for each version of it."""
    rustc = "/usr/bin/rustc"
    version = build.output([rustc, "--version"]).split()[1]
    sysroot = paths.cache() / "compactfit" / f"sysroot-{version}"
    libraries = sysroot / f"lib/rustlib/{THUMB}/lib"
    if (libraries / "libcompiler_builtins.rlib").exists():
        return sysroot
    libraries.mkdir(parents=True, exist_ok=True)
    # what it has is in newlib and libgcc
    empty = libraries / "empty.rs"
    empty.write_text("#![no_std]\n#![feature(compiler_builtins)]\n#![compiler_builtins]\n")
    source = "/usr/lib/rustlib/src/rust/library/core/src/lib.rs"
    for name, unit in (("core", source), ("compiler_builtins", str(empty))):
        what = [f"--crate-name={name}", "-o", str(libraries / f"lib{name}.rlib"), unit]
        target = [f"--target={THUMB}", f"--sysroot={sysroot}", "-Cpanic=abort"]
        process.run(
            [rustc, "--edition=2021", "--crate-type=rlib", "--cap-lints=allow", *target, *what],
            failure="building Rust's core for a Cortex-M4 failed",
            env={**os.environ, "RUSTC_BOOTSTRAP": "1"},  # it uses what is not stable
            timeout=LIMIT_SECONDS,
        )
    return sysroot


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
        "the newest clang-tidy finds nothing in the library": [
            *(str(Path(sys.executable).with_name("clang-tidy")), "--quiet"),
            *(str(SOURCE / "src/compactfit.c"), "--", "-std=c11", include),
        ],
        "clang-tidy finds nothing in C++": [
            *("clang-tidy", "--quiet"),
            *(str(SOURCE / f"tests/{name}.cpp") for name in ("test_cpp", "test_cpp_threads")),
            *("--", "-std=c++17", include),
        ],
        "cppcheck finds nothing": [*cppcheck, "--error-exitcode=1", include, *folders],
    }
    result = judge.commands({name: _command(words, SOURCE) for name, words in commands.items()})
    misra = ["cppcheck", "-q", "--std=c11", "--addon=misra", "--inline-suppr", include]
    answer = _command([*misra, str(SOURCE / "src/compactfit.c")], SOURCE)
    listed = (SOURCE / "MISRA.md").read_text()
    return replace(result, cases=[*result.cases, judge.misra(listed, answer)])


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
STEPS: tuple[Step, ...] = (covered, ceilings, optimised, rust, oldest_rust, x86_32, refused)
DEBUG_STEPS: tuple[Step, ...] = (
    *(read, sanitized, fuzzed, rivals, cortex_m0, aarch64),
    *(cortex_m33, cortex_m3, threads, examples, firmware),
)
