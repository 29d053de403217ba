# SPDX-License-Identifier: GPL-2.0-or-later
"""Address maps against the paper's numbers and brute force; recordings; ugly ones of both."""

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from lab import boot, build, flavours, measure, systems, workloads
from lab.boot import BootResult
from lab.build import Kernel
from lab.dram import maps, recording
from lab.dram.boards import BOARDS, Board
from lab.dram.maps import PAGE_SHIFT
from lab.dram.recording import HASHED, OPTERON, Wanted
from lab.errors import LabError
from lab.guests import Guest, Output
from lab.machine import Machine

# The paper's machine: Table 1, with the hole for devices below 4 GiB. Channels, ranks are halves.
MASKS = "controller 100000000\nrank 80000000\nbank 10000\nbank 8000\nbank 4000\n"
PAPERS = "map amd-opteron-6128\n" + "".join(
    f"region {span}\n{MASKS}"
    for span in (
        "0-d8000000",
        "100000000-228000000 offset 28000000",
        "228000000-428000000 node 1 offset 228000000",
        "428000000-628000000 node 2 offset 428000000",
        "628000000-828000000 node 3 offset 628000000",
    )
)
# Masks with bits below the page, as most processors of today have; fields that are left out
LOW_BITS = """\
map low-bits
region 0x100000000-0x180000000 offset 0x100000000 remove 7:7,21:20
controller 4040
rank 44000
bank 88000
bank 110000
bank 220100
"""


def page(address: int) -> int:
    return address >> PAGE_SHIFT


def test_color_is_the_papers_formula() -> None:
    text = "map example\nregion 0-400000\ncontroller 20000\nrank 10000\nbank 8000\nbank 4000\n"
    text += text.partition("\n")[2].replace("0-400000", "400000-800000 node 1")
    example = maps.read(text)
    # node 1, channel 0, rank 1, bank 3: the paper says 19, which its formula gives for rank 0
    assert ((1 * 2 + 0) * 2 + 1) * 4 + 3 == 23
    assert example.color(page(0x400000 | 0x10000 | 0xC000)) == 23
    assert example.color(page(0x400000 | 0xC000)) == 19


@pytest.mark.parametrize(
    ("first", "last", "controller"),
    [
        (0x0, 0x227FFFFFF, 0),
        (0x228000000, 0x427FFFFFF, 1),
        (0x428000000, 0x627FFFFFF, 2),
        (0x628000000, 0x827FFFFFF, 3),
    ],
)
def test_controllers_have_the_ranges_of_table_1(first: int, last: int, controller: int) -> None:
    papers = maps.read(PAPERS)
    assert papers.nodes * papers.node_colors == 128
    assert [papers.color(page(at)) // papers.node_colors for at in (first, last)] == [
        controller
    ] * 2


def brute_force(text: str, address: int) -> int:
    """The color, bit by bit, from the text."""
    node, number = 0, None
    masks: list[int] = []
    for line in text.splitlines():
        word, *rest = line.split()
        if word == "region":
            if number is not None:
                break
            start, end = (int(part, 16) for part in rest[0].split("-"))
            if not start <= address < end:
                masks = []
                continue
            options = dict(zip(rest[1::2], rest[2::2], strict=True))
            node = int(options.get("node", "0"))
            bits = [(address - int(options.get("offset", "0"), 16)) >> n & 1 for n in range(48)]
            removed = {
                bit
                for field in options.get("remove", "").split(",")
                if field
                for bit in range(int(field.split(":")[1]), int(field.split(":")[0]) + 1)
            }
            number = [bit for n, bit in enumerate(bits) if n not in removed]
        elif word != "map" and number is not None:
            masks.append(int(rest[0], 16))
    assert number is not None
    color = node
    for mask in masks:
        color = 2 * color + sum(bit for n, bit in enumerate(number) if mask >> n & 1) % 2
    return color


@pytest.mark.parametrize("text", [PAPERS, OPTERON, HASHED, LOW_BITS])
def test_colors_are_those_of_brute_force(text: str) -> None:
    address_map = maps.read(text)
    dice = random.Random(1)  # noqa: S311
    for region in address_map.regions:
        edges = [region.start, region.end - 4096]
        for at in edges + [dice.randrange(region.start, region.end) & ~4095 for _ in range(300)]:
            assert address_map.color(page(at)) == brute_force(text, at)


