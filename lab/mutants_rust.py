# SPDX-License-Identifier: GPL-2.0-or-later
"""Is each line of the Rust crate's copy of the C header tested? Change one at a time and see.

`compactfit/bindings/rust/src/sys.rs` repeats structs, constants and functions of `compactfit.h` by
hand. A mutant is that file with one of them wrong. It is killed if `cargo test` fails, by a test or
because nothing compiles any more; a mutant that survives shows what no test looks at.
"""

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab import paths, process
from lab.errors import LabError

CRATE = paths.REPO / "compactfit/bindings/rust"
MUTATED = Path("src/sys.rs")
# of another size; of the same size, and another meaning
LARGER = {"u16": "u32", "u32": "u64", "u64": "u128", "usize": "u128", "bool": "u16", "i32": "i64"}
ALIKE = {"u16": "i16", "u32": "i32", "u64": "i64", "usize": "isize", "bool": "u8", "i32": "u32"}
CONSTANT = re.compile(r"pub const (?P<name>\w+): \w+ = (?P<value>-?\w+);")
LAYOUT = re.compile(r"#\[repr\(C\)\]\n(?:#.*\n)*pub (?:struct|enum) (?P<name>\w+)")
STRUCT = re.compile(r"pub struct (?P<name>\w+) \{\n(?P<body>.*?)\n\}", re.S)
FIELD = re.compile(r"^ *pub (?P<name>\w+): (?P<type>.+),$", re.M)
ENUM = re.compile(r"pub enum \w+ \{\n *(?P<name>\w+),")
FUNCTION = re.compile(r"pub fn (?P<name>\w+)\((?P<body>[^;]*)\)(?: -> (?P<result>[^;]+))?;")
ARGUMENT = re.compile(r"(?P<name>\w+): (?P<type>[^,\n]+)")
FAILED = re.compile(r"^test (\S+) \.\.\. FAILED$", re.M)
REFUSED = re.compile(r"^error\[\w+\]: (.+)$", re.M)  # by the compiler
QUICK = ("--test", "layout", "--test", "header")  # those that should kill: without the rest
PLAIN = {"CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_PROFILE_TEST_DEBUG": "0"}  # quicker to build
LIMIT_SECONDS = 600


@dataclass(frozen=True)
class Mutant:
    """The file with one thing wrong."""

    name: str  # what is wrong
    text: str  # the whole file


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    mutant: Mutant
    by: str  # the tests that failed, or what the compiler said; empty: it survived

    @property
    def killed(self) -> bool:
        return bool(self.by)


def mutants(text: str | None = None) -> list[Mutant]:
    """One for each way to get a constant, a field, a layout or a function of the file wrong."""
    text = (CRATE / MUTATED).read_text() if text is None else text
    return [
        Mutant(name, text[:start] + new + text[end:])
        for name, start, end, new in [*_values(text), *_fields(text), *_functions(text)]
    ]


Change = tuple[str, int, int, str]  # name, begin and end of what is replaced, by what


def _values(text: str) -> Iterator[Change]:
    """Wrong constants and layouts."""
    for constant in CONSTANT.finditer(text):
        value = int(constant["value"], 0)
        wrong = value - 1 if value > 1 else value + 1
        yield f"{constant['name']} is {wrong}", *constant.span("value"), str(wrong)
    for enum in ENUM.finditer(text):
        yield f"{enum['name']} is 1", *enum.span("name"), f"{enum['name']} = 1"
    for layout in LAYOUT.finditer(text):
        start = layout.start()
        yield f"{layout['name']} is laid out as Rust likes", start, start + len("#[repr(C)]"), ""


def _fields(text: str) -> Iterator[Change]:
    """Fields of another type, left out, and in another order."""
    for struct in STRUCT.finditer(text):
        fields = list(FIELD.finditer(text, *struct.span("body")))
        for at, field in enumerate(fields):
            name = f"{struct['name']}.{field['name']}"
            for other in _others(field["type"]):
                yield f"{name} is {other}", *field.span("type"), other
            yield f"{name} is left out", *field.span(), ""
            if at:
                before = fields[at - 1]
                swapped = f"{field[0]}\n{before[0]}"
                yield f"{name} comes one too early", before.start(), field.end(), swapped


def _functions(text: str) -> Iterator[Change]:
    """Functions with another type of an argument or the result, or arguments in another order."""
    for function in FUNCTION.finditer(text):
        arguments = list(ARGUMENT.finditer(text, *function.span("body")))
        for at, argument in enumerate(arguments):
            name = f"{function['name']}({argument['name']})"
            for other in _others(argument["type"]):
                yield f"{name} is {other}", *argument.span("type"), other
            if at:
                before = arguments[at - 1]
                between = text[before.end() : argument.start()]
                swapped = f"{argument[0]}{between}{before[0]}"
                yield f"{name} comes one too early", before.start(), argument.end(), swapped
        for other in _others(function["result"] or ""):
            yield f"{function['name']}() gives {other}", *function.span("result"), other


def _others(kind: str) -> list[str]:
    """Types that are wrong instead of this one."""
    if kind.startswith("*mut "):
        return [kind.replace("*mut ", "*const ")]
    if kind.startswith("*const "):
        return [kind.replace("*const ", "*mut ")]
    return [types[kind] for types in (LARGER, ALIKE) if kind in types]


def run(mutant: Mutant, folder: Path) -> Verdict:
    """Test the crate with the mutant in it, in a copy of the crate in `folder`."""
    crate = folder / "rust"
    if not crate.is_dir():
        shutil.copytree(CRATE, crate)  # symbolic links become what they lead to
    (crate / MUTATED).write_text(mutant.text)
    return Verdict(mutant, _failures(crate, QUICK) or _failures(crate, ()))


def run_all(folder: Path) -> Iterator[Verdict]:
    """Each mutant's verdict. The file as it is has to pass, or none of them means anything."""
    shutil.rmtree(folder / "rust", ignore_errors=True)
    intact = run(Mutant("nothing is wrong", (CRATE / MUTATED).read_text()), folder)
    if intact.killed:
        raise LabError(f"the Rust crate's tests fail before anything is changed: {intact.by}")
    for mutant in mutants():
        yield run(mutant, folder)


def _failures(crate: Path, tests: tuple[str, ...]) -> str:
    """What fails of the crate's tests; empty: nothing."""
    command = ["cargo", "test", "--locked", "--no-fail-fast", *tests]
    whole = {**os.environ, **PLAIN}
    answer = process.run(command, check=False, cwd=crate, env=whole, timeout=LIMIT_SECONDS)
    if not answer.returncode:
        return ""
    failed = FAILED.findall(answer.stdout) or REFUSED.findall(answer.stderr)
    return ", ".join(dict.fromkeys(failed)) or f"cargo test ends with status {answer.returncode}"
