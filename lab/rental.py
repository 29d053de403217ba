# SPDX-License-Identifier: GPL-2.0-or-later
"""Rental memory beside its rivals: the paper's schemes on this kernel, and what guests say of them.

The machine is the paper's: 150 MB that are free, beside 105 MB of two devices.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from lab import loads, measure, workloads
from lab.errors import LabError
from lab.guests import Output
from lab.loads import GCMA, MOVABLE, NONE
from lab.machine import Machine
from lab.measure import DiskStats

AREA_MIB = 106  # 105 are not whole blocks of 2 MiB
AREA_PAGES = AREA_MIB * loads.PAGES
CACHE_MIB = 150  # about what page cache and programs can have beside the area
KERNEL_MIB = loads.KERNEL_MIB

NOCLEAN, CLEAN, LAZY, ADAPTIVE = "noclean", "clean", "lazy", "adaptive"


@dataclass(frozen=True)
class Variant:
    """A policy and, of rental memory, a scheme of it."""

    policy: str
    scheme: str | None = None

    @property
    def script(self) -> str:
        """What chooses it in a guest that has the policy."""
        return f"echo {self.scheme} >{workloads.AREA}/scheme\n" if self.scheme else ""


VARIANTS: Mapping[str, Variant] = {
    NONE: Variant("none"),
    MOVABLE: Variant("movable"),
    **{scheme: Variant("rental", scheme) for scheme in (NOCLEAN, CLEAN, LAZY, ADAPTIVE)},
    GCMA: Variant("gcma"),
}
NAMES = (
    "In the paper none is Normal, movable REM-Simple, noclean REM-NoClean, clean REM, lazy"
    " REM-Lazy, adaptive REM-AA."
)

# To have the whole area, and memory of programs
STEPS = f"""\
take() {{ # a movable area may have to be asked again
	for try in $(seq 50); do
		echo {AREA_PAGES} >{workloads.DEBUG}/alloc && return 0 || sleep 0.1
	done
	return 1
}}
hold() {{ # MIB
	hog=
	[ $1 != 0 ] || return 0
	: >/tmp/held
	rental hog $1 >/tmp/held &
	hog=$!
	until grep -q held /tmp/held; do kill -0 $hog; sleep 0.01; done
}}
let_go() {{
	[ -z "$hog" ] || {{ kill $hog; wait $hog || true; }}
}}
"""

# An image is rotated, its contrast stretched, and compressed: as much as memory allows at a time
IMAGE_MIB = 30
CONVERT_MIB = 3 * IMAGE_MIB  # of the disk
CONVERT_TOOLS = ("pamflip", "pnmnorm", "pnmtojpeg")
CONVERT = "sh /tmp/convert"
PICTURE = f"""\
export TMPDIR=/disk
rental image /disk/in.ppm {IMAGE_MIB}
cat >/tmp/convert <<'END'
set -e -o pipefail
pamflip -r90 -memsize=32 /disk/in.ppm | pnmnorm -quiet | pnmtojpeg >/disk/out.jpg
END
"""


SLOW_DISK = (
    f"a disk as slow as a card, {workloads.CARD_NS // 1_000_000} ms a request of 128 KiB at most,"
    " one at a time"
)


def card(content_mib: int) -> str:
    """A RAM disk for so much, as slow as a card, with room to spare, which takes no memory."""
    return workloads.ram_disk(content_mib * 5 // 4 + 64, card=True)


def machine(variant: str, content_mib: int, programs_mib: int = 0) -> Machine:
    """The paper's, with memory for such a disk, and for programs."""
    memory = AREA_MIB + CACHE_MIB + KERNEL_MIB + programs_mib
    memory += content_mib + content_mib // 50 + 1  # inodes
    return Machine(memory, 1, AREA_MIB, VARIANTS[variant].policy)


def dirty(outputs: Iterable[Output]) -> int:
    """Pages found dirty in a rental area: each guest tells it at its end, `area end`."""
    found = 0
    for output in outputs:
        counted = measure.counters(output["area end"])
        if "slipped" not in counted and output.guest.machine.policy == "rental":
            raise LabError(f"{output.guest.name}: its area does not count pages found dirty")
        found += counted.get("slipped", 0)
    return found


def disk(output: Output, before: str, after: str) -> DiskStats:
    """What the RAM disk did between two snapshots."""
    first, last = (measure.diskstats(output[f"diskstats {n}"], "disk") for n in (before, after))
    return DiskStats(
        last.reads - first.reads,
        last.sectors_read - first.sectors_read,
        last.writes - first.writes,
        last.sectors_written - first.sectors_written,
    )


@dataclass(frozen=True)
class Return:
    """One: ns until the memory was there, and whether one try was enough (lab/guest/rental.c).

    Just before, so many pages of the machine were dirty, under write-back, and free in areas of
    stock CMA.
    """

    ns: int
    ok: bool
    dirty: int = 0
    writeback: int = 0
    free: int = 0

    @property
    def ms(self) -> float:
        return self.ns / 1e6

    @property
    def used_mib(self) -> float:
        """Of a movable area, all of it."""
        return AREA_MIB - self.free / loads.PAGES


def read_returns(text: str, prefix: str = "") -> list[Return]:
    """Those of lines that begin so."""
    lines = re.findall(rf"^{prefix}(\d+) ([01]) (\d+) (\d+) (\d+)$", text, flags=re.M)
    return [Return(int(ns), ok == "1", *map(int, pages)) for ns, ok, *pages in lines]


def used_mib(variant: str, returns: Sequence[Return]) -> float | None:
    """What a movable area held when it was returned, in the mean; None: not of this policy."""
    if variant != MOVABLE:
        return None
    return round(mean(each.used_mib for each in returns), 1)


def milliseconds(returns: Iterable[Return]) -> list[float]:
    return [each.ms for each in returns]


def failures(returns: Iterable[Return]) -> int:
    return sum(not each.ok for each in returns)


def worst(returns: Sequence[Return]) -> float:
    """The longest, ms."""
    if not returns:
        raise LabError("nothing was returned")
    return max(milliseconds(returns))
