# SPDX-License-Identifier: GPL-2.0-or-later
"""Mutants of the Rust crate's copy of the C header: what is changed, and how a verdict is found."""

import re
from pathlib import Path

import pytest

from lab import mutants_rust
from lab.errors import LabError
from tests.conftest import tool

SYS = (mutants_rust.CRATE / mutants_rust.MUTATED).read_text()
SMALL = """\
pub const CF_OK: i32 = 0;
#[repr(C)]
#[derive(Clone)]
pub struct cf_handle {
    pub slot: u32,
    pub stamp: u16,
}
extern "C" {
    pub fn cf_at(
        heap: *mut cf_heap,
        offset: usize,
    ) -> i32;
    pub fn cf_verify(heap: *mut cf_heap) -> *const u8;
}
"""


def test_each_declaration_is_wrong_once() -> None:
    assert [mutant.name for mutant in mutants_rust.mutants(SMALL)] == [
        "CF_OK is 1",
        "cf_handle is laid out as Rust likes",
        "cf_handle.slot is u64",
        "cf_handle.slot is i32",
        "cf_handle.slot is left out",
        "cf_handle.stamp is u32",
        "cf_handle.stamp is i16",
        "cf_handle.stamp is left out",
        "cf_handle.stamp comes one too early",
        "cf_at(heap) is *const cf_heap",
        "cf_at(offset) is u128",
        "cf_at(offset) is isize",
        "cf_at(offset) comes one too early",
        "cf_at() gives i64",
        "cf_at() gives u32",
        "cf_verify(heap) is *const cf_heap",
        "cf_verify() gives *mut u8",
    ]


def test_a_mutant_is_the_file_with_one_thing_wrong() -> None:
    texts = {mutant.name: mutant.text for mutant in mutants_rust.mutants(SMALL)}
    assert texts["CF_OK is 1"] == SMALL.replace("= 0", "= 1")
    assert texts["cf_handle is laid out as Rust likes"] == SMALL.replace("#[repr(C)]", "")
    early = "    pub stamp: u16,\n    pub slot: u32,\n"
    assert early in texts["cf_handle.stamp comes one too early"]
    swapped = "        offset: usize,\n        heap: *mut cf_heap,\n"
    assert swapped in texts["cf_at(offset) comes one too early"]


def test_nothing_of_the_file_is_left_alone() -> None:
    mutants = mutants_rust.mutants()
    assert len({mutant.text for mutant in mutants} | {SYS}) == len(mutants) + 1
    names = " ".join(mutant.name for mutant in mutants)
    for name in re.findall(r"pub (?:const |fn )?(\w+)[:(]", SYS):
        assert re.search(rf"\b{name}\b", names), name


@pytest.fixture
def cargo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cargo whose tests see a wrong constant, that refuses a wrong field, and sees no more."""
    script = """
grep -q 'CF_OK: i32 = 0' src/sys.rs || { echo 'test constants ... FAILED'; exit 101; }
grep -q 'slot: u32' src/sys.rs || { echo 'error[E0308]: mismatched types' >&2; exit 101; }
"""
    tool(tmp_path, "cargo", script)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def verdict(name: str, folder: Path) -> str:
    (mutant,) = (each for each in mutants_rust.mutants() if each.name == name)
    return mutants_rust.run(mutant, folder).by


def test_a_mutant_is_killed_by_a_test_or_the_compiler_or_survives(cargo: Path) -> None:
    assert verdict("CF_OK is 1", cargo) == "constants"
    assert verdict("cf_handle.slot is u64", cargo) == "mismatched types"
    assert verdict("cf_handle.stamp is u64", cargo) == ""
    assert (mutants_rust.CRATE / mutants_rust.MUTATED).read_text() == SYS


def test_a_mutant_that_hangs_is_killed(cargo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(cargo, "cargo", "sleep 60")
    monkeypatch.setattr(mutants_rust, "LIMIT_SECONDS", 0.1)
    status = mutants_rust.process.TIMED_OUT
    assert verdict("CF_OK is 1", cargo) == f"cargo test ends with status {status}"


def test_tests_that_fail_anyway_kill_nothing(cargo: Path) -> None:
    tool(cargo, "cargo", "echo 'test always ... FAILED'; exit 101")
    with pytest.raises(LabError, match="fail before anything is changed: always"):
        next(iter(mutants_rust.run_all(cargo)))
