# SPDX-License-Identifier: GPL-2.0-or-later
"""The ceilings of malloc and free, derived for each configuration from the paths of the code.

compactfit/tools/ceilings.h publishes them. What a configuration never does is told in functions
that it never calls, each with the reason why; everything else is taken to be possible at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from lab.compactfit.longest import Code, Longest

OPERATIONS = ("malloc", "free", "free-moving", "malloc-pins", "free-pins", "refused")
BLOCKS = (1, 2, 3, 17, 255, 256)  # block-frames of an object, the most that a page has among them
PARTIAL = 3  # not-full pages from which on one may be neither the first nor the next
LARGE = {"cf_allocate_large", "cf_release_large"}  # an object larger than a page
FRAMES = {"cf_allocate_frames", "cf_take_frames", "cf_give_frames"}  # the non-moving engine's
PINS = {  # a page with pinned objects
    *("cf_open_stuck", "cf_dropped_beside_pins", "cf_give_block_beside_pins", "cf_relist"),
    "cf_mark_pinned",
}
REMOTE = {"cf_drain_one"}
WIDE = {"cf_retire_slot"}
MOVE = {"cf_fill"}
FRONT = {"cf_to_front"}
GIVE = {"cf_give_block"}  # the end of each free that is not refused
LANDING = 1  # endbr64, with which the called function begins where -fcf-protection is the default
HOOK = 1  # instructions of a lock hook that does nothing, as that of tools/ceilings.h
COPY = {"count_copy"}  # bench/count.h: copying is not counted


@dataclass(frozen=True)
class Configuration:
    """A line of `test_ceilings list`: how a heap is configured, and what is published of it."""

    name: str
    nonmoving: bool
    wide: bool
    k: int
    remote: bool
    hooks: bool
    published: dict[str, tuple[int, int]]  # instructions, and more for each block-frame

    @classmethod
    def read(cls, line: str) -> "Configuration":
        name, nonmoving, wide, k, remote, hooks, *numbers = line.split("\t")
        pairs = [tuple(map(int, number.split("+"))) for number in numbers]
        published = {of: (pair[0], pair[1]) for of, pair in zip(OPERATIONS, pairs, strict=True)}
        flags = (nonmoving == "1", wide == "1", int(k), remote == "1", hooks == "1")
        return cls(name, *flags, published)


@dataclass(frozen=True)
class Ceiling:
    configuration: str
    operation: str
    blocks: int
    derived: int
    published: int


def ceilings(code: Code, configuration: Configuration) -> Iterator[Ceiling]:
    """Each operation's; of a non-moving heap for objects of some sizes."""
    for operation in OPERATIONS:
        constant, block = configuration.published[operation]
        if not constant:
            continue  # a deferred heap has no free that moves an object
        for blocks in BLOCKS if configuration.nonmoving else (0,):
            derived = longest(code, configuration, operation, blocks)
            yield Ceiling(configuration.name, operation, blocks, derived, constant + blocks * block)


def longest(code: Code, configuration: Configuration, operation: str, blocks: int = 0) -> int:
    """Instructions of the longest path, for objects up to a page."""
    never = set(LARGE)
    if not configuration.nonmoving:
        never |= FRAMES
    if not configuration.wide:
        never |= WIDE
    if operation in ("malloc", "free", "free-moving"):
        never |= PINS
    if not configuration.remote:
        never |= REMOTE
        if operation == "free":
            never |= MOVE
        if operation == "refused":
            never |= GIVE
    if configuration.k < PARTIAL:
        never |= FRONT
    rounds = dict.fromkeys(FRAMES, blocks)
    paths = Longest(code, never, rounds, COPY, HOOK if configuration.hooks else None)
    function = "cf_malloc" if operation.startswith("malloc") else "cf_free"
    other, general = f"{function}_other", f"{function}_any"
    if configuration.nonmoving or configuration.remote or configuration.hooks:
        # Not fast: the first test finds that, a second one that it is not wide and fast either. To
        # look for the size-class in between takes longer for a large one.
        first = paths.exits(function, other)[0]
        first += paths.exits(other, general)[1 if function == "cf_malloc" else 0]
        return LANDING + first + paths.of(general)
    if operation == "refused":
        # The fast way finds something wrong at its very end, the general way what it is. A heap
        # that is not wide has none in between, and one that is has none before.
        narrow, wide = paths.exits(function, other), paths.exits(other, general)
        first = narrow[0] + wide[1] if configuration.wide else narrow[1] + wide[0]
        return LANDING + first + paths.of(general)
    # The way out of the fast one is that of objects larger than a page, of pinned objects, and of
    # frees that are refused.
    if configuration.wide:
        never |= {general}
        return LANDING + paths.exits(function, other)[0] + paths.of(other)
    never |= {other}
    return LANDING + paths.of(function)
