# SPDX-License-Identifier: GPL-2.0-or-later
"""Estimates of what is left, and steps that run side by side."""

import io
import sys
import threading

import pytest

from lab import console


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(console, "time", clock)
    return clock


def test_durations() -> None:
    assert [console.duration(s) for s in (0.4, 42, 99, 100, 185.2)] == [
        *("0 s", "42 s", "99 s", "1 min 40 s", "3 min 05 s")
    ]


def test_estimate_begins_with_the_expectation(clock: Clock) -> None:
    step = console.Progress("x", 100, 60)
    clock.now = 10
    assert step.left() == 50


def test_estimate_follows_the_real_speed(clock: Clock) -> None:
    step = console.Progress("x", 100, 60)
    step.update(0)
    clock.now = 180  # three times slower than expected
    step.update(90)
    assert 15 < step.left() < 21


def test_resumed_step_expects_only_the_rest(clock: Clock) -> None:
    step = console.Progress("x", 100, 60)
    step.update(50)
    assert step.left() == 30


def test_step_never_exceeds_its_total(clock: Clock) -> None:
    step = console.Progress("x", 100, 60)
    step.update(0)
    clock.now = 60
    step.update(140)
    assert step.line() == "x: 100 %, about 0 s left"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_steps_side_by_side_share_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    together = threading.Barrier(2, timeout=20)
    shown: list[object] = []

    def work(title: str) -> None:
        with console.progress(title, 10, 5) as step:
            together.wait()
            step.update(5)
            shown.append(step.bar)  # type: ignore[attr-defined]
            together.wait()

    threads = [threading.Thread(target=work, args=(title,)) for title in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(shown) == 2
    assert shown[0] is shown[1]
    assert terminal.getvalue().count("done in") == 2
    with console.progress("third", 10, 5):  # a display of its own, the other has ended
        pass
    assert "third: done in" in terminal.getvalue()


def test_each_line_is_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    stream = io.StringIO()
    monkeypatch.setattr(stream, "write", written.append)
    monkeypatch.setattr(sys, "stderr", stream)
    console.say("one line")
    assert written == ["one line\n"]
