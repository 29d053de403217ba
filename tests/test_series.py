# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel part as it is: every patch and new file belongs to a system, all code to a part."""

import pytest

from lab import export, paths, source, systems
from lab.evals import size


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
