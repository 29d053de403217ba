# SPDX-License-Identifier: GPL-2.0-or-later
"""Address maps of the tool and the kernel: the paper's machine, what is shipped, or refused."""

import random
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from lab import paths
from tests.camc.machine import (
    GIB,
    LINE,
    MAPS,
    PAGE,
    TOOL,
    Machine,
    Range,
    color,
    kernel_headers,
    masks,
)
from tests.camc.machine import regions as read_regions

HERE = Path(__file__).parent / "camc"
DUMP = HERE / "opteron-6128.registers"
MIB = 1 << 20
# The paper's Table 1, and the hole that makes controller 0's range longer than the others
TABLE_1 = [
    (0x0, 0x227FFFFFF),
    (0x228000000, 0x427FFFFFF),
    (0x428000000, 0x627FFFFFF),
    (0x628000000, 0x827FFFFFF),
]
OPTERON = [(0x1000, 0xA0000), (0x100000, 0xD8000000), (0x100000000, 0x828000000)]


@pytest.fixture
def machine(camc_tool: Path, tmp_path: Path) -> Machine:
    return Machine(tmp_path / "root", camc_tool)


def opteron(machine: Machine) -> Machine:
    machine.memory(OPTERON)
    machine.processor("AuthenticAMD", 16, 9)
    return machine


def sample(ranges: Iterable[Range], count: int, seed: int = 1) -> list[int]:
    """Addresses of pages: the first and last ones of each range, and some between."""
    chance = random.Random(seed)  # noqa: S311 (no secrets)
    ranges = list(ranges)
    pages = {page for start, end in ranges for page in (start, end - PAGE)}
    sizes = [end - start for start, end in ranges]
    for start, end in chance.choices(ranges, sizes, k=count):
        pages.add(chance.randrange(start, end, PAGE))
    return sorted(pages)


# The paper


def test_the_papers_example(machine: Machine) -> None:
    """Node 1, channel 0, rank 1, bank 3 of 2 nodes, 2 channels, 2 ranks, 4 banks.

    The paper prints ((1 x 2 + 0) x 2 + 1) x 4 + 3 = 19; it is 23, and 19 is that of rank 0.
    """
    masks = "controller 8000\nrank 4000\nbank 2000\nbank 1000\n"
    text = (
        f"map example\nregion 0-400000\n{masks}region 400000-800000 node 1 offset 400000\n{masks}"
    )
    machine.memory([(0, 0x800000)])
    path = machine.write("example.map", text)
    addresses = [0x400000 | rank << 14 | 3 << 12 for rank in (1, 0)]
    assert machine.colors(str(path), addresses) == [((1 * 2 + 0) * 2 + 1) * 4 + 3, 19]
    assert machine.output("map", "check", str(path)).endswith(
        "32 colors with 256 KiB of memory each\n"
    )


