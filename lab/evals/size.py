# SPDX-License-Identifier: GPL-2.0-or-later
"""How large GCMA is: lines of kernel code, and the frame table beside its area."""

import re

from lab import paths, source, workloads
from lab.guests import Guest, Kernels, run_all
from lab.machine import Machine
from lab.results import Cell, Outcome, Table

# Not GCMA itself: tests, documentation, the benchmark that measures every policy, and compactfit
NOT_COUNTED = re.compile(
    r"^(Documentation|lib|tools)/|_kunit\.c$|cma_bench\.c$|compactfit\.h$|MAINTAINERS|Kconfig"
)
CODE = re.compile(r"\.[chS]$|Makefile$")
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
    found: dict[str, str] = {}
    name = ""
    for line in patch.splitlines():
        if line.startswith("+++ "):
            name = line[4:].split("\t")[0].removeprefix("b/")
        elif line.startswith("+"):
            found[name] = found.get(name, "") + line[1:] + "\n"
    return {file: code_lines(text) for file, text in found.items()}


def kernel_lines(series: source.Series) -> dict[str, int]:
    """Lines of code by file."""
    lines = {
        name: code_lines(path.read_text()) for name, path in series.files.items() if _counts(name)
    }
    for patch in series.patches:
        for name, count in added_lines(patch.path.read_text()).items():
            if _counts(name) and count:
                lines[name] = lines.get(name, 0) + count
    return lines


def _counts(name: str) -> bool:
    return bool(CODE.search(name)) and not NOT_COUNTED.search(name)


def _frame_table_bytes(log: str) -> int:
    """The allocation that vmallocinfo ascribes to the frame tables."""
    return sum(int(size) for size in re.findall(r"^\S+\s+(\d+) gcma_\S+", log, flags=re.M))


def size(kernels: Kernels) -> Outcome:
    """lines of kernel code, and memory for the frame table"""
    lines = kernel_lines(source.read_series(paths.KERNEL))
    total = sum(lines.values())
    guest = Guest(
        "gcma",
        kernels("prod"),
        Machine(memory_mib=512, cpus=1, area_mib=AREA_MIB, policy="gcma"),
        "section vmalloc\ngrep gcma /proc/vmallocinfo\n",
        workloads.files(),
    )
    said = run_all("size", [guest], 5)["gcma"]
    table = _frame_table_bytes(said["vmalloc"])
    percent = 100 * table / (AREA_MIB << 20)
    rows: list[list[Cell]] = [[name, count] for name, count in sorted(lines.items())]
    return Outcome(
        [said.run(counters={"frame table, bytes": table})],
        [
            Table(
                "Lines of kernel code",
                ("file", "lines"),
                [*rows, ["all", total]],
                "Neither blank nor comment; of files that existed, the lines added.",
            ),
            Table(
                "Frame table", ("area, MiB", "table, KiB", "%"), [[AREA_MIB, table / 1024, percent]]
            ),
        ],
        values={"kernel-lines": total, "frame-table": percent},
    )
