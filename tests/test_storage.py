# SPDX-License-Identifier: GPL-2.0-or-later
"""Disks and swap of a guest, as far as the host makes them."""

from pathlib import Path

import pytest

from lab import storage
from lab.errors import LabError
from lab.machine import Disk, Machine


def test_a_fresh_disk_is_formatted_and_mounted(tmp_path: Path) -> None:
    machine, script = storage.wanted("16M", None).attached(Machine(), tmp_path)
    (disk,) = machine.disks
    image = disk.path.read_bytes()
    assert len(image) == 16 << 20
    assert image[1080:1082] == b"\x53\xef"  # ext4's magic number
    assert "mount -t ext4 $(gcma_disk gcma.disk) /mnt || exit 1" in script


def test_a_disk_has_the_filesystem_asked_for(tmp_path: Path) -> None:
    machine, script = storage.wanted("64M:f2fs", None).attached(Machine(), tmp_path)
    assert machine.disks[0].path.read_bytes()[1024:1028] == bytes.fromhex("1020f5f2")
    assert "mount -t f2fs" in script


def test_an_image_is_attached_as_it_is(tmp_path: Path) -> None:
    image = tmp_path / "5G.img"
    image.write_bytes(b"content")
    machine, script = storage.wanted(str(image), None).attached(Machine(), tmp_path / "none")
    assert machine.disks == (Disk(image, "gcma.disk"),)
    assert "mount" not in script
    assert image.read_bytes() == b"content"


def test_swap_on_a_disk_beside_another(tmp_path: Path) -> None:
    machine, script = storage.wanted("8M", "4M").attached(Machine(), tmp_path)
    assert [disk.serial for disk in machine.disks] == ["gcma.disk", "gcma.swap"]
    assert machine.disks[1].path.read_bytes()[4086:4096] == b"SWAPSPACE2"
    assert script.count("|| exit 1") == 2


def test_swap_in_memory_needs_no_disk(tmp_path: Path) -> None:
    wanted = storage.wanted(None, "zram")
    machine, script = wanted.attached(Machine(memory_mib=512), tmp_path)
    assert not wanted.has_disks
    assert not machine.disks
    assert "echo 256M >/sys/block/zram0/disksize" in script


def test_nothing_asked_for_is_nothing_done(tmp_path: Path) -> None:
    assert storage.wanted(None, None).attached(Machine(), tmp_path) == (Machine(), "")


def test_an_image_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "image").touch()
    monkeypatch.setattr(storage.os, "access", lambda *_: False)
    with pytest.raises(LabError, match="image cannot be read and written"):
        storage.wanted(str(tmp_path / "image"), None)
