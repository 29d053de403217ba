# SPDX-License-Identifier: GPL-2.0-or-later
"""How `gcma test` counts."""

import fnmatch
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lab import (
    build,
    cli,
    flavours,
    ktap,
    mutants,
    paths,
    process,
    selftests,
    setup,
    skips,
    systems,
    targets,
    tests,
)
from lab.build import Kernel
from lab.errors import LabError
from lab.flavours import Flavour
from lab.ktap import Case, Summary
from lab.machine import Machine
from lab.selftests import Form

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


FAILING = """
import pytest
from lab.errors import LabError

def test_guest() -> None:
    raise LabError("the kernel reported: a stall", "last words of the guest")

def test_refusal() -> None:
    with pytest.raises(LabError):
        raise LabError("no such size", "nobody asks")
"""


def test_failure_of_a_guest_shows_what_the_guest_said(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FAILING)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.conftest"]
    answer = process.run([*command, str(tmp_path / "test_it.py")], check=False, cwd=paths.REPO)
    assert "1 failed, 1 passed" in answer.stdout
    assert "\nlast words of the guest\n" in answer.stdout
    assert answer.stdout.count("nobody asks") == 0


@pytest.mark.parametrize(
    ("report", "status", "expected"),
    [
        ('<testcase classname="tests.test_a" name="good"/>', 0, Summary(passed=1)),
        ('<testcase classname="tests.test_a" name="good"/>', 2, Summary(1, 1)),
        ("", 5, Summary(failed=1)),
    ],
)
def test_pytest_that_was_ended_or_collects_nothing_has_failed(
    report: str,
    status: int,
    expected: Summary,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def pytest_of(command: list[str], _: object = None) -> process.Finished:
        (name,) = (word for word in command if word.startswith("--junit-xml="))
        suites = f"<testsuites><testsuite>{report}</testsuite></testsuites>"
        Path(name.partition("=")[2]).write_text(suites)
        return process.Finished(command, status, "", "")

    monkeypatch.setenv("GCMA_CACHE", str(tmp_path))
    monkeypatch.setattr(tests, "_python", pytest_of)
    assert tests.models(tests.Context(tests.Options())).summary == expected


def test_each_test_of_the_lab_is_in_one_of_its_halves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    halves: list[list[str]] = []

    def pytest_of(command: list[str], _: object = None) -> process.Finished:
        halves.append(command)
        (name,) = (word for word in command if word.startswith("--junit-xml="))
        case = f'<testcase classname="tests.test_a" name="{len(halves)}"/>'
        Path(name.partition("=")[2]).write_text(f"<testsuite>{case}</testsuite>")
        return process.Finished(command, 0, "", "")

    monkeypatch.setenv("GCMA_CACHE", str(tmp_path))
    monkeypatch.setattr(tests, "_python", pytest_of)
    assert tests.lab(tests.Context(tests.Options())).summary == Summary(passed=2)
    named = [{word for word in half if word.startswith("tests/")} for half in halves]
    left_out = [{word[9:] for word in half if word.startswith("--ignore=")} for half in halves]
    assert sorted(map(len, named)) == sorted(map(len, left_out)) == [0, len(tests.SIMULATED)]
    assert set.union(*named) == set.union(*left_out) == set(tests.SIMULATED)
    assert all((paths.REPO / name).exists() for name in tests.SIMULATED)
    assert tests.lab(tests.Context(tests.Options(quick=True))).summary == Summary(passed=1)


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


def test_program_whose_guest_died_while_it_wrote_the_status_fails(tmp_path: Path) -> None:
    assert program(tmp_path, "a", "", "1..1\nok 1 x\n") == Summary(failed=1)


def test_failures_of_a_program_that_never_ended_are_told(tmp_path: Path) -> None:
    assert program(tmp_path, "a", None, "1..3\nok 1 x\nnot ok 2 y\n") == Summary(failed=1)
    case = selftests.program_case(tmp_path, "a")
    assert [leaf.name for leaf in case.leaves()] == ["a: y"]


def test_program_without_ktap_fails(tmp_path: Path) -> None:
    assert program(tmp_path, "a", "0\n", "hello\n") == Summary(failed=1)


def test_program_that_skips_itself(tmp_path: Path) -> None:
    assert program(tmp_path, "a", "4\n", "1..0 # SKIP no area\n") == Summary(skipped=1)


@pytest.mark.parametrize(("within", "summary"), [(10**9, Summary(1)), (0, Summary(skipped=1))])
def test_a_program_without_time_is_skipped(tmp_path: Path, within: int, summary: Summary) -> None:
    program = tmp_path / "a"
    program.write_text("#!/bin/sh\necho 1..1\necho ok 1 test\n")
    program.chmod(0o755)
    script = selftests.script(["a"], str(tmp_path), "", within=within)
    script = script.replace(f"cd {selftests.SHARED}\n", "")
    process.run(["sh", "-c", script], cwd=tmp_path, failure="no")
    assert ktap.summary([selftests.program_case(tmp_path, "a")]) == summary


def test_time_is_short_for_kernels_that_check_each_access_only() -> None:
    tests.Options(debug=True, minutes=0).check()
    with pytest.raises(LabError, match="--minutes is for"):
        tests.Options(minutes=60).check()
    with pytest.raises(LabError, match="0 or more"):
        tests.Options(debug=True, minutes=-1).check()


def test_the_form_is_told_to_the_programs() -> None:
    told = {
        form: [w for w in selftests.script(["a"], "results", "", form=form).split() if "=1" in w]
        for form in Form
    }
    assert told == {Form.SHORT: ["GCMA_SHORT=1"], Form.LONG: [], Form.SOAK: ["GCMA_SOAK=1"]}


def test_rounds_are_longer_in_a_soak_and_shorter_on_kernels_that_check_each_access() -> None:
    each = selftests.Round("a", Machine(), "", ("a_*", "b"), on_slow=("b",), in_soak=("c",))
    kernels = {
        kind: build.Kernel(flavours.find("prod"), "6.12", Path(), config, targets.DEFAULT)
        for kind, config in {"fast": {}, "slow": {"CONFIG_KASAN": "y"}}.items()
    }
    ran = {
        (kind, form): [name for name in ("a_x", "b", "c") if each.on(kernel, form).runs(name)]
        for kind, kernel in kernels.items()
        for form in (Form.LONG, Form.SOAK)
    }
    assert ran == {
        ("fast", Form.LONG): ["a_x", "b"],
        ("fast", Form.SOAK): ["a_x", "b", "c"],
        ("slow", Form.LONG): ["b"],
        ("slow", Form.SOAK): ["b", "c"],
    }


def test_programs_are_told_what_the_machine_must_have() -> None:
    script = selftests.script(["a"], "results", "gcma xfs")
    assert "export GCMA_MUST='gcma xfs' GCMA_SLOW=0\n" in script
    script = selftests.script(["a"], "results", "gcma", slow=True)
    assert "export GCMA_MUST=gcma GCMA_SLOW=1\n" in script


def test_words_of_the_rounds_are_known_to_the_programs() -> None:
    text = (paths.SELFTESTS / "cma/cma_util.c").read_text()
    table = text.partition("resources[] = {")[2].partition("}")[0]
    known = set(re.findall(r'"(\w+)"', table))
    wanted = [*selftests.ROUNDS, selftests.PLAIN]
    words = {word for each in wanted for word in each.must.split()}
    assert words | {"faults", "gup_test", "hibernation"} == known


def test_every_program_is_run() -> None:
    texts = {path.stem: path.read_text() for path in paths.SELFTESTS.glob("*/*.c")}
    sources = {name for name, text in texts.items() if "int main(" in text}
    folders = [system.selftests for system in systems.SYSTEMS.values() if system.selftests]
    built = [name for each in folders for name in selftests.program_names(paths.SELFTESTS / each)]
    assert sources == {*built, "gcma_groups"}  # of tests/test_guests.py
    for name in built:
        assert any(each.runs(name) for each in selftests.ROUNDS), name


def test_a_round_names_programs_that_there_are() -> None:
    names = {path.stem for path in paths.SELFTESTS.glob("*/*.c")}
    for each in selftests.ROUNDS:
        for pattern in (*each.programs, *(each.on_slow or ()), *each.in_soak):
            assert fnmatch.filter(names, pattern), pattern


def test_programs_for_data_races_are_there_and_run_on_that_kernel() -> None:
    names = {path.stem for path in paths.SELFTESTS.glob("*/*.c")}
    slow = build.Kernel(flavours.find("kcsan"), "6.12", Path(), {"CONFIG_KCSAN": "y"})
    rounds = [each.on(slow, Form.LONG) for each in selftests.ROUNDS]
    assert set(tests.RACY) < set(tests.FOR_KCSAN)
    for name in tests.FOR_KCSAN:
        assert name in names and any(each.runs(name) for each in rounds), name
    assert selftests.LONGEST in names


def test_programs_of_all_systems_are_built_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, share = tmp_path / "source", tmp_path / "share"
    for folder in ("gcma", "rental", "camc"):
        (source / folder).mkdir(parents=True)
        name = f"{folder}_test"
        makefile = f"TEST_GEN_PROGS := {name}\nall: ; echo >$(OUTPUT)/{name}\n"
        (source / folder / "Makefile").write_text(makefile)
    monkeypatch.setattr(paths, "SELFTESTS", source)
    monkeypatch.setattr(selftests, "shared_folder", lambda: share)
    assert selftests.build() == ["gcma_test", "rental_test", "camc_test"]
    assert (share / "gcma_test").exists()
    assert (share / "rental_test").exists()


def test_a_round_prepares_its_machine() -> None:
    script = selftests.script(["a"], "results", "", "echo y >switch")
    assert "\necho y >switch\n./a " in script


def test_the_longest_program_has_a_guest_of_its_own() -> None:
    usual, words = selftests.ROUNDS[:2]
    parts = selftests._parts(usual, ["gcma_fsx", selftests.LONGEST, "gcma_race"])
    assert [part.programs for part in parts] == [(selftests.LONGEST,), ("gcma_fsx", "gcma_race")]
    assert len({part.name for part in parts}) == 2  # for their results
    assert [part.programs for part in selftests._parts(usual, ["gcma_fsx"])] == [("gcma_fsx",)]
    assert selftests._parts(words, ["gcma_fsx", selftests.LONGEST]) == []


def test_unknown_part_lists_the_known_ones() -> None:
    with pytest.raises(LabError, match="unknown part all: choose one of guests, selftests"):
        tests.run(tests.Options(), "all")


def test_quick_has_no_guest_but_one() -> None:
    quick = tests.selected(tests.Options(quick=True), None)
    assert sorted(quick) == ["kunit", "lab", "lint"]


def test_kcsan_runs_what_races() -> None:
    assert sorted(tests.selected(tests.Options(kcsan=True), None)) == ["kunit", "selftests"]


def test_coloring_has_a_kernel_of_its_own_and_what_tests_it_runs_there() -> None:
    options = tests.Options(camc=True)
    assert options.flavour == "camc"
    assert tests.Options(camc=True, debug=True).flavour == "camc-debug"
    assert options.form is Form.LONG
    assert sorted(tests.selected(options, None)) == ["guests", "kunit", "selftests"]
    with_it, without = (
        build.Kernel(flavours.find(name), "6.12", Path(), config, targets.DEFAULT)
        for name, config in (
            ("camc", {"CONFIG_CMA_RESERVE": "y", "CONFIG_CAMC": "y"}),
            ("prod", {"CONFIG_CMA_RESERVE": "y"}),
        )
    )
    rounds = [each for each in selftests.ROUNDS if each.runs("camc_colors")]
    assert rounds
    assert all(each.boots(with_it) and not each.boots(without) for each in rounds)
    assert with_it.flavour.should_have(systems.CAMC)
    assert not without.flavour.should_have(systems.CAMC)


def test_skips_of_a_system_alone_are_listed_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    skip = next(skip for skip in skips.read() if skip.part == "selftests" and skip.flavours)
    cases = [Case(name, passed=True, skipped=True) for name in (skip.case, "another")]
    for part in ("kunit", "kernel_selftests"):
        result = tests.PartResult("selftests", cases)
        monkeypatch.setattr(tests, part, lambda _, result=result: replace(result))
    kernel = Kernel(Flavour("alone", "gcma alone", ()), "6.12", tmp_path, {})
    for result in tests.alone(kernel):
        assert [case.passed for case in result.cases] == [True, False]


def test_forms_are_chosen() -> None:
    assert tests.Options().form is Form.SHORT
    assert tests.Options(long=True).form is Form.LONG
    assert tests.Options(debug=True).form is Form.LONG  # short by itself: the kernel is slow
    assert tests.Options(soak=True).form is Form.SOAK
    assert [tests.Options(long=form).complete for form in (False, True)] == [False, True]


def test_guests_that_take_long_are_in_the_long_form_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(options: tests.Options) -> tuple[str, str | None]:
        ran: list[tuple[str, str | None]] = []

        def pytest_of(part: str, marker: str, environment: dict[str, str], *_: str) -> None:
            assert part == "guests"
            ran.append((marker, environment.get("GCMA_SOAK")))

        monkeypatch.setattr(tests, "_pytest", pytest_of)
        config = {"CONFIG_CMA_RESERVE": "y"}
        flavour = flavours.find(options.flavour)
        kernel = build.Kernel(flavour, "6.12", tmp_path, config, targets.DEFAULT)
        tests.guests(tests.Context(options, kernel))
        return ran[0]

    assert told(tests.Options()) == ("guest and not long", None)
    assert told(tests.Options(long=True)) == told(tests.Options(debug=True)) == ("guest", None)
    assert told(tests.Options(soak=True)) == ("guest", "1")


def test_mutants_meet_the_form_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forms = []

    def met(options: tests.Options, _: str) -> list[Case]:
        forms.append(options.form)
        return [Case("x", passed=True)]

    monkeypatch.setenv("GCMA_CACHE", str(tmp_path))
    monkeypatch.setattr(setup, "install_packages", lambda: None)
    monkeypatch.setattr(mutants, "run", met)
    for more in ([], ["--long"], ["--soak"]):
        assert cli.main(["test", "--mutants", "--only", "gcma", *more]) == 0
    assert forms == [Form.SHORT, Form.LONG, Form.SOAK]


def test_who_waits_is_told_for_how_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def good(name: str) -> Callable[[tests.Context], tests.PartResult]:
        return lambda _: tests.PartResult(name, [Case("x", passed=True)])

    def told(only: str | None = None, **options: bool) -> str:
        tests.run(tests.Options(**options), only)
        return capsys.readouterr().err.splitlines()[0]

    monkeypatch.setattr(build, "build", lambda _: LabError("none is needed"))
    parts = {
        "selftests": tests.Part(good("selftests"), 20, 50, special=True),
        "quick": tests.Part(good("quick"), 10, quick=True, special=True),
        "known": tests.Part(good("known"), 40, known=lambda options: not options.debug),
    }
    monkeypatch.setattr(tests, "PARTS", parts)
    monkeypatch.setattr(tests, "ELSEWHERE", {"kcsan": {"selftests": 90}})
    assert told() == "testing: about 20 s"  # the longest: half of all is less
    assert told(long=True) == "testing: about 50 s"
    assert told(debug=True) == "testing: about 50 s"  # half of 100
    assert told(quick=True) == told("quick") == "testing: about 10 s"
    assert told("known") == "testing: about 40 s"
    assert told(kcsan=True) == "testing: about 90 s"
    assert told(soak=True) == "testing: about 60 min 00 s"


def test_times_are_of_parts_and_kernels_that_there_are() -> None:
    assert set(tests.ELSEWHERE) <= set(flavours.FLAVOURS)
    assert set().union(tests.SOAK, *tests.ELSEWHERE.values()) <= set(tests.PARTS)


@pytest.mark.parametrize(
    "options",
    [
        tests.Options(camc=True, kcsan=True),
        tests.Options(soak=True, quick=True),
        tests.Options(long=True, quick=True),
    ],
)
def test_options_that_contradict(options: tests.Options) -> None:
    with pytest.raises(LabError, match=r"choose one|of its own"):
        options.check()


def test_part_that_cannot_run_has_failed_and_the_others_still_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_: tests.Context) -> tests.PartResult:
        raise LabError("the build failed")

    def good(_: tests.Context) -> tests.PartResult:
        return tests.PartResult("good", [Case("x", passed=True)])

    parts = {"broken": tests.Part(broken, 1), "good": tests.Part(good, 1)}
    monkeypatch.setattr(tests, "PARTS", parts)
    assert tests.total(tests.run(tests.Options())) == Summary(passed=1, failed=1)


