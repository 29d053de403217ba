# SPDX-License-Identifier: GPL-2.0-or-later
"""What guests print, read back.

A guest's output is cut into sections, each begun by a line "== NAME"; everything between two of
these is what some file of /proc, /sys or a program printed.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lab.errors import LabError

SECTION = re.compile(r"^== (.+)\n", flags=re.M)


def sections(output: str) -> dict[str, str]:
    """Name -> text; a name that is there twice keeps both texts."""
    by_name: dict[str, str] = {}
    _, *parts = SECTION.split(output)
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        by_name[name] = by_name.get(name, "") + text
    return by_name


# Tracepoints

EVENT = re.compile(
    r"^ *(?P<task>.+)-(?P<pid>\d+) +\[\d+\] +\S+ +(?P<time>\d+(?:\.\d+)?):"
    r" (?P<name>\w+): (?P<text>.*)$",
    flags=re.M,
)


@dataclass(frozen=True)
class Event:
    """One line of tracefs."""

    pid: int
    time: float  # seconds; cycles with trace_clock x86-tsc
    name: str
    text: str

    def field(self, name: str) -> str:
        match = re.search(rf"\b{name}=(\S+)", self.text)
        if not match:
            raise LabError(f"the event {self.name} has no field {name}: {self.text}")
        return match[1]


def events(trace: str) -> list[Event]:
    return [
        Event(int(match["pid"]), float(match["time"]), match["name"], match["text"])
        for match in EVENT.finditer(trace)
    ]


@dataclass(frozen=True)
class Allocation:
    """One cma_alloc(), from its first to its last line."""

    pages: int
    microseconds: float
    ok: bool


def allocations(trace: str) -> list[Allocation]:
    """Pairs of cma_alloc_start and cma_alloc_finish of the same task."""
    begun: dict[int, Event] = {}
    pairs = []
    for event in events(trace):
        if event.name == "cma_alloc_start":
            begun[event.pid] = event
        elif event.name == "cma_alloc_finish" and event.pid in begun:
            start = begun.pop(event.pid)
            microseconds = round((event.time - start.time) * 1e6, 3)
            ok = event.field("errorno") == "0"
            pairs.append(Allocation(int(event.field("count")), microseconds, ok))
    return pairs


# Counters


@dataclass(frozen=True)
class DiskStats:
    """What a disk has done since boot. Sectors have 512 bytes."""

    reads: int
    sectors_read: int
    writes: int
    sectors_written: int


def diskstats(text: str, disk: str) -> DiskStats:
    """One line of /proc/diskstats."""
    for line in text.splitlines():
        fields = line.split()
        if fields[2:3] == [disk]:
            return DiskStats(*(int(fields[i]) for i in (3, 5, 7, 9)))
    raise LabError(f"the guest has no disk {disk}")


def counters(text: str) -> dict[str, int]:
    """Lines of a name and a number, as in /proc/vmstat and in our listing of sysfs."""
    return {name: int(value) for name, value in re.findall(r"^(\w+):? +(\d+)\b", text, flags=re.M)}


def since(before: str, after: str) -> dict[str, int]:
    """What the counters gained between two listings."""
    old = counters(before)
    return {name: value - old.get(name, 0) for name, value in counters(after).items()}


# Micro-benchmarks


@dataclass(frozen=True)
class BenchSample:
    """One line of debugfs bench_alloc."""

    alloc: int
    release: int
    ok: bool


SAMPLE = re.compile(r"^(\d+) (\d+) (\d+) ([01])$", flags=re.M)


def ladder(text: str) -> dict[int, list[BenchSample]]:
    """Samples by pages, as lab/guest/alloc.c prints them."""
    by_pages: dict[int, list[BenchSample]] = {}
    for pages, alloc, release, ok in SAMPLE.findall(text):
        sample = BenchSample(int(alloc), int(release), ok == "1")
        by_pages.setdefault(int(pages), []).append(sample)
    return by_pages


def costs(samples: Iterable[BenchSample]) -> list[float]:
    """Of allocations. Failures count too: their caller has waited as long."""
    return [sample.alloc for sample in samples]


def failures(samples: Iterable[BenchSample]) -> int:
    return sum(not sample.ok for sample in samples)


def held(ladder: Mapping[int, Sequence[BenchSample]], area: Mapping[str, int]) -> float | None:
    """Of the pages that were allocated, those that held a tenant; None: there are no tenants."""
    pages = sum(size * len(samples) for size, samples in ladder.items())
    return area["revoked"] / pages if "revoked" in area else None


def job(text: str) -> tuple[int, int]:
    """Pages accessed and cycles taken, as lab/guest/job.c prints them at its end: of all jobs."""
    lines = re.findall(r"^\s*(\d+) (\d+)\s*$", text, re.MULTILINE)
    if not lines:
        raise LabError("the job did not come to its end", text)
    return sum(int(pages) for pages, _ in lines), sum(int(cycles) for _, cycles in lines)
