# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of recorded allocations, as compactfit/tools/trace.h describes them."""

import struct
from pathlib import Path

SUFFIX = ".cftrace"
MAGIC = b"cftrace\n"
VERSION, HEADER_BYTES = 1, 24
ALLOC, FREE, RESIZE = 1, 4, 5
SMALL = 3000  # objects of the small trace
SMALL_BYTES, RESIZED_BYTES = 100, 700  # of one of them, and of each third then
SMALL_PEAK = SMALL * SMALL_BYTES + SMALL // 3 * (RESIZED_BYTES - SMALL_BYTES)
SMALL_CALLS = SMALL + SMALL // 3 + SMALL // 2


def length(trace: Path) -> int:
    """Bytes of a trace without the room behind it."""
    return len(trace.read_bytes().rstrip(b"\0"))


def encode(*numbers: int) -> bytes:
    """A record: its numbers in LEB128."""
    text = bytearray()
    for number in numbers:
        rest = number
        while rest >= 128:
            text.append(rest & 127 | 128)
            rest >>= 7
        text.append(rest)
    return bytes(text)


def small() -> bytes:
    """A trace of which everything is known: allocate, resize each third, free each second."""
    header = MAGIC + struct.pack("<4I", VERSION, HEADER_BYTES, 1, 1)
    allocated = [encode(ALLOC, SMALL_BYTES) for _ in range(SMALL)]
    resized = [encode(RESIZE, SMALL - number, RESIZED_BYTES) for number in range(0, SMALL, 3)]
    freed = [encode(FREE, SMALL - number) for number in range(0, SMALL, 2)]
    return b"".join([header, *allocated, *resized, *freed])