def test_table_1_and_128_colors(machine: Machine) -> None:
    opteron(machine)
    for node, (first, last) in enumerate(TABLE_1):
        colors = machine.colors("amd-opteron-6128", [first, last])
        assert [each // 32 for each in colors] == [node, node]
    assert machine.colors("amd-opteron-6128", [0x828000000, 0xD8000000]) == [-1, -1]
    pages = sample(OPTERON, 4000)
    colors = machine.colors("amd-opteron-6128", pages)
    assert set(colors) == set(range(128))
    for page, each in zip(pages, colors, strict=True):
        node = next(n for n, (first, last) in enumerate(TABLE_1) if first <= page <= last)
        base = 0x28000000 if not node and page >= 1 << 32 else TABLE_1[node][0]
        channel, rank, bank = (
            (page - base) >> 32 & 1,
            (page - base) >> 31 & 1,
            (page - base) >> 14 & 7,
        )
        assert each == ((node * 2 + channel) * 2 + rank) * 8 + bank
    assert "128 colors with 262092 KiB to 256 MiB" in machine.output(
        "map", "check", "amd-opteron-6128"
    )


def test_interleaved_channels_leave_64_colors(machine: Machine) -> None:
    opteron(machine)
    name = "amd-opteron-6128-interleaved"
    assert "64 colors" in machine.output("map", "check", name)
    text = machine.output("map", "convert", name)
    pages = sample(OPTERON, 500)
    assert machine.colors(name, pages) == [color(read_regions(text), page) for page in pages]
    # the same from the registers: channels interleaved by bit 6 instead of by address
    lines = []
    for line in DUMP.read_text().splitlines():
        lines.append("F2x110 00000004" if line.startswith("F2x110") else line)
    path = machine.write("dump", "\n".join(lines))
    assert machine.colors(str(path), pages) == machine.colors(name, pages)


# Registers


def test_the_dump_compiles_to_the_shipped_map(machine: Machine) -> None:
    opteron(machine)
    assert machine.output("map", "convert", str(DUMP)) == machine.output(
        "map", "convert", "amd-opteron-6128"
    )


Registers = dict[int, dict[str, int]]
COLUMNS = {1: 10, 2: 10, 5: 10, 6: 11, 7: 10, 8: 11, 9: 11, 10: 10, 11: 11, 12: 12}


NEEDED = [
    f"F{function}x{offset:03X}"
    for function, ranges in (
        (1, ((0x40, 0x7C), (0xF0, 0xF0), (0x140, 0x17C))),
        (2, ((0x40, 0x6C), (0x80, 0x80), (0x94, 0x94), (0x10C, 0x114))),
        (2, ((0x140, 0x16C), (0x180, 0x180), (0x194, 0x194))),
    )
    for first, last in ranges
    for offset in range(first, last + 4, 4)
]


def dump(registers: Registers) -> str:
    lines = ["registers amd-10h some"]
    for node, values in registers.items():
        assert set(values) <= set(NEEDED)
        lines.append(f"node {node}")
        lines += [f"{name} {values.get(name, 0):08x}" for name in NEEDED]
    return "\n".join(lines) + "\n"


def ranges_of(*nodes: tuple[int, int, int, int]) -> dict[str, int]:
    """F1x registers: base, end (multiples of 16 MiB), IntlvEn, IntlvSel; node by place."""
    values = {}
    for number, (base, end, enabled, which) in enumerate(nodes):
        last = end - 1
        values[f"F1x{0x40 + 8 * number:03X}"] = base >> 8 & 0xFFFF0000 | enabled << 8 | 3
        values[f"F1x{0x44 + 8 * number:03X}"] = last >> 8 & 0xFFFF0000 | which << 8 | number
        values[f"F1x{0x140 + 8 * number:03X}"] = base >> 40
        values[f"F1x{0x144 + 8 * number:03X}"] = last >> 40
    return values


def chips(dct: int, *selects: tuple[int, int, int, int]) -> dict[str, int]:
    """F2x registers of a DCT: chip select, base, bits that do not tell it, address mapping."""
    values = {f"F2x{0x94 + 0x100 * dct:03X}": 0x100}
    name = f"F2x{0x80 + 0x100 * dct:03X}"
    for select, base, free, mapping in selects:
        values[f"F2x{0x40 + 0x100 * dct + 4 * select:03X}"] = base >> 8 & 0x1FF83FE0 | 1
        values[f"F2x{0x60 + 0x100 * dct + 4 * (select // 2):03X}"] = free >> 8 & 0x1FF83FE0
        values[name] = values.get(name, 0) | mapping << 4 * (select // 2)
        if select % 2:
            values[name] = values[name] & ~(15 << 4 * (select // 2)) | mapping << 4 * (select // 2)
    return values


def walk(registers: Registers, address: int) -> tuple[int, int, int, int] | None:
    """Algorithm 1 for one address: node, channel, rank, bank. As amd64_edac.c has it."""
    first = registers[min(registers)]
    for number in range(8):
        low = first.get(f"F1x{0x40 + 8 * number:03X}", 0)
        limit = first.get(f"F1x{0x44 + 8 * number:03X}", 0)
        base = first.get(f"F1x{0x140 + 8 * number:03X}", 0) << 40 | (low & 0xFFFF0000) << 8
        last = first.get(f"F1x{0x144 + 8 * number:03X}", 0) << 40 | (limit & 0xFFFF0000) << 8
        enabled = low >> 8 & 7
        if not low & 3 or not base <= address <= last | 0xFFFFFF:
            continue
        if enabled and limit >> 8 & 7 != address >> 12 & enabled:
            continue
        place = walk_node(registers[limit & 7], base, enabled.bit_count(), address)
        return place and (limit & 7, *place)
    return None


def walk_node(
    values: dict[str, int], base: int, node_bits: int, address: int
) -> tuple[int, int, int] | None:
    hole, select = values.get("F1x0F0", 0), values.get("F2x110", 0)
    if hole & 1 and hole & 0xFF000000 <= address < 1 << 32:
        return None
    offset = base
    if hole & 1 and address >= 1 << 32:
        offset = (hole & 0xFF80) << 16
    mode = select >> 6 & 3
    channel = 0
    if select & 1 and address >> 27 >= select >> 11:
        channel = select >> 1 & 1
        if not (hole & 1 and address >= 1 << 32 and select >> 11 < 32):
            offset = (values.get("F2x114", 0) & 0xFFFFFC00) << 16
    elif select & 4:
        parity = (address >> 16 & 0x1F).bit_count() & 1
        shift = (6, 12 + node_bits, 6, 9)[mode]
        channel = address >> shift & 1 ^ (parity if mode & 2 else 0)
    elif select & 1:
        channel = ~select >> 1 & 1
    normal = address - offset
    normal = normal >> 12 + node_bits << 12 | normal & 0xFFF
    if select & 4:
        at = (6, 12, 6, 9)[mode]
        normal = normal >> at + 1 << at | normal & (1 << at) - 1
    where = {}
    for number in range(8):
        chip = values.get(f"F2x{0x40 + 0x100 * channel + 4 * number:03X}", 0)
        mask = values.get(f"F2x{0x60 + 0x100 * channel + 4 * (number // 2):03X}", 0)
        compared = (0x1FF83FE0 & ~mask) << 8
        if chip & 1:
            where[number] = (chip & 0x1FF83FE0) << 8 & compared, compared
    # ranks are numbered by address
    for rank, number in enumerate(sorted(where, key=lambda number: where[number][0])):
        base, compared = where[number]
        if normal & compared == base:
            mapping = values[f"F2x{0x80 + 0x100 * channel:03X}"] >> 4 * (number // 2) & 15
            if not select & 4 and select & 1 and not select & 2:
                channel ^= 1  # that with the first address is channel 0
            return channel, rank, normal >> COLUMNS[mapping] + 3 & 7
    return None


TWO = ((0, 0, 2 * GIB - 1, 8), (1, 2 * GIB, 2 * GIB - 1, 8))  # two ranks of 2 GiB
HIGH = {"F2x110": 4 * GIB >> 16 | 3, "F2x114": 4 * GIB >> 16}  # DCT 1 from 4 GiB on


def one_node(end: int, *more: dict[str, int]) -> Registers:
    values = ranges_of((0, end, 0, 0))
    for each in more:
        values |= each
    return {0: values}


def both(*selects: tuple[int, int, int, int]) -> dict[str, int]:
    return chips(0, *selects) | chips(1, *selects)


def interleaved_nodes(count: int, size: int, *more: dict[str, int]) -> Registers:
    """Nodes that share all addresses, page by page."""
    ranges = ranges_of(*((0, count * size, count - 1, node) for node in range(count)))
    return {
        node: {**ranges, **{k: v for each in more for k, v in each.items()}}
        for node in range(count)
    }


@dataclass
class Setup:
    """Registers, the memory they are for, and how many of each there are of a color."""

    registers: Registers
    memory: list[Range]
    nodes: int = 1
    channels: int = 1
    ranks: int = 1
    mixed: bool = False  # pages have several banks
    colors: int = field(default=0)


SETUPS = {
    "one channel": Setup(one_node(4 * GIB, chips(0, *TWO)), [(0, 4 * GIB)], ranks=2),
    "one rank": Setup(
        one_node(2 * GIB, chips(0, TWO[0])),
        [(0, 2 * GIB)],
    ),
    "channels by address": Setup(
        one_node(8 * GIB, both(*TWO), HIGH), [(0, 8 * GIB)], channels=2, ranks=2
    ),
    "channel 1 first": Setup(
        one_node(8 * GIB, both(*TWO), {**HIGH, "F2x110": 4 * GIB >> 16 | 1}),
        [(0, 8 * GIB)],
        channels=2,
        ranks=2,
    ),
    "a hole in channel 0": Setup(
        one_node(
            9 * GIB,
            both(*TWO),
            {"F2x110": 5 * GIB >> 16 | 3, "F2x114": 5 * GIB >> 16, "F1x0F0": 0xC0004001},
        ),
        [(0, 3 * GIB), (4 * GIB, 9 * GIB)],
        channels=2,
        ranks=2,
    ),
    "a hole in channel 1": Setup(
        one_node(
            5 * GIB,
            both((0, 0, 2 * GIB - 1, 8)),
            {"F2x110": 2 * GIB >> 16 | 3, "F2x114": 2 * GIB >> 16, "F1x0F0": 0xC000C001},
        ),
        [(0, 3 * GIB), (4 * GIB, 5 * GIB)],
        channels=2,
    ),
    **{
        f"channels interleaved in mode {mode}": Setup(
            one_node(8 * GIB, both(*TWO), {"F2x110": mode << 6 | 4}),
            [(0, 8 * GIB)],
            channels=2,
            ranks=2,
            mixed=mode != 1,
            colors=16 if mode != 1 else 32,
        )
        for mode in range(4)
    },
    **{
        f"{count} nodes interleaved": Setup(
            interleaved_nodes(count, 4 * GIB, chips(0, *TWO)),
            [(0, count * 4 * GIB)],
            nodes=count,
            ranks=2,
        )
        for count in (2, 4, 8)
    },
    "nodes and channels interleaved": Setup(
        interleaved_nodes(2, 8 * GIB, both(*TWO), {"F2x110": 1 << 6 | 4}),
        [(0, 16 * GIB)],
        nodes=2,
        channels=2,
        ranks=2,
    ),
    "nodes interleaved around a hole": Setup(
        interleaved_nodes(2, 4 * GIB + GIB // 2, chips(0, *TWO), {"F1x0F0": 0xC0004001}),
        [(0, 3 * GIB), (4 * GIB, 9 * GIB)],
        nodes=2,
        ranks=2,
    ),
    "ranks interleaved": Setup(
        one_node(
            4 * GIB,
            chips(0, *((n, n << 17, (4 * GIB - 1) & ~(1 << 17), 8) for n in (0, 1))),
        ),
        [(0, 4 * GIB)],
        ranks=2,
    ),
    "four ranks interleaved, the last first": Setup(
        one_node(
            8 * GIB,
            chips(0, *((n, (3 - n) << 17, (8 * GIB - 1) & ~(3 << 17), 8) for n in range(4))),
        ),
        [(0, 8 * GIB)],
        ranks=4,
    ),
    "modules of different size and kind": Setup(
        one_node(
            5 * GIB,
            chips(0, (0, 0, 2 * GIB - 1, 8), (2, 2 * GIB, GIB - 1, 5)),
            chips(1, (0, 0, 2 * GIB - 1, 8)),
            {"F2x110": 3 * GIB >> 16 | 3, "F2x114": 3 * GIB >> 16},
        ),
        [(0, 5 * GIB)],
        channels=2,
        ranks=2,
    ),
    "three ranks": Setup(
        one_node(
            6 * GIB,
            chips(0, *((n, at * GIB, 2 * GIB - 1, 7) for n, at in ((0, 0), (1, 2), (2, 4)))),
        ),
        [(0, 6 * GIB)],
        ranks=4,
    ),
    "nodes with other ranks": Setup(
        {
            node: ranges_of((0, 4 * GIB, 0, 0), (4 * GIB, 6 * GIB, 0, 0))
            | chips(0, *(TWO if not node else TWO[:1]))
            for node in (0, 1)
        },
        [(0, 6 * GIB)],
        nodes=2,
        ranks=2,
    ),
}


@pytest.mark.parametrize("name", SETUPS)
def test_registers(machine: Machine, name: str) -> None:
    setup = SETUPS[name]
    machine.memory(setup.memory)
    path = str(machine.write("dump", dump(setup.registers)))
    pages = sample(setup.memory, 1500)
    colors = machine.colors(path, pages)
    banks = [
        frozenset(
            walk(setup.registers, page + line)
            for line in (range(0, PAGE, LINE) if setup.mixed else (0, PAGE - 1))
        )
        for page in pages
    ]
    assert None not in set().union(*banks)
    one_to_one(colors, banks)
    if not setup.mixed:  # the paper's number
        for (only,), each in zip(banks, colors, strict=True):
            assert only is not None
            node, channel, rank, bank = only
            assert each == ((node * setup.channels + channel) * setup.ranks + rank) * 8 + bank
    if setup.colors:
        assert len(set(colors)) == setup.colors


def one_to_one(colors: list[int], banks: list[frozenset[object]]) -> None:
    """Pages have one color iff they have the same banks, and else none in common."""
    of: dict[int, set[frozenset[object]]] = defaultdict(set)
    for each, where in zip(colors, banks, strict=True):
        of[each].add(where)
    assert all(len(where) == 1 for where in of.values()), of
    seen = [where for (where,) in of.values()]
    assert sum(len(where) for where in seen) == len(frozenset().union(*seen)), of


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"F2x110": 1 << 4}, "node 0: F2x110 gangs the channels"),
        ({"F2x110": 5}, "node 0: F2x110 interleaves part of the channels only"),
        ({"F2x10C": 1}, "node 0: F2x10C swaps memory for graphics"),
        ({"F2x094": 1 << 22 | 0x100}, "node 0: F2x094 swizzles banks"),
        ({"F2x094": 0}, "node 0: F2x094: DCT 0 has no DDR3 memory"),
        ({"F2x080": 3}, "node 0: F2x080 has the unknown bank address mapping 3"),
        (
            {"F2x060": (2 * GIB - 1) >> 8 & 0x1FF83FE0 & ~(1 << 20)},
            "mask of chip select 0 of DCT 0 has",
        ),
        ({"F2x044": 1}, "node 0: chip select 1 of DCT 0 overlaps another one"),
        ({"F2x060": (4 * GIB - 1 - (1 << 17)) >> 8 & 0x1FF83FE0, "F2x044": 0}, "not all addresses"),
        ({"F2x060": (4 * GIB - 1 - (1 << 14)) >> 8 & 0x1FF83FE0}, "by bits of columns or banks"),
        ({"F1x040": 0}, "no range of memory is enabled"),
        ({"F1x044": 0xFFFF0001}, "the dump has memory of node 1, but not its registers"),
        ({"F1x040": 3 | 2 << 8}, "nodes are interleaved in another order"),
        ({"F1x044": 0, "F1x040": 0x01000003}, "node 0: its range of addresses is empty"),
    ],
)
def test_registers_that_are_refused(machine: Machine, change: dict[str, int], message: str) -> None:
    machine.memory([(0, 4 * GIB)])
    path = machine.write("dump", dump(one_node(4 * GIB, chips(0, *TWO), change)))
    assert message in machine.error("map", "check", str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("registers amd-15h x\n", "line 1: registers of amd-10h and a name are known"),
        ("registers amd-10h x\n", 'the dump has no "node N"'),
        ("registers amd-10h x y\n", "line 1: too many words"),
        ("registers amd-10h x\nnode 8\n", "line 2: nodes are 0 to 7"),
        ("registers amd-10h x\nF2x110 0\n", 'line 2: F2x110 stands before "node N"'),
        ("registers amd-10h x\nnode 0\nF4x110 0\n", "line 3: F4x110 is no register"),
        ("registers amd-10h x\nnode 0\nF2x200 0\n", "line 3: F2x200 is no register"),
        ("registers amd-10h x\nnode 0\nF2x112 0\n", "line 3: F2x112 is no register"),
        ("registers amd-10h x\nnode 0\nF2x110\n", "needs one hexadecimal value of 32 bits"),
        ("registers amd-10h x\nnode 0\nF2x110 100000000\n", "hexadecimal value of 32 bits"),
    ],
)
def test_texts_of_registers_that_are_refused(machine: Machine, text: str, message: str) -> None:
    machine.memory([(0, GIB)])
    assert message in machine.error("map", "check", str(machine.write("dump", text)))


@pytest.mark.parametrize("name", NEEDED[::9])
def test_dumps_that_lack_a_register(machine: Machine, name: str) -> None:
    machine.memory([(0, 4 * GIB)])
    text = dump(one_node(4 * GIB, chips(0, *TWO)))
    path = machine.write("dump", re.sub(f"{name} .*\n", "", text))
    message = f"node 0: the dump lacks {name}: camc map dump has all that is needed"
    assert message in machine.error("map", "check", str(path))


def test_a_dump_of_this_machine(machine: Machine) -> None:
    machine.processor("AuthenticAMD", 16, 9)
    assert "there is no PCI device 00:18.1" in machine.error("map", "dump")
    for node in range(2):
        config = b"".join(
            (function << 24 | at).to_bytes(4, "little") for function in (0,) for at in range(128)
        )
        for function in (1, 2):
            machine.write(f"sys/bus/pci/devices/0000:00:{0x18 + node:x}.{function}/config", config)
    lines = machine.output("map", "dump").splitlines()
    assert lines[:3] == ["registers amd-10h this-machine", "node 0", "F1x040 00000010"]
    assert "F2x194 00000065" in lines and "node 1" in lines
    machine.write("sys/bus/pci/devices/0000:00:18.2/config", bytes(64))  # what users may read
    assert "cannot read offset 40: run as root" in machine.run("map", "dump").stderr
    machine.processor("GenuineIntel", 6, 42)
    assert "registers are known of AMD family 10h only" in machine.error("map", "dump")


# What is shipped


@dataclass
class Shipped:
    """A machine that a map is for, and the colors that it has there."""

    colors: int
    memory: list[Range]
    prepare: Callable[[Machine], None]
    normal: Callable[[int], int] = int  # what a hoisted address was


def intel(model: int, tolud: int = 0xDC400000, tom: int = 8 * GIB) -> Callable[..., Shipped]:
    """With so many bytes of memory, what would lie from TOLUD to 4 GiB moved behind the rest."""
    start = max(tom, 4 * GIB)

    def prepare(machine: Machine) -> None:
        machine.processor("GenuineIntel", 6, model)
        machine.intel(tolud, tom)

    def normal(address: int) -> int:
        return address - start + tolud if address >= start else address

    end = start + min(tom, 4 * GIB) - tolud
    memory = [(0x1000, 0x9F000), (0x100000, tolud), (4 * GIB, end)]
    return partial(Shipped, memory=memory, prepare=prepare, normal=normal)


def board(name: str, *memory: Range) -> Callable[..., Shipped]:
    def prepare(machine: Machine) -> None:
        machine.write("proc/device-tree/compatible", f"some,board\0{name}\0".encode())

    return partial(Shipped, memory=list(memory), prepare=prepare)


def ryzen(colors: int, family: int, model: int, top: int, size: int) -> Shipped:
    """With so much memory, all behind TOP_MEM moved behind 4 GiB."""

    def prepare(machine: Machine) -> None:
        machine.processor("AuthenticAMD", family, model)
        machine.amd(top)

    def normal(address: int) -> int:
        return address - (4 * GIB - top) if address >= 4 * GIB else address

    memory = [(0x1000, top), (4 * GIB, 4 * GIB + size - top)]
    return Shipped(colors, memory, prepare, normal)


def nehalem() -> Shipped:
    return Shipped(
        32, [(0x1000, 0xC0000000), (4 * GIB, 5 * GIB)], lambda m: m.processor("GenuineIntel", 6, 26)
    )


SHIPPED = {
    "amd-opteron-6128": Shipped(128, OPTERON, lambda m: m.processor("AuthenticAMD", 16, 9)),
    "amd-opteron-6128-interleaved": Shipped(
        64, OPTERON, lambda m: m.processor("AuthenticAMD", 16, 9)
    ),
    "amd-zen3-1ch-32g": ryzen(2, 25, 80, 4 * GIB - 768 * MIB, 32 * GIB),
    "amd-zen4-1ch-16g": ryzen(2, 25, 97, 2 * GIB, 16 * GIB),
    "amd-zen5-9900x-2x32g": ryzen(8, 26, 68, 0xD0000000, 64 * GIB),  # no multiple of 1 GiB
    "intel-nehalem-w3553-2dimm": nehalem(),
    "intel-sandybridge-2dimm": intel(42)(16),
    "intel-ivybridge-haswell-1ch-1r": intel(58, tom=2 * GIB, tolud=0x7C000000)(8),
    "intel-ivybridge-haswell-1ch-2r": intel(60, tom=4 * GIB)(16),
    "intel-ivybridge-haswell-2ch-1r": intel(69)(8),
    "intel-ivybridge-haswell-2ch-2r": intel(70, tom=16 * GIB)(16),
    "intel-skylake-6200u-8g": intel(78)(16),
    "intel-skylake-e3-1220v5-4x4g": intel(94, tom=16 * GIB)(16),
    "intel-coffeelake-1ch-1r": intel(158)(8),
    "intel-coffeelake-1ch-2r": intel(158)(16),
    "intel-cometlake-1ch-1r-8banks": intel(165, tom=4 * GIB)(4),
    "intel-cometlake-1ch-1r-16banks": intel(165)(8),
    "intel-raptorlake-1ch-16g": intel(183, tom=16 * GIB)(16),
    "intel-raptorlake-1ch-32g": intel(183, tom=32 * GIB)(32),
    "raspberry-pi-zero-2": board("raspberrypi,model-zero-2-w", (0, 0x1E000000))(8),
    "raspberry-pi-4-2g": board("raspberrypi,4-model-b", (0, 0x3B400000), (GIB, 2 * GIB))(8),
    "raspberry-pi-5-banklow-4": board("raspberrypi,5-model-b", (0x80000, 4 * GIB - 64 * MIB))(16),
    "raspberry-pi-5-banklow-1": board("raspberrypi,5-model-b", (0x80000, 8 * GIB))(16),
    "nvidia-jetson-nano-4g": board("nvidia,p3450-0000", (0x80000000, 0x17FE00000))(4),
    "nvidia-jetson-orin-nano-8g": board("nvidia,p3767-0005", (0x80000000, 0x27F000000))(16),
    "nvidia-jetson-agx-orin-32g": board("nvidia,p3701-0000", (0x80000000, 0x87F000000))(32),
}


def test_all_that_is_shipped_is_tested_and_has_its_source() -> None:
    assert {path.stem for path in MAPS.iterdir()} == set(SHIPPED)
    for path in MAPS.iterdir():
        head = path.read_text().partition("\nmap ")[0]
        assert "# source: " in head and "# machine: " in head and "# about: " in head
        assert max(len(line) for line in path.read_text().splitlines()) <= 100


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped(machine: Machine, name: str) -> None:
    """Colors against brute force: the banks of each cache line of pages by the published masks."""
    shipped = SHIPPED[name]
    machine.memory(shipped.memory)
    shipped.prepare(machine)
    answer = machine.output("map", "check", name)
    assert f"fits this machine: {shipped.colors} colors with " in answer
    text = machine.output("map", "convert", name)
    assert len(text) <= 4095 and "#" not in text
    converted = read_regions(text)
    pages = sample(shipped.memory, 2500)
    colors = machine.colors(name, pages)
    assert colors == [color(converted, page) for page in pages]
    assert set(colors) == set(range(shipped.colors))
    if "opteron" in name:  # several nodes: tested above
        return
    published = masks((MAPS / f"{name}.map").read_text())
    banks = [
        frozenset(
            tuple((shipped.normal(page + line) & mask).bit_count() & 1 for mask in published)
            for line in range(0, PAGE, LINE)
        )
        for page in pages
    ]
    one_to_one(colors, banks)
    merged = len(published) - (shipped.colors.bit_length() - 1)
    assert ("is spread over" in answer) == bool(merged)
    if merged:
        assert f"is spread over {1 << merged} banks" in answer


def test_pages_of_16_kib_have_fewer_colors(machine: Machine) -> None:
    shipped = SHIPPED["raspberry-pi-5-banklow-4"]
    machine.memory(shipped.memory)
    shipped.prepare(machine)
    name = "raspberry-pi-5-banklow-4"
    answer = machine.output("map", "check", "--page-size", "16K", name)
    assert "each page of 16 KiB is spread over 4 banks, so 2 of its 4 bits" in answer
    assert masks(machine.output("map", "convert", "--page-size", "16384", name)) == [
        1 << 31,
        1 << 14,
    ]
    message = "is spread over 8 banks, so 1 of its 4 bits"
    assert message in machine.output("map", "check", "--page-size", "64K", name)
    for size in ("0", "3K", "8M", "512", "4x", "", "99999999999999999999"):
        assert "--page-size" in machine.error("map", "check", "--page-size", size, name)


def test_what_machine_it_is_for(machine: Machine) -> None:
    machine.memory([(0, 2 * GIB)])
    machine.processor("GenuineIntel", 6, 42)
    name = "raspberry-pi-4-2g"
    message = "raspberry-pi-4-2g: the map is for another machine, by its machine lines"
    assert machine.error("map", "check", name).startswith(message)
    assert "8 colors with 256 MiB" in machine.output("map", "check", "--force", name)
    listed = machine.output("map", "list").splitlines()
    assert [line.split()[1] for line in listed if line.startswith("* ")][:-1] == [
        "intel-sandybridge-2dimm"
    ]
    assert "has 8 GiB" not in listed
    assert "there are no maps in /nowhere" in machine.error("map", "list", CAMC_MAPS="/nowhere")
    assert "no map of that name" in machine.error("map", "check", "unheard-of")


def test_a_pi_with_less_memory_than_its_map(machine: Machine) -> None:
    machine.memory([(0, 4 * GIB - 64 * MIB)])
    machine.write("proc/device-tree/compatible", b"raspberrypi,5-model-b\0brcm,bcm2712\0")
    message = "rank-deficient: bank 100000000 never changes in this machine's memory"
    assert message in machine.error("map", "check", "raspberry-pi-5-banklow-1")


def test_a_bit_that_is_always_1_is_no_bit_either(machine: Machine) -> None:
    machine.memory([(4 * MIB, 8 * MIB)])
    path = str(machine.write("m.map", "map m\nregion 0-800000\nbank 400000\nbank 1000\n"))
    assert "bank 400000 never changes in this machine's memory" in machine.error(
        "map", "check", path
    )


# Registers of chipsets


def test_chipsets_that_do_not_tell(machine: Machine) -> None:
    machine.memory([(0, 2 * GIB)])
    machine.processor("GenuineIntel", 6, 42)
    name = "intel-sandybridge-2dimm"
    assert "hoist intel needs TOLUD and TOM" in machine.error("map", "check", name)
    machine.intel(0x7DE00000, 2 * GIB)  # no multiple of 4 MiB
    assert "are no multiples of 4 MiB" in machine.error("map", "check", name)
    machine.processor("AuthenticAMD", 26, 68)
    assert "hoist amd needs TOP_MEM" in machine.error("map", "check", "amd-zen5-9900x-2x32g")


# Maps


def test_counts_against_each_page(machine: Machine) -> None:
    """Random masks on memory with odd borders: the colors of all pages, one by one."""
    chance = random.Random(2)  # noqa: S311
    outcomes: Counter[str] = Counter()
    for _ in range(60):
        bits = chance.randrange(1, 6)
        chosen = [random_mask(chance) for _ in range(bits)]
        ranges = []
        at = 0
        for _ in range(chance.randrange(1, 4)):
            start = at + chance.randrange(0, 600) * PAGE
            at = start + chance.randrange(1, 2500) * PAGE
            ranges.append((start, at))
            at += PAGE
        end = -(-at // (4 * MIB)) * 4 * MIB
        offset = chance.choice((0, 4 * MIB, 8 * MIB))
        ranges = [(start + offset, end + offset) for start, end in ranges]
        end += offset
        text = f"map random\nregion {offset:x}-{end + 4 * MIB:x} offset {offset:x}\n"
        path = machine.write("m", text + "".join(f"bank {mask:x}\n" for mask in chosen))
        machine.memory(ranges)
        answer = machine.run("map", "check", str(path))
        outcomes[judge_count(answer, chosen, ranges, offset)] += 1
    assert set(outcomes) == {"counted", "dependent", "constant", "nothing"}, outcomes


def random_mask(chance: random.Random) -> int:
    """Of many bits, of few, or of one that memory here does not have."""
    kind = chance.randrange(20)
    if not kind:
        return 1 << 30
    return chance.getrandbits(14) << 11 or 1 << 12 if kind < 15 else chance.randrange(1, 8) << 12


def judge_count(
    answer: subprocess.CompletedProcess[str], chosen: list[int], ranges: list[Range], offset: int
) -> str:
    """What became of it, after comparing it with brute force."""
    sums = {0}
    for mask in chosen:
        if mask in sums:
            assert "rank-deficient: mask" in answer.stderr
            return "dependent"
        sums |= {each ^ mask for each in sums}
    # bit 11 alone is below the page: masks that have it lose it in pairs
    low = [mask for mask in chosen if mask & 1 << 11]
    left = [mask if not mask & 1 << 11 else mask ^ low[0] for mask in chosen]
    left = [mask for mask in left if mask]
    if not left:
        assert "there is nothing to color by" in answer.stderr
        return "nothing"
    pages: Counter[tuple[int, ...]] = Counter()
    for start, end in ranges:
        for page in range(start, end, PAGE):
            normal = (page - offset) % (1 << 64)
            pages[tuple((normal & mask).bit_count() & 1 for mask in left)] += 1
    if any(len({each[bit] for each in pages}) == 1 for bit in range(len(left))):
        assert "never changes in this machine's memory" in answer.stderr
        return "constant"
    least, most = (size(count * PAGE) for count in (min(pages.values()), max(pages.values())))
    amount = least if least == most else f"{least} to {most}"
    empty = (1 << len(left)) - len(pages)
    tail = f" of memory each, {empty} without\n" if empty else " of memory each\n"
    assert answer.stdout.endswith(f": {len(pages)} colors with {amount}{tail}"), answer
    return "counted"


def size(amount: int) -> str:
    """As the tool writes it: in the largest unit that it is a multiple of."""
    units = ("KiB", "MiB", "GiB", "TiB")
    power = next((power for power in (3, 2, 1) if not amount % 1024 ** (power + 1)), 0)
    return f"{amount // 1024 ** (power + 1)} {units[power]}"


ONE = "map m\nregion 0-40000000\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'this is no map: it begins with "map NAME"'),
        ("map m\n", "the map has no region"),
        ("bank 1000\n", 'line 1: bank: a map begins with "map NAME"'),
        ("map\n", "line 1: map needs a name of up to 63 characters"),
        (f"map {'n' * 64}\n", "line 1: map needs a name of up to 63 characters"),
        ("map a b\n", "line 1: map needs a name"),
        ("map a\nmap b\n", "line 2: a second map: one a file"),
        ("map m\nbank 1000\n", "line 2: bank belongs to a region: none stands before it"),
        ("map m\nregion\n", "line 2: region needs START-END"),
        ("map m\nregion 0\n", "line 2: region needs START-END"),
        ("map m\nregion 0-xyz\n", "line 2: region 0-xyz: two hexadecimal addresses"),
        ("map m\nregion 0-11112222333344445\n", "two hexadecimal addresses"),
        ("map m\nregion 400000-400000\n", "line 2: region 400000-400000 is empty"),
        ("map m\nregion 0-10000000400000\n", "addresses have 52 bits"),
        ("map m\nregion 0-400000 node\n", "line 2: node needs a value"),
        ("map m\nregion 0-400000 node 1024\n", "line 2: node 1024: a decimal number up to 1023"),
        ("map m\nregion 0-400000 node 1 node 2\n", "line 2: node stands twice"),
        ("map m\nregion 0-400000 offset xyz\n", "offset xyz is no hexadecimal number"),
        ("map m\nregion 0-400000 remove 6\n", "remove takes fields as 13:12,6:6"),
        ("map m\nregion 0-400000 remove 6:7\n", "remove takes fields as 13:12,6:6"),
        ("map m\nregion 0-400000 remove 52:6\n", "remove takes fields as 13:12,6:6"),
        ("map m\nregion 0-400000 remove 7:6,6:6\n", "bit 6 is removed twice"),
        ("map m\nregion 0-400000 hoist intel\n", "unknown word hoist: node, offset, remove"),
        ("map m\nregion 0-all hoist via\n", "hoist via: intel or amd"),
        ("map m\nregion 0-400000 color 7\n", "unknown word color"),
        (ONE + "bank\n", "line 3: bank needs one hexadecimal mask that is not 0"),
        (ONE + "bank 0\n", "bank needs one hexadecimal mask that is not 0"),
        (ONE + "bank 1000 2000\n", "bank needs one hexadecimal mask that is not 0"),
        (ONE + "bank -1000\n", "bank needs one hexadecimal mask that is not 0"),
        (ONE + "bank 1000\nrank 2000\n", "line 4: rank stands behind bank"),
        (ONE + "column 1000\n", "line 3: unknown statement column"),
        (ONE + "x" * 300 + "\n", "line 3 is too long"),
        (ONE + "".join(f"bank {1 << bit:x}\n" for bit in range(12, 29)), "more than 16 masks"),
        ("map m\nregion 0-40000000 remove 6:6\nbank 8000000000000000\n", "beyond the address"),
        ("map m\n" + "region 0-400000\n" * 33, "line 34: more than 32 regions"),
        (
            f"{ONE}bank 1000\nregion 40000000-80000000\nbank 1000\nbank 2000\n",
            "line 4: the region has 0, 0, 2 controller, rank, bank masks; that of line 2 has",
        ),
        (
            "map m\nregion 0-40000000\nbank 1000\nregion 3fc00000-80000000\nbank 1000\n",
            "the regions of lines 2 and 4 overlap at 3fc00000",
        ),
        ("map m\nregion 0-20000000\nbank 1000\n", "memory at 20000000-40000000 is in no region"),
        ("map m\nregion 400000-40000000\nbank 1000\n", "memory at 0-400000 is in no region"),
        (
            "map m\nregion 0-10000000\nbank 1000\nregion 20000000-40000000\nbank 1000\n",
            "memory at 10000000-20000000 is in no region: the map is for another machine",
        ),
        ("map m\nregion 0-40001000\nbank 1000\n", "are multiples of 4 MiB"),
        ("map m\nregion 0-40000000 offset 1000\nbank 1000\n", "are multiples of 4 MiB"),
        ("map m\nregion 0-40000000 offset 400000\nbank 1000\n", "line 2: OFF is larger than START"),
        (ONE + "bank 10000000000000\n", "line 3: mask 10000000000000 has bits beyond the address"),
        ("map m\nregion 1000-all\nbank 1000\n", "START is no multiple of 4 MiB"),
        ("map m\nregion 40000000-all\nbank 1000\n", "there is no memory from 40000000 on"),
        (
            ONE + "bank 3000\nbank 5000\nbank 6000\n",
            "rank-deficient: mask 3 is the XOR of mask 1, 2, so half of the colors cannot occur",
        ),
        (ONE + "bank 1000\nbank 1000\n", "rank-deficient: mask 2 is the XOR of mask 1"),
        (ONE + "bank 40\nbank 80\n", "there is nothing to color by"),
        (ONE, "there is nothing to color by"),
        (ONE + "bank 80000000\n", "bank 80000000 never changes in this machine's memory"),
        (
            ONE + "".join(f"bank {1 << bit:x}\n" for bit in range(12, 23)),
            "1 nodes with 11 bits of color: there are at most 1024 colors",
        ),
        (
            "map m\nregion 0-40000000 node 600\nbank 1000\n",
            "601 nodes with 1 bits of color: there are at most 1024 colors",
        ),
        (
            "map m\nregion 0-20000000\nbank 1040\nbank 2040\nbank 4000\n"
            "region 20000000-40000000\nbank 1040\nbank 2000\nbank 4040\n",
            "pages of the regions of lines 2 and 6 mix different banks",
        ),
        ("map m\nregion 0-40000000\nbank 10\x0000\n", "is no text"),
    ],
)
def test_refused(machine: Machine, text: str, message: str) -> None:
    machine.memory([(0, GIB)])
    machine.kernel(0)
    path = str(machine.write("m.map", text))
    assert message in machine.error("map", "check", path)
    assert message in machine.error("map", "load", path)
    assert (machine.root / "sys/kernel/mm/camc/map").read_text() == ""


