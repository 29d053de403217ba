# SPDX-License-Identifier: GPL-2.0-or-later
"""The launcher, before there is any Python environment."""

import os
import subprocess
from pathlib import Path

from lab import lock, paths
from tests.conftest import tool


def launch(cache: str, tools: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """`./gcma doctor` with stand-ins for some of the host's programs."""
    return subprocess.run(
        [str(paths.REPO / "gcma"), "doctor"],
        env={**os.environ, "GCMA_CACHE": cache, "PATH": f"{tools}:/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def errors(answer: subprocess.CompletedProcess[str]) -> list[str]:
    """What it said, without the lines of progress."""
    lines = answer.stderr.splitlines()
    return [line for line in lines if not line.startswith("gcma: making")]


def test_cache_that_cannot_be_written(tmp_path: Path) -> None:
    answer = launch("/proc/gcma", tmp_path)
    assert answer.returncode == 1
    assert errors(answer) == ["gcma: cannot write to the cache folder /proc/gcma"]


def test_no_space_says_how_much_is_needed(tmp_path: Path) -> None:
    tool(tmp_path, "df", "echo head; echo /dev/vda 100 90 10 90% /")
    answer = launch(str(tmp_path / "cache"), tmp_path)
    assert answer.returncode == 1
    (line,) = errors(answer)
    assert line.startswith("gcma: no space: the Python environment needs")
    assert line.endswith("10 MB are free")
    assert not (tmp_path / "cache/venv").exists()


def test_no_network_leaves_an_environment_that_is_made_anew(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    answer = launch(str(cache), tmp_path, PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert answer.returncode == 1
    (line,) = errors(answer)
    assert line.startswith("gcma: no network: pip could not install")
    assert not (cache / "venv/requirements.txt").exists()


def test_two_launchers_do_not_make_one_environment(tmp_path: Path) -> None:
    tool(tmp_path, "flock", "exit 1")
    answer = launch(str(tmp_path / "cache"), tmp_path)
    assert answer.returncode == 1
    (line,) = errors(answer)
    assert line.startswith("gcma: another gcma is making the Python environment")


def test_environment_in_which_a_command_runs_is_left_alone(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (cache / "venv").mkdir(parents=True)  # of another list of packages
    with lock.exclusive(cache, "eval photo"):
        answer = launch(str(cache), tmp_path)
    assert answer.returncode == 1
    (line,) = errors(answer)
    assert line.startswith("gcma: another gcma is running in the Python environment")
    assert (cache / "venv").exists()
