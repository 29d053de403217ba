# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces of allocations, as far as they are not recorded, read or replayed in C."""

from pathlib import Path

import pytest

from lab.compactfit import build, programs, recording, traces, tuning
from lab.errors import LabError
from tests.conftest import tool


@pytest.mark.parametrize(
    ("text", "size"), [("500000", 500_000), ("512K", 524_288), ("4M", 4 << 20), ("1G", 1 << 30)]
)
def test_sizes(text: str, size: int) -> None:
    assert tuning.parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "4 M", "4m", "1.5M", "lots"])
def test_wrong_sizes(text: str) -> None:
    with pytest.raises(LabError, match="is not a size in bytes"):
        tuning.parse_bytes(text)


def test_room_behind_a_trace_is_not_its_length(tmp_path: Path) -> None:
    trace = tmp_path / "a.cftrace"
    trace.write_bytes(b"cftrace\n\1" + bytes(4096))
    assert traces.length(trace) == 9


def test_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "tools", lambda: Path("/nonexistent"))
    monkeypatch.setenv("LD_PRELOAD", "")
    tool(tmp_path, "busy", f'test "$CF_TRACE" = "{tmp_path}/to" && : > to/busy.1.cftrace; exit 3')
    tool(tmp_path, "killed", ": > to/killed.1.cftrace; kill -TERM $$")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "to"
    assert recording.record([f"{tmp_path}/busy"], Path("to"), quiet=True) == (
        3,
        [Path("to/busy.1.cftrace")],
    )
    # earlier traces are not its own
    assert recording.record([f"{tmp_path}/killed"], folder, quiet=True) == (
        143,
        [folder / "killed.1.cftrace"],
    )
    with pytest.raises(LabError, match="true left no trace: it allocates nothing"):
        recording.record(["true"], folder, quiet=True)
    with pytest.raises(LabError, match="there is no program nothing-like-this"):
        recording.record(["nothing-like-this"], folder, quiet=True)


def test_what_was_preloaded_stays_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "tools", lambda: Path("/tools"))
    monkeypatch.setenv("LD_PRELOAD", "libother.so")
    wanted = "/tools/libcompactfit-record.so:libother.so"
    assert recording.environment(tmp_path)["LD_PRELOAD"] == wanted


def test_initializer() -> None:
    classes = [{"k": number} for number in range(1, 19)]
    choice = {"wide": True, "large_pages": 1, "classes": classes}
    # size-classes are those of this page size: the heap may choose another one
    assert tuning.initializer(choice) == (
        "/* a moving heap with .page_size = CF_PAGE_SIZE, .wide = true, .pieces = true */\n"
        "static const uint16_t class_max_not_full[CF_MAX_CLASSES] = {\n"
        "\t1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,\n"
        "\t17, 18,\n"
        "};"
    )
    assert "wide" not in tuning.initializer({**choice, "wide": False})
    assert "pieces" not in tuning.initializer({**choice, "large_pages": 0})


def test_what_the_reader_refuses_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(tmp_path, "compactfit-tune", 'echo "$1: this is no trace of allocations" >&2; exit 1')
    monkeypatch.setattr(build, "tools", lambda: tmp_path)
    with pytest.raises(LabError) as caught:
        tuning.tune(Path("README.md"), None)
    assert caught.value.message == "README.md: this is no trace of allocations"
    assert caught.value.detail == ""


def test_the_same_commands_each_time() -> None:
    commands = programs.redis_commands(400)
    assert commands == programs.redis_commands(400)
    assert len(commands.splitlines()) == 400
    assert {line.split()[0] for line in commands.splitlines()} >= {"SET", "DEL", "LPUSH"}
