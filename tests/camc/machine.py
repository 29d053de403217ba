# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines for camc to look at: folders with what it reads of /proc, /sys and /dev.

And what its maps mean, computed in the plainest way, to compare it with.
"""

import os
import re
import struct
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab import paths

TOOL = paths.KERNEL / "files/tools/mm"
MAPS = TOOL / "camc-maps"
PAGE = 4096
LINE = 64  # bytes that a memory controller moves at once
GIB = 1 << 30
Range = tuple[int, int]  # start, end (exclusive)


@dataclass
class Machine:
    """A folder that stands for the root of a machine's files."""

    root: Path
    tool: Path
    environment: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content)
        return path

    def memory(self, ranges: Iterable[Range]) -> None:
        lines = [f"{start:08x}-{end - 1:08x} : System RAM" for start, end in ranges]
        self.write("proc/iomem", "\n".join([*lines, "fee00000-fee00fff : Local APIC", ""]))

    def processor(self, vendor: str, family: int, model: int) -> None:
        text = f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\n"
        self.write("proc/cpuinfo", f"{text}model\t\t: {model}\nmodel name\t: some\n\n")

    def intel(self, tolud: int, tom: int) -> None:
        """A host bridge with these registers, bit 0 locked as firmware leaves them."""
        config = bytearray(256)
        config[0:2] = b"\x86\x80"
        struct.pack_into("<Q", config, 0xA0, tom | 1)
        struct.pack_into("<I", config, 0xBC, tolud | 1)
        self.write("sys/bus/pci/devices/0000:00:00.0/config", bytes(config))

    def amd(self, top_mem: int) -> None:
        path = self.write("dev/cpu/0/msr", b"")
        with path.open("wb") as file:
            file.seek(0xC001001A)
            file.write(struct.pack("<Q", top_mem))

    def kernel(self, colors: int, limit: int = 64, text: str = "") -> None:
        """Memory coloring with a map (or none: colors is 0) and nobody who has colors."""
        folder = "sys/kernel/mm/camc"
        self.write(f"{folder}/map", text)
        self.write(f"{folder}/colors", f"{colors}\n")
        self.write(f"{folder}/limit", f"{limit}\n")
        for number, name in enumerate(STATS):
            self.write(f"{folder}/stats/{name}", f"{number}\n")
        self.write("proc/camc", "")

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.tool), *arguments],
            env={
                "PATH": os.environ["PATH"],
                "CAMC_ROOT": str(self.root),
                "CAMC_MAPS": str(MAPS),
                **self.environment,
                **environment,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def output(self, *arguments: str) -> str:
        """What a call that succeeds writes."""
        answer = self.run(*arguments)
        assert not answer.returncode, answer.stderr
        return answer.stdout

    def error(self, *arguments: str, status: int = 2, **environment: str) -> str:
        """The one line of a call that is refused."""
        answer = self.run(*arguments, **environment)
        assert answer.returncode == status, (answer.stdout, answer.stderr)
        lines = answer.stderr.splitlines()
        assert len(lines) == 1 and lines[0].startswith("camc: "), answer.stderr
        return lines[0].removeprefix("camc: ")

    def colors(self, name: str, addresses: Sequence[int]) -> list[int]:
        """What the tool says of these."""
        answers = []
        for start in range(0, len(addresses), 4000):
            words = [f"{address:x}" for address in addresses[start : start + 4000]]
            answers += self.output("map", "color", name, *words).split()
        return [-1 if word == "-" else int(word) for word in answers]


STATS = (
    *("free", "taken", "allocated", "refills", "refilled", "returned", "drained", "scanned"),
    *("spilled", "exhausted", "foreign", "kept", "lost"),
)


def build(folder: Path) -> Path:
    """The tool, with every check that the compiler has and a kernel that answers as told."""
    target = folder / "camc"
    sources = [str(path) for path in sorted(TOOL.glob("camc*.c"))]
    options = ["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
    options += ["-fno-sanitize-recover=undefined", "-Wl,--wrap=prctl,--wrap=write"]
    fake = str(Path(__file__).with_name("kernel.c"))
    subprocess.run(["gcc", *options, *sources, fake, "-o", str(target)], check=True)
    return target


def kernel_headers(folder: Path) -> list[str]:
    """What the compiler needs for kernel_map.c: empty ones in place of Linux's."""
    sources = [paths.KERNEL / "files/mm" / name for name in ("camc_map.c", "camc.h")]
    sources.append(paths.KERNEL / "files/include/uapi/linux/camc.h")
    for source in sources:
        for name in re.findall(r"^#include <(linux/.*)>$", source.read_text(), re.M):
            header = folder / name
            header.parent.mkdir(parents=True, exist_ok=True)
            header.touch()
    return [f"-I{folder}", f"-I{paths.KERNEL / 'files/include'}"]


# What a map means


@dataclass
class Region:
    start: int
    end: int
    node: int = 0
    offset: int = 0
    removed: list[Range] = field(default_factory=list)  # high, low
    masks: list[int] = field(default_factory=list)

    def normal(self, address: int) -> int:
        """Squeeze the removed fields out, bit by bit."""
        address = (address - self.offset) % (1 << 64)
        bits = [
            address >> bit & 1
            for bit in range(64)
            if not any(low <= bit <= high for high, low in self.removed)
        ]
        return sum(bit << position for position, bit in enumerate(bits))

    def color(self, address: int) -> int:
        normal, color = self.normal(address), self.node
        for mask in self.masks:
            color = color << 1 | (normal & mask).bit_count() & 1
        return color


def regions(text: str) -> list[Region]:
    """The regions of a map without templates."""
    map_regions: list[Region] = []
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if not words or words[0] == "map":
            continue
        if words[0] != "region":
            map_regions[-1].masks.append(int(words[1], 16))
            continue
        start, end = (int(word, 16) for word in words[1].split("-"))
        options = dict(zip(words[2::2], words[3::2], strict=True))
        fields = [field.split(":") for field in options.get("remove", "").split(",") if field]
        map_regions.append(
            Region(
                *(start, end, int(options.get("node", "0")), int(options.get("offset", "0"), 16)),
                [(int(high), int(low)) for high, low in fields],
            )
        )
    return map_regions


def color(map_regions: list[Region], address: int) -> int:
    for region in map_regions:
        if region.start <= address < region.end:
            return region.color(address)
    return -1


def masks(text: str) -> list[int]:
    """All masks of a map whose regions have the same ones and no removed bits."""
    return [int(mask, 16) for mask in re.findall(r"^(?:controller|rank|bank) (\w+)", text, re.M)]
