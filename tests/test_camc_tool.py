# SPDX-License-Identifier: GPL-2.0-or-later
"""The camc tool beside maps: running programs, loading, checking processes, who has what."""

import errno
import json
import shutil
import struct
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from lab import paths, source, targets
from tests.camc.machine import GIB, PAGE, STATS, Machine

MAP = "map some\nregion 0-40000000\nbank 2000\nbank 1000\n"  # four colors, page by page
STRICT, FORK, EXEC, SHARE, AUTO = (1 << bit for bit in range(5))  # of <linux/camc.h>
SET, FILL = "1", "4"


@pytest.fixture
def machine(camc_tool: Path, tmp_path: Path) -> Machine:
    """With a loaded map of four colors."""
    machine = Machine(tmp_path / "root", camc_tool)
    machine.memory([(0, GIB)])
    machine.kernel(4, text=MAP)
    machine.environment["CAMC_FAKE_LOG"] = str(machine.root / "log")
    return machine


def asked(machine: Machine) -> list[list[str]]:
    """What the kernel was asked for: operation, flags, number, node, pages, colors."""
    log = machine.root / "log"
    return [line.split() for line in log.read_text().splitlines()] if log.exists() else []


# camc run


@pytest.mark.parametrize(
    ("options", "flags", "rest"),
    [
        ([], AUTO, ["1", "-1", "0"]),
        (["--colors", "4"], AUTO, ["4", "-1", "0"]),
        (["--colors", "2", "--node", "1"], AUTO, ["2", "1", "0"]),
        (["--banks", "0,2-3"], 0, ["0", "-1", "0", "0", "2", "3"]),
        (["--banks", "3", "--strict", "--share"], STRICT | SHARE, ["0", "-1", "0", "3"]),
        (["--colors=2", "--strict"], AUTO | STRICT, ["2", "-1", "0"]),
    ],
)
def test_run(machine: Machine, options: list[str], flags: int, rest: list[str]) -> None:
    answer = machine.run("run", *options, "--", "sh", "-c", 'echo "$0 $1"; exit 3', "-x", "--help")
    assert (answer.returncode, answer.stdout, answer.stderr) == (3, "-x --help\n", "")
    assert asked(machine) == [[SET, str(FORK | EXEC | flags), *rest]]


def test_options_of_the_command_are_its_own(machine: Machine) -> None:
    answer = machine.run("run", "--colors", "1", "echo", "--banks", "7", "--help")
    assert answer.stdout == "--banks 7 --help\n"


def test_prefill(machine: Machine) -> None:
    answer = machine.run("run", "--prefill", "1M", "echo", "hello", CAMC_FAKE_PAGES="256")
    assert answer.stdout == "hello\n"
    assert [line[0] for line in asked(machine)] == [SET, FILL]
    # the kernel refuses a number or a flag that it has no use for
    assert asked(machine)[1] == [FILL, "0", "0", "0", "256"]
    message = "--prefill: got 255 free pages of these colors, not 256: see camc(8) for why"
    call = ("run", "--prefill", "1M", "echo", "hello")
    assert machine.error(*call, status=125, CAMC_FAKE_PAGES="255") == message
    for size in ("0", "", "1T", "-1", "1KK", "123456789012345678"):
        message = f"--prefill {size}: a size such as 65536, 64K, 16M, 1G"
        assert machine.error("run", "--prefill", size, "true", status=125) == message
    assert len(asked(machine)) == 4  # refused before anything was asked for


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--colors", "5"], "this machine has 4 colors, not 5"),
        (["--colors", "0"], "--colors 0: a number from 1 on"),
        (["--colors", "-1"], "--colors -1: a number from 1 on"),
        (["--colors", "many"], "--colors many: a number from 1 on"),
        (["--banks", "4"], "there is no color 4: this machine has 0 to 3"),
        (["--banks", "0-1023"], "there is no color 4: this machine has 0 to 3"),
        (["--banks", "1024"], "--banks 1024: 1024: a list of colors as 0,4-7, each below 1024"),
        (["--banks", "3-1"], "--banks 3-1: 3-1: a list of colors"),
        (["--banks", "1,,2"], "--banks 1,,2: : a list of colors"),
        (["--banks", ""], "--banks : it is empty: a list of colors as 0,4-7"),
        (["--banks", "1,x"], "--banks 1,x: x: a list of colors"),
        (["--banks", "1-"], "--banks 1-: 1-: a list of colors"),
        (["--banks", "1", "--colors", "1"], "--colors is how many, --banks is which: choose one"),
        (["--node", "x"], "--node x: a number of a NUMA node"),
    ],
)
def test_run_refuses(machine: Machine, options: list[str], message: str) -> None:
    assert message in machine.error("run", *options, "--", "true", status=125)
    assert asked(machine) == []