def test_what_is_accepted(machine: Machine) -> None:
    machine.memory([(0, GIB)])
    text = (
        "# by hand\n\n map  m # name\r\nregion 0x0-0X40000000 remove 13:12,6:6 node 3 offset 0\n"
        "\tcontroller 0x800\n  rank 1000 # a rank\nbank 2000"
    )
    path = str(machine.write("m.map", text))
    # bit 11 of what is left without three bits is bit 14
    assert machine.output("map", "convert", path) == (
        "map m\nregion 0-40000000 node 3 remove 13:12,6:6\ncontroller 800\nrank 1000\nbank 2000\n"
    )
    assert machine.colors(path, [1 << 14, 1 << 15, 1 << 16, 3 << 12 | 1 << 6]) == [28, 26, 25, 24]
    shown = machine.output("map", "show", path)
    assert "0-40000000 node 3 (colors 24 to 31)" in shown and "controller  bit 14\n" in shown
    # the largest: 32 regions, 10 bits
    text = "map m\n" + "".join(
        f"region {n * 32 * MIB:x}-{(n + 1) * 32 * MIB:x}\n" for n in range(32)
    ).replace("\n", "\n" + "".join(f"bank {1 << bit:x}\n" for bit in range(12, 22)))
    path = str(machine.write("m.map", text))
    assert "1024 colors with 1 MiB of memory each" in machine.output("map", "check", path)
    assert "bytes: the kernel takes 4095" in machine.error("map", "convert", path)