def test_part_with_a_mistake_or_without_tests_has_failed_and_the_others_still_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def mistaken(_: tests.Context) -> tests.PartResult:
        return tests.PartResult("mistaken", [Case(str(int("")), passed=True)])

    def empty(_: tests.Context) -> tests.PartResult:
        return tests.PartResult("empty", [])

    def good(_: tests.Context) -> tests.PartResult:
        return tests.PartResult("good", [Case("x", passed=True)])

    parts = {test.__name__: tests.Part(test, 1) for test in (mistaken, empty, good)}
    monkeypatch.setattr(tests, "PARTS", parts)
    assert tests.total(tests.run(tests.Options())) == Summary(passed=1, failed=2)


def test_kernel_that_cannot_be_built_fails_what_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: str) -> build.Kernel:
        raise LabError("no compiler")

    def boots(context: tests.Context) -> tests.PartResult:
        raise AssertionError(context.kernel)

    def good(_: tests.Context) -> tests.PartResult:
        return tests.PartResult("good", [Case("x", passed=True)])

    parts = {"boots": tests.Part(boots, 1, kernel=True), "good": tests.Part(good, 1)}
    monkeypatch.setattr(tests, "PARTS", parts)
    monkeypatch.setattr(build, "build", broken)
    results = tests.run(tests.Options())
    assert tests.total(results) == Summary(passed=1, failed=1)
    assert "no compiler" in [case.why for result in results for case in result.cases]


def test_skip_that_is_not_listed_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def skips(_: tests.Context) -> tests.PartResult:
        return tests.PartResult("a", [Case("x", passed=True, skipped=True, why="no QEMU")])

    monkeypatch.setattr(tests, "PARTS", {"a": tests.Part(skips, 1)})
    assert tests.total(tests.run(tests.Options())) == Summary(failed=1)


def test_case_is_skipped_only_if_no_round_ran_it() -> None:
    def skipped(name: str) -> Case:
        return Case(name, passed=True, skipped=True, why="not here")

    by_round = [
        *(("one", Case("a", passed=True)), ("one", skipped("b")), ("one", skipped("c"))),
        *(("two", skipped("a")), ("two", Case("b", passed=False)), ("two", skipped("c"))),
    ]
    cases = selftests.merged(by_round)
    assert [case.name for case in cases] == ["a (one)", "c", "b (two)"]
    assert tests.PartResult("selftests", cases).summary == Summary(1, 1, 1)