@pytest.mark.parametrize(
    ("text", "row_bytes"),
    [(OPTERON, 16384), (HASHED, 8192), (LOW_BITS, 8192), (LOW_BITS, 1024), (PAPERS, 16384)],
)
def test_rows_have_their_size_and_banks_the_same_share(text: str, row_bytes: int) -> None:
    address_map = maps.read(text)
    start = page(address_map.regions[0].start)
    lines = Counter(
        line
        for number in range(start, start + 1024)
        for line in address_map.lines(number, row_bytes)
    )
    # addresses that differ in the three bits that are left out are one line
    times = 8 if "remove" in text else 1
    assert set(lines.values()) == {times * row_bytes // 64}
    banks = Counter((line.channel, line.rank, line.bank) for line in lines)
    assert len(set(banks.values())) == 1


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_boards_and_their_maps_have_the_same_banks(board: Board) -> None:
    grade, memory = board.memory.grade, board.memory
    counts = [board.map.count(kind) for kind in maps.KINDS]
    assert counts == [memory.channels, grade.ranks, grade.banks]
    assert board.map.nodes == memory.nodes


REGION = "map m\nregion 0-400000\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "map ?, line 0: there is no region"),
        ("region 0-1000\n", "line 1: the first statement has to be 'map NAME'"),
        ("map\n", "line 1: write 'map NAME'"),
        ("map a b\n", "line 1: write 'map NAME'"),
        ("map a\n# nothing\n", "map a, line 2: there is no region"),
        ("map a\nmap b\n", "map a, line 2: a second 'map'"),
        ("map a\nregion 0\n", "line 2: write 'region START-END"),
        ("map a\nregion 0-1000 node x\n", "line 2: write 'region START-END"),
        ("map a\nregion 0-1000 offset g\n", "'g' is not a hexadecimal number"),
        ("map a\nregion 0x-1000\n", "'0x' is not a hexadecimal number"),
        ("map a\nregion 1000-1000\n", "the region is empty"),
        ("map a\nregion 2000-1000\n", "the region is empty"),
        ("map a\nregion 1000-2000 offset 2000\n", "the offset lies above"),
        ("map a\nregion 0-1000 remove 1:2\n", "'1:2' is no bit field"),
        ("map a\nregion 0-1000 remove 64:2\n", "'64:2' is no bit field"),
        ("map a\nregion 0-1000 remove 9:7,8:6\n", "the removed bit fields overlap"),
        ("map a\nregion 0-1000 remove 9:7,\n", "'' is no bit field"),
        ("map a\nbank 1000\n", "a bank belongs to the region before it"),
        (REGION + "bank 2000\nrank 4000\n", "line 4: the order is controller, rank, bank"),
        (REGION + "bank 0\n", "line 3: a mask of no bits"),
        (REGION + "bank\n", "'' is not a hexadecimal number"),
        (REGION + "bank 2000\nbank 4000\nbank 6000\n", "depend on each other"),
        (REGION + "bank 2000\nrnak 4000\n", "unknown statement 'rnak'"),
        (REGION + "region 400000-800000\nbank 2000\n", "has other numbers of masks"),
        (REGION + "region 3ff000-800000\n", "the regions overlap at 3ff000"),
    ],
)
def test_bad_maps_are_refused(text: str, message: str) -> None:
    with pytest.raises(LabError) as caught:
        maps.read(text)
    assert message in caught.value.message


def test_comments_blanks_and_prefixes_do_not_matter() -> None:
    told = "# of nothing\n\nmap  m   # its name\n region 0x0-0x400000\tnode 2 \n bank 0x2000#\n"
    (region,) = maps.read(told).regions
    assert (region.end, region.node, region.all_masks) == (0x400000, 2, [0x2000])


def test_address_outside_of_all_regions_is_told() -> None:
    with pytest.raises(LabError, match="does not cover address 0x400000"):
        maps.read(REGION).color(page(0x400000))


# Recordings


def test_pages_are_read_in_the_order_of_addresses() -> None:
    text = "0 11 a0 1\n0 10 b0 1\n1 10 c0 3\n"
    assert recording.read(text) == [[0xB0, 0xA0], [0xC0, 0xC1, 0xC2]]
    assert recording.read("") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 10 a\n", "'TASK VIRTUAL PHYSICAL COUNT' in a line, not '0 10 a'"),
        ("0 10 zz 1\n", "not '0 10 zz 1'"),
        ("\n", "not ''"),
        ("0 10 a0 2\n0 11 a8 1\n", "page 11 of task 0 twice"),
        ("0 10 a0 2\n1 10 a1 1\n", "a physical page twice"),
        ("0 10 a0 1\n2 10 a1 1\n", "lacks a task"),
    ],
)
def test_bad_recordings_are_refused(text: str, message: str) -> None:
    with pytest.raises(LabError) as caught:
        recording.read(text)
    assert message in caught.value.message


