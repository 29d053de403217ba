# SPDX-License-Identifier: GPL-2.0-or-later
"""How large the systems are: lines of kernel code by part, and the frame table beside an area."""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from lab import export, paths, source, systems, workloads
from lab.errors import LabError
from lab.guests import Guest, Kernels, run_all
from lab.machine import Machine
from lab.results import Cell, Outcome, Table
from lab.source import Series
from lab.systems import System

CODE = re.compile(r"\.[chS]$")
TESTS = re.compile(r"^(Documentation|samples|tools)/|_kunit\.c$")
AREA_MIB = 256


def code_lines(text: str) -> int:
    """Lines that are neither blank nor comment, as cloc counts C."""
    without = re.sub(r"/\*.*?\*/", _newlines, text, flags=re.S)
    without = re.sub(r"//[^\n]*", "", without)
    return sum(1 for line in without.splitlines() if line.strip())


def _newlines(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def added_lines(patch: str) -> dict[str, int]:
    """File -> lines of code that a patch adds to it; removed lines pay for none."""
    added: dict[str, str] = {}
    name = ""
    for line in patch.splitlines():
        if line.startswith("+++ "):
            name = line[4:].split("\t")[0].removeprefix("b/")
        elif line.startswith("+"):
            added[name] = added.get(name, "") + line[1:] + "\n"
    return {file: code_lines(text) for file, text in added.items()}


def kernel_lines(series: Series) -> dict[str, dict[str, int]]:
    """Part -> file -> lines of code, of the systems that are counted."""
    counted = [system for system in systems.SYSTEMS.values() if system.parts]
    parts: dict[str, dict[str, int]] = {part: {} for system in counted for part in system.parts}
    parts |= {system.hooks: parts.get(system.hooks, {}) for system in counted}
    for patch in series.patches:
        system = systems.find(patch.system)
        if system not in counted:
            continue
        for name in filter(_counts, series.claims(patch)):
            parts[_part(name, system)][name] = code_lines(series.files[name].read_text())
        for name, count in added_lines(patch.text).items():
            if _counts(name) and count:
                # a patch may also change a new file of ours
                part = parts[_part(name, system) if name in series.files else system.hooks]
                part[name] = part.get(name, 0) + count
    return parts


def _counts(name: str) -> bool:
    return bool(CODE.search(name)) and not TESTS.search(name)


def _part(name: str, system: System) -> str:
    for part, globs in system.parts.items():
        if any(fnmatchcase(name, glob) for glob in globs):
            return part
    raise LabError(f"{name} is in no part of {system.name}: name it in lab/systems.py")


def _lines_table(parts: Mapping[str, Mapping[str, int]]) -> Table:
    rows: list[list[Cell]] = []
    for part, files in parts.items():
        rows += [[part, name, count] for name, count in sorted(files.items())]
        rows.append([part, "all", sum(files.values())])
    return Table(
        "Lines of kernel code",
        ("part", "file", "lines"),
        rows,
        "Neither blank nor comment, without tests; of files that existed, the lines added.",
    )


def _frame_table_bytes(log: str) -> int:
    """The allocation that vmallocinfo ascribes to the frame tables."""
    return sum(int(size) for size in re.findall(r"^\S+\s+(\d+) gcma_\S+", log, flags=re.M))


def size(kernels: Kernels) -> Outcome:
    """lines of kernel code, and memory for the frame table"""
    series = source.read_series(paths.KERNEL)
    parts = kernel_lines(export.selected(series))
    guest = Guest(
        "gcma",
        kernels("prod"),
        Machine(memory_mib=512, cpus=1, area_mib=AREA_MIB, policy="gcma"),
        "section vmalloc\ngrep gcma /proc/vmallocinfo\n",
        workloads.files(),
    )
    output = run_all("size", [guest], 5)["gcma"]
    table = _frame_table_bytes(output["vmalloc"])
    percent = 100 * table / (AREA_MIB << 20)
    return Outcome(
        [output.run(counters={"frame table, bytes": table})],
        [
            _lines_table(parts),
            Table(
                "Frame table", ("area, MiB", "table, KiB", "%"), [[AREA_MIB, table / 1024, percent]]
            ),
        ],
        values={
            **{f"kernel-lines-{part}": sum(files.values()) for part, files in parts.items()},
            "frame-table": percent,
        },
    )
