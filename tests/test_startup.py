# SPDX-License-Identifier: GPL-2.0-or-later
"""A verb imports what it needs: who asks for the status does not wait for matplotlib."""

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
