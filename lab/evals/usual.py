# SPDX-License-Identifier: GPL-2.0-or-later
"""What an idle area is worth to loads that many machines have."""

from collections.abc import Sequence

from lab import loads
from lab.guests import Kernels
from lab.loads import GCMA, MORE, NONE, PAGES, Load, Setting
from lab.results import Outcome

VARIANTS = (NONE, GCMA, MORE)
READS = 60_000
SEEDS = 2  # in the first setting


def _load(
    name: str,
    job: str,
    sizes: tuple[int, int, int],
    fill: str = "fill",
    settings: Sequence[Setting] = loads.EVERYWHERE,
) -> Load:
    """The second time that it runs; the first has brought in what memory holds of it."""
    area_mib, cache_mib, file_mib = sizes
    job = job.format(mib=file_mib, pages=3 * file_mib * PAGES, seed="{seed}@")
    ready = f"job {fill} /disk {file_mib} 1 >/dev/null\njob {job.replace('@', '1')} >/dev/null"
    name = f"{name}, {file_mib} MiB, area {area_mib}, cache {cache_mib}"
    steps = (job.replace("@", "2"),)
    return Load(name, *sizes, ready, steps, settings=settings, seeds=SEEDS)


UNIFORM = f"uniform /disk {{mib}} {{seed}} {READS}"
ZIPF = f"zipf /disk {{mib}} {{seed}} {READS}"
SMALL = f"small /disk {{mib}} {{seed}} {READS}"
SYNCED = f"synced /disk {{mib}} {{seed}} {READS}"
PATCH = f"patch /disk {{mib}} {{seed}} {READS}"
CHUNKS = "chunks /disk {mib} {seed} {pages}"
# Of f2fs each file has a block more, which is memory here.
NOT_F2FS = tuple(setting for setting in loads.EVERYWHERE if setting.filesystem != "f2fs")
PATCHES = _load("writes to parts of pages", PATCH, (32, 32, 36))
LOADS = (
    _load("Zipf", ZIPF, (32, 32, 96)),
    _load("small files, Zipf", SMALL, (32, 32, 96), "make", NOT_F2FS),
    _load("reads, and writes that wait for the disk", SYNCED, (32, 32, 80)),
    PATCHES,
    _load("cyclic, 64 KiB each", CHUNKS, (32, 32, 80)),
    _load("a set that fits", UNIFORM, (32, 32, 24)),
    _load("uniform", UNIFORM, (128, 16, 96)),
    _load("uniform", UNIFORM, (1, 64, 96)),
)


def usual(kernels: Kernels) -> Outcome:
    """what an idle area is worth to loads that many machines have"""
    runs, measured = loads.run("usual", kernels, LOADS, VARIANTS)
    others = {key: m for key, m in measured.items() if m.load != PATCHES}
    patches = {key: m for key, m in measured.items() if m.load == PATCHES}
    return Outcome(
        runs,
        [
            loads.table(
                "Sectors read from disk by usual loads",
                measured,
                VARIANTS,
                f"{READS:,} pages at random, or three times from end to end, after as many that"
                " are not counted. Areas, and about so much page cache, in MiB.",
            )
        ],
        [],
        {
            **loads.harm("usual", others),
            "usual-slowdown": loads.worst(measured, loads.milliseconds),
            "usual-patches": loads.worst(patches, loads.sectors),
        },
    )
