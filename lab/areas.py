# SPDX-License-Identifier: GPL-2.0-or-later
"""The contiguous areas of the machine this runs on, read from sysfs.

It is looked at on small boards and in emulated ones, where an import is felt: this module imports
next to nothing.
"""

import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

from lab.errors import LabError

SYSFS = Path("/sys/kernel/mm/cma")
PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


class AreaStatus(NamedTuple):
    """One area. None: this kernel or policy does not tell."""

    name: str
    policy: str
    swap_policy: str | None
    scheme: str | None  # of rental memory
    total_pages: int | None
    available_pages: int | None  # not held by a primary
    tenants_file: int | None
    tenants_swap: int | None
    tenants_dirty: int | None  # of them, those that swap has no copy of
    dirty_max: int | None  # of them at most
    stores: int | None
    loads: int | None
    stores_swap: int | None  # of the stores, swapped-out pages
    loads_swap: int | None
    misses: int | None
    recycles: int | None
    revoked: int | None
    quarantined: int | None
    stores_dirty: int | None
    moved_aside: int | None
    put_back: int | None
    written_back: int | None
    lent: int | None
    lends: int | None
    taken_over: int | None
    replaced: int | None
    discarded: int | None
    activated: int | None
    moved_out: int | None
    slipped: int | None
    held: int | None  # stayed though they were to be written to: somebody held them
    no_memory: int | None  # or there was none for a copy
    returns: int | None
    busy: int | None
    no_run: int | None
    alloc_pages_success: int | None
    alloc_pages_fail: int | None

    @property
    def unwritten(self) -> int | None:
        """Writes to swap that were spared: what is put back may be written after all. Those that
        were written back are among those that were put back.
        """
        return _minus(self.stores_dirty, self.put_back)


NUMBERS = AreaStatus._fields[4:]


def read(sysfs: Path = SYSFS) -> list[AreaStatus]:
    """The areas below this folder, by name."""
    if not sysfs.is_dir():
        raise LabError(f"{sysfs} does not exist: this kernel has no CMA, or no CONFIG_CMA_SYSFS")
    return [_area(folder) for folder in sorted(sysfs.iterdir()) if folder.is_dir()]


def _area(folder: Path) -> AreaStatus:
    return AreaStatus(
        folder.name,
        _text(folder / "policy") or "movable",
        _text(folder / "swap_policy"),
        _text(folder / "scheme"),
        **{name: _number(folder / name) for name in NUMBERS},
    )


def _text(path: Path) -> str | None:
    return path.read_text(errors="replace").strip() if path.exists() else None


def _number(path: Path) -> int | None:
    text = _text(path)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise LabError(f"{path} holds {text!r} where a number was expected") from None


def as_json(areas: list[AreaStatus]) -> list[dict[str, str | int | None]]:
    return [{**area._asdict(), "unwritten": area.unwritten} for area in areas]


HEAD = (
    *("area", "policy", "size", "primaries", "file", "swap", "unused", "stores", "loads"),
    *("recycles", "revoked", "quarantined", "failed"),
)
SWAP_HEAD = (
    *("area", "swap policy", "stores", "loads", "dirty", "at most", "dirty stores"),
    *("moved aside", "put back", "written back", "unwritten"),
)
LENT_HEAD = (
    *("area", "scheme", "lent", "lends", "taken over", "replaced", "slipped", "discarded"),
    *("activated", "moved out", "returns", "busy"),
)
TEXTS = 2  # columns on the left, the others are numbers


def table(areas: list[AreaStatus]) -> str:
    """What a person wants to see: sizes in MiB, events as counts of pages."""
    title = "contiguous areas (MiB; events in pages)"
    text = _aligned(title, HEAD, [(area.name, area.policy, *_cells(area)) for area in areas])
    swapped = [
        (area.name, area.swap_policy or "-", *_swap_cells(area))
        for area in areas
        if area.tenants_swap is not None
    ]
    if swapped:
        title = "swapped-out pages in them (dirty: not in swap; unwritten: writes spared)"
        text += "\n" + _aligned(title, SWAP_HEAD, swapped)
    lent = [(area.name, area.scheme, *_lent_cells(area)) for area in areas if area.scheme]
    if lent:
        title = "pages of files that live in them (returns, busy: how often)"
        text += "\n" + _aligned(title, LENT_HEAD, lent)
    return text


def _aligned(title: str, head: tuple[str, ...], body: list[tuple[str, ...]]) -> str:
    rows = [head, *body]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [title]
    for row in rows:
        cells = [
            cell.ljust(width) if number < TEXTS else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells))
    return "\n".join(lines) + "\n"


def _cells(area: AreaStatus) -> list[str]:
    held = _minus(area.total_pages, area.available_pages)
    of_files = area.lent if area.tenants_file is None else area.tenants_file
    tenants = None if of_files is None else of_files + (area.tenants_swap or 0)
    sizes = (
        *(area.total_pages, held, of_files, area.tenants_swap),
        _minus(area.available_pages, tenants),
    )
    events = (area.stores, area.loads, area.recycles, area.revoked, area.quarantined)
    return [
        *(_mib(pages) for pages in sizes),
        *(_count(pages) for pages in (*events, area.alloc_pages_fail)),
    ]


def _swap_cells(area: AreaStatus) -> list[str]:
    events = (area.stores_dirty, area.moved_aside, area.put_back, area.written_back, area.unwritten)
    return [
        *(_count(pages) for pages in (area.stores_swap, area.loads_swap)),
        *(_mib(pages) for pages in (area.tenants_dirty, area.dirty_max)),
        *(_count(pages) for pages in events),
    ]


def _lent_cells(area: AreaStatus) -> list[str]:
    events = (
        *(area.lends, area.taken_over, area.replaced, area.slipped, area.discarded),
        *(area.activated, area.moved_out, area.returns, area.busy),
    )
    return [_mib(area.lent), *(_count(number) for number in events)]


def _minus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a - b


def _mib(pages: int | None) -> str:
    return "-" if pages is None else f"{pages * PAGE_KIB / 1024:.1f}"


def _count(pages: int | None) -> str:
    return "-" if pages is None else f"{pages:,}"


def watch(sysfs: Path, interval: float) -> None:
    """The table, live, until interrupted."""
    shown = table(read(sysfs))
    sys.stdout.write(shown)
    while True:
        sys.stdout.flush()
        time.sleep(interval)
        lines = shown.count("\n")
        shown = table(read(sysfs))
        sys.stdout.write(f"\x1b[{lines}A\x1b[J{shown}")  # over the old one
