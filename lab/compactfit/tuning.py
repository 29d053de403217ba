# SPDX-License-Identifier: GPL-2.0-or-later
"""K for each size-class, chosen by a trace."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from lab import console, process
from lab.compactfit import build
from lab.errors import LabError

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
K_A_LINE = 16


def parse_bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not match or not int(match[1]):
        raise LabError(f"'{text}' is not a size in bytes: write 500000, 512K, 4M or 1G")
    return int(match[1]) * UNITS[match[2]]


def tune(trace: Path, memory: int | None) -> dict[str, Any]:
    """The choice of compactfit-tune, and as C."""
    command = [str(build.tools() / "compactfit-tune"), str(trace)]
    command += [str(memory)] if memory else []
    answer = process.run(command, check=False)
    if answer.returncode:
        raise LabError(answer.stderr.strip() or f"compactfit-tune cannot read {trace}")
    choice: dict[str, Any] = json.loads(answer.stdout)
    return {**choice, "initializer": initializer(choice)}


def initializer(choice: Mapping[str, Any]) -> str:
    """C for cf_config.class_max_not_full."""
    k = [str(size_class["k"]) for size_class in choice["classes"]]
    lines = [", ".join(k[at : at + K_A_LINE]) + "," for at in range(0, len(k), K_A_LINE)]
    wide = ", .wide = true" if choice["wide"] else ""
    pieces = ", .pieces = true" if choice["large_pages"] else ""
    return (
        f"/* a moving heap with .page_size = CF_PAGE_SIZE{wide}{pieces} */\n"
        "static const uint16_t class_max_not_full[CF_MAX_CLASSES] = {\n\t"
        + "\n\t".join(lines)
        + "\n};"
    )


def show(choice: Mapping[str, Any]) -> None:
    """The choice for people."""
    view = Table(title=choice["command"] or "a trace", caption_justify="left")
    for name in ("size, B", "allocations", "peak", "count", "K", "moving frees", "pages"):
        view.add_column(name, justify="right")
    view.add_column("malloc", justify="right")
    view.add_column("free", justify="right")
    keys = ("size", "allocations", "peak", "max_count", "k", "may_move", "pages", "malloc")
    for size_class in choice["classes"]:
        if size_class["allocations"]:
            numbers = [size_class[key] for key in keys]
            copied = f" + {size_class['copied']} B" if size_class["copied"] else ""
            free = f"{size_class['free']}{copied}"
            view.add_row(*(f"{value:,}" for value in numbers), free)
    console.show(view)
    print(
        "count: frees that no allocation followed, at most (Proposition 1)\n"
        "moving frees: how many could move an object with this K\n"
        "pages: of 16 KiB, for the peak, whatever came before\n"
        "malloc, free: the most instructions that were found, and what is copied; nothing is pinned"
    )
    if choice["large_pages"]:
        print(
            f"Objects larger than a page have {choice['large_pages']:,} pages of their own at most."
        )
    if choice["refused"]:
        print(
            f"Left out: {choice['refused']:,} allocations of more than {choice['max_size']:,} B or"
            f" aligned to more than a page, the largest of {choice['refused_size']:,} B."
        )
    print(
        f"\nGuaranteed: a moving heap of {choice['memory']:,} bytes ({choice['pages']:,} pages of"
        " 16 KiB), wherever\nit begins, refuses nothing while no size-class has more objects than"
        " its peak and nothing is\npinned, in whatever order they come and go. With K = 1 that"
        f" takes {choice['least_memory']:,} bytes.\n"
    )
    print(choice["initializer"])
