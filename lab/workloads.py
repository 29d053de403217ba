# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs in the guests: pieces of shell script, and programs compiled on the host."""

import hashlib
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lab import boot, paths, process

UAPI = paths.KERNEL / "files/include/uapi"  # of our systems
TOOLS = paths.KERNEL / "files/tools/mm"
SOURCES = Path(__file__).parent / "guest"
AREA = "/sys/kernel/mm/cma/reserved"  # the default area, the one that cma= makes
DEBUG = "/sys/kernel/debug/cma/reserved"
BENCH = f"{DEBUG}/bench_alloc"
HOLD = f"{DEBUG}/bench_hold"

# What measure.sections() cuts apart again.
PRELUDE = f"""\
set -e
section() {{ echo "== $*"; }}
area() {{
	section "area $1"
	for file in {AREA}/*; do echo "${{file##*/}} $(cat $file)"; done
}}
snapshot() {{
	area "$1"
	section "diskstats $1"; cat /proc/diskstats
	section "vmstat $1"; cat /proc/vmstat
}}
bench() {{ # PAGES REPETITIONS
	echo "$1 $2" >{BENCH} || true
	cat {BENCH}
}}
"""

WAYS = ("write-back", "put-back", "move-aside")  # of dirty tenants out of a primary's range


def swap_policy(name: str, pages: int) -> str:
    """How the area gives swapped-out pages back; in how many frames no write made a copy of."""
    return f"echo {name} >{AREA}/swap_policy\necho {pages} >{AREA}/dirty_max\n"


def program(name: str) -> Path:
    """A program of lab/guest, linked statically: it runs in any guest."""
    return compiled(SOURCES / f"{name}.c")


def camc_tool() -> Path:
    """The tool of memory coloring, as static."""
    first, *others = sorted(TOOLS.glob("camc*.c"))
    return compiled(first, *others)


@cache
def _toolchain() -> bytes:
    """What goes into each program: its instructions are counted, too."""
    library = Path(process.run(["gcc", "-print-file-name=libc.a"]).stdout.strip())
    version = process.run(["gcc", "--version"]).stdout.encode()
    return version + hashlib.sha256(library.read_bytes()).digest()


def compiled(source: Path, *others: Path) -> Path:
    """The program of some C files and the headers beside them; made again if they changed, or the
    compiler or the C library did.
    """
    flags = ["-O2", "-Wall", "-Wextra", "-static", "-pthread", f"-I{UAPI}"]
    headers = (*sorted(source.parent.glob("*.h")), *sorted(UAPI.rglob("*.h")))
    content = b"".join(path.read_bytes() for path in (source, *others, *headers))
    told = " ".join(flags).encode()
    key = hashlib.sha256(content + told + _toolchain()).hexdigest()[:12]
    folder = paths.cache() / "guest"
    folder.mkdir(exist_ok=True)
    target = folder / f"{source.stem}-{key}"
    if target.exists():
        return target
    fresh = target.with_name(f"{target.name}.{os.getpid()}.{threading.get_ident()}")
    command = ["gcc", *flags, "-o", str(fresh), str(source), *map(str, others), "-lm"]
    process.run(command, failure=f"{source.name} does not compile")
    fresh.rename(target)
    return target


def files(*names: str, host: tuple[str, ...] = ()) -> Mapping[str, Path]:
    """For an exact guest: programs of ours in /bin, and programs of the host."""
    return {**{f"/bin/{name}": program(name) for name in names}, **boot.programs(host)}


# Where unmovable pages are put between movable ones, reclaim frees megabytes more than it was asked
# for. When that happens is chance, and decides over a fifth of the reads.
STEADY = "echo 0 >/proc/sys/vm/watermark_boost_factor\n"

# A request of a RAM disk: what Linux allows most disks. By itself null_blk has 31 pages, one less
# than a window of readahead, which makes two requests of it.
MAX_SECTORS = 2560

# How a small one is made that keeps as little as can be in memory. xfsprogs warns of small ones.
RAM_DISKS = {
    "ext4": "mkfs.ext4 -q -F -m 0 -O ^has_journal -E lazy_itable_init=0",
    "xfs": "mkfs.xfs -q -f --unsupported -l size=8m",
    "f2fs": "mkfs.f2fs -q -f",
}


# As slow as an SD card: 3 ms a request of 128 KiB at most, one at a time. That is 333 a second, and
# 43 MB/s from end to end (null_blk's own limit of these, mbps, lets 20 ms' worth through at once).
# Others wait in the scheduler that cards have, null_blk by itself none: reads overtake writes
# there.
CARD_NS = 3_000_000
CARD = f"""\
echo {CARD_NS} >$disk/completion_nsec
echo 256 >$disk/max_sectors
echo 1 >$disk/hw_queue_depth
echo 1 >$disk/power
echo mq-deadline >/sys/block/disk/queue/scheduler
echo 128 >/sys/block/disk/queue/nr_requests
"""
POWER = "echo 1 >$disk/power\n"


def ram_disk(
    mib: int,
    filesystem: str = "ext4",
    *,
    wait: bool = True,
    at: str = "/disk",
    card: bool = False,
) -> str:
    """A filesystem on a null_blk whose content is guest memory, mounted.

    Its time is the guest's own: 20 us a request, a fast flash disk, or a card's, or none if nobody
    waits.
    """
    power = CARD if card else POWER
    return f"""\
disk=/sys/kernel/config/nullb/disk
mkdir -p $disk {at}
echo {mib} >$disk/size
echo 1 >$disk/memory_backed
echo {2 if wait else 0} >$disk/irqmode
echo 20000 >$disk/completion_nsec
echo 4096 >$disk/blocksize
echo {MAX_SECTORS} >$disk/max_sectors
{power}{RAM_DISKS[filesystem]} /dev/disk 2>/tmp/mkfs >&2 || {{ cat /tmp/mkfs; exit 1; }}
mount -t {filesystem} -o noatime /dev/disk {at}
"""


@dataclass(frozen=True)
class Swap:
    """What an exact guest swaps to. The content is guest memory, so time is the guest's own."""

    script: str
    beforehand: bool  # does it take its memory when it is made, or as it is used?

    def on(self, mib: int, *, wait: bool = True) -> str:
        """The same times as a RAM disk's."""
        return self.script.format(mib=mib, irqmode=2 if wait else 0, max_sectors=MAX_SECTORS)

    def memory_mib(self, mib: int) -> int:
        """To be given to the guest for it."""
        return mib if self.beforehand else 0


SWAPS = {
    # Written once, from end to end: else a page that is swapped out would take as much memory as
    # it leaves, and nothing would ever be gained, or lost.
    "disk": Swap(
        """\
swap=/sys/kernel/config/nullb/swap
mkdir -p $swap
echo {mib} >$swap/size
echo 1 >$swap/memory_backed
echo {irqmode} >$swap/irqmode
echo 20000 >$swap/completion_nsec
echo 4096 >$swap/blocksize
echo {max_sectors} >$swap/max_sectors
echo 1 >$swap/power
dd if=/dev/zero of=/dev/swap bs=1M count={mib} oflag=direct 2>/dev/null
mkswap /dev/swap >/dev/null
swapon /dev/swap
""",
        beforehand=True,
    ),
    # it compresses what our programs write to less than a half
    "zram": Swap(
        """\
echo {mib}M >/sys/block/zram0/disksize
mkswap /dev/zram0 >/dev/null
swapon /dev/zram0
""",
        beforehand=False,
    ),
}
