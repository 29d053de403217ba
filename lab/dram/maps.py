# SPDX-License-Identifier: GPL-2.0-or-later
"""Address maps: which bank of which controller an address lies in.

Reads the text that /sys/kernel/mm/camc/map takes (Documentation/admin-guide/mm/camc.rst), and
shares no code with the kernel's or the tool's reader: it is a check of both. Masks may have bits
below the page here, for the model looks at cache lines; colors of pages need maps without.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from lab.dram.timings import BURST_BYTES
from lab.errors import LabError

PAGE_SHIFT = 12
KINDS = ("controller", "rank", "bank")
REGION = re.compile(
    r"(?P<start>[0-9a-fA-FxX]+)-(?P<end>[0-9a-fA-FxX]+)(?:\s+node\s+(?P<node>\d+))?"
    r"(?:\s+offset\s+(?P<offset>\S+))?(?:\s+remove\s+(?P<remove>\S+))?"
)


@dataclass(frozen=True)
class Location:
    """Of a cache line."""

    node: int
    channel: int
    rank: int
    bank: int
    row: int  # tells rows of one bank apart


@dataclass
class Region:
    """A range of physical addresses that are decoded alike."""

    start: int
    end: int  # exclusive
    node: int = 0
    offset: int = 0
    removed: Sequence[tuple[int, int]] = ()  # bit fields, (high, low), the highest first
    masks: dict[str, list[int]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    @property
    def all_masks(self) -> list[int]:
        """In the order of the color's bits, the most significant first."""
        return [mask for kind in KINDS for mask in self.masks[kind]]

    def normalised(self, address: int) -> int:
        value = address - self.offset
        for high, low in self.removed:  # the lower fields keep their places
            value = (value >> (high + 1)) << low | value & ((1 << low) - 1)
        return value

    def number(self, kind: str, normalised: int) -> int:
        """The number of the channel, rank or bank."""
        value = 0
        for mask in self.masks[kind]:
            value = value << 1 | (normalised & mask).bit_count() & 1
        return value


def rank(vectors: Sequence[int]) -> int:
    """Over GF(2): how many of them are independent."""
    basis: list[int] = []
    for vector in vectors:
        rest = vector
        for pivot in basis:
            rest = min(rest, rest ^ pivot)
        if rest:
            basis.append(rest)
    return len(basis)


@dataclass(frozen=True)
class AddressMap:
    """A map, checked."""

    name: str
    regions: Sequence[Region]

    def count(self, kind: str) -> int:
        """Channels of a node, ranks of a channel, or banks of a rank."""
        return 1 << len(self.regions[0].masks[kind])

    @property
    def nodes(self) -> int:
        return max(region.node for region in self.regions) + 1

    @property
    def node_colors(self) -> int:
        return 1 << len(self.regions[0].all_masks)

    def region(self, address: int) -> Region:
        for region in self.regions:
            if region.start <= address < region.end:
                return region
        raise LabError(f"the map {self.name} does not cover address {address:#x}")

    def color(self, page: int) -> int:
        """Of a page by its number: ((node * NC + channel) * NR + rank) * NB + bank."""
        region = self.region(page << PAGE_SHIFT)
        value = region.normalised(page << PAGE_SHIFT)
        color = region.node
        for kind in KINDS:
            color = color * self.count(kind) + region.number(kind, value)
        return color

    def lines(self, page: int, row_bytes: int) -> Sequence[Location]:
        """Where the cache lines of a page lie."""
        start = page << PAGE_SHIFT
        region = self.region(start)
        shift = row_shift(region, row_bytes)
        locations = []
        for address in range(start, start + (1 << PAGE_SHIFT), BURST_BYTES):
            value = region.normalised(address)
            channel, its_rank, bank = (region.number(kind, value) for kind in KINDS)
            locations.append(Location(region.node, channel, its_rank, bank, value >> shift))
        return locations


def row_shift(region: Region, row_bytes: int) -> int:
    """The lowest bit that only rows differ in.

    Rows are the highest bits in all published maps. Those below choose a byte of a row, and as many
    banks as their part of the masks can tell apart.
    """
    shift = row_bytes.bit_length() - 1
    while shift - rank([mask & ((1 << shift) - 1) for mask in region.all_masks]) < (
        row_bytes.bit_length() - 1
    ):
        shift += 1
    return shift


