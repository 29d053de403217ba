# SPDX-License-Identifier: GPL-2.0-or-later
"""What tasks do with their memory: cache lines in the order in which they miss the last cache."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lab.dram.maps import Location

Lines = Sequence[Location]  # of a task's memory, in the order of its addresses
Step = tuple[Location, bool]  # the line is read, or written back

BEHIND = 512  # lines: what is written leaves the cache when so many others came
ARRAYS = 3  # of the stream benchmark: a[i] = b[i] + q * c[i]


def _turned(lines: Lines, dice: random.Random) -> Lines:
    """Begun anywhere: tasks that do the same are not to do it in step."""
    first = dice.randrange(len(lines))
    return [*lines[first:], *lines[:first]]


def sequential(lines: Lines, dice: random.Random) -> Iterator[Step]:
    """One line after the other."""
    return ((line, False) for line in _turned(lines, dice))


def anywhere(lines: Lines, dice: random.Random) -> Iterator[Step]:
    """Each line once, in random order, as a walk of a shuffled linked list."""
    return ((line, False) for line in dice.sample(lines, len(lines)))


def strides(lines: Lines, dice: random.Random) -> Iterator[Step]:
    """The paper's synthetic benchmark (4.2): stores to lines before and behind a place by turns,
    ever further away from it."""
    turned = _turned(lines, dice)
    middle = len(turned) // 2
    order = [turned[middle]]
    for distance in range(1, middle):
        order += [turned[middle + distance], turned[middle - distance]]
    return _stored(order)


def _stored(order: Lines) -> Iterator[Step]:
    """A store reads its line, and writes back one that was stored to before."""
    for number, line in enumerate(order):
        yield line, False
        yield order[number - BEHIND % len(order)], True


def stream(lines: Lines, dice: random.Random) -> Iterator[Step]:
    """Three arrays in step, of which one is written: the memory attackers of the paper."""
    size = len(lines) // ARRAYS
    first = dice.randrange(size)
    for number in range(size):
        at = (first + number) % size
        for array in range(1, ARRAYS):
            yield lines[array * size + at], False
        yield lines[at], False
        yield lines[at - BEHIND % size], True


@dataclass(frozen=True)
class Pattern:
    """An order of lines, and how many of them are under way at a time."""

    name: str
    order: Callable[[Lines, random.Random], Iterator[Step]]
    mlp: int


MANY = 8  # a choice: cores wait for about so many misses at a time, or more
SEQUENTIAL = Pattern("sequential", sequential, MANY)
RANDOM = Pattern("random", anywhere, MANY)
STRIDES = Pattern("strides", strides, MANY)
CHASE = Pattern("chase", anywhere, 1)
STREAM = Pattern("stream", stream, MANY)
