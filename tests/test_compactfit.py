# SPDX-License-Identifier: GPL-2.0-or-later
"""How the compact-fit library is built, and its tests are judged."""

import json
import os
import re
from pathlib import Path

import pytest

from lab.compactfit import build, judge, steps
from lab.compactfit.judge import StepResult
from lab.ktap import Case
from lab.process import Finished
from tests.conftest import tool


def test_enough_branches() -> None:
    assert judge.branches(95.0).passed


def test_too_few_branches() -> None:
    case = judge.branches(94.9)
    assert not case.passed
    assert case.why == "they take 94.9 %"


def test_what_cargo_prints() -> None:
    text = """
running 3 tests
test pins ... ok
test src/lib.rs - Heap (line 151) - compile fail ... FAILED
test slow ... ignored, takes hours

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out
"""
    pins, fails, slow = judge.cargo_cases(text)
    assert pins.passed and not pins.skipped
    assert not fails.passed
    assert slow.skipped


def test_replays_are_judged() -> None:
    peak = 100 * 3000 + 600 * 1000
    costs = {"mean": 60.0}
    numbers = {
        "peak": peak,
        "calls": 5500,
        "failed": 0,
        "refused": 0,
        "least_memory": peak * 5 // 4,
        "footprint": {"peak": peak},
        **dict.fromkeys(("malloc", "free", "realloc"), costs),
    }
    assert judge.replay_numbers("replay", numbers).passed
    assert judge.replay_numbers("replay", {**numbers, "least_memory": None}).passed
    for wrong in ({"peak": 1}, {"least_memory": peak - 1}, {"failed": 1}, {"free": {"mean": 0}}):
        assert not judge.replay_numbers("replay", {**numbers, **wrong}).passed


def test_build_of_another_clone_is_not_of_here(tmp_path: Path) -> None:
    cached = tmp_path / "CMakeCache.txt"
    assert not build._is_of_here(tmp_path)
    cached.write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere/compactfit\n")
    assert not build._is_of_here(tmp_path)
    cached.write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={build.SOURCE}\n")
    assert build._is_of_here(tmp_path)


def test_command_that_fails_is_a_failed_case() -> None:
    good, bad = Finished([], 0, "fine", ""), Finished([], 1, "said\n", "why\n")
    result = judge.commands({"a": good, "b": bad})
    assert [(case.name, case.passed) for case in result.cases] == [("a", True), ("b", False)]
    assert result.detail == "said\nwhy\n"


def test_each_marked_line_has_to_be_refused() -> None:
    source = "heap.make<bad>(); /* refused */\nheap.make<good>();\nbad(); /* refused */\n"
    first = "a.cpp:1:3:   required from here\n"
    third = "/x/a.cpp:3:5: note: in instantiation of class 'pin<bad>' requested here\n"
    whole = judge.refusals("it", source, Finished([], 1, "", first + third))
    assert whole.cases[0].passed
    assert not whole.detail
    missed = judge.refusals("it", source, Finished([], 1, "", first))
    assert missed.cases[0].why == "other than marked: [3]"
    more = "a.cpp:2:3:   required from here\n"
    too_many = judge.refusals("it", source, Finished([], 1, "", first + more + third))
    assert not too_many.cases[0].passed
    assert not judge.refusals("it", "none", Finished([], 0, "", "")).cases[0].passed


def test_packages_are_of_the_same_version() -> None:
    versions = {
        "CMakeLists.txt": r"project\(compactfit VERSION (\S+)",
        "bindings/rust/Cargo.toml": r'^version = "(.+)"$',
        "conanfile.py": r'version = "(.+)"',
        "idf_component.yml": r'^version: "(.+)"$',
        "library.json": r'"version": "(.+)"',
        "vcpkg/compactfit/vcpkg.json": r'"version": "(.+)"',
    }
    stated = {
        re.findall(pattern, (build.SOURCE / name).read_text(), flags=re.M)[0]
        for name, pattern in versions.items()
    }
    assert len(stated) == 1


def test_package_manifests_name_files_that_there_are() -> None:
    library = json.loads((build.SOURCE / "library.json").read_text())
    for pattern in library["export"]["include"]:
        assert list(build.SOURCE.glob(pattern))
    for name in library["headers"]:
        assert (build.SOURCE / "include" / name).is_file()
    port = json.loads((build.SOURCE / "vcpkg/compactfit/vcpkg.json").read_text())
    assert port["name"] == library["name"] == "compactfit"
    module = (build.SOURCE / "zephyr/module.yml").read_text()
    [kconfig] = re.findall(r"kconfig: (.+)", module)
    assert (build.SOURCE / kconfig).is_file()


