# SPDX-License-Identifier: GPL-2.0-or-later
"""What is told of a set of samples.

Percentiles are nearest-rank: the smallest sample that at least that share of all samples does not
exceed. They are samples that occurred, never a value between two of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """A set of samples in six numbers."""

    count: int
    min: float
    mean: float
    median: float
    p99: float
    max: float


def percentile(samples: Sequence[float], percent: float) -> float:
    """Nearest rank; percent 0 is the minimum, 100 the maximum."""
    if not samples:
        raise ValueError("no samples")
    rank = max(math.ceil(percent / 100 * len(samples)), 1)
    return sorted(samples)[rank - 1]


def summary(samples: Sequence[float]) -> Summary:
    return Summary(
        count=len(samples),
        min=min(samples),
        mean=sum(samples) / len(samples),
        median=percentile(samples, 50),
        p99=percentile(samples, 99),
        max=max(samples),
    )


def cdf(samples: Sequence[float]) -> list[tuple[float, float]]:
    """(value, share of the samples that do not exceed it), one point a different value."""
    ordered = sorted(samples)
    last = {value: number for number, value in enumerate(ordered, 1)}
    return [(value, number / len(ordered)) for value, number in last.items()]
