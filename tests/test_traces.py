# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces of allocations, as far as they are not recorded, read or replayed in C."""

from pathlib import Path
from typing import Any

import pytest

from lab import compactfit, traces
from lab.errors import LabError
from lab.evals import traces as evals
from tests.conftest import tool


@pytest.mark.parametrize(
    ("text", "size"), [("500000", 500_000), ("512K", 524_288), ("4M", 4 << 20), ("1G", 1 << 30)]
)
def test_sizes(text: str, size: int) -> None:
    assert traces.parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "4 M", "4m", "1.5M", "lots"])
def test_wrong_sizes(text: str) -> None:
    with pytest.raises(LabError, match="is not a size in bytes"):
        traces.parse_bytes(text)


def test_room_behind_a_trace_is_not_its_length(tmp_path: Path) -> None:
    trace = tmp_path / "a.cftrace"
    trace.write_bytes(b"cftrace\n\1" + bytes(4096))
    assert traces.length(trace) == 9


def test_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compactfit, "tools", lambda: Path("/nonexistent"))
    monkeypatch.setenv("LD_PRELOAD", "")
    tool(tmp_path, "busy", f'test "$CF_TRACE" = "{tmp_path}/to" && : > to/busy.1.cftrace; exit 3')
    tool(tmp_path, "killed", ": > to/killed.1.cftrace; kill -TERM $$")
    monkeypatch.chdir(tmp_path)
    found = tmp_path / "to"
    assert traces.record([f"{tmp_path}/busy"], Path("to"), quiet=True) == (
        3,
        [Path("to/busy.1.cftrace")],
    )
    # earlier traces are not its own
    assert traces.record([f"{tmp_path}/killed"], found, quiet=True) == (
        143,
        [found / "killed.1.cftrace"],
    )
    with pytest.raises(LabError, match="true left no trace: it allocates nothing"):
        traces.record(["true"], found, quiet=True)
    with pytest.raises(LabError, match="there is no program nothing-like-this"):
        traces.record(["nothing-like-this"], found, quiet=True)


def test_what_was_preloaded_stays_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compactfit, "tools", lambda: Path("/tools"))
    monkeypatch.setenv("LD_PRELOAD", "libother.so")
    wanted = "/tools/libcompactfit-record.so:libother.so"
    assert traces.environment(tmp_path)["LD_PRELOAD"] == wanted


def test_initializer() -> None:
    found = {"wide": True, "classes": [{"k": number} for number in range(1, 19)]}
    assert traces.initializer(found) == (
        "/* .class_max_not_full of a moving heap with .page_size = 0, .wide = true */\n"
        "static const uint16_t class_max_not_full[CF_MAX_CLASSES] = {\n"
        "\t1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,\n"
        "\t17, 18,\n"
        "};"
    )
    assert "wide" not in traces.initializer({**found, "wide": False})


def test_what_the_reader_refuses_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(tmp_path, "compactfit-tune", 'echo "$1: this is no trace of allocations" >&2; exit 1')
    monkeypatch.setattr(compactfit, "tools", lambda: tmp_path)
    with pytest.raises(LabError) as caught:
        traces.tune(Path("README.md"), None)
    assert caught.value.message == "README.md: this is no trace of allocations"
    assert caught.value.detail == ""


def test_the_same_commands_each_time() -> None:
    said = traces.redis_commands(400)
    assert said == traces.redis_commands(400)
    assert len(said.splitlines()) == 400
    assert {line.split()[0] for line in said.splitlines()} >= {"SET", "DEL", "LPUSH"}


def replayed(least: int | None) -> dict[str, Any]:
    costs = {"count": 50, "mean": 60.5, "sd": 3.0, "p999": 90, "max": 91, "copied": 0}
    return {
        "calls": 1000,
        "refused": 2,
        "peak": 1 << 20,
        "least_memory": least,
        "largest": None if least is None else 2048,
        "footprint": {"peak": 4096, "last": 2048},
        "seconds": 0.0001,
        "malloc": costs,
        "free": costs,
        "realloc": None,
    }


def test_tables_of_replays() -> None:
    said = {("git", "cfm"): replayed(3 << 19), ("git", "glibc"): replayed(None)}
    instructions, memory = evals.tables(said, {"cfm": "moving", "glibc": "glibc"})
    assert instructions.rows[0] == ["moving", *[60.5, 3.0, 90, 91] * 2, *[None] * 4]
    assert "Of 100 calls in 1,000;" in instructions.note
    assert memory.rows == [
        ["moving", 1.5, 4, 2, 2, 2, 100.0],
        ["glibc", None, 4, 2, None, 2, 100.0],
    ]
    assert len(memory.columns) == len(memory.rows[0])
    assert len(instructions.columns) == len(instructions.rows[0])


def test_figure_and_plot_of_replays() -> None:
    said = {("git", "cfm"): replayed(1 << 20), ("gcc", "cfm"): replayed(3 << 19)}
    assert evals.values(said) == {"compactfit-traces": 1.5}
    [plot] = evals.plots(said, {"cfm": "moving"}, ["cfm"])
    assert plot.groups == ["git", "gcc"]
    assert plot.lines[0].points == [(0.0, 1.0), (1.0, 1.5)]
    # a trace that no memory was enough for: there is no figure then
    assert evals.values({**said, ("git", "cfm"): replayed(None)}) == {}