@pytest.mark.parametrize(
    ("options", "why", "message"),
    [
        ([], errno.ENODEV, "no address map is loaded: see camc map list"),
        (["--colors", "3"], errno.EBUSY, "fewer than 3 colors of this node are free"),
        (["--node", "2"], errno.EBUSY, "fewer than 1 colors of node 2 are free (see camc top)"),
        (["--node", "2"], errno.ERANGE, "node 2 does not exist or has fewer than 1 colors"),
        (["--banks", "1"], errno.ERANGE, "a color of the list has no memory, or the node"),
        (["--banks", "1,3"], errno.EBUSY, "process 12 (a b) has color 3: take another"),
        (["--banks", "2"], errno.EBUSY, "a memory cgroup has color 2: take another, or --share"),
        (["--banks", "1"], errno.EBUSY, "a color of the list was taken: try again"),
        ([], errno.EDQUOT, "users may have 64 colors together (/sys/kernel/mm/camc/limit)"),
        ([], errno.ENOMEM, "the kernel refused the colors: Cannot allocate memory"),
    ],
)
def test_the_kernel_refuses(machine: Machine, options: list[str], why: int, message: str) -> None:
    machine.write(
        "proc/camc", "set 7 strict,fork,exec 0,3\nset 8 spill,cgroup 2\ntask 12 12 7 100 a b\n"
    )
    call = ("run", *options, "--", "echo", "started")
    assert message in machine.error(*call, status=125, CAMC_FAKE_ERRNO=str(why))


def test_users_need_a_limit(machine: Machine) -> None:
    machine.write("sys/kernel/mm/camc/limit", "0\n")
    call = ("run", "--", "echo", "started")
    message = "only root may have colors, as long as /sys/kernel/mm/camc/limit is 0"
    assert message in machine.error(*call, status=125, CAMC_FAKE_ERRNO=str(errno.EDQUOT))


def test_without_the_kernels_part(machine: Machine) -> None:
    for path in (machine.root / "sys/kernel/mm/camc").glob("*"):
        if path.is_file():
            path.unlink()
    message = "this kernel lacks CONFIG_CAMC: see GETTING CAMC in camc(8)"
    assert machine.error("run", "true", status=125) == message
    assert machine.error("top") == message
    assert machine.error("map", "load", str(machine.write("m", MAP))) == message
    assert machine.error("check", "1") == message
    assert asked(machine) == []


def test_without_a_map(machine: Machine) -> None:
    machine.kernel(0)
    message = "no address map is loaded: see camc map list, then camc map load MAP"
    assert machine.error("run", "true", status=125) == message


def test_what_cannot_be_executed(machine: Machine) -> None:
    message = "nothing-like-this: No such file or directory"
    assert machine.error("run", "nothing-like-this", status=127) == message
    path = machine.write("text", "no program")
    assert machine.error("run", str(path), status=126) == f"{path}: Permission denied"
    assert "run what?" in machine.error("run", status=125)


@pytest.mark.parametrize(
    "call",
    [
        [],
        ["walk"],
        ["run", "--unheard", "true"],
        ["map", "fold"],
        ["map", "check"],
        ["map", "list", "x"],
        ["map", "color", "x"],
        ["check"],
        ["check", "1", "2"],
        ["top", "x"],
        ["run", "--colors"],
    ],
)
def test_usage(machine: Machine, call: list[str]) -> None:
    answer = machine.run(*call)
    assert answer.returncode == (125 if call[:1] == ["run"] else 2)
    assert "camc run [--colors N | --banks LIST]" in answer.stderr and not answer.stdout


