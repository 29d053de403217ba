# SPDX-License-Identifier: GPL-2.0-or-later
"""How the compact-fit library's tests are judged."""

from lab import compactfit


def test_enough_branches() -> None:
    assert compactfit.judge_coverage(95.0).passed


def test_too_few_branches() -> None:
    case = compactfit.judge_coverage(94.9)
    assert not case.passed
    assert case.why == "they take 94.9 %"
