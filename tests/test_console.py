# SPDX-License-Identifier: GPL-2.0-or-later
"""Estimates of what is left."""

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
