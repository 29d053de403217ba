# SPDX-License-Identifier: GPL-2.0-or-later
"""What is exported, `git am` takes, and yields the patched tree."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lab import build, cli, export, paths, setup, source, systems, targets
from lab import tests as lab_tests
from lab.errors import LabError
from lab.ktap import Case
from tests.conftest import PATCH, Lab


def exported(lab: Lab, target: Path) -> list[Path]:
    return export.export(lab.pristine(), source.read_series(lab.kernel), target)


def git(repo: Path, *args: str) -> str:
    identity = {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", "tester"), ("EMAIL", "tester@kernel.example"))
    }
    answer = subprocess.run(
        ["git", *args],
        cwd=repo,
        env={**os.environ, **identity},
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout


def test_git_am_yields_the_patched_tree(small_lab: Lab, tmp_path: Path) -> None:
    mails = exported(small_lab, tmp_path / "mails")
    repo = tmp_path / "linux-git"
    shutil.copytree(small_lab.pristine().path, repo)
    git(repo, "init", "-q")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "Linux")
    git(repo, "am", *map(str, mails))
    for name in ("mm/cma.c", "mm/gcma.c", "mm/slab.c"):
        assert (repo / name).read_text() == (small_lab.patched().path / name).read_text()
    log = git(repo, "log", "-1", "--format=%an|%s|%b")
    assert log.startswith("A Maintainer|mm: cma: make b long|It was too short.")
    assert "Signed-off-by: A Maintainer" in log


def test_a_patch_brings_its_files_and_does_not_tell_how(small_lab: Lab, tmp_path: Path) -> None:
    (mail,) = exported(small_lab, tmp_path / "mails")
    assert "create mode 100644 mm/gcma.c" in mail.read_text()
    assert "Adds:" not in mail.read_text()


def test_a_file_that_no_patch_brings_is_named(small_lab: Lab, tmp_path: Path) -> None:
    small_lab.write("files/mm/new.c", "int new;\n")
    with pytest.raises(LabError, match=r"no patch brings mm/new\.c: name it in an `Adds:` line"):
        exported(small_lab, tmp_path / "mails")


SECOND = """\
Subject: [PATCH] mm: cma: make c long

Adds: mm/tenants/

---
--- a/mm/cma.c
+++ b/mm/cma.c
@@ -2,4 +2,4 @@
 long b;
-int c;
+long c;
 int d;
 int e;
"""
THIRD = """\
Subject: [PATCH] slab

