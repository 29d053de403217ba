# SPDX-License-Identifier: GPL-2.0-or-later
"""The overlay: right content, nothing written without need, nothing left behind."""

import os
from pathlib import Path

import pytest

from lab import source
from lab.errors import LabError
from lab.targets import Linux
from tests.conftest import CMA, PATCH, Lab

LONG_AGO = 1_000_000_000


def age(tree: source.Tree) -> None:
    """Make every file old, so that a new write shows."""
    for path in tree.path.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))


def written(tree: source.Tree) -> set[str]:
    return {
        str(path.relative_to(tree.path))
        for path in tree.path.rglob("*")
        if path.is_file() and path.stat().st_mtime != LONG_AGO
    }


def test_release_comes_from_the_tarballs_makefile(small_lab: Lab) -> None:
    assert small_lab.pristine().release == "6.12.7"


def test_tarball_is_unpacked_once(small_lab: Lab) -> None:
    marker = small_lab.pristine().path / "marker"
    marker.touch()
    small_lab.pristine()
    assert marker.exists()


def test_new_tarball_is_unpacked_anew(small_lab: Lab) -> None:
    marker = small_lab.pristine().path / "marker"
    marker.touch()
    other = small_lab.tarball.read_bytes() + bytes(4)  # xz allows padding
    small_lab.tarball.write_bytes(other)
    assert small_lab.pristine().path.exists()
    assert not marker.exists()


def test_key_follows_the_content(small_lab: Lab) -> None:
    key = small_lab.patched().key
    assert small_lab.patched().key == key
    small_lab.write("files/mm/gcma.c", "long gcma;\n")
    assert small_lab.patched().key != key
    small_lab.write("files/mm/gcma.c", "int gcma;\n")
    assert small_lab.patched().key == key


def test_no_configuration_depends_on_c(small_lab: Lab) -> None:
    before = small_lab.patched()
    small_lab.write("files/mm/gcma.c", "long gcma;\n")
    assert small_lab.patched().config_key == before.config_key
    small_lab.write("files/mm/Kconfig.gcma", "config GCMA\n")
    assert small_lab.patched().config_key != before.config_key


def test_interrupted_unpacking_leaves_no_tree(small_lab: Lab) -> None:
    small_lab.tarball.write_bytes(small_lab.tarball.read_bytes()[:-60])
    with pytest.raises(LabError, match="could not be unpacked"):
        small_lab.pristine()
    assert not list(small_lab.cache.glob("linux-*"))


def test_leftovers_of_an_interruption_do_no_harm(small_lab: Lab) -> None:
    (small_lab.cache / "source.part/mm").mkdir(parents=True)
    (small_lab.cache / "source.part/mm/stale.c").touch()
    assert not (small_lab.pristine().path / "mm/stale.c").exists()


def test_missing_tarball_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"run `\./gcma setup`"):
        source.pristine(Linux("6.12", "linux", tmp_path / "none.tar.xz", "patches"), tmp_path)


def test_patched_tree_has_files_and_patches(small_lab: Lab) -> None:
    tree = small_lab.patched().path
    assert (tree / "mm/gcma.c").read_text() == "int gcma;\n"
    assert (tree / "mm/cma.c").read_text() == CMA.replace("int b", "long b")


def test_pristine_tree_stays_pristine(small_lab: Lab) -> None:
    small_lab.patched()
    tree = small_lab.pristine().path
    assert (tree / "mm/cma.c").read_text() == CMA
    assert not (tree / "mm/gcma.c").exists()


def test_second_overlay_writes_nothing(small_lab: Lab) -> None:
    age(small_lab.patched())
    assert written(small_lab.patched()) == set()


def test_only_the_changed_file_is_written(small_lab: Lab) -> None:
    age(small_lab.patched())
    small_lab.write("files/mm/gcma.c", "long gcma;\n")
    assert written(small_lab.patched()) == {"mm/gcma.c"}


def test_changed_patch_rewrites_its_file(small_lab: Lab) -> None:
    age(small_lab.patched())
    small_lab.write("patches-6.12/reserve/0001-b.patch", PATCH.replace("+long b", "+short b"))
    tree = small_lab.patched()
    assert written(tree) == {"mm/cma.c"}
    assert "short b" in (tree.path / "mm/cma.c").read_text()


def test_dropped_patch_and_file_go_back(small_lab: Lab) -> None:
    age(small_lab.patched())
    small_lab.write("patches-6.12/series", "")
    (small_lab.kernel / "files/mm/gcma.c").unlink()
    tree = small_lab.patched()
    assert (tree.path / "mm/cma.c").read_text() == CMA
    assert not (tree.path / "mm/gcma.c").exists()
    # newer than the objects made from the patched content: make must see it
    assert "mm/cma.c" in written(tree)


