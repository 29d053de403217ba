# SPDX-License-Identifier: GPL-2.0-or-later
"""compact-fit beside zsmalloc: compressed pages of real programs, in exact guests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lab import boot, measure, paths, process, workloads
from lab.guests import Guest, Kernels, Output, run_all
from lab.machine import Machine
from lab.results import Cell, Line, Outcome, Plot, Table

BENCH = "/sys/kernel/debug/compactfit"
PYTHON = Path("/usr/bin/python3")  # what the launcher asks of the host
MEMORY_MIB = 768

COMPRESSORS = ("lzo-rle", "lz4")
PERCENTS = (20, 50)  # of the objects that are freed
ZSMALLOC = "zsmalloc"
CHOSEN = "compact-fit, 16 KiB"  # whom the figures are about: the default heap
# Allocator, bytes of a page of its heap, what it is called
HEAPS = (
    ("zsmalloc", 0, ZSMALLOC),
    ("moving", 16384, CHOSEN),
    ("moving", 65536, "compact-fit, 64 KiB"),
    ("non-moving", 65536, "the same, non-moving"),
)

# Trees of the syntax of all files, kept; the interpreter shall not free them at its end.
PARSE = """\
import posix, sys
trees = [compile(open(name).read(), name, "exec", 0x400) for name in sys.argv[1:]]
posix._exit(0)
"""

Numbers = Mapping[tuple[str, int, str], Mapping[str, int]]  # compressor, percent, heap -> numbers


@dataclass(frozen=True)
class PageSource:
    """A program whose anonymous pages are compressed."""

    name: str
    command: str
    files: Mapping[str, Path]


def compiler() -> PageSource:
    """GCC proper, on the library itself."""
    proper = process.run(["gcc", "-print-prog-name=cc1"]).stdout.strip()
    folder = paths.cache() / "guest"
    folder.mkdir(exist_ok=True)
    unit = folder / "compactfit.i"
    library = paths.REPO / "compactfit"
    source = str(library / "src/compactfit.c")
    unit.write_text(process.run(["gcc", "-E", "-P", f"-I{library}/include", source]).stdout)
    return PageSource(
        "compiler",
        f"{proper} -fpreprocessed -quiet -O2 -g /compactfit.i -o /tmp/compactfit.s",
        {"/compactfit.i": unit, **boot.programs([proper])},
    )


def interpreter() -> PageSource:
    """Python, on the lab itself."""
    where = [str(PYTHON), "-c", "import encodings; print(encodings.__path__[0])"]
    folder = Path(process.run(where).stdout.strip())
    encodings = {str(path): path for path in folder.glob("*.py")}
    lab = paths.REPO / "lab"
    sources = {
        f"/lab/{'-'.join(path.relative_to(lab).parts)}": path for path in sorted(lab.rglob("*.py"))
    }
    script = paths.cache() / "guest/parse.py"
    script.parent.mkdir(exist_ok=True)
    script.write_text(PARSE)
    return PageSource(
        "interpreter",
        f"{PYTHON} -I -S /parse.py /lab/*.py",
        {"/parse.py": script, **encodings, **sources, **boot.programs([str(PYTHON)])},
    )


def _command(section: str, command: str) -> str:
    return f'section "{section}"\necho "{command}" >{BENCH}/run\ncat {BENCH}/run\n'


def _script(pages: PageSource) -> str:
    lines = [f"anon {BENCH}/pages {pages.command} >/dev/null\n"]
    for compressor in COMPRESSORS:
        for percent in PERCENTS:
            for allocator, page_size, title in HEAPS:
                lines.append(
                    _command(
                        f"{compressor} {percent} {title}",
                        f"fill {compressor} {allocator} {page_size} {percent}",
                    )
                )
    return "".join(lines)


def _worst_script() -> str:
    return "".join(
        _command(f"worst {title}", f"worst {allocator} {page_size}")
        for allocator, page_size, title in HEAPS
    )


def _guest(kernels: Kernels, name: str, script: str, files: Mapping[str, Path]) -> Guest:
    machine = Machine(memory_mib=MEMORY_MIB, cpus=1, area_mib=0)
    return Guest(name, kernels("prod"), machine, script, {**workloads.files("anon"), **files})


def read_fills(output: Output) -> Numbers:
    return {
        (compressor, percent, title): measure.counters(output[f"{compressor} {percent} {title}"])
        for compressor in COMPRESSORS
        for percent in PERCENTS
        for _, _, title in HEAPS
    }


def read_worst(text: str) -> list[tuple[float, float]]:
    """Bytes of an object, and the longest that its size-class keeps others waiting."""
    return [(float(size), float(cost)) for size, cost in map(str.split, text.splitlines())]


def overhead(numbers: Mapping[str, int], used: str, payload: str) -> float:
    """Memory, in percent of the payload, that is no payload."""
    return 100 * (numbers[used] / numbers[payload] - 1)


def _memory(name: str, fills: Numbers) -> Table:
    rows: list[list[Cell]] = []
    for (compressor, percent, heap), numbers in fills.items():
        rows.append(
            [
                *(compressor, percent, heap),
                *(round(numbers["payload"] / numbers["objects"]), numbers["objects"]),
                round(overhead(numbers, "filled", "payload"), 1),
                round(overhead(numbers, "freed", "kept_payload"), 1),
                round(overhead(numbers, "compacted", "kept_payload"), 1),
                round(overhead(numbers, "refilled", "payload"), 1),
            ]
        )
    columns = ("compressor", "freed, %", "heap", "bytes a page", "pages", "filled")
    return Table(
        f"Compressed pages, {name}: memory beyond the payload, %",
        (*columns, "after frees", "and zs_compact()", "refilled"),
        rows,
        "Of zsmalloc: its pages and handles, not what describes its pages; of compact-fit: all but"
        " free pages, which are of use for any size of its heap, not for others.",
    )


def _costs(name: str, fills: Numbers) -> Table:
    rows: list[list[Cell]] = []
    for (compressor, percent, heap), numbers in fills.items():
        if percent != PERCENTS[-1]:
            continue
        rows.append(
            [
                *(compressor, heap),
                *(numbers[f"{what}_{how}"] for what in WHAT for how in ("mean", "max")),
                numbers.get("compact"),
            ]
        )
    columns = [f"{what}, {how}" for what in WHAT.values() for how in ("mean", "max")]
    return Table(
        f"Compressed pages, {name}: instructions",
        ("compressor", "heap", *columns, "zs_compact()"),
        rows,
        f"{PERCENTS[-1]} % were freed. Access: to map and unmap, or cf_at(). Both take their locks,"
        " compact-fit a spinlock by its hooks. zsmalloc takes and gives back pages of the machine"
        " meanwhile; compact-fit has its memory from the start, and its frees compact.",
    )


WHAT = {"alloc": "allocation", "access": "access", "free": "free", "again": "allocation again"}


def _worst_plot(output: Output) -> Plot:
    lines = [Line(title, read_worst(output[f"worst {title}"])) for _, _, title in HEAPS]
    return Plot(
        "The longest that compaction keeps an allocation waiting",
        "lines",
        "bytes of an object",
        "instructions under the lock",
        lines,
        log_x=True,
        log_y=True,
    )


def _longest(output: Output) -> dict[str, tuple[float, float]]:
    """Heap -> the longest wait, and the size of object that has it."""
    return {
        title: max((cost, size) for size, cost in read_worst(output[f"worst {title}"]))
        for _, _, title in HEAPS
    }


def _worst_table(output: Output) -> Table:
    return Table(
        "The longest that compaction keeps an allocation waiting",
        ("heap", "instructions", "bytes of an object"),
        [[title, cost, size] for title, (cost, size) in _longest(output).items()],
        "zsmalloc: zs_compact() of as many groups of pages with one object each as objects fit into"
        " a group, less that of an empty pool: so long zs_malloc() of the same size waits. Who maps"
        " or frees makes zs_compact() let go after the object at hand. compact-fit: all wait for"
        " the longest cf_free(), the copy included, while two full pages are emptied in turns.",
    )


def values(
    programs: Iterable[Numbers], longest: Mapping[str, tuple[float, float]]
) -> dict[str, float]:
    """The figures."""
    freed, compacted = [], []
    for fills in programs:
        for compressor in COMPRESSORS:
            ours, theirs = (fills[compressor, PERCENTS[-1], name] for name in (CHOSEN, ZSMALLOC))
            freed.append(ours["freed"] / theirs["freed"])
            compacted.append(ours["freed"] / theirs["compacted"])
    return {
        "compactfit-zsmalloc-freed": max(freed),
        "compactfit-zsmalloc-compacted": max(compacted),
        "compactfit-zsmalloc-wait": longest[ZSMALLOC][0] / longest[CHOSEN][0],
    }


def evaluation(kernels: Kernels) -> Outcome:
    """compact-fit beside zsmalloc: compressed pages of a compiler and an interpreter"""
    sources = [compiler(), interpreter()]
    guests = [_guest(kernels, pages.name, _script(pages), pages.files) for pages in sources]
    guests.append(_guest(kernels, "worst", _worst_script(), {}))
    outputs = run_all("compactfit-kernel", guests, 60)
    by_source = {pages.name: read_fills(outputs[pages.name]) for pages in sources}
    runs = [
        outputs[name].run(
            counters={
                " ".join(map(str, (*key, what))): value
                for key, numbers in fills.items()
                for what, value in numbers.items()
            }
        )
        for name, fills in by_source.items()
    ]
    return Outcome(
        [*runs, outputs["worst"].run()],
        [
            *(_memory(name, fills) for name, fills in by_source.items()),
            *(_costs(name, fills) for name, fills in by_source.items()),
            _worst_table(outputs["worst"]),
        ],
        [_worst_plot(outputs["worst"])],
        values(by_source.values(), _longest(outputs["worst"])),
    )
