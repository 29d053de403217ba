# SPDX-License-Identifier: GPL-2.0-or-later
"""A series built patch by patch, with a make that only looks at the tree."""

from dataclasses import replace
from pathlib import Path

import pytest

from lab import source, stepwise, targets
from lab.errors import LabError
from tests.conftest import Lab, tool

SECOND = """\
Adds: mm/late.c

---
--- a/mm/slab.c
+++ b/mm/slab.c
@@ -1 +1 @@
-int slab;
+{slab};
"""
# Fails and warns by what slab.c says, and keeps what it saw of the tree
MAKE = """
while [ $# -gt 0 ]; do case $1 in -C) tree=$2; shift ;; O=*) objects=${1#O=} ;; esac; shift; done
touch $objects/.config
grep -q "broken" $tree/mm/slab.c && { echo "mm/slab.c:1:1: error: broken" >&2; exit 2; }
echo "$tree/mm/slab.c:1:5: warning: known" >&2
grep -q "odd" $tree/mm/slab.c && echo "$tree/mm/slab.c:2:5: warning: odd" >&2
echo "$tree/mm/memory.c:9: warning: not ours" >&2
echo $(ls $tree/mm) >>$objects/seen
"""


@pytest.fixture
def lab(small_lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    (tmp_path / "bin").mkdir()
    tool(tmp_path / "bin", "make", MAKE)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setenv("GCMA_CACHE", str(small_lab.cache))
    return small_lab


def check(lab: Lab, slab: str) -> None:
    lab.write("files/mm/late.c", "int late;\n")
    lab.write("patches-6.12/gcma/0002-s.patch", SECOND.format(slab=slab))
    lab.write("patches-6.12/series", "reserve/0001-b.patch\ngcma/0002-s.patch\n")
    target = replace(targets.DEFAULT, linux=lab.linux)
    stepwise.check(source.read_series(lab.kernel), target)


def test_each_patch_is_built_with_the_files_that_it_brings(lab: Lab) -> None:
    check(lab, "long slab")
    (seen,) = lab.cache.glob("linux-*/build/stepwise/seen")
    assert list(dict.fromkeys(seen.read_text().splitlines())) == [
        "cma.c slab.c",
        "cma.c gcma.c slab.c",
        "cma.c gcma.c late.c slab.c",
    ]


def test_the_patch_that_breaks_the_build_is_named(lab: Lab) -> None:
    with pytest.raises(LabError) as caught:
        check(lab, "long broken")
    assert "0002-s.patch" in caught.value.message
    assert "error: broken" in caught.value.detail


def test_a_new_warning_in_a_touched_file_is_one_too_many(lab: Lab) -> None:
    with pytest.raises(LabError, match=r"after 0002-s\.patch the compiler or sparse") as caught:
        check(lab, "long odd")
    assert caught.value.detail == "mm/slab.c:2:5: warning: odd"


def test_folders_are_those_of_code() -> None:
    names = ["mm/gcma.c", "mm/Makefile", "include/linux/gcma.h", "lib/compactfit/main.c"]
    names += ["tools/testing/selftests/gcma/gcma_fsx.c", "Documentation/mm/gcma.rst", "MAINTAINERS"]
    assert stepwise.folders(names) == ["lib/compactfit/", "mm/"]