def test_a_departure_from_misra_has_to_be_listed() -> None:
    listed = "| rule | why |\n|---|---|\n| 10.6, 10.8 | sizes |\n| 15.1 | locks |\n"
    departure = "a.c:1:2: style: misra violation [misra-c2012-10.8]\n"
    assert judge.misra(listed, Finished([], 0, "", departure)).passed
    more = departure + "a.c:3:4: style: misra violation [misra-c2012-10.1]\n"
    assert judge.misra(listed, Finished([], 0, "", more)).why == "10.1"
    assert not judge.misra("", Finished([], 0, "", "")).passed


def test_a_checker_of_misra_that_did_not_run_found_nothing() -> None:
    listed = "| rule | why |\n|---|---|\n| 10.6, 10.8 | sizes |\n"
    case = judge.misra(listed, Finished([], 0, "", "Did not find addon misra.py\n"))
    assert (case.passed, case.why) == (False, "Did not find addon misra.py")
    assert not judge.misra(listed, Finished([], 0, "", "")).passed


def test_fuzzer_that_fails_says_why() -> None:
    ended = Finished([], 77, "", "#12 NEW\nfuzz.c:30: the heap lost an object\nbye\n")
    [case] = judge.fuzzing(10, ended).cases
    assert (case.passed, case.why) == (False, "fuzz.c:30: the heap lost an object")


def test_call_that_the_compiler_does_not_bring_fails() -> None:
    symbols = "compactfit.o:\n         U __aeabi_uidiv\n         U memcpy\n00000000 T cf_malloc\n"
    case = judge.needs(build.CORTEX_M0, symbols)
    assert (case.passed, case.why) == (False, "memcpy")
    assert judge.needs(build.CORTEX_M0, symbols.replace("memcpy", "__clzsi2")).passed


def test_chain_of_commands_ends_where_it_fails(tmp_path: Path) -> None:
    chain = [["touch", "begun"], ["false"], ["touch", "never"]]
    assert steps._first_failure(chain, tmp_path, {}).returncode == 1
    assert [path.name for path in tmp_path.iterdir()] == ["begun"]


def test_round_that_passed_is_kept_until_something_is_different(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs = []

    def step(_: bool) -> StepResult:
        runs.append(1)
        skipped = Case("b", passed=True, skipped=True, why="no such thing")
        return StepResult([Case("a", passed=len(runs) != 1), skipped])

    def names(*, again: bool) -> list[tuple[str, bool]]:
        cases, _ = steps.run(debug=False, soak=False, again=again)
        return [(case.name, case.skipped) for case in cases]

    monkeypatch.setenv("GCMA_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    monkeypatch.setattr(steps, "SOURCE", tmp_path / "library")
    (tmp_path / "library").mkdir()
    monkeypatch.setattr(steps, "STEPS", (step,))
    names(again=False)
    assert names(again=False) == names(again=False) == [("a", False), ("b", True)]
    assert len(runs) == 2  # the first had failed
    names(again=True)
    assert len(runs) == 3
    steps.run(debug=False, soak=True, again=False)
    assert len(runs) == 4
    (tmp_path / "library/new.c").write_text("int x;")
    names(again=False)
    assert len(runs) == 5


def test_round_that_other_compilers_passed_is_not_kept_for_these(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GCMA_CACHE", str(tmp_path))
    monkeypatch.setattr(steps, "SOURCE", tmp_path / "library")
    contents = [steps._content(debug=False)]
    assert steps._content(debug=False) == contents[0]
    monkeypatch.setenv("CFLAGS", "-O0")
    contents.append(steps._content(debug=False))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for version in ("1.80", "1.81"):
        tool(tmp_path, "rustc", f"echo rustc {version}")
        contents.append(steps._content(debug=False))
    monkeypatch.setattr(steps, "BESIDE", (tmp_path / "rustc",))
    contents.append(steps._content(debug=False))
    assert len(set(contents)) == 5


def test_round_has_the_cases_of_all_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    def good(_: bool) -> StepResult:
        return StepResult([Case("a", passed=True)])

    def bad(_: bool) -> StepResult:
        return StepResult([Case("b", passed=False)], "why")

    monkeypatch.setattr(steps, "STEPS", (good, bad, good))
    cases, detail = steps.run(debug=False, soak=False)
    assert [case.name for case in cases] == ["a", "b", "a"]
    assert detail == "why"
