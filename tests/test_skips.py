# SPDX-License-Identifier: GPL-2.0-or-later
"""Skips that are listed, and those that are not."""

from pathlib import Path

import pytest

from lab import mutants, skips, tests
from lab.errors import LabError
from lab.ktap import Case, summary

LIST = """
[[skip]]
part = "selftests"
why = "it has none"
cases = ["a: ext4: *clone*", "a: f2fs: *clone*"]

[[skip]]
part = "selftests"
why = "of the debug kernel"
flavours = ["prod"]
cases = ["a: faults"]
"""


@pytest.fixture
def listed(tmp_path: Path) -> list[skips.Skip]:
    (tmp_path / "skips.toml").write_text(LIST)
    return skips.read(tmp_path / "skips.toml")


def skipped(name: str) -> Case:
    return Case(name, passed=True, skipped=True, why="not here")


def test_listed_skips_stay(listed: list[skips.Skip]) -> None:
    cases = [skipped("a: ext4: a clone"), skipped("a: faults"), Case("a: b", passed=True)]
    assert skips.judge("selftests", "prod", cases, listed) == cases


@pytest.mark.parametrize(
    ("part", "flavour", "name"),
    [
        ("selftests", "prod", "a: xfs: a clone"),
        ("guests", "prod", "a: ext4: a clone"),
        ("selftests", "debug", "a: faults"),
    ],
)
def test_other_skips_fail(part: str, flavour: str, name: str, listed: list[skips.Skip]) -> None:
    whole = Case("a", passed=True, children=[skipped(name), Case("b", passed=True)])
    judged = skips.judge(part, flavour, [whole], listed)
    assert (summary(judged).passed, summary(judged).failed) == (1, 1)
    assert judged[0].children[0].why == "skipped, but not in skips.toml: not here"


def test_entry_without_use_fails(listed: list[skips.Skip]) -> None:
    cases = [skipped("a: ext4: a clone")]
    unused = skips.unused("selftests", "debug", cases, listed)
    assert [case.why for case in unused] == ["a: f2fs: *clone*"]
    assert [case.why for case in skips.unused("selftests", "prod", cases, listed)] == [
        "a: f2fs: *clone*",
        "a: faults",
    ]
    assert skips.unused("guests", "prod", [], listed) == []


def test_entry_without_reason_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "skips.toml"
    path.write_text('[[skip]]\npart = "lab"\ncases = ["x"]\n')
    with pytest.raises(LabError, match="entry 1 has no 'why'"):
        skips.read(path)


def test_list_of_the_project_names_parts_that_there_are() -> None:
    assert {skip.part for skip in skips.read()} <= {*tests.PARTS, mutants.PART}