def a_kernel(symbol: str) -> Kernel:
    return Kernel(flavours.FLAVOURS["camc"], "6.12", Path(), {systems.CAMC.symbol: symbol})


SCENARIOS = {"own": [Wanted(0, 2, (0,)), Wanted(1, 1, (1,))], "buddy": [Wanted(4, 1)]}
OWN, BUDDY = "0 10 0 1\n0 11 20 1\n1 12 4 1\n", "0 10 77 1\n"


def recorded(**printed: str) -> recording.Recorded:
    guest = recording.guest(lambda _: a_kernel("y"), OPTERON, SCENARIOS)
    return recording.recorded(output(guest, {"buddy": BUDDY, **printed}), SCENARIOS)


def test_the_kernel_is_asked_for_colors_and_what_it_gave_is_taken() -> None:
    guest = recording.guest(lambda _: a_kernel("y"), OPTERON, SCENARIOS)
    assert "section own\npages 0:2:local:colors=0 1:1:local:colors=1\n" in guest.script
    assert "section buddy\npages 4:1:local\n" in guest.script
    assert recorded(own=OWN) == {"own": [[0, 0x20], [4]], "buddy": [[0x77]]}


def test_the_kernel_with_coloring_is_built() -> None:
    asked: list[str] = []

    def kernels(flavour: str) -> Kernel:
        asked.append(flavour)
        return a_kernel("y")

    recording.guest(kernels, OPTERON, SCENARIOS)
    assert asked == ["camc"]
    assert flavours.FLAVOURS["camc"].should_have(systems.CAMC)


def test_a_kernel_without_coloring_is_refused() -> None:
    with pytest.raises(LabError) as caught:
        recording.guest(lambda _: a_kernel("n"), OPTERON, SCENARIOS)
    assert caught.value.message == (
        "the camc kernel has no CONFIG_CAMC, and only a kernel that has it gives tasks pages of"
        " their colors"
    )


def test_pages_of_another_color_are_kept_and_counted() -> None:
    assert recording.wrong(OPTERON, SCENARIOS, recorded(own=OWN)) == 0
    wrong = recorded(own="0 10 0 1\n0 11 4 1\n1 12 8 1\n")
    assert wrong["own"] == [[0, 4], [8]]
    assert recording.wrong(OPTERON, SCENARIOS, wrong) == 2


def test_a_task_that_lacks_pages_is_told() -> None:
    with pytest.raises(LabError, match="own: not every task has as many pages"):
        recorded(own="0 10 0 1\n1 12 4 1\n")


def output(guest: Guest, sections: dict[str, str]) -> Output:
    result = BootResult(
        "", "", "", True, 0, 1.0, timed_out=False, panic=None, signal=None, command=["qemu"]
    )
    return Output(guest, result, sections)


@pytest.mark.guest
def test_pages_come_of_the_nodes_that_the_policy_says() -> None:
    kernel = build.build(os.environ.get("GCMA_TEST_FLAVOUR", "prod"))
    nodes = (("bind=1", {1}), ("interleave=2,3", {2, 3}), ("local", {3}))
    wanted = " ".join(f"{recording.NODES - 1}:64:{policy}" for policy, _ in nodes)
    script = f"""\
section pages
pages {wanted}
section refused
for task in 0:1:bind=9 0:1:colors=1 0:1:nothing 99:1:local 0:0:local x; do
	! pages 0:1:local $task 0:1:local
done
"""
    cpus = recording.NODES  # one each: a recording's others would show nothing more
    machine = Machine(recording.NODES * recording.NODE_MIB, cpus, area_mib=0, nodes=cpus)
    text = workloads.PRELUDE + script
    files = workloads.files("pages")
    result = boot.exact(kernel, machine, text, files=files, timeout=900).check()
    sections = measure.sections(result.output)
    by_task = recording.read(sections["pages"])
    for (_, expected), pages in zip(nodes, by_task, strict=True):
        assert {number // (recording.NODE_MIB << 8) for number in pages} == expected
    assert sections["refused"].count("pages: ") == 6