def test_pages_tell_apart_what_sums_tell(machine: Machine) -> None:
    """Masks whose low bits cancel out; classes are kept as far as they can be."""
    machine.memory([(0, GIB)])
    text = ONE + "controller 1040\ncontroller 2040\nrank 4040\nbank 8080\nbank 10000\n"
    path = str(machine.write("m.map", text))
    answer = machine.output("map", "convert", path)
    assert answer.splitlines()[2:] == ["controller 3000", "rank 5000", "bank 10000"]
    answer = machine.output("map", "check", path)
    assert "so 3 of its 5 bits of color remain (1 controller, 1 rank, 1 bank)" in answer


def test_memory_with_holes(machine: Machine) -> None:
    path = str(machine.write("m.map", "map m\nregion 0-all\nbank 1000\n"))
    machine.memory([(0x1000, 0x9F000), (0x100000, GIB - PAGE), (2 * GIB - MIB, 3 * GIB + PAGE)])
    assert "region 0-c8000000\n" in machine.output("map", "convert", path)
    machine.memory([(70 * MIB, 90 * MIB), (GIB + 256 * MIB, 2 * GIB)])
    assert machine.output("map", "convert", path).splitlines()[1::2] == [
        "region 0-8000000",
        "region 50000000-80000000",
    ]
    path = str(machine.write("m.map", "map m\nregion 400000-all\nbank 1000\n"))
    assert "region 400000-8000000\n" in machine.output("map", "convert", path)
    machine.memory((n * 2 * GIB, n * 2 * GIB + MIB) for n in range(33))
    assert "more than 32 regions" in machine.error("map", "convert", path)


