# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands run to their end."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from lab import process
from lab.errors import LabError


def test_returns_what_the_command_printed(tmp_path: Path) -> None:
    finished = process.run(
        ["sh", "-c", "cat; pwd; echo $WORD; echo words >&2"],
        cwd=tmp_path,
        env={**os.environ, "WORD": "hello"},
        input="fed\n",
    )
    assert finished.stdout == f"fed\n{tmp_path}\nhello\n"
    assert finished.stderr == "words\n"
    assert finished.returncode == 0


def test_a_failure_is_an_error_with_the_commands_words() -> None:
    with pytest.raises(LabError) as caught:
        process.run(["sh", "-c", "echo too bad >&2; exit 3"], failure="mending failed")
    assert (caught.value.message, caught.value.detail) == ("mending failed", "too bad")
    with pytest.raises(LabError, match=r"^sh failed$"):
        process.run(["/bin/sh", "-c", "exit 3"])
    assert process.run(["sh", "-c", "exit 3"], check=False).returncode == 3


def test_a_missing_program_is_named() -> None:
    with pytest.raises(LabError, match="no-such-program is missing"):
        process.run(["no-such-program"])


def test_a_command_that_takes_too_long_is_killed_with_its_children() -> None:
    command = ["sh", "-c", "echo begun; sleep 60; echo never"]
    start = time.monotonic()
    late = process.run(command, check=False, timeout=0.3)
    assert time.monotonic() - start < 30
    assert (late.returncode, late.stdout) == (process.TIMED_OUT, "begun\n")
    assert late.stderr == "sh did not end within 0.3 s\n"
    with pytest.raises(LabError, match="sh failed") as caught:
        process.run(command, timeout=0.3)
    assert caught.value.detail == "sh did not end within 0.3 s"


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_what_a_command_leaves_behind_does_not_outlive_us() -> None:
    command = ["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"]
    with process.started(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        left = int(child.stdout.readline())
        child.wait()
        assert _runs(left)
    end = time.monotonic() + 10
    while _runs(left):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_who_got_the_number_of_a_command_that_ended_is_left_alone() -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
        with process.started(["true"]) as child:
            child.wait()
            child.pid = other.pid
        assert _runs(other.pid)
        other.kill()


def test_words_that_are_no_text_do_not_hide_the_error() -> None:
    with pytest.raises(LabError) as caught:
        process.run(["sh", "-c", r"printf '\377 bad' >&2; exit 1"])
    assert "bad" in caught.value.detail


MAKEFILE = """\
target:
	@echo half >target; echo begun; sleep 60; echo whole >target
"""


@pytest.mark.parametrize(("grace", "left"), [(0, True), (20, False)])
def test_make_removes_what_is_half_written_if_it_has_the_time(
    grace: float, left: bool, tmp_path: Path
) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    start = time.monotonic()
    with (
        pytest.raises(KeyboardInterrupt),
        process.started(["make"], cwd=tmp_path, stdout=subprocess.PIPE, grace=grace) as child,
    ):
        assert child.stdout is not None
        assert child.stdout.readline() == b"begun\n"
        raise KeyboardInterrupt
    assert time.monotonic() - start < 30
    assert (tmp_path / "target").exists() == left
