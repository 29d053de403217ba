# SPDX-License-Identifier: GPL-2.0-or-later
"""Deadlines of periodic tasks beside memory attackers, by simulation (paper 4.5, Tables 6 to 9).

Two tasks under rate-monotonic scheduling on one core, three that stream through memory on others.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lab import console
from lab.dram import model, recording
from lab.dram.boards import DDR3, Board
from lab.dram.model import Batches, Measured, Task, Until
from lab.dram.patterns import RANDOM, STREAM, STRIDES, Pattern
from lab.dram.recording import Recorded, Wanted
from lab.guests import Kernels, run_all
from lab.results import Cell, Line, Outcome, Plot, Table

PAGES = 128
SCALE = 200  # a millisecond of the paper is 5 us here: the same with fewer accesses
HYPERPERIODS = 10
SHARES = (2, 5, 10, 25, 50, 100)  # % of the time of a task that is alone which it waits for memory
SAME, BANK, CONTROLLER, ALONE = "same bank", "different bank", "different controller", "alone"
PLACEMENTS = (SAME, BANK, CONTROLLER, ALONE)
ATTACKERS = 3
STEPS = 8  # until the time to think is found
CALIBRATION = Batches(warm=2000, reads=1000, count=20)
GUEST_SECONDS = 60  # of a guest on an idle core
RUN_SECONDS = 5.0  # of a simulation


@dataclass(frozen=True)
class Periodic:
    """One of the paper's real-time tasks: its period (Table 6), and how long it takes alone
    (Tables 7 and 8), in milliseconds; the higher priority first."""

    name: str
    pattern: Pattern
    period: float
    alone: float


TASKS = (Periodic("synthetic", STRIDES, 150, 60.7), Periodic("IS", RANDOM, 200, 54.3))
HYPERPERIOD = math.lcm(*(round(task.period) for task in TASKS))


def analysed(number: int) -> float:
    """Response-time analysis (Joseph and Pandya 1986) with the times alone, in milliseconds."""
    mine, response = TASKS[number], 0.0
    after = mine.alone
    while after > response:
        response = after
        after = mine.alone + sum(
            math.ceil(response / higher.period) * higher.alone for higher in TASKS[:number]
        )
    return response


def scenarios(board: Board) -> dict[str, Sequence[Wanted]]:
    """The two tasks, then the attackers. Of the first all placements have the same color."""
    node = board.map.node_colors
    numbers = range(len(TASKS) + ATTACKERS)
    cpus = [0] * len(TASKS) + list(range(1, ATTACKERS + 1))
    away = [0, 1, *(node * n for n in range(1, ATTACKERS + 1))]
    colors = {SAME: [0] * len(cpus), BANK: list(numbers), CONTROLLER: away}
    return {
        where: [Wanted(cpus[n], PAGES, (its[n],)) for n in numbers] for where, its in colors.items()
    }


@dataclass(frozen=True)
class Bench:
    """A board with recorded pages."""

    board: Board
    wanted: Mapping[str, Sequence[Wanted]]
    pages: Recorded

    def clocks(self, milliseconds: float) -> int:
        return round(milliseconds * 1e6 / SCALE / self.board.memory.grade.clock_ns)

    def task(self, where: str, number: int, pattern: Pattern) -> Task:
        where = CONTROLLER if where == ALONE else where
        node = self.wanted[where][number].node
        return self.board.task(self.pages[where][number], node, pattern, seed=number + 1)

    def job(self, number: int, share: int) -> tuple[int, int]:
        """Time to think and reads of a job that is as long as it should be, when it is alone in a
        bank of its own, and waits for memory for this share of that."""
        task = self.task(ALONE, number, TASKS[number].pattern)
        for _ in range(STEPS):  # the less it thinks, the longer it waits for itself
            (told,) = model.run(self.board.memory, [[task]], CALIBRATION)
            a_read = statistics.mean(told.batches) / CALIBRATION.reads
            reads = round(self.clocks(TASKS[number].alone) / a_read)
            think, task = (
                task.think,
                replace(
                    task, think=round((task.think + told.mean_latency * (100 / share - 1)) / 2)
                ),
            )
        return think, reads

    def run(self, where: str, jobs: Sequence[tuple[int, int]]) -> Sequence[Measured]:
        """The periodic tasks of one simulation."""
        periodic = [
            replace(
                self.task(where, number, task.pattern),
                think=think,
                period=self.clocks(task.period),
                reads=reads,
            )
            for number, (task, (think, reads)) in enumerate(zip(TASKS, jobs, strict=True))
        ]
        cores = [periodic]
        if where != ALONE:
            cores += [[self.task(where, len(TASKS) + n, STREAM)] for n in range(ATTACKERS)]
        end = Until(self.clocks(HYPERPERIODS * HYPERPERIOD) + 1)
        return model.run(self.board.memory, cores, end)[: len(TASKS)]


Results = Mapping[tuple[str, int], Sequence[Measured]]  # by placement and share


def responses(told: Measured) -> list[int]:
    """Of the jobs that met their deadline, in clocks."""
    return [job.response for job in told.jobs if job.response is not None]


def executions(tasks: Sequence[Measured], number: int, periods: Sequence[int]) -> list[int]:
    """Of the jobs that met their deadline: response times without those in which a task of higher
    priority had the core, in clocks. A job that misses has it to its deadline."""
    higher = [
        (job.release, job.release + (period if job.response is None else job.response))
        for told, period in zip(tasks[:number], periods, strict=False)
        for job in told.jobs
    ]
    times = []
    for job in tasks[number].jobs:
        if job.response is None:
            continue
        end, left, at = job.release + job.response, job.response, job.release
        for first, last in sorted(higher):  # which overlap if there are several tasks
            begin, at = max(first, at), max(min(last, end), at)
            left -= max(at - begin, 0)
        times.append(left)
    return times


def missed(tasks: Sequence[Measured]) -> float:
    """Of all jobs, in %."""
    jobs = [job for told in tasks for job in told.jobs]
    return 100 * sum(job.response is None for job in jobs) / len(jobs)


def values(results: Results) -> dict[str, float]:
    worst = {where: max(missed(results[where, share]) for share in SHARES) for where in PLACEMENTS}
    return {
        "camc-schedule-misses": worst[CONTROLLER],
        "camc-schedule-alone": worst[ALONE],
        "camc-schedule-same": worst[SAME],
        "camc-schedule-bank": worst[BANK],
    }


def _times(bench: Bench, results: Results) -> Table:
    rows: list[list[Cell]] = []
    for share in SHARES:
        for where in PLACEMENTS:
            row: list[Cell] = [share, where]
            for told in results[where, share]:
                times = [response / bench.clocks(1) for response in responses(told)]
                row += [round(missed([told]), 1), len(told.jobs)]
                row += [round(f(times), 2) if times else None for f in (statistics.mean, max, min)]
                row.append(round(statistics.pstdev(times), 3) if times else None)
            rows.append(row)
    heads = ("missed %", "jobs", "mean", "max", "min", "std. dev.")
    limits = ", ".join(f"{analysed(n):.1f} ms for {task.name}" for n, task in enumerate(TASKS))
    return Table(
        "Deadline misses and response times, simulated",
        ("memory %", "placement", *(f"{it.name}: {head}" for it in TASKS for head in heads)),
        rows,
        f"Simulated: {bench.board.name}, {recording.HOW}; times are those of a model of DRAM, not"
        f" of hardware, in milliseconds of the paper, of which one is {1000 / SCALE:g} us here."
        f" Periods {' and '.join(f'{task.period:g}' for task in TASKS)} ms; alone they take"
        f" {' and '.join(f'{task.alone:g}' for task in TASKS)} ms, of which they wait for memory"
        f" for the share told, in a bank of their own. Beside {ATTACKERS} tasks that stream."
        " Response times of jobs that met their deadline; one that does not is given up."
        f" Response-time analysis with what they take alone says {limits}.",
    )


def _executions(bench: Bench, results: Results) -> Table:
    periods = [bench.clocks(task.period) for task in TASKS]
    rows: list[list[Cell]] = []
    for share in SHARES:
        for where in PLACEMENTS:
            row: list[Cell] = [share, where]
            for number in range(len(TASKS)):
                clocks = executions(results[where, share], number, periods)
                times = [each / bench.clocks(1) for each in clocks]
                row += [round(f(times), 2) if times else None for f in (statistics.mean, max, min)]
                row.append(round(statistics.pstdev(times), 3) if times else None)
            rows.append(row)
    heads = ("mean", "max", "min", "std. dev.")
    return Table(
        "Execution times, simulated",
        ("memory %", "placement", *(f"{it.name}: {head}" for it in TASKS for head in heads)),
        rows,
        "Simulated (paper Tables 7 and 8), in milliseconds of the paper, of the jobs that met their"
        " deadline: from release to end, but for the time in which the task of higher priority had"
        " the core. One that misses is given up and has no such time: with many misses, mean and"
        " max are of those that were lucky.",
    )


def _plots(bench: Bench, results: Results) -> list[Plot]:
    first = TASKS[0]
    misses, times = [], []
    for where in PLACEMENTS:
        told = {at: results[where, share] for at, share in enumerate(SHARES)}
        misses.append(Line(where, [(at, missed(tasks)) for at, tasks in told.items()]))
        ended = {at: responses(tasks[0]) for at, tasks in told.items()}
        alone = bench.clocks(first.alone)
        means = [(at, statistics.mean(its) / alone) for at, its in ended.items() if its]
        times.append(Line(where, means))
    names = {
        "Deadline misses, simulated": ("% of jobs", misses),
        f"Time of {first.name}, simulated": ("mean of jobs that end in time / alone", times),
    }
    return [
        Plot(
            title,
            "bars",
            "share of memory in a task's time alone, %",
            y,
            lines,
            groups=[str(share) for share in SHARES],
        )
        for title, (y, lines) in names.items()
    ]


def told_of(bench: Bench, results: Results) -> tuple[list[Table], list[Plot]]:
    return [_times(bench, results), _executions(bench, results)], _plots(bench, results)


def camc_schedule(kernels: Kernels) -> Outcome:
    """simulated: deadlines of two rate-monotonic tasks beside three that stream through memory"""
    board = DDR3
    wanted = scenarios(board)
    guest = recording.guest(kernels, board.text, wanted)
    output = run_all("camc-schedule", [guest], GUEST_SECONDS)[guest.name]
    bench = Bench(board, wanted, recording.recorded(output, wanted))
    results = {}
    todo = [(where, share) for share in SHARES for where in PLACEMENTS]
    with console.progress("simulating deadlines", len(todo), RUN_SECONDS * len(todo)) as step:
        for share in SHARES:
            jobs = [bench.job(number, share) for number in range(len(TASKS))]
            for where in PLACEMENTS:
                results[where, share] = bench.run(where, jobs)
                step.update(len(results))
    samples = {
        f"{where}, {share} %, {TASKS[n].name}: clocks": [
            -1 if job.response is None else job.response for job in told.jobs
        ]
        for (where, share), tasks in results.items()
        for n, told in enumerate(tasks)
    }
    tables, drawn = told_of(bench, results)
    wrong = recording.wrong(board.text, wanted, bench.pages)
    told = {**values(results), "camc-schedule-wrong": wrong}
    return Outcome([output.run(samples)], tables, drawn, told)