def test_blocks_are_larger_if_pages_are(machine: Machine) -> None:
    machine.memory([(0, GIB)])
    path = str(machine.write("m.map", "map m\nregion 0-40400000\nbank 10000\n"))
    assert "2 colors with 512 MiB" in machine.output("map", "check", path)
    for size, block in (("16K", "32 MiB (2000000)"), ("64K", "512 MiB (20000000)")):
        message = f"START, END and OFF of a region are multiples of {block}"
        assert message in machine.error("map", "check", "--page-size", size, path)


def test_memory_that_cannot_be_seen(machine: Machine) -> None:
    path = str(machine.write("m.map", "map m\nregion 0-all\nbank 1000\n"))
    assert "/proc/iomem: No such file" in machine.error("map", "check", path)
    machine.write("proc/iomem", "00000000-00000000 : System RAM\n")
    assert "hides the addresses of memory: run as root" in machine.error("map", "check", path)
    machine.write("proc/iomem", "00000000-00000fff : Reserved\n")
    assert "lists no System RAM" in machine.error("map", "check", path)
    machine.write("proc/iomem", "00002000-00000fff : System RAM\n")
    assert "is no range of addresses" in machine.error("map", "check", path)
    # a map that tells its end can be converted without
    path = str(machine.write("m.map", ONE + "bank 1000\n"))
    machine.write("proc/iomem", "00000000-00000000 : System RAM\n")
    answer = machine.run("map", "convert", path)
    assert (answer.returncode, answer.stdout) == (0, ONE + "bank 1000\n")
    assert "whether it covers memory is not known" in answer.stderr
    assert "hides the addresses" in machine.error("map", "check", path)