---
--- a/mm/slab.c
+++ b/mm/slab.c
@@ -1 +1 @@
-int slab;
+long slab;
"""


@pytest.fixture
def three_systems(small_lab: Lab) -> Lab:
    small_lab.write("files/mm/tenants/tenants.c", "int tenants;\n")
    small_lab.write("patches-6.12/gcma/0002-c.patch", SECOND)
    small_lab.write("patches-6.12/compactfit/0003-s.patch", THIRD)
    names = ("reserve/0001-b.patch", "gcma/0002-c.patch", "compactfit/0003-s.patch")
    small_lab.write("patches-6.12/series", "\n".join(names) + "\n")
    return small_lab


@pytest.mark.parametrize(
    ("only", "subjects"),
    [
        ((), ["b-long", "c-long", "slab"]),
        (("reserve",), ["b-long"]),
        (("gcma",), ["b-long", "c-long"]),
        (("compactfit",), ["slab"]),
        (("compactfit", "reserve"), ["b-long", "slab"]),
    ],
)
def test_systems_are_exported_with_what_they_need(
    only: tuple[str, ...], subjects: list[str], three_systems: Lab, tmp_path: Path
) -> None:
    series = source.read_series(three_systems.kernel)
    mails = export.export(three_systems.pristine(), series, tmp_path / "mails", only)
    assert len(mails) == len(subjects)
    assert all(subject in mail.name for subject, mail in zip(subjects, mails, strict=True))
    text = "".join(mail.read_text() for mail in mails)
    assert ("mm/tenants/tenants.c" in text) == ("c-long" in subjects)


@pytest.mark.parametrize("passes", [True, False])
def test_patches_are_tested_alone_and_kept_back_if_that_fails(
    *, passes: bool, three_systems: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series, base = source.read_series(three_systems.kernel), three_systems.pristine()
    built: list[str] = []
    monkeypatch.setenv("GCMA_CACHE", str(three_systems.cache))
    monkeypatch.setattr(setup, "install_packages", lambda: None)
    monkeypatch.setattr(source, "read_series", lambda *_: series)
    monkeypatch.setattr(source, "pristine", lambda *_: base)
    monkeypatch.setattr(build, "alone", lambda of: built.extend(p.name for p in of.patches))
    part = lab_tests.PartResult("kunit", [Case("a test", passed=passes)])
    monkeypatch.setattr(lab_tests, "alone", lambda _: [part])
    target = tmp_path / "mails"
    status = cli.main(["export", "--only", "reserve", "--test", str(target)])
    assert built == ["0001-b.patch"]
    assert status == (0 if passes else 1)
    assert len(list(target.glob("*.patch"))) == (1 if passes else 0)


def test_systems_without_patches_are_nothing_to_export(three_systems: Lab, tmp_path: Path) -> None:
    series = source.read_series(three_systems.kernel)
    with pytest.raises(LabError, match="no patches of these systems"):
        export.export(three_systems.pristine(), series, tmp_path / "mails", ["bench"])


def test_a_file_comes_by_one_patch(three_systems: Lab) -> None:
    twice = THIRD.replace("---\n", "Adds: mm/gcma.c\n---\n", 1)
    three_systems.write("patches-6.12/compactfit/0003-s.patch", twice)
    with pytest.raises(LabError, match=r"0001-b\.patch and 0003-s\.patch both add mm/gcma\.c"):
        export.selected(source.read_series(three_systems.kernel))


def test_a_patch_outside_of_the_systems_folders_is_named(small_lab: Lab) -> None:
    small_lab.write("patches-6.12/0001-b.patch", PATCH)
    small_lab.write("patches-6.12/series", "0001-b.patch\n")
    with pytest.raises(LabError, match=r"0001-b\.patch does not lie in a system's folder"):
        export.selected(source.read_series(small_lab.kernel))


def test_link_to_a_source_elsewhere_is_exported_as_a_file(small_lab: Lab, tmp_path: Path) -> None:
    library = small_lab.kernel.parent / "library.c"
    library.write_text("int library;\n")
    (small_lab.kernel / "files/mm/library.c").symlink_to("../../../library.c")
    both = PATCH.replace("Adds: mm/gcma.c\n", "Adds: mm/gcma.c\nAdds: mm/library.c\n")
    small_lab.write("patches-6.12/reserve/0001-b.patch", both)
    mail = exported(small_lab, tmp_path / "mails")[0].read_text()
    assert "create mode 100644 mm/library.c" in mail
    assert "+int library;\n" in mail


def test_the_same_series_gives_the_same_mails(small_lab: Lab, tmp_path: Path) -> None:
    once = exported(small_lab, tmp_path / "once")
    twice = exported(small_lab, tmp_path / "twice")
    assert [mail.read_bytes() for mail in once] == [mail.read_bytes() for mail in twice]


def test_a_patch_cannot_add_what_is_not_there(small_lab: Lab, tmp_path: Path) -> None:
    small_lab.write(
        "patches-6.12/reserve/0001-b.patch", PATCH.replace("---\n", "Adds: mm/x.c\n---\n", 1)
    )
    with pytest.raises(LabError, match=r"Adds: mm/x\.c"):
        exported(small_lab, tmp_path / "mails")


def test_old_mails_are_not_mixed_with_new_ones(small_lab: Lab, tmp_path: Path) -> None:
    exported(small_lab, tmp_path / "mails")
    with pytest.raises(LabError, match="already holds patches"):
        exported(small_lab, tmp_path / "mails")


def test_nothing_to_export_is_said(tmp_path: Path, small_lab: Lab) -> None:
    with pytest.raises(LabError, match="nothing to export"):
        export.export(small_lab.pristine(), source.EMPTY, tmp_path / "mails")


@pytest.mark.guest
@pytest.mark.parametrize("name", systems.SYSTEMS)
def test_each_system_of_ours_applies_alone(name: str, tmp_path: Path) -> None:
    """On what it needs: no context of its patches is another system's."""
    linux = targets.DEFAULT.linux
    series = source.read_series(paths.KERNEL, linux)
    assert export.export(source.pristine(linux, paths.cache()), series, tmp_path / "mails", [name])
