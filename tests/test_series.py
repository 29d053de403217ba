# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel part as it is: every patch and new file belongs to a system, all code to a part."""

import re
from functools import cache
from pathlib import Path

import pytest

from lab import export, paths, source, systems
from lab.evals import size

FILES = paths.KERNEL / "files"
MODELS = sorted((paths.KERNEL / "models").glob("*.pml"))
PAGES = sorted((FILES / "Documentation").rglob("*.rst"))
OURS = re.compile(r"\b_{0,2}(?:gcma|cma|rental|camc|cf)_\w+")
CALLED = re.compile(rf"({OURS.pattern})\(\)")
# In parentheses behind the word, or the word is in them
UNIT_TESTS = re.compile(r"KUnit\s*:?[^.;(]*\(([^)]*)\)|\(KUnit:?\s+([^)]*)\)")
QUOTED = re.compile(r"``(\w+)``")
COUNTERS = ("gcma", "rental")  # those with a list of them


def test_every_patch_and_file_belongs_to_a_system() -> None:
    series = source.read_series(paths.KERNEL)
    whole = export.selected(series)
    assert whole.files == series.files
    assert whole.patches == series.patches


def test_each_system_has_patches() -> None:
    series = source.read_series(paths.KERNEL)
    for name in systems.SYSTEMS:
        assert export.selected(series, [name]).patches[-1].system == name


@pytest.mark.parametrize("name", systems.SYSTEMS)
def test_a_system_refers_to_no_page_of_one_that_may_be_absent(name: str) -> None:
    series = source.read_series(paths.KERNEL)
    chosen = export.selected(series, [name])
    pages = {page for page in series.files if page.startswith("Documentation/")}
    texts = [path.read_text() for path in chosen.files.values()]
    texts += [patch.text for patch in chosen.patches]
    assert {page for page in pages if any(page in text for text in texts)} <= set(chosen.files)


def test_all_code_is_counted_in_a_part() -> None:
    parts = size.kernel_lines(export.selected(source.read_series(paths.KERNEL)))
    assert all(parts.values()), {part: sum(files.values()) for part, files in parts.items()}


def test_the_series_defines_what_the_fragments_ask_for() -> None:
    texts = [patch.text for patch in source.read_series(paths.KERNEL).patches]
    for system in systems.SYSTEMS.values():
        name = system.symbol.removeprefix("CONFIG_")
        files = [path.read_text() for path in (paths.KERNEL / "files").rglob("Kconfig")]
        assert any(f"config {name}\n" in text for text in (*texts, *files)), system.name


@cache
def ours() -> set[str]:
    """Whatever has a name as ours in the code and in the patches."""
    places = [path for path in FILES.rglob("*.[ch]") if path.is_file()]
    places += (paths.KERNEL / "patches-6.12").rglob("*.patch")
    return {name for path in places for name in OURS.findall(path.read_text())}


@pytest.mark.parametrize("page", [*MODELS, *PAGES], ids=lambda page: page.name)
def test_functions_of_ours_that_are_written_about_are_there(page: Path) -> None:
    assert set(CALLED.findall(page.read_text())) <= ours()


def test_unit_tests_that_are_written_about_run() -> None:
    sources = [path.read_text() for path in FILES.rglob("*_kunit.c")]
    cases = {
        name for text in sources for name in re.findall(r"KUNIT_CASE\w*\(\w+?_test_(\w+)", text)
    }
    suites = {suite for system in systems.SYSTEMS.values() for suite in system.suites}
    told = {
        name
        for page in PAGES
        for match in UNIT_TESTS.finditer(page.read_text())
        for name in QUOTED.findall(match[1] or match[2])
    }
    assert len(told) > 40  # or they are written in another way
    assert told <= cases | suites


@pytest.mark.parametrize("name", COUNTERS)
def test_each_counter_is_told_to_the_administrator(name: str) -> None:
    text = (FILES / f"include/linux/{name}_counters.h").read_text()
    counters = set(re.findall(r"^[A-Z]+_COUNTER\((\w+)\)", text, flags=re.M))
    patches = "".join(patch.text for patch in source.read_series(paths.KERNEL).patches)
    files = set(re.findall(r"^\+What:\s+/sys/kernel/mm/cma/<[\w-]+>/(\w+)$", patches, flags=re.M))
    guide = set(QUOTED.findall((FILES / f"Documentation/admin-guide/mm/{name}.rst").read_text()))
    assert counters and counters <= files & guide


def test_each_counter_is_asked_for_by_a_program() -> None:
    text = (FILES / "include/linux/gcma_counters.h").read_text()
    counters = re.findall(r"^GCMA_COUNTER\((\w+)\)", text, flags=re.M)
    program = (paths.SELFTESTS / "gcma/gcma_policy.c").read_text()
    (listed,) = re.findall(r"counters\[\] = \{(.*?)\};", program, flags=re.S)
    assert re.findall(r'"(\w+)"', listed) == counters
