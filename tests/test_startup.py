# SPDX-License-Identifier: GPL-2.0-or-later
"""A verb imports what it needs: who asks for the status does not wait for matplotlib."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("matplotlib", "numpy", "mypy", "rich", "lab.evals", "lab.tests", "lab.results")
MODULES = 120  # half are Python's own: each costs an emulated guest, whose files are far away
LIST = """
import sys
from lab import cli
try:
    cli.main(sys.argv[1:])
except SystemExit:
    pass
print(*sys.modules, file=sys.stderr)
"""


def imported(*arguments: str) -> set[str]:
    command = [sys.executable, "-c", LIST, *arguments]
    return set(subprocess.run(command, capture_output=True, check=True).stderr.decode().split())


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    (tmp_path / "reserved").mkdir()
    (tmp_path / "reserved/stores").write_text("5\n")
    return tmp_path


@pytest.mark.parametrize("verb", ["status", "top"])
def test_status_and_top_import_next_to_nothing(verb: str, sysfs: Path) -> None:
    modules = imported(verb, "--sysfs", str(sysfs))
    assert "lab.areas" in modules
    assert not modules & {*HEAVY, "json", "dataclasses", "subprocess", "tempfile", "random"}
    assert len(modules) < MODULES


@pytest.mark.parametrize("verb", ["run", "shell"])
def test_the_help_to_guests_imports_nothing_that_runs_them(verb: str) -> None:
    modules = imported(verb, "--help")
    assert "lab.machine" in modules
    assert not modules & {*HEAVY, "lab.build", "lab.boot", "json", "subprocess", "tempfile"}


@pytest.mark.parametrize("command", [["--help"], ["run", "--help"], ["run"], ["shell"]])
def test_help_and_guests_import_nothing_that_draws(command: list[str]) -> None:
    modules = imported(*command)
    assert "lab.cli" in modules
    assert not modules & set(HEAVY)


LIMIT_SECONDS = 0.2  # on a 2-core machine
TRIES = 5  # the quickest: others may have the CPUs


def cpu_seconds(arguments: list[str]) -> float:
    """What a start takes of a CPU: it waits for nothing."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "lab", *arguments], capture_output=True, check=True)
    after = os.times()
    children = after.children_user + after.children_system
    return children - before.children_user - before.children_system


@pytest.mark.parametrize("command", ["status", "top", "run --help", "shell --help", "--help"])
def test_it_starts_at_once(command: str, sysfs: Path) -> None:
    arguments = command.split()
    if command in ("status", "top"):
        arguments += ["--sysfs", str(sysfs)]
    assert min(cpu_seconds(arguments) for _ in range(TRIES)) < LIMIT_SECONDS
