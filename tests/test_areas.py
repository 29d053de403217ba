# SPDX-License-Identifier: GPL-2.0-or-later
"""`gcma status` on recorded sysfs trees."""

import json
from pathlib import Path

import pytest

from lab import areas, cli
from lab.errors import LabError

GCMA = {
    "policy": "gcma",
    "total_pages": "32768",
    "available_pages": "24576",
    "tenants_file": "8192",
    "stores": "123456",
    "loads": "5000",
    "misses": "7",
    "recycles": "100",
    "revoked": "42",
    "quarantined": "1",
    "alloc_pages_success": "8192",
    "alloc_pages_fail": "3",
}


SWAP = {
    "tenants_swap": "600",
    "stores_swap": "3000",
    "loads_swap": "1500",
}


DIRTY = {
    "swap_policy": "put-back",
    "tenants_dirty": "512",
    "dirty_max": "16384",
    "stores_dirty": "2000",
    "moved_aside": "0",
    "put_back": "1024",
    "written_back": "7",
}


RENTAL = {
    "policy": "rental",
    "total_pages": "32768",
    "available_pages": "24576",
    "scheme": "lazy",
    "lent": "8192",
    "lends": "100000",
    "taken_over": "4000",
    "replaced": "30",
    "slipped": "3",
    "held": "2",
    "no_memory": "1",
    "no_run": "9",
    "discarded": "5000",
    "activated": "6",
    "moved_out": "7",
    "returns": "8",
    "busy": "0",
}


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """One gcma area, and one as a kernel without GCMA shows it."""
    for area, files in (("reserved", GCMA), ("camera", {"alloc_pages_success": "5"})):
        add(tmp_path / area, files)
    return tmp_path


def test_areas_are_read_by_name(sysfs: Path) -> None:
    camera, reserved = areas.read(sysfs)
    assert (camera.name, camera.policy, camera.stores) == ("camera", "movable", None)
    assert (reserved.policy, reserved.stores, reserved.total_pages) == ("gcma", 123456, 32768)


def test_table_shows_sizes_in_mib_and_what_is_unknown(sysfs: Path) -> None:
    title, head, camera, reserved = areas.table(areas.read(sysfs)).splitlines()
    assert title.startswith("contiguous areas (MiB")
    assert len(head) == len(camera) == len(reserved)
    assert reserved.split() == [
        *("reserved", "gcma", "128.0", "32.0", "32.0", "-", "64.0"),
        *("123,456", "5,000", "100", "42", "1", "3"),
    ]
    assert camera.split() == ["camera", "movable", *["-"] * 10, "-"]


def add(area: Path, files: dict[str, str]) -> None:
    area.mkdir(exist_ok=True)
    for name, value in files.items():
        (area / name).write_text(value + "\n")


def test_swapped_out_pages_have_a_table_of_their_own(sysfs: Path) -> None:
    add(sysfs / "reserved", SWAP)
    plain, swapped = areas.table(areas.read(sysfs)).split("\n\n")
    assert plain.splitlines()[3].split()[4:7] == ["32.0", "2.3", "61.7"]
    title, head, reserved = swapped.splitlines()
    assert title.startswith("swapped-out pages")
    assert len(head) == len(reserved)
    assert reserved.split() == ["reserved", "-", "3,000", "1,500", *["-"] * 7]


def test_what_was_put_back_is_no_write_that_was_spared(sysfs: Path) -> None:
    assert areas.read(sysfs)[1].unwritten is None
    add(sysfs / "reserved", {**SWAP, **DIRTY})
    assert areas.read(sysfs)[1].unwritten == 2000 - 1024  # of which 7 were written back
    swapped = areas.table(areas.read(sysfs)).split("\n\n")[1]
    assert swapped.splitlines()[-1].split() == [
        *("reserved", "put-back", "3,000", "1,500", "2.0", "64.0"),
        *("2,000", "0", "1,024", "7", "976"),
    ]


def test_lent_pages_have_a_table_of_their_own(sysfs: Path) -> None:
    add(sysfs / "screen", RENTAL)
    area = areas.read(sysfs)[2]
    assert (area.scheme, area.lent, area.tenants_file) == ("lazy", 8192, None)
    both, lent = areas.table(areas.read(sysfs)).split("\n\n")
    assert both.splitlines()[-1].split()[:7] == [
        *("screen", "rental", "128.0", "32.0", "32.0", "-", "64.0"),
    ]
    title, head, screen = lent.splitlines()
    assert title.startswith("pages of files")
    assert len(head) == len(screen)
    assert screen.split() == [
        *("screen", "lazy", "32.0", "100,000", "4,000", "30", "3", "5,000", "6", "7", "8", "0"),
    ]


def test_status_as_json(sysfs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status", "--json", "--sysfs", str(sysfs)]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed[1]["tenants_file"] == 8192
    assert listed[1]["swap_policy"] is None
    assert listed[0]["total_pages"] is None
    add(sysfs / "reserved", {**SWAP, **DIRTY})
    add(sysfs / "screen", RENTAL)
    assert cli.main(["status", "--json", "--sysfs", str(sysfs)]) == 0
    _, reserved, screen = json.loads(capsys.readouterr().out)
    swap = [reserved[name] for name in ("stores_swap", "loads_swap", "unwritten")]
    assert swap == [3000, 1500, 976]
    kept = [screen[name] for name in ("held", "no_memory", "no_run", "unwritten")]
    assert kept == [2, 1, 9, None]


def test_top_without_a_terminal_is_a_status(
    sysfs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["top", "--sysfs", str(sysfs)]) == 0
    assert "reserved" in capsys.readouterr().out


def test_kernel_without_cma_is_told(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no CMA"):
        areas.read(tmp_path / "none")


def test_nonsense_in_a_file_is_named(sysfs: Path) -> None:
    (sysfs / "reserved/stores").write_text("many\n")
    with pytest.raises(LabError, match="reserved/stores holds 'many'"):
        areas.read(sysfs)
    (sysfs / "reserved/stores").write_bytes(b"\xff\n")
    with pytest.raises(LabError, match="reserved/stores holds"):
        areas.read(sysfs)


def test_top_draws_over_what_it_drew(
    sysfs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def end_after_two(_: float) -> None:
        (sysfs / "reserved/stores").write_text("123457\n")
        if "\x1b" in drawn():
            raise KeyboardInterrupt

    def drawn() -> str:
        outputs.append(capsys.readouterr().out)
        return outputs[-1]

    outputs: list[str] = []
    monkeypatch.setattr(areas.time, "sleep", end_after_two)
    with pytest.raises(KeyboardInterrupt):
        areas.watch(sysfs, 1)
    first, second = outputs
    assert second == f"\x1b[4A\x1b[J{first.replace('123,456', '123,457')}"
