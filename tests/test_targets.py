# SPDX-License-Identifier: GPL-2.0-or-later
"""What differs from one machine to the next stands in lab/targets.py, and nowhere else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import lab
from lab import targets

ROOT = Path(lab.__file__).parent
# Those that make and boot kernels
MODULES = ("areas", "boot", "build", "export", "guests", "kernellog", "machine", "reach")
MODULES += ("selftests", "setup", "source", "stepwise", "storage", "tests", "workloads")
ARCHITECTURE = re.compile(r"x86|amd64|aarch64|arm64|ttyS|ttyAMA|q35|vmlinux|bzImage|earlyprintk")
HOST = {"gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"}  # of the library's tests
# What the kernel's copy_page() does on this architecture is what this program measures
OF_ONE = {"pagecopy.c"}


def texts(source: str) -> Iterator[str]:
    """The strings of a module, without what describes it."""
    tree = ast.parse(source)
    described = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        string = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if string and id(node) not in described:
            yield node.value


def named(text: str) -> bool:
    versions = {target.linux.version for target in targets.TARGETS.values()}
    return bool(ARCHITECTURE.search(text)) or any(version in text for version in versions)


@pytest.mark.parametrize("name", MODULES)
def test_what_builds_and_boots_names_no_target(name: str) -> None:
    module = (ROOT / f"{name}.py").read_text()
    assert [text for text in texts(module) if named(text) and text not in HOST] == []


def test_programs_of_guests_are_for_any_target_but_where_they_say_so() -> None:
    bound = set()
    for path in (ROOT / "guest").glob("*.[ch]"):
        text = path.read_text()
        other = re.search(r"^#(?:elif|else)\b", text, flags=re.M)  # for another architecture
        if re.search(r"__x86_64__|x86intrin|\basm\b.*\bmovsq\b", text) and not other:
            bound.add(path.name)
    assert bound == OF_ONE


def test_a_name_in_a_module_is_seen() -> None:
    module = '"""For x86."""\nCONSOLE = "console=ttyS0"\nWHERE = f"linux-6.12.{1}"\n'
    assert [text for text in texts(module) if named(text)] == ["console=ttyS0", "linux-6.12."]