# Reading


class _Reader:
    """One text, line by line; errors tell which."""

    def __init__(self) -> None:
        self.name = ""
        self.regions: list[Region] = []
        self.line = 0

    def error(self, message: str) -> LabError:
        return LabError(f"map {self.name or '?'}, line {self.line}: {message}")

    def address(self, text: str) -> int:
        try:
            return int(text, 16)
        except ValueError:
            raise self.error(f"{text!r} is not a hexadecimal number") from None

    def read(self, text: str) -> AddressMap:
        for words in self.statements(text):
            self.statement(*words)
        if not self.regions:
            raise self.error("there is no region: write 'region START-END'")
        self.check()
        return AddressMap(self.name, self.regions)

    def statements(self, text: str) -> Iterator[tuple[str, str]]:
        for number, line in enumerate(text.splitlines(), 1):
            self.line = number
            words = line.partition("#")[0].split(None, 1)
            if words:
                yield words[0], words[1].strip() if len(words) > 1 else ""

    def statement(self, word: str, rest: str) -> None:
        if not self.name and word != "map":
            raise self.error("the first statement has to be 'map NAME'")
        if word == "map":
            if self.name:
                raise self.error("a second 'map': a text is one map")
            if len(rest.split()) != 1:
                raise self.error("write 'map NAME', a name without blanks")
            self.name = rest
        elif word == "region":
            self.regions.append(self.read_region(rest))
        elif word in KINDS:
            self.read_mask(word, rest)
        else:
            raise self.error(
                f"unknown statement {word!r}: there are map, region, {', '.join(KINDS)}"
            )

    def read_region(self, text: str) -> Region:
        match = REGION.fullmatch(text)
        if not match:
            raise self.error(
                "write 'region START-END [node N] [offset OFF] [remove HI:LO[,HI:LO...]]'"
            )
        region = Region(
            self.address(match["start"]),
            self.address(match["end"]),
            int(match["node"] or 0),
            self.address(match["offset"] or "0"),
            self.read_fields(match["remove"]),
        )
        if region.start >= region.end:
            raise self.error("the region is empty: END is the first address after it")
        if region.offset > region.start:
            raise self.error("the offset lies above the region's start")
        return region

    def read_fields(self, text: str | None) -> Sequence[tuple[int, int]]:
        fields = []
        for part in text.split(",") if text else ():
            match = re.fullmatch(r"(\d+):(\d+)", part)
            if not match or int(match[1]) < int(match[2]) or int(match[1]) > 63:
                raise self.error(f"{part!r} is no bit field: write HI:LO, 63 at most")
            fields.append((int(match[1]), int(match[2])))
        fields.sort(reverse=True)
        if any(above[1] <= below[0] for above, below in pairwise(fields)):
            raise self.error("the removed bit fields overlap")
        return fields

    def read_mask(self, kind: str, text: str) -> None:
        if not self.regions:
            raise self.error(f"a {kind} belongs to the region before it: there is none")
        masks = self.regions[-1].masks
        if any(masks[later] for later in KINDS[KINDS.index(kind) + 1 :]):
            raise self.error(f"the order is {', '.join(KINDS)}")
        mask = self.address(text)
        if not mask:
            raise self.error("a mask of no bits")
        masks[kind].append(mask)

    def check(self) -> None:
        first = self.regions[0]
        for region in self.regions:
            span = f"the region {region.start:x}-{region.end:x}"
            if [len(region.masks[kind]) for kind in KINDS] != [
                len(first.masks[kind]) for kind in KINDS
            ]:
                raise LabError(f"map {self.name}: {span} has other numbers of masks than the first")
            if rank(region.all_masks) < len(region.all_masks):
                raise LabError(
                    f"map {self.name}: the masks of {span} depend on each other: some colors"
                    " would have no page"
                )
        ordered = sorted(self.regions, key=lambda region: region.start)
        for below, above in pairwise(ordered):
            if below.end > above.start:
                raise LabError(f"map {self.name}: the regions overlap at {above.start:x}")


@cache
def read(text: str) -> AddressMap:
    """The map of a text; a LabError says which line is wrong and what it should be."""
    return _Reader().read(text)
