# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines that are simulated: an address map and memory to it; tasks with recorded pages."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from lab.dram import maps, recording
from lab.dram.maps import AddressMap, Location
from lab.dram.model import Access, Memory, Task
from lab.dram.patterns import Pattern
from lab.dram.recording import NODES, Pages
from lab.dram.timings import DDR3_1333H, DDR4_2400R

# Each way to another node. An assumption, not a measurement: remote memory is farther (Table 2 of
# the paper), and no placement whose order is judged has any.
HOP_NS = 20


@dataclass(frozen=True)
class Board:
    """One machine."""

    name: str
    text: str  # of the address map
    memory: Memory

    @property
    def map(self) -> AddressMap:
        return maps.read(self.text)

    @property
    def hop(self) -> int:
        """In clocks."""
        return round(HOP_NS / self.memory.grade.clock_ns)

    def lines(self, pages: Pages) -> list[Location]:
        """The cache lines of a task's memory, in the order of its addresses."""
        return [line for page in pages for line in _lines(self.text, page, self.row_bytes)]

    @property
    def row_bytes(self) -> int:
        return self.memory.grade.row_bytes

    def task(self, pages: Pages, node: int, pattern: Pattern, seed: int) -> Task:
        """One that does this with its pages, on a core of this node."""
        dice = random.Random(seed)  # noqa: S311 (the same each time)
        steps = pattern.order(self.lines(pages), dice)
        accesses = [Access(to, write, self.hop * (to.node != node)) for to, write in steps]
        return Task(accesses, pattern.mlp)


@cache
def _lines(text: str, page: int, row_bytes: int) -> Sequence[Location]:
    return maps.read(text).lines(page, row_bytes)


DDR3 = Board("DDR3-1333, the Opteron's banks", recording.OPTERON, Memory(DDR3_1333H, NODES, 2))
DDR4 = Board("DDR4-2400, hashed banks", recording.HASHED, Memory(DDR4_2400R, NODES, 1))
BOARDS = (DDR3, DDR4)
