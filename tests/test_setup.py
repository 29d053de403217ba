# SPDX-License-Identifier: GPL-2.0-or-later
"""What apt says, and what is found to be missing."""

from pathlib import Path

import pytest

from lab import setup
from lab.errors import LabError
from tests.conftest import tool


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("GCMA_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_apt_percents() -> None:
    assert setup.apt_percent("dlstatus:1:50.0:Retrieving file 1 of 2\n") == 25
    assert setup.apt_percent("pmstatus:fio:50.0:Unpacking fio\n") == 75
    assert setup.apt_percent("Selecting previously unselected package fio.\n") is None


def test_only_installed_packages_count(tools: Path) -> None:
    tool(tools, "dpkg-query", "echo fio installed; echo sysbench config-files")
    missing = setup.missing_packages()
    assert "fio" not in missing
    assert "sysbench" in missing


def test_no_network_is_one_line(tools: Path) -> None:
    tool(tools, "dpkg-query", "true")
    tool(tools, "apt-get", "echo 'W: Failed to fetch http://mirror.example/x' >&2")
    tool(tools, "sudo", 'exec "$@"')
    with pytest.raises(LabError, match=r"^no network: apt-get update failed$"):
        setup.install_packages()


def test_apt_that_fails_is_quoted(tools: Path) -> None:
    tool(tools, "dpkg-query", "true")
    refusal = "echo 'E: You have held broken packages.' >&2; exit 100"
    tool(tools, "apt-get", f'case "$*" in *install*) {refusal};; esac')
    tool(tools, "sudo", 'exec "$@"')
    with pytest.raises(LabError, match=r"^apt-get failed: E: You have held broken packages\.$"):
        setup.install_packages()


def test_apt_that_lies_is_caught(tools: Path) -> None:
    tool(tools, "dpkg-query", "true")
    tool(tools, "apt-get", "true")
    tool(tools, "sudo", 'exec "$@"')
    with pytest.raises(LabError, match=r"apt-get did not install linux-source-6\.12"):
        setup.install_packages()