def test_help(machine: Machine) -> None:
    for call in (["--help"], ["help"], ["run", "--help"], ["map", "--help"], ["top", "--help"]):
        assert "camc check [--json]" in machine.output(*call)


# camc map load, show


def test_load(machine: Machine) -> None:
    machine.kernel(0)
    path = machine.write("m.map", "# comment\n" + MAP + "bank 10040\n")
    answer = machine.run("map", "load", str(path))
    assert answer.stdout == "some is loaded: 4 colors with 256 MiB of memory each\n"
    assert "spread over 2 banks, so 2 of its 3 bits of color remain" in answer.stderr
    assert (machine.root / "sys/kernel/mm/camc/map").read_text() == MAP


@pytest.mark.parametrize(
    ("why", "message"),
    [
        (errno.EPERM, "loading a map needs CAP_SYS_ADMIN: run as root"),
        (errno.EACCES, "loading a map needs CAP_SYS_ADMIN: run as root"),
        (errno.EBUSY, "somebody loaded another map meanwhile"),
        (errno.EINVAL, 'the kernel refused it: dmesg tells why, in a line "camc: map:"'),
        (errno.ENOMEM, "the kernel did not take it: Cannot allocate memory"),
    ],
)
def test_load_is_refused(machine: Machine, why: int, message: str) -> None:
    machine.kernel(0)
    path = str(machine.write("m.map", MAP))
    assert message in machine.error("map", "load", path, CAMC_FAKE_WRITE_ERRNO=str(why))


def test_load_only_once(machine: Machine) -> None:
    message = "a map is loaded already (map some): it stays until the machine boots"
    assert machine.error("map", "load", str(machine.write("m.map", MAP))) == message
    assert (machine.root / "sys/kernel/mm/camc/map").read_text() == MAP


def test_show_what_is_loaded(machine: Machine) -> None:
    assert machine.output("map", "show") == (
        "some\n  0-40000000 node 0 (colors 0 to 3)\n    bank        bit 13\n"
        "    bank        bit 12\n4 colors with 256 MiB of memory each\n"
    )
    assert machine.output("map") == machine.output("map", "show")


MANY = "map big\nregion 0-40000000 node 1023\n" + "".join(
    f"bank {1 << bit:x}\n" for bit in range(12, 28)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MANY, "1024 nodes with 16 bits of color: there are at most 1024 colors"),
        (MANY.replace("1023", "0"), "1 nodes with 16 bits of color: there are at most"),
        (MAP + "bank 3000\n", "rank-deficient: mask 3 is the XOR of mask 1, 2"),
        (MAP.replace("40000000", "40000001"), "are multiples of 1 MiB"),
        (MAP.replace("40000000", "all"), "END is all: where memory ends is not known"),
    ],
)
def test_what_is_loaded_is_no_kernels(machine: Machine, text: str, message: str) -> None:
    """CAMC_ROOT has what somebody wrote there."""
    machine.kernel(4, text=text)
    owners(machine)
    process(machine, ALL_RIGHT)
    for call in (["map", "show"], ["check", "12"]):
        error = machine.error(*call)
        assert error.startswith("the loaded map: ") and message in error


def test_the_kernels_blocks_may_be_smaller(machine: Machine) -> None:
    """Of a kernel whose MAX_PAGE_ORDER is not the usual one."""
    text = MAP.replace("0-40000000", "0-40200000")
    machine.kernel(4, text=text)
    owners(machine)
    process(machine, ALL_RIGHT)
    assert "  0-40200000 node 0" in machine.output("map", "show")
    assert machine.run("check", "12").returncode == 0
    path = str(machine.write("m.map", text))
    for call in (["map", "show", path], ["check", "--map", path, "12"]):
        assert "are multiples of 4 MiB" in machine.error(*call)


def test_show_a_map_of_nodes_only(machine: Machine) -> None:
    machine.kernel(1, text="map one\nregion 0-40000000\n")
    assert machine.output("map", "show").endswith("1 colors with 1 GiB of memory each\n")


