# SPDX-License-Identifier: GPL-2.0-or-later
"""What an idle area costs loads that it is of no use to."""

from lab import loads
from lab.guests import Kernels
from lab.loads import GCMA, NONE, PAGES, STREAM_MIB, Load
from lab.results import Outcome

AREA_MIB = CACHE_MIB = 32
STREAM = 2048 * PAGES
VARIANTS = (NONE, GCMA)
FILE = "a stream of a file"
# A hole is read without a disk, and the file may be larger than any.
HOLE = "dd if=/dev/zero of=/disk/data bs=1M count=0 seek=4096 2>/dev/null"


def _load(name: str, job: str, ready: str = ":", seeds: int = 1) -> Load:
    stream = "/dev/stream" in job
    settings = loads.EVERYWHERE if name == FILE else loads.BOTH_LRUS
    sizes = (AREA_MIB, CACHE_MIB, 16)
    return Load(name, *sizes, ready, (job,), (), stream, settings, seeds, elsewhere=seeds)


LOADS = (
    _load("a stream of a disk", f"scan /dev/stream {STREAM_MIB} 1 {STREAM}"),
    _load("the same, each MiB read twice", f"twice /dev/stream {STREAM_MIB} 1 {STREAM}"),
    # compaction, whose copies are a matter of chance, makes up for large folios: xfs
    _load(FILE, f"scan /disk 4096 1 {STREAM}", HOLE, seeds=3),
    _load("the same, 64 KiB each", f"chunks /disk 4096 1 {STREAM}", HOLE),
    _load("random reads of 4 GiB", f"uniform /disk 4096 {{seed}} {STREAM // 2}", HOLE, seeds=3),
)


def nothing(kernels: Kernels) -> Outcome:
    """what an idle area costs loads that it is of no use to"""
    runs, measured = loads.run("nothing", kernels, LOADS, VARIANTS)
    hits = max(m.mean(lambda cost: cost.loads) for m in measured.values())
    return Outcome(
        runs,
        [
            loads.table(
                "Loads that an idle area is of no use to",
                measured,
                VARIANTS,
                f"A new area of {AREA_MIB} MiB beside about {CACHE_MIB} MiB of page cache; at most"
                f" {hits:,.0f} pages come back. The disk takes no time, and the file has none:"
                " instructions are what the job takes without I/O. No random number but in the"
                f" random reads; each sample has {loads.SAMPLE_KIB} KiB less memory than the last.",
            )
        ],
        [],
        {
            **loads.harm("nothing", measured),
            "nothing-instructions": loads.worst(measured, loads.instructions),
        },
    )
