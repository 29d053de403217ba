# SPDX-License-Identifier: GPL-2.0-or-later
"""KTAP as KUnit prints it on a console, and as selftests print it."""

import pytest

from lab import ktap
from lab.errors import LabError

KUNIT = """\
[    0.400000] KTAP version 1
[    0.400100] 1..2
[    0.400200]     KTAP version 1
[    0.400300]     # Subtest: gcma-frames
[    0.400400]     # module: gcma_test
[    0.400500]     1..3
[    0.400600]     ok 1 a_free_frame_can_be_taken
[    0.400700]     # a_taken_frame_is_refused: EXPECTATION FAILED at mm/gcma_test.c:42
[    0.400800]     not ok 2 a_taken_frame_is_refused
[    0.400900]         KTAP version 1
[    0.401000]         # Subtest: generations
[    0.401100]         ok 1 wrap
[    0.401150] random: crng init done
[    0.401200]         ok 2 no wrap # SKIP 64-bit only
[    0.401300]     ok 3 generations
[    0.401400] # gcma-frames: pass:2 fail:1 skip:0 total:3
[    0.401500] not ok 1 gcma-frames
[    0.401600]     KTAP version 1
[    0.401700]     # Subtest: gcma-parse
[    0.401800]     1..1
[    0.401900]     ok 1 names_are_split
[    0.402000] ok 2 gcma-parse
"""


def test_kunit_console_is_counted_by_leaves() -> None:
    cases = ktap.parse(KUNIT)
    assert [case.name for case in cases] == ["gcma-frames", "gcma-parse"]
    assert ktap.summary(cases) == ktap.Summary(passed=3, failed=1, skipped=1)


def test_failure_keeps_its_notes() -> None:
    leaf = next(leaf for leaf in ktap.parse(KUNIT)[0].leaves() if not leaf.passed)
    assert leaf.name == "a_taken_frame_is_refused"
    assert "EXPECTATION FAILED" in leaf.notes[-1]


def test_failure_is_seen_before_the_end() -> None:
    failing = next(line for line in KUNIT.splitlines() if "not ok" in line)
    before, after = KUNIT.split(failing)
    assert not ktap.any_failed(before)
    assert ktap.any_failed(before + failing + after)
    found = ktap.first_failure(ktap.parse(before + failing))
    assert found
    assert found.name == "a_taken_frame_is_refused"  # not that the plan was broken
    assert not ktap.any_failed("not ok 2 two # TODO later\n")
    (told,) = ktap.parse("1..1\nnot ok 1 two # XFAIL later\n")
    assert told.passed and told.skipped  # it has to be listed
    assert not ktap.parse("1..1\nok 1 two # TODO later\n")[0].skipped


def test_flat_selftest() -> None:
    lines = ["1..4", "ok 1 - one", "not ok 2 two # TODO later", "ok 3 # SKIP no disk", "ok 4 four"]
    cases = ktap.parse("\n".join(["TAP version 13", *lines]))
    assert [case.name for case in cases] == ["one", "two", "3", "four"]
    assert ktap.summary(cases) == ktap.Summary(passed=2, failed=0, skipped=2)
    assert cases[2].why == "no disk"


def test_broken_plan_is_a_failure() -> None:
    assert ktap.summary(ktap.parse("1..3\nok 1 one\n")) == ktap.Summary(passed=1, failed=1)


def test_exceeded_plan_is_a_failure() -> None:
    assert ktap.summary(ktap.parse("1..1\nok 1 one\nok 2 two\n")).failed == 1


def test_program_that_dies_after_its_plan_fails() -> None:
    assert ktap.summary(ktap.parse("KTAP version 1\n1..3\n")).failed == 1


def test_plan_at_the_end_is_honoured() -> None:
    assert ktap.summary(ktap.parse("ok 1 one\nok 2 two\n1..2\n")) == ktap.Summary(passed=2)


def test_program_that_ends_before_it_told_its_plan_fails() -> None:
    assert ktap.summary(ktap.parse("TAP version 14\nok 1 one\n")) == ktap.Summary(1, 1)
    assert ktap.summary(ktap.parse("    1..1\n    ok 1 child\nok 1 parent\n")).failed == 1


def test_plan_of_zero_with_skip_reason() -> None:
    assert ktap.parse("TAP version 13\n1..0 # SKIP no area\n") == []


def test_failed_parent_without_failed_child_counts() -> None:
    text = "1..1\n    1..1\n    ok 1 child\nnot ok 1 parent\n"
    assert ktap.summary(ktap.parse(text)) == ktap.Summary(passed=1, failed=1)


def test_timeout_is_a_failure() -> None:
    assert ktap.summary(ktap.parse("1..1\nok 1 slow # TIMEOUT 45 seconds\n")).failed == 1


def test_other_lines_are_no_results() -> None:
    assert ktap.parse("book 1\n  okay\nit is ok 1 really\n[ 1.0] ok, go on\n") == []


SUITE = """\
static struct kunit_case cases[] = {
	KUNIT_CASE(always),
	KUNIT_CASE_PARAM(many, many_params),
#ifdef CONFIG_MEMCG
	KUNIT_CASE(groups),
#ifdef CONFIG_FAILSLAB
	KUNIT_CASE(faults),
#endif
#else
	KUNIT_CASE_SLOW(alone),
#endif
	{}
};
"""


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({}, ["always", "many", "alone"]),
        ({"CONFIG_MEMCG": "y"}, ["always", "many", "groups"]),
        ({"CONFIG_FAILSLAB": "y"}, ["always", "many", "alone"]),
        (
            {"CONFIG_MEMCG": "y", "CONFIG_FAILSLAB": "y"},
            ["always", "many", "groups", "faults"],
        ),
    ],
)
def test_cases_of_a_suite_are_those_of_the_configuration(
    config: dict[str, str], names: list[str]
) -> None:
    assert ktap.declared(SUITE, config) == names


def test_condition_that_is_not_read_is_an_error() -> None:
    with pytest.raises(LabError, match="#if defined"):
        ktap.declared("#if defined(CONFIG_X)\n", {})


def test_suite_or_case_that_did_not_run_fails() -> None:
    cases = ktap.parse(KUNIT)
    ran = [child.name for case in cases if case.name == "gcma-frames" for child in case.children]
    assert not ktap.lacking(cases, {"gcma-frames": ran})
    lacking = ktap.lacking(cases, {"gcma-frames": [*ran, "another"], "cma_reserve": ["one"]})
    assert [(case.name, case.why) for case in lacking] == [
        ("the suite cma_reserve runs", "it did not"),
        ("the suite gcma-frames runs another", "it did not"),
    ]
    assert ktap.summary(lacking) == ktap.Summary(failed=2)


def test_summary_line() -> None:
    assert str(ktap.Summary(3, 0)) == "3 passed, 0 failed"
    assert str(ktap.Summary(3, 1) + ktap.Summary(1, 0, 2)) == "4 passed, 1 failed, 2 skipped"