# The kernel's reader


@pytest.fixture(scope="module")
def kernel_reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """mm/camc_map.c as a program, with every check that the compiler has."""
    folder = tmp_path_factory.mktemp("reader")
    options = ["-O1", "-g", "-DMAIN", "-fsanitize=address,undefined"]
    options += ["-fno-sanitize-recover=undefined", *kernel_headers(folder / "include")]
    target = folder / "reader"
    command = ["gcc", *options, str(HERE / "kernel_map.c"), "-o", str(target)]
    subprocess.run(command, check=True)
    return target


def kernel_colors(
    reader: Path, path: Path, addresses: Sequence[int]
) -> subprocess.CompletedProcess[str]:
    text = "\n".join(f"{address:x}" for address in addresses)
    return subprocess.run(
        [str(reader), str(path)], input=text, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", SHIPPED)
def test_the_kernel_reads_what_is_shipped_as_the_tool_does(
    machine: Machine, kernel_reader: Path, name: str
) -> None:
    shipped = SHIPPED[name]
    machine.memory(shipped.memory)
    shipped.prepare(machine)
    path = machine.write("m.map", machine.output("map", "convert", name))
    pages = [*sample(shipped.memory, 2500), 1 << 51]
    answer = kernel_colors(kernel_reader, path, pages)
    assert (answer.returncode, answer.stderr) == (0, "")
    colors = [-1 if word == "-" else int(word) for word in answer.stdout.split()]
    assert colors == machine.colors(name, pages)
    assert set(colors) == {*range(shipped.colors), -1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# none\n", "line 2: no region"),
        ("bank 1000\n", "line 1: the first statement has to be: map NAME"),
        (f"map {'n' * 64}\n", "line 1: the name is longer than 63"),
        ("map a\nmap b\n", "line 2: a second map: only one is loaded at a time"),
        ("map m\nregion 0-all\n", "line 2: write: region START-END, hexadecimal, END exclusive"),
        ("map m\nregion 0-10000000400000\n", "line 2: write: region START-END"),
        ("map m\nregion 0-1000\n", "line 2: START and END have to be multiples of 0x400000"),
        ("map m\nregion 0-800000\nregion 400000-c00000\n", "line 3: the region overlaps region 1"),
        ("map m\nregion 0-400000 hoist amd\n", "line 2: unknown option hoist: node, offset"),
        (
            "map m\nregion 0-400000 offset 400000\n",
            "line 2: the offset has to be a multiple of 0x400000 up to START",
        ),
        ("map m\nregion 0-400000 node 1024\n", "line 2: write: node N, below 1024"),
        ("map m\nregion 0-400000 remove 6:7\n", "line 2: write bits to remove as HI:LO, below 52"),
        (ONE + "bank 1040\n", "line 3: the mask has bits within a page: camc map eliminates them"),
        (ONE + "bank 10000000000000\n", "line 3: the mask has bits above bit 51"),
        (
            ONE + "bank 3000\nbank 5000\nbank 6000\n",
            "line 5: the mask is the XOR of some before it",
        ),
        (ONE + "bank 1000\nrank 2000\n", "line 4: the order is controller, rank, bank"),
        (ONE + "".join(f"bank {1 << bit:x}\n" for bit in range(12, 23)), "more than 10 masks"),
        (
            "map m\n" + "".join(f"region {n << 22:x}-{n + 1 << 22:x}\n" for n in range(33)),
            "32 regions",
        ),
        (
            ONE + "bank 1000\nregion 40000000-80000000\n",
            "line 5: 0, 0, 0 controller, rank, bank masks",
        ),
        ("map m\nregion 0-400000 node 600\nbank 1000\n", "601 nodes of 2 colors: at most 1024"),
    ],
)
def test_the_kernel_refuses(machine: Machine, kernel_reader: Path, text: str, message: str) -> None:
    answer = kernel_colors(kernel_reader, machine.write("m.map", text), [0])
    assert answer.returncode == 2
    assert answer.stdout.startswith("camc: map: line ") and message in answer.stdout


