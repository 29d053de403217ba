# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: each mistake is one line and a status of 1."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab import build, cli, paths, setup
from lab.errors import LabError


@pytest.fixture(autouse=True)
def no_side_effects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own, and no way to build or install."""

    def forbidden(*_: object) -> None:
        raise AssertionError("must be refused before this")

    monkeypatch.setenv("GCMA_CACHE", str(tmp_path))
    monkeypatch.setattr(build, "build", forbidden)
    monkeypatch.setattr(setup, "install_packages", forbidden)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("run --policy lodger -- true", "unknown policy lodger"),
        ("run --cma 1G --mem 512M -- true", "an area of 1024 MiB does not fit"),
        ("run --cma lots -- true", "'lots' is not a size"),
        ("run --cpus 99 -- true", "99 CPUs"),
        ("run --disk lots -- true", "lots is no disk: give a size (256M, 1G:xfs) or the name"),
        ("run --disk 64M:zfs -- true", "unknown filesystem zfs: choose one of ext4, xfs, f2fs"),
        ("run --disk 64M:xfs -- true", "a disk of 64 MiB: xfs needs 300 MiB"),
        ("run --disk 0M -- true", "0M is no disk"),
        ("run --disk 1X -- true", "'1X' is not a size"),
        ("run --disk / -- true", "/ is no disk"),
        ("run --swap none -- true", "'none' is not a size"),
        ("run --swap 0M -- true", "0M of swap is none"),
        ("run --share /nonexistent -- true", "/nonexistent is no folder"),
        ("run --numa 0 -- true", "0 nodes of memory"),
        ("run --numa 4 -- true", "does not fit into one of 4 nodes of 128 MiB"),
        ("run --exact --disk 64M -- true", "an exact guest has no disks"),
        ("run --exact --swap 64M -- true", "an exact guest has no disks"),
        ("run --exact --share /tmp -- true", "an exact guest has no disks and shares nothing"),
        ("run --timeout 0 -- true", "a time limit of 0 s"),
        ("run --timeout nan -- true", "a time limit of nan s"),
        ("run", "nothing to run"),
        ("run --disk 9999999G -- true", "the guest's storage needs"),
        ("run --flavour fast -- true", "unknown flavour fast"),
        ("run --flavour nogcma -- true", "does not know the policy gcma: write --policy movable"),
        ("build fast", "unknown flavour fast"),
        ("test --only everything", "unknown part everything"),
        ("export --only gcma,nothing /tmp/x", "unknown system nothing: choose of reserve, gcma"),
        ("export --only , /tmp/x", "unknown system : choose of reserve, gcma"),
        ("export /dev/null", "/dev/null is no folder"),
        ("eval size --json /nonexistent/size.json", "is there a folder /nonexistent"),
        ("eval size --json /tmp", "cannot write /tmp: it is a folder"),
        ("demo --output /dev/null", "/dev/null: File exists"),
        ("compactfit record", "nothing to record"),
        ("compactfit bench --json /nonexistent/b.json", "is there a folder /nonexistent"),
        ("compactfit tune a.cftrace --memory lots", "'lots' is not a size in bytes"),
        ("compactfit tune a.cftrace --memory 0", "'0' is not a size in bytes"),
        ("status --sysfs /nonexistent", "/nonexistent does not exist"),
        ("top --interval -1", "an interval of -1 s"),
        ("top --interval nan", "an interval of nan s"),
    ],
)
def test_mistakes_are_one_line(
    command: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(command.split()) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("gcma: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_demo_is_refused_before_its_work_if_its_report_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    page.write_text("my notes\n")
    assert cli.main(["demo", "--output", str(tmp_path)]) == 1
    assert "report.html is no page and would be lost" in capsys.readouterr().err
    page.unlink()
    page.mkdir()
    assert cli.main(["demo", "--output", str(tmp_path)]) == 1
    assert "it is a folder" in capsys.readouterr().err


def test_cache_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GCMA_CACHE", "/proc/gcma")
    assert cli.main(["build"]) == 1
    assert "cannot write to the cache folder /proc/gcma" in capsys.readouterr().err


def test_cache_that_make_cannot_use(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("GCMA_CACHE", str(tmp_path / "my cache"))
    assert cli.main(["build"]) == 1
    assert "takes no blanks" in capsys.readouterr().err


def test_full_disk_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/cache/file")

    monkeypatch.setattr(setup, "install_packages", full)
    assert cli.main(["build"]) == 1
    assert capsys.readouterr().err == "gcma: /cache/file: No space left on device\n"


def test_doctor_as_json_tells_the_mending_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup, "missing_packages", lambda: ["fio"])
    assert cli.main(["doctor", "--json"]) == 1
    check = json.loads(capsys.readouterr().out)[0]
    assert not check["ok"]
    assert check["mend"] == "sudo apt-get install fio"


def test_no_space_says_how_much_is_needed(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"no space: the tree needs 999999999 MB in .*MB are free"):
        paths.require_space(tmp_path, 999_999_999, "the tree")


def test_no_root_and_no_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(setup.shutil, "which", lambda _: None)
    with pytest.raises(LabError, match="no root and no sudo: as root, run: apt-get install fio"):
        setup.root_prefix("apt-get install fio")


def test_options_of_a_command_come_after_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["run", "ls", "-l"])
    error = capsys.readouterr().err
    assert "unrecognized arguments: -l: options of the COMMAND's own come after --" in error
    with pytest.raises(SystemExit):
        cli.main(["build", "-l"])
    assert "after --" not in capsys.readouterr().err


def test_mails_are_refused_before_the_work_where_there_are_some(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "0001-a.patch").touch()
    assert cli.main(["export", str(tmp_path)]) == 1
    assert "already holds patches" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "reserved").mkdir()
    command = [sys.executable, "-u", "-m", "lab", "status", "--sysfs", str(tmp_path)]
    there, gone = os.pipe()
    os.close(there)
    with os.fdopen(gone, "wb") as stdout:
        answer = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, check=False)
    assert (answer.returncode, answer.stderr) == (1, b"")


def test_cache_is_the_same_from_any_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GCMA_CACHE", "there")
    assert paths.cache() == tmp_path / "there"
    monkeypatch.delenv("GCMA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert paths.cache() == tmp_path / "caches/gcma"


def test_recorded_command_keeps_its_options() -> None:
    args = cli.parser().parse_args(["compactfit", "record", "-o", "there", "ls", "-la"])
    assert (args.output, args.command) == ("there", ["ls", "-la"])


SLEEPER = """
import time
from lab import cli
from lab.verbs import doctor
def sleep(_):
    print("asleep", flush=True)
    time.sleep(60)
doctor.run = sleep
sys.exit(cli.main(["doctor"]))
"""


def test_termination_is_an_interruption_in_the_background_of_a_script_too() -> None:
    ignore = "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN)"
    command = [sys.executable, "-c", ignore + SLEEPER]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "asleep\n"
        child.send_signal(signal.SIGTERM)
        _, errors = child.communicate(timeout=20)
    assert child.returncode == 1
    assert errors == "gcma: interrupted\n"