@pytest.mark.parametrize(
    ("vendor", "family", "model", "needed"),
    [
        ("AuthenticAMD", 16, 2, "camc map dump >FILE as root"),
        ("AuthenticAMD", 21, 2, "registers like family 10h"),
        ("AuthenticAMD", 25, 33, "the DRAM address map of the data fabric"),
        ("GenuineIntel", 6, 151, "CHANNEL_HASH 5024h"),
        ("Other", 1, 1, "ADDRMAP0 to 11"),
    ],
)
def test_what_is_needed(
    machine: Machine, vendor: str, family: int, model: int, needed: str
) -> None:
    machine.kernel(0)
    machine.processor(vendor, family, model)
    answer = machine.output("map")
    assert answer.startswith("no map is loaded\nno map is shipped for this machine: " + vendor)
    assert needed in answer and "else measure it" in answer


def test_what_is_published(machine: Machine) -> None:
    machine.kernel(0)
    machine.write("proc/device-tree/compatible", b"nvidia,p3450-0000\0nvidia,tegra210\0")
    answer = machine.output("map")
    assert "nvidia-jetson-nano-4g" in answer and "ADDRMAP" in answer and "AMD" not in answer


# camc check

HEAP, LIBRARY, PROGRAM, FILE, STACK, BSS, OTHER = range(1, 8)
LINES = """\
1000000-1004000 r-xp 00000000 08:01 11 /bin/some thing
1004000-1005000 r--p 00004000 08:01 11 /bin/some thing
1005000-1006000 rw-p 00005000 08:01 11 /bin/some thing
1006000-1008000 rw-p 00000000 00:00 0
2000000-2004000 rw-p 00000000 00:00 0 [heap]
3000000-3002000 r--p 00000000 08:01 12 /data/file
3002000-3004000 rw-s 00000000 08:01 12 /data/file
4000000-4004000 rw-p 00000000 00:00 0
5000000-5002000 r-xp 00000000 08:01 13 /lib/libsome.so
5002000-5003000 rw-p 00002000 08:02 13 /lib/of-another-disk
7f0000000000-7f0000004000 rw-p 00000000 00:00 0 [stack]
7f0000010000-7f0000011000 r-xp 00000000 00:00 0 [vdso]
"""
PRESENT, SWAPPED, EXCLUSIVE = 1 << 63, 1 << 62, 1 << 56