# Any text


def test_fuzzed(tmp_path: Path) -> None:
    """Thousands of texts, made of maps and dumps, the same ones each time: tool and kernel."""
    target, kernel = tmp_path / "fuzz", tmp_path / "kernel_map.o"
    sources = [str(TOOL / name) for name in ("camc_map.c", "camc_amd.c")]
    options = ["-g", "-O1", "-fsanitize=fuzzer,address,undefined"]
    options += ["-fno-sanitize-recover=undefined"]
    headers = kernel_headers(tmp_path / "include")
    command = ["clang", *options, *headers, "-c", str(HERE / "kernel_map.c"), "-o", str(kernel)]
    subprocess.run(command, check=True, cwd=paths.REPO)
    command = ["clang", *options, str(HERE / "fuzz.c"), *sources, str(kernel), "-o", str(target)]
    subprocess.run(command, check=True, cwd=paths.REPO)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for path in [*MAPS.iterdir(), DUMP]:
        (corpus / path.name).write_bytes(path.read_bytes())
    for number, setup in enumerate(SETUPS.values()):
        (corpus / f"setup-{number}").write_text(dump(setup.registers))
    limits = ["-runs=20000", "-seed=1", "-max_len=8192", f"-artifact_prefix={tmp_path}/"]
    answer = subprocess.run(
        [str(target), *limits, str(corpus)], capture_output=True, text=True, check=False
    )
    assert not answer.returncode, answer.stderr[-4000:]
