# SPDX-License-Identifier: GPL-2.0-or-later
"""What is exported, `git am` takes, and yields the patched tree."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lab import export, source
from lab.errors import LabError
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


def test_new_files_come_first_unless_a_patch_adds_them(small_lab: Lab, tmp_path: Path) -> None:
    small_lab.write("files/Documentation/gcma.rst", "gcma\n")
    header = "It was too short.\n\nAdds: mm/gcma.c\n"
    small_lab.write(
        "patches-6.12/reserve/0001-b.patch", PATCH.replace("It was too short.\n", header)
    )
    first, second = exported(small_lab, tmp_path / "mails")
    assert "Documentation/gcma.rst" in first.read_text()
    assert "mm/gcma.c" not in first.read_text()
    assert "mm/gcma.c" in second.read_text()
    assert "Adds:" not in second.read_text()
    assert "Signed-off-by: A Maintainer" in first.read_text()


def test_link_to_a_source_elsewhere_is_exported_as_a_file(small_lab: Lab, tmp_path: Path) -> None:
    library = small_lab.kernel.parent / "library.c"
    library.write_text("int library;\n")
    (small_lab.kernel / "files/mm/library.c").symlink_to("../../../library.c")
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