def process(machine: Machine, pages: dict[int, int], lines: str = LINES) -> None:
    """Process 12: these frames at these addresses; where there is none, none."""
    machine.write("proc/12/maps", lines)
    path = machine.write("proc/12/pagemap", b"")
    with path.open("wb") as file:
        file.truncate(0x7F0000020000 // PAGE * 8)  # sparse
        for address, entry in pages.items():
            file.seek(address // PAGE * 8)
            file.write(struct.pack("<Q", entry))


def frames(color: int, numbers: Iterable[int] = range(4)) -> list[int]:
    """Entries of frames of this color."""
    return [PRESENT | (number + 100) * 4 + color for number in numbers]


def owners(machine: Machine, colors: str = "1,3") -> None:
    machine.write(
        "proc/camc",
        f"set 7 spill,fork,exec {colors}\nset 8 strict 0\ntask 12 12 7 100 some\ntask 9 9 8 1 x\n",
    )


def at(start: int, entries: list[int]) -> dict[int, int]:
    return {start + number * PAGE: entry for number, entry in enumerate(entries)}


ALL_RIGHT = {
    **at(0x1000000, frames(1)),
    **at(0x1004000, [*frames(3, [1]), *frames(1, [5])]),
    **at(0x1006000, frames(3, [2])),
    **at(0x2000000, [*frames(1, [6, 7]), SWAPPED | 0x123]),
    **at(0x3000000, frames(3, range(10, 14))),
    **at(0x4000000, frames(1, [8])),
    **at(0x5000000, frames(3, range(20, 23))),
    **at(0x7F0000000000, frames(1, [9])),
    **at(0x7F0000010000, frames(0, [9])),  # the kernel's own
}


def test_check(machine: Machine) -> None:
    owners(machine)
    process(machine, ALL_RIGHT)
    answer = machine.run("check", "12")
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = answer.stdout.splitlines()
    assert lines[0] == "process 12, map some, its colors: 1,3"
    rows = {line.split()[0]: [int(word) for word in line.split()[1:]] for line in lines[2:9]}
    assert rows == {
        "heap": [2, 2, 0, 0, 1],
        "stack": [1, 1, 0, 0, 0],
        "data": [2, 2, 0, 0, 0],
        "text": [7, 7, 0, 0, 0],
        "anonymous": [1, 1, 0, 0, 0],
        "file": [5, 5, 0, 0, 0],
        "total": [18, 18, 0, 0, 1],
    }
    assert lines[9] == "pages by color: 1: 9, 3: 9"


def test_check_tells_what_is_wrong(machine: Machine) -> None:
    owners(machine)
    wrong = {
        0x1001000: frames(0)[0],
        0x2000000: frames(2)[1],
        0x2003000: frames(2)[2],
        0x4001000: PRESENT | 45,  # the page of zeroes, though its color would be right
        0x4002000: PRESENT | 45,
        0x4003000: PRESENT | EXCLUSIVE | 45,  # what cannot be it
        0x7F0000001000: PRESENT | 0x50000,  # a device
    }
    process(machine, {**ALL_RIGHT, **wrong})
    machine.write("proc/kpageflags", struct.pack("<46Q", *[0] * 45, 1 << 24))
    answer = machine.run("check", "--json", "12")
    assert answer.returncode == 1
    told = json.loads(answer.stdout)
    assert (told["pid"], told["map"], told["colors"]) == (12, "some", [1, 3])
    kinds = told["kinds"]
    assert kinds["heap"] == {"pages": 3, "right": 1, "wrong": 2, "zero": 0, "swapped": 1}
    assert kinds["text"] == {"pages": 7, "right": 6, "wrong": 1, "zero": 0, "swapped": 0}
    assert kinds["anonymous"] == {"pages": 2, "right": 2, "wrong": 0, "zero": 2, "swapped": 0}
    assert kinds["stack"] == {"pages": 1, "right": 1, "wrong": 0, "zero": 0, "swapped": 0}
    assert told["total"] == {"pages": 20, "right": 17, "wrong": 3, "zero": 2, "swapped": 1}
    assert told["by_color"] == {"0": 1, "1": 8, "2": 2, "3": 9} and told["outside"] == 1
    text = machine.run("check", "12")
    assert text.returncode == 1 and "of devices: 1" in text.stdout


def test_check_by_a_map_and_colors_of_ones_own(machine: Machine) -> None:
    """On a kernel that has no coloring, say."""
    process(machine, ALL_RIGHT)
    (machine.root / "proc/camc").unlink()
    (machine.root / "sys/kernel/mm/camc/map").unlink()
    path = str(machine.write("m.map", MAP.replace("bank 1000\n", "")))
    assert machine.run("check", "--map", path, "--colors", "0", "12").returncode == 1
    assert machine.run("check", "--map", path, "--colors", "0-1", "12").returncode == 0
    assert "has no colors: give some by --colors" in machine.error("check", "--map", path, "12")
    for colors, bad in (("x", "x"), ("", "it is empty")):
        message = f"--colors {colors}: {bad}: a list of colors"
        assert message in machine.error("check", "--map", path, "--colors", colors, "12")


def test_check_tells_memory_outside_of_the_map(machine: Machine) -> None:
    """Only what /proc/iomem calls no memory is of devices."""
    owners(machine)
    process(machine, {**ALL_RIGHT, 0x7F0000001000: PRESENT | 0x50000})
    answer = machine.run("check", "12")
    assert (answer.returncode, answer.stderr) == (0, "") and "of devices: 1" in answer.stdout
    machine.memory([(0, GIB), (0x50000000, 0x60000000)])
    answer = machine.run("check", "12")
    assert answer.returncode == 1 and "of memory outside of the map: 1" in answer.stdout
    told = json.loads(machine.run("check", "--json", "12").stdout)
    assert (told["total"]["wrong"], told["unmapped"], told["outside"]) == (1, 1, 0)
    assert told["kinds"]["stack"]["wrong"] == 1
    machine.write("proc/iomem", "00000000-00000000 : System RAM\n")
    message = "pages are outside of the map, of memory or of devices: /proc/iomem hides"
    assert message in machine.error("check", "12")
    (machine.root / "proc/iomem").unlink()
    assert "/proc/iomem: No such file" in machine.error("check", "12")
    process(machine, ALL_RIGHT)
    assert machine.run("check", "12").returncode == 0


def test_threads_may_have_sets_of_their_own(machine: Machine) -> None:
    text = "set 7 spill 1\nset 9 spill 3\ntask 12 12 7 100 some\ntask 12 13 9 100 # else\n"
    machine.write("proc/camc", text)
    process(machine, ALL_RIGHT)
    assert machine.run("check", "12").returncode == 0


def test_check_refuses(machine: Machine) -> None:
    owners(machine)
    assert machine.error("check", "12") == "there is no process 12"
    assert "check some: a number of a process" in machine.error("check", "some")
    process(machine, {0x2000000: PRESENT})
    assert "hides where pages are: run as root" in machine.error("check", "12")
    (machine.root / "proc/12/pagemap").write_bytes(b"")
    assert machine.error("check", "12") == "process 12 ended while it was checked"
    (machine.root / "proc/12/pagemap").unlink()
    assert "/proc/12/pagemap: No such file or directory: run as root" in machine.error(
        "check", "12"
    )
    machine.write("proc/camc", "")
    assert "process 12 has no colors" in machine.error("check", "12")
    machine.write("proc/12/maps", "1000-xyz rw-p 0 0:0 0\n")
    owners(machine)
    assert "/proc/12/maps is not as expected" in machine.error("check", "12")
    machine.kernel(0)
    assert "no address map is loaded: camc map load MAP" in machine.error("check", "12")
    machine.kernel(4, text="nonsense\n")
    assert "the loaded map: line 1: nonsense" in machine.error("check", "12")


# camc top


def test_top(machine: Machine) -> None:
    machine.write(
        "proc/camc",
        "set 7 strict,fork,exec 0,2-3\nset 8 spill,cgroup 1\n"
        'task 12 12 7 100 a "b" #1\ntask 12 13 7 100 thread\ntask 14 14 7 5 c\\d\n',
    )
    text = machine.output("top")
    assert text.splitlines()[0] == ("4 colors; tasks without CAP_SYS_RESOURCE may take 64 together")
    assert "free 0, taken 1, allocated 2, " in text and "lost 12\n" in text
    assert "set 7: 0,2-3 (strict,fork,exec)\n" in text
    assert '        12        100  a "b" #1\n        14          5  c\\d\n' in text
    assert text.endswith("set 8: 1 (spill,cgroup)\n    nobody\n")
    assert json.loads(machine.output("top", "--json")) == {
        "colors": 4,
        "limit": 64,
        "stats": {name: number for number, name in enumerate(STATS)},
        "sets": [
            {
                "id": 7,
                "flags": ["strict", "fork", "exec"],
                "colors": [0, 2, 3],
                "processes": [
                    {"pid": 12, "pages": 100, "name": 'a "b" #1'},
                    {"pid": 14, "pages": 5, "name": "c\\d"},
                ],
            },
            {"id": 8, "flags": ["spill", "cgroup"], "colors": [1], "processes": []},
        ],
    }


def test_names_are_escaped(machine: Machine) -> None:
    """They are the tasks' own choice: for terminals, and for readers of JSON."""
    name = b"\x1b[2J\x07\x7f \xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82 \xff\xc3 \xc2\x9b \xed\xa0\x80"
    machine.write("proc/camc", b"set 7 spill 1\ntask 12 12 7 1 " + name + b"\n")
    plain = "\\x1b[2J\\x07\\x7f ä€🙂 \\xff\\xc3 \\xc2\\x9b \\xed\\xa0\\x80"
    assert machine.output("top").endswith(f"  {plain}\n")
    told = json.loads(machine.output("top", "--json"))["sets"][0]["processes"][0]["name"]
    assert told == "\x1b[2J\x07\x7f ä€🙂 \ufffd\ufffd \ufffd\ufffd \ufffd\ufffd\ufffd"
    call = ("run", "--banks", "1", "--", "true")
    message = machine.error(*call, status=125, CAMC_FAKE_ERRNO=str(errno.EBUSY))
    assert f"process 12 ({plain}) has color 1" in message


def test_map_names_are_escaped(machine: Machine) -> None:
    """Files that somebody else wrote do not tell a terminal what to do."""
    bad, plain = b"a\x9b2J\xff", "a\\x9b2J\\xff"
    text = b"map %s\nregion 0-40000000\nbank 2000\nbank 1040\nbank 40\n" % bad
    path = str(machine.write("m", text))
    merged, name = machine.output("map", "show", path).splitlines()[:2]
    assert merged.startswith(f"{plain}: each page of 4 KiB") and name == plain
    assert f"\n{plain} fits this machine: " in machine.output("map", "check", path)
    machine.kernel(0)
    assert machine.output("map", "load", path).startswith(f"{plain} is loaded: ")
    assert f"is loaded already (map {plain})" in machine.error("map", "load", path)
    owners(machine)
    process(machine, ALL_RIGHT)
    assert machine.run("check", "12").stdout.startswith(f"process 12, map {plain}, its colors")
    machine.write("proc/camc", "set 7 spill,\x1b 1\n")
    assert "set 7: 1 (spill,\\x1b)\n" in machine.output("top")
    assert "there is no file \\x1b, and" in machine.error("map", "check", "\x1b")
    machine.write("maps/\x1b.map", MAP + "# about: \x1b[2J ä\n# machine: some\n")
    machine.environment["CAMC_MAPS"] = str(machine.root / "maps")
    line = machine.output("map", "list").splitlines()[0]
    assert line == "  \\x1b" + 37 * " " + "\\x1b[2J ä"
    (machine.root / "proc/iomem").unlink()
    told = machine.run("map", "color", path, "0").stderr
    assert told.startswith(f"{plain}: each page")


@pytest.mark.parametrize("control", [b"\x1b[2J", b"\x07", b"\x7f", b"a\xc2\x9bb"])
@pytest.mark.parametrize("words", [b"map %s\n", b"map x\n %s\n", b"registers amd-10h %s\n"])
def test_control_characters_are_refused(machine: Machine, words: bytes, control: bytes) -> None:
    path = str(machine.write("m", words % control))
    line = words.count(b"\n")
    assert machine.error("map", "check", path) == f"{path}: line {line} has a control character"


def test_top_of_nobody(machine: Machine) -> None:
    assert json.loads(machine.output("top", "--json"))["sets"] == []
    assert len(machine.output("top", "--once").splitlines()) == 2


@pytest.mark.parametrize("line", ["set x spill 0", "set 1", "set 1 spill 9999", "task 1 1 1 some"])
def test_a_table_of_another_version(machine: Machine, line: str) -> None:
    machine.write("proc/camc", line + "\n")
    assert "is not as expected: camc is of another version" in machine.error("top")


# Its place in the kernel's tree


def test_makefile_builds_and_installs_it_with_its_maps_and_manual(tmp_path: Path) -> None:
    base = source.pristine(targets.DEFAULT.linux, paths.cache()).path
    for name in ("build", "include", "lib", "mm", "scripts"):
        shutil.copytree(base / "tools" / name, tmp_path / "tools" / name)
    shutil.copytree(base / "include/uapi", tmp_path / "include/uapi")
    ours = paths.KERNEL / "files/tools/mm"
    shutil.copytree(ours, tmp_path / "tools/mm", dirs_exist_ok=True)
    shutil.copytree(
        paths.KERNEL / "files/include/uapi", tmp_path / "include/uapi", dirs_exist_ok=True
    )
    for patch in source.read_series(paths.KERNEL, targets.DEFAULT.linux).patches:
        if "tools/mm/Makefile" in patch.touches:
            subprocess.run(["patch", "-sp1"], cwd=tmp_path, input=patch.text, text=True, check=True)
    installed = tmp_path / "root"
    command = ["make", "-s", "-C", tmp_path / "tools/mm", f"DESTDIR={installed}", "install"]
    subprocess.run(command, check=True)
    said = subprocess.check_output([installed / "usr/sbin/camc", "--help"], text=True)
    assert said.startswith("camc run ")
    maps = {path.name for path in (installed / "usr/share/camc/maps").iterdir()}
    assert maps == {path.name for path in (ours / "camc-maps").iterdir()}
    assert (installed / "usr/share/man/man8/camc.8").exists()