def test_overlay_interrupted_before_a_drop_is_still_cleaned(small_lab: Lab) -> None:
    tree = small_lab.patched()
    (tree.path.with_name("patched.json")).write_text('["mm/cma.c", "mm/gcma.c", "mm/old.c"]')
    (tree.path / "mm/old.c").touch()
    assert not (small_lab.patched().path / "mm/old.c").exists()


def test_link_to_a_source_elsewhere_becomes_a_file(small_lab: Lab) -> None:
    library = small_lab.kernel.parent / "library.c"
    library.write_text("int library;\n")
    (small_lab.kernel / "files/lib").mkdir()
    (small_lab.kernel / "files/lib/library.c").symlink_to("../../../library.c")
    copy = small_lab.patched().path / "lib/library.c"
    assert copy.read_text() == "int library;\n"
    assert not copy.is_symlink()


def test_empty_series_is_fine(small_lab: Lab) -> None:
    small_lab.write("patches-6.12/series", "")
    assert source.read_series(small_lab.kernel).empty
    assert (small_lab.patched().path / "mm/gcma.c").exists()


def test_patches_may_build_on_each_other_and_on_new_files(small_lab: Lab) -> None:
    second = (
        "--- a/mm/cma.c\n+++ b/mm/cma.c\n@@ -1,3 +1,3 @@\n int a;\n-long b;\n+char b;\n int c;\n"
    )
    third = "--- a/mm/gcma.c\n+++ b/mm/gcma.c\n@@ -1 +1 @@\n-int gcma;\n+char gcma;\n"
    small_lab.write("patches-6.12/reserve/0002-c.patch", second)
    small_lab.write("patches-6.12/reserve/0003-g.patch", third)
    small_lab.write(
        "patches-6.12/series", "reserve/0001-b.patch\nreserve/0002-c.patch\nreserve/0003-g.patch\n"
    )
    tree = small_lab.patched().path
    assert (tree / "mm/cma.c").read_text() == CMA.replace("int b", "char b")
    assert (tree / "mm/gcma.c").read_text() == "char gcma;\n"


def test_patch_that_does_not_apply_is_named_with_file_and_release(small_lab: Lab) -> None:
    age(small_lab.patched())
    small_lab.write("patches-6.12/reserve/0001-b.patch", PATCH.replace("-int b", "-int x"))
    with pytest.raises(LabError) as caught:
        small_lab.patched()
    assert caught.value.message == "0001-b.patch does not apply to Linux 6.12.7: mm/cma.c"
    tree = small_lab.pristine().path.with_name("patched")
    assert "long b" in (tree / "mm/cma.c").read_text()  # nothing half-written


def test_fuzz_is_refused(small_lab: Lab) -> None:
    small_lab.write(
        "patches-6.12/reserve/0001-b.patch", PATCH.replace(" int a;\n", " int other;\n")
    )
    with pytest.raises(LabError, match="does not apply"):
        small_lab.patched()


def test_patch_of_a_missing_file_is_named(small_lab: Lab) -> None:
    small_lab.write("patches-6.12/reserve/0001-b.patch", PATCH.replace("mm/cma.c", "mm/gone.c"))
    with pytest.raises(LabError, match=r"0001-b\.patch does not apply.*mm/gone\.c"):
        small_lab.patched()


def test_series_naming_no_patch_is_an_error(small_lab: Lab) -> None:
    small_lab.write("patches-6.12/series", "0009-none.patch\n")
    with pytest.raises(LabError, match="0009-none"):
        source.read_series(small_lab.kernel)


def test_a_patch_belongs_to_the_system_whose_folder_it_lies_in(small_lab: Lab) -> None:
    small_lab.write("patches-6.12/gcma/0002-c.patch", PATCH)
    small_lab.write("patches-6.12/series", "reserve/0001-b.patch\ngcma/0002-c.patch\n")
    patches = source.read_series(small_lab.kernel).patches
    assert [(patch.system, patch.name) for patch in patches] == [
        ("reserve", "0001-b.patch"),
        ("gcma", "0002-c.patch"),
    ]


def test_trees_of_other_versions_stay_and_old_ones_of_this_go(small_lab: Lab) -> None:
    mine, other = small_lab.cache / "linux-6.12.3-abc", small_lab.cache / "linux-6.1.99-def"
    for tree in (mine, other):
        (tree / "pristine").mkdir(parents=True)
    small_lab.pristine()
    assert (mine.exists(), other.exists()) == (False, True)


def test_a_tree_of_the_same_content_is_used_though_nothing_tells_of_it(small_lab: Lab) -> None:
    tree = small_lab.pristine()
    (tree.path / "marker").touch()
    (small_lab.cache / "source-6.12.json").unlink()
    assert small_lab.pristine() == tree
    assert (tree.path / "marker").exists()
