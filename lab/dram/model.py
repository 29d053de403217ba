# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the model: its input made, its output read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from lab import process, workloads
from lab.dram.maps import Location
from lab.dram.timings import Grade
from lab.errors import LabError

SOURCE = Path(__file__).with_name("model.c")
SECONDS = 600  # a run that takes longer hangs


@dataclass(frozen=True)
class Access:
    """One that a task does, or the write-back of a line, for which nobody waits."""

    to: Location
    write: bool = False
    extra: int = 0  # clocks each way, to a node far away


@dataclass(frozen=True)
class Task:
    """A closed loop: at most `mlp` accesses under way, `think` clocks between one and the next.

    With a period it is a job of so many reads, again and again, and misses its deadline if it has
    not ended when the next one is due; it is given up then.
    """

    accesses: Sequence[Access]
    mlp: int = 1
    think: int = 0
    period: int = 0
    start: int = 0
    reads: int = 0  # of a job

    @property
    def statements(self) -> str:
        numbers = (self.mlp, self.think, self.period, self.start, self.reads, len(self.accesses))
        return "\n".join(["task " + " ".join(map(str, numbers)), *self._accesses])

    @cached_property
    def _accesses(self) -> list[str]:
        return [
            f"{it.to.node} {it.to.channel} {it.to.rank} {it.to.bank} {it.to.row}"
            f" {int(it.write)} {it.extra}"
            for it in self.accesses
        ]


@dataclass(frozen=True)
class Queues:
    """Of a controller. No vendor tells: these are of the size that published models have.

    Reads and writes as gem5's default controller has them (32 and 64 entries; writes from 85 % on
    are written, down to 50 %); a cap of a few row hits as in Mutlu and Moscibroda (MICRO 2007). The
    way from the core and back is 0 unless told: it is the same for all, and the model claims no
    nanoseconds.
    """

    reads: int = 32
    writes: int = 64
    high: int = 54
    low: int = 32
    cap: int = 4
    path: int = 0

    @property
    def statement(self) -> str:
        numbers = (self.reads, self.writes, self.high, self.low, self.cap, self.path)
        return "queues " + " ".join(map(str, numbers))


@dataclass(frozen=True)
class Memory:
    """Nodes of channels of one speed grade."""

    grade: Grade
    nodes: int = 1
    channels: int = 1
    queues: Queues = Queues()
    refresh: bool = True

    @property
    def statements(self) -> list[str]:
        timing = self.grade.clocks.statement.split()
        if not self.refresh:
            timing[-2] = "0"
        grade = self.grade
        sizes = (self.nodes, self.channels, grade.ranks, grade.groups, grade.banks)
        return [" ".join(timing), "machine " + " ".join(map(str, sizes)), self.queues.statement]


@dataclass(frozen=True)
class Batches:
    """An end: so many batches of reads by the first task, after some that do not count."""

    warm: int
    reads: int
    count: int

    @property
    def statement(self) -> str:
        return f"run {self.warm} {self.reads} {self.count}"


@dataclass(frozen=True)
class Until:
    """An end: so many clocks."""

    clocks: int

    @property
    def statement(self) -> str:
        return f"until {self.clocks}"


@dataclass(frozen=True)
class Job:
    """One of a periodic task."""

    release: int
    response: int | None  # clocks; None: it missed its deadline


@dataclass
class Measured:
    """Of one task, in clocks."""

    latencies: dict[int, int] = field(default_factory=dict)  # of reads -> how many
    batches: list[int] = field(default_factory=list)  # how long each took
    jobs: list[Job] = field(default_factory=list)

    @property
    def reads(self) -> int:
        return sum(self.latencies.values())

    @property
    def mean_latency(self) -> float:
        return sum(clocks * count for clocks, count in self.latencies.items()) / self.reads

    def latency(self, percent: float) -> int:
        """The nearest rank."""
        left = max(percent / 100 * self.reads, 1)
        for clocks, count in sorted(self.latencies.items()):
            left -= count
            if left <= 0:
                return clocks
        return max(self.latencies)


def text(memory: Memory, cores: Sequence[Sequence[Task]], end: Batches | Until) -> str:
    """The model's input."""
    lines = [*memory.statements, end.statement]
    for tasks in cores:
        lines.append("core")
        for task in tasks:
            lines.append(task.statements)
    return "\n".join(lines) + "\n"


def output(
    memory: Memory, cores: Sequence[Sequence[Task]], end: Batches | Until, *options: str
) -> str:
    """What the model prints. `-c` is its option for all commands."""
    return process.run(
        [str(workloads.compiled(SOURCE)), *options],
        input=text(memory, cores, end),
        failure="the model of DRAM failed",
        timeout=SECONDS,
    ).stdout


def run(
    memory: Memory, cores: Sequence[Sequence[Task]], end: Batches | Until
) -> Sequence[Measured]:
    """Each task's measurements, in the order of cores and of tasks on them."""
    measured = [Measured() for tasks in cores for _ in tasks]
    for line in output(memory, cores, end).splitlines():
        kind, number, *values = line.split()
        told = measured[int(number)]
        first = int(values[0])
        if kind == "latency":
            told.latencies[first] = int(values[1])
        elif kind == "batch":
            told.batches.append(first)
        elif kind == "job":
            told.jobs.append(Job(first, int(values[1]) if values[1] != "-1" else None))
        else:
            raise LabError(f"the model of DRAM printed {line!r}")
    return measured
