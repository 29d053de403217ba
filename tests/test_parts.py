# SPDX-License-Identifier: GPL-2.0-or-later
"""How `gcma test` counts."""

from pathlib import Path

import pytest

from lab import selftests, tests
from lab.errors import LabError
from lab.ktap import Case, Summary

JUNIT = """<testsuites><testsuite>
<testcase classname="tests.test_a" name="good"/>
<testcase classname="tests.test_a" name="bad"><failure message="no"/></testcase>
<testcase classname="tests.test_a" name="broken"><error message="no"/></testcase>
<testcase classname="tests.test_a" name="left_out"><skipped message="no QEMU"/></testcase>
</testsuite></testsuites>
"""


def program(share: Path, name: str, status: str | None, text: str) -> Summary:
    (share / f"{name}.ktap").write_text(text)
    if status is not None:
        (share / f"{name}.status").write_text(status)
    return tests.PartResult("selftests", [selftests.program_case(share, name)]).summary


def test_junit_cases(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(JUNIT)
    cases = tests.read_junit(report)
    assert tests.PartResult("lab", cases).summary == Summary(1, 2, 1)
    assert cases[3].why == "no QEMU"


def test_programs_of_a_kselftest_makefile(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(
        "TEST_GEN_PROGS := a \\\n\tb\nTEST_PROGS = c.sh\nTEST_PROGS_EXTENDED := helper.sh\n"
        "TEST_GEN_PROGS += d\nTEST_GEN_PROGS := $(addprefix /out/,$(TEST_GEN_PROGS))\nall: ;\n"
    )
    assert selftests.program_names(tmp_path) == ["c.sh", "a", "b", "d"]


def test_program_that_passes(tmp_path: Path) -> None:
    assert program(tmp_path, "a", "0\n", "1..1\nok 1 x\n") == Summary(passed=1)


def test_program_with_a_bad_status_fails_even_if_its_ktap_is_fine(tmp_path: Path) -> None:
    assert program(tmp_path, "a", "139\n", "1..1\nok 1 x\n") == Summary(1, 1)


def test_program_that_never_ended_fails(tmp_path: Path) -> None:
    assert program(tmp_path, "a", None, "1..2\nok 1 x\n") == Summary(failed=1)


def test_program_without_ktap_fails(tmp_path: Path) -> None:
    assert program(tmp_path, "a", "0\n", "hello\n") == Summary(failed=1)


def test_program_that_skips_itself(tmp_path: Path) -> None:
    assert program(tmp_path, "a", "4\n", "1..0 # SKIP no area\n") == Summary(skipped=1)


def test_soak_is_told_to_the_programs() -> None:
    assert "export GCMA_SOAK=1" in selftests.script(["a"], "results", soak=True)
    assert "export GCMA_SOAK=1" not in selftests.script(["a"], "results", soak=False)


def test_unknown_part_lists_the_known_ones() -> None:
    with pytest.raises(LabError, match="unknown part all: choose one of lint, lab"):
        tests.run(tests.Options(), "all")


def test_part_that_cannot_run_has_failed_and_the_others_still_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_: tests.Context) -> tests.PartResult:
        raise LabError("the build failed")

    def good(_: tests.Context) -> tests.PartResult:
        return tests.PartResult("good", [Case("x", passed=True)])

    monkeypatch.setattr(tests, "PARTS", {"broken": broken, "good": good})
    assert tests.total(tests.run(tests.Options())) == Summary(passed=1, failed=1)


def test_case_is_skipped_only_if_no_round_ran_it() -> None:
    def skipped(name: str) -> Case:
        return Case(name, passed=True, skipped=True, why="not here")

    found = [
        *(("one", Case("a", passed=True)), ("one", skipped("b")), ("one", skipped("c"))),
        *(("two", skipped("a")), ("two", Case("b", passed=False)), ("two", skipped("c"))),
    ]
    cases = selftests.merged(found)
    assert [case.name for case in cases] == ["a (one)", "c", "b (two)"]
    assert tests.PartResult("selftests", cases).summary == Summary(1, 1, 1)
