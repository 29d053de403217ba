# SPDX-License-Identifier: GPL-2.0-or-later
"""Two commands at once."""

import subprocess
import sys
from pathlib import Path

import pytest

from lab import cli, evals, lock, paths, setup
from lab.errors import LabError

HOLDER = """
import sys
from pathlib import Path
from lab import lock
with lock.exclusive(Path(sys.argv[1]), "build prod"):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(cache: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(cache)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    assert process.stdout and process.stdout.readline() == "held\n"
    return process


def test_second_command_is_told_what_runs(tmp_path: Path) -> None:
    process = holder(tmp_path)
    with (
        pytest.raises(LabError, match="`gcma build prod` is running"),
        lock.exclusive(tmp_path, "test"),
    ):
        pass
    process.communicate()


def test_a_killed_command_holds_nothing(tmp_path: Path) -> None:
    process = holder(tmp_path)
    process.kill()
    process.communicate()
    with lock.exclusive(tmp_path, "test"):
        assert (tmp_path / "lock").read_text() == "gcma test\n"


def test_figures_are_read_while_another_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "cache", lambda: tmp_path)
    monkeypatch.setattr(evals, "latest", dict)
    monkeypatch.setattr(setup, "install_packages", pytest.fail)
    process = holder(tmp_path)
    assert cli.main(["figures"]) == 0
    assert "gcma" in capsys.readouterr().out
    assert cli.main(["figures", "--run"]) == 1
    assert "`gcma build prod` is running" in capsys.readouterr().err
    process.communicate()
