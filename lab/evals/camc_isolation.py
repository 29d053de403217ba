# SPDX-License-Identifier: GPL-2.0-or-later
"""What tasks on other cores do to a task's memory accesses, by simulation (paper Fig. 8 to 14, 17).

The pages are a guest's; what DRAM makes of them is lab/dram's model. docs/dram.md says what that
can show and what it cannot.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lab import console
from lab.dram import boards, model, recording
from lab.dram.boards import BOARDS, Board
from lab.dram.model import Batches, Measured, Task
from lab.dram.patterns import CHASE, RANDOM, SEQUENTIAL, STREAM, STRIDES, Pattern
from lab.dram.recording import NODE_CPUS, NODES, Recorded, Wanted
from lab.guests import Kernels, run_all
from lab.results import Cell, Line, Outcome, Plot, Run, Table

TASKS = (1, 2, 3, 4, 8, 16)
PAGES = 128  # of a task: 32 rows of 16 KiB, so that random accesses seldom find one open
END = Batches(warm=1000, reads=500, count=20)
SAME, BANK, CONTROLLER = "same bank", "different bank", "different controller"
PLACEMENTS = (SAME, BANK, CONTROLLER)
SEVERAL = 8
OWN = f"{CONTROLLER}, {SEVERAL} colors"
COLORS = (1, 2, 3, 4, 8)  # of one task; 8: all banks of a rank of the first board
OWN_COLORS = (1, 4, 8)  # of a task under CAMC
BUDDY = "buddy"
POLICIES = (BUDDY, "interleave", "bank only", *(f"CAMC, {k}" for k in OWN_COLORS))
PACKED = NODE_CPUS  # tasks on the cores of one node
FEW = (2, 3, PACKED)  # a task beside one to three attackers, whose number changes (Fig. 11)
CLOSE = 0.02  # two placements whose times differ by less are equal
GUEST_SECONDS = 60  # of a guest on an idle core
RUN_SECONDS = 0.8  # of a simulation


@dataclass(frozen=True)
class Load:
    """What the first task does, and the others."""

    name: str
    first: Pattern
    others: Pattern


LOADS = (
    *(Load(p.name, p, p) for p in (SEQUENTIAL, RANDOM, STRIDES, CHASE)),
    Load("random beside streams", RANDOM, STREAM),
)
# With fewer at a time, a task loses less by a single color
ALONE = (
    *(SEQUENTIAL, STREAM, STRIDES, CHASE, RANDOM),
    *(replace(RANDOM, name=f"random, {n} at a time", mlp=n) for n in (2, 4)),
)
ATTACKED = next(load for load in LOADS if load.others == STREAM)
POLICY_LOADS = tuple(load for load in LOADS if load.first in (RANDOM, STRIDES, CHASE))


# Which pages


def scenarios(board: Board) -> dict[str, Sequence[Wanted]]:
    """Of the first task all placements have the same color, so only the others differ."""
    node_colors = board.map.node_colors
    banks = board.map.count("rank") * board.map.count("bank")  # colors without controllers
    everywhere = tuple(range(NODES))
    numbers = range(max(TASKS))

    def controller(number: int) -> Wanted:
        node, turn = number % NODES, number // NODES
        return Wanted(node * NODE_CPUS + turn, PAGES, (node * node_colors + turn,))

    def several(number: int) -> Wanted:
        first = number * node_colors
        return Wanted(number * NODE_CPUS, PAGES, tuple(range(first, first + SEVERAL)))

    def bank_only(number: int) -> Wanted:
        colors = range(number, NODES * node_colors, banks)
        return Wanted(number, PAGES, tuple(colors), everywhere)

    def own(number: int, colors: int) -> Wanted:
        node, turn = number // NODE_CPUS, number % NODE_CPUS
        first = node * node_colors + turn * colors
        return Wanted(number, PAGES, tuple(range(first, first + colors)))

    return {
        SAME: [Wanted(n % NODE_CPUS, PAGES, (0,)) for n in numbers],
        BANK: [Wanted(n % NODE_CPUS, PAGES, (n,)) for n in numbers],
        CONTROLLER: [controller(n) for n in numbers],
        OWN: [several(n) for n in range(NODES)],
        BUDDY: [Wanted(n, PAGES) for n in numbers],
        "interleave": [Wanted(n, PAGES, nodes=everywhere) for n in numbers],
        "bank only": [bank_only(n) for n in numbers],
        **{f"CAMC, {k}": [own(n, k) for n in numbers] for k in OWN_COLORS},
        **{_colors(k): [Wanted(0, PAGES, tuple(range(k)))] for k in COLORS},
    }


def _colors(number: int) -> str:
    return f"{number} colors"


# Simulation


@dataclass(frozen=True)
class Case:
    """One simulation."""

    load: Load
    tasks: int
    scenario: str

    @property
    def name(self) -> str:
        return f"{self.load.name}, {self.tasks} tasks, {self.scenario}"


@dataclass(frozen=True)
class Told:
    """Of the first task, and of the others."""

    first: Measured
    others: Sequence[Measured]

    @property
    def time(self) -> float:
        """Of a read: how long a batch took, as the paper measures it."""
        return statistics.mean(self.first.batches) / END.reads

    @property
    def spread(self) -> float:
        """Standard deviation of the batches, in % of their mean."""
        return 100 * statistics.pstdev(self.first.batches) / statistics.mean(self.first.batches)

    @property
    def others_times(self) -> Sequence[float]:
        """Of a read of the others: all of their batches."""
        return [clocks / END.reads for task in self.others for clocks in task.batches]


Results = Mapping[Case, Told]


def policy_tasks(load: Load) -> Sequence[int]:
    """How many tasks there are under policies."""
    return (*(FEW if load == ATTACKED else (PACKED,)), max(TASKS))


def alone(pattern: Pattern, scenario: str) -> Case:
    return Case(Load(pattern.name, pattern, pattern), 1, scenario)


def cases() -> list[Case]:
    placed = [Case(load, n, where) for load in LOADS for n in TASKS for where in PLACEMENTS]
    chosen = [
        Case(load, n, policy)
        for load in POLICY_LOADS
        for n in policy_tasks(load)
        for policy in POLICIES
    ]
    chosen += [Case(ATTACKED, n, OWN) for n in FEW]
    single = [
        alone(pattern, where) for pattern in ALONE for where in (*map(_colors, COLORS), BUDDY)
    ]
    return placed + chosen + single


def simulate(board: Board, wanted: Mapping[str, Sequence[Wanted]], pages: Recorded) -> Results:
    """All cases of one board."""
    made: dict[tuple[str, int, Pattern], Task] = {}

    def task(scenario: str, number: int, pattern: Pattern) -> Task:
        key = scenario, number, pattern
        if key not in made:
            node = wanted[scenario][number].node
            made[key] = board.task(pages[scenario][number], node, pattern, seed=number + 1)
        return made[key]

    results = {}
    todo = cases()
    with console.progress(f"simulating {board.name}", len(todo), RUN_SECONDS * len(todo)) as step:
        for number, case in enumerate(todo):
            step.update(number)
            tasks = [task(case.scenario, 0, case.load.first)]
            tasks += [task(case.scenario, n, case.load.others) for n in range(1, case.tasks)]
            first, *others = model.run(board.memory, [[each] for each in tasks], END)
            results[case] = Told(first, others)
        step.update(len(todo))
    return results


# What is told


def slowdown(results: Results, case: Case) -> float:
    """How many times the time that the first task takes alone with the same pages."""
    return results[case].time / results[Case(case.load, 1, case.scenario)].time


def ordered(results: Results, load: Load, tasks: int) -> bool:
    """Same bank >= different bank >= different controller."""
    same, bank, controller = (slowdown(results, Case(load, tasks, at)) for at in PLACEMENTS)
    return same * (1 + CLOSE) >= bank >= controller * (1 - CLOSE)


def from_alone(results: Results, load: Load, tasks: int) -> float:
    """By how much a task with a controller of its own differs from one that is alone, in %."""
    return 100 * abs(slowdown(results, Case(load, tasks, CONTROLLER)) - 1)


def throughput(results: Results, pattern: Pattern, where: str) -> float:
    """Of a task that is alone, beside that with the most colors."""
    most = results[alone(pattern, _colors(max(COLORS)))].time
    return most / results[alone(pattern, where)].time


def in_turn(results: Results, where: str) -> Sequence[float]:
    """Of a read of the attacked task: its batches beside one, two and three attackers in turn."""
    batches = [results[Case(ATTACKED, n, where)].first.batches for n in FEW]
    return [clocks / END.reads for told in batches for clocks in told]


def values(results: Sequence[Results]) -> dict[str, float]:
    several = [n for n in TASKS if n > 1]
    own = [n for n in several if n <= NODES]
    strides = next(load for load in LOADS if load.first == STRIDES)
    buddy, one_color, eight_colors = (
        Case(strides, PACKED, at) for at in (BUDDY, "CAMC, 1", "CAMC, 8")
    )
    return {
        "camc-isolation-order": sum(
            not ordered(told, load, n) for told in results for load in LOADS for n in several
        ),
        "camc-isolation-alone": max(
            from_alone(told, load, n) for told in results for load in LOADS for n in own
        ),
        "camc-isolation-same": min(
            slowdown(told, Case(load, PACKED, SAME)) for told in results for load in LOADS
        ),
        "camc-isolation-buddy": min(told[buddy].time / told[eight_colors].time for told in results),
        "camc-isolation-spread": max(
            told[one_color].spread / told[buddy].spread for told in results
        ),
        "camc-isolation-one-color": min(throughput(told, RANDOM, _colors(1)) for told in results),
    }


def _placements(board: Board, results: Results) -> Table:
    rows: list[list[Cell]] = []
    for load in LOADS:
        for n in TASKS:
            by_placement = [Case(load, n, where) for where in PLACEMENTS]
            row: list[Cell] = [load.name, n]
            row += [round(slowdown(results, case), 3) for case in by_placement]
            row += [round(results[case].spread, 2) for case in by_placement]
            row += [results[case].first.latency(99) for case in by_placement]
            row += [max(results[case].first.latencies) for case in by_placement]
            rows.append(row)
    short = ("same", "bank", "controller")
    heads = ("time / alone", "spread %", "p99", "max")
    return Table(
        f"A task beside others, simulated: {board.name}",
        ("load", "tasks", *(f"{head}, {where}" for head in heads for where in short)),
        rows,
        f"Simulated: {recording.HOW}; times are those of a model of DRAM, not of hardware. Of the"
        " first task:"
        f" time of a read, mean of {END.count} batches of {END.reads}, beside the same task with"
        " the same pages alone; the batches' standard deviation; latencies of reads in clocks. All"
        " tasks in the same bank; each in a bank of its own of one channel; spread over"
        f" {NODES} controllers, where more than {NODES} tasks have to share them.",
    )


def _others(board: Board, results: Results) -> Table:
    rows: list[list[Cell]] = []
    for load in LOADS:
        for n in (n for n in TASKS if n > 1):
            times = [results[Case(load, n, where)].others_times for where in PLACEMENTS]
            row: list[Cell] = [load.name, n]
            for f in (statistics.mean, min, max):
                row += [round(f(its), 1) if its else None for its in times]
            means = [statistics.mean(its) if its else None for its in times]
            row += [round(mean / means[0], 3) if mean and means[0] else None for mean in means[1:]]
            rows.append(row)
    short = ("same", "bank", "controller")
    heads = ("clocks a read", "least", "most")
    return Table(
        f"The others beside that task, simulated: {board.name}",
        (
            *("load", "tasks", *(f"{head}, {where}" for head in heads for where in short)),
            *(f"{where} / same" for where in short[1:]),
        ),
        rows,
        "Simulated (paper Fig. 10; right axis of Fig. 12). Of all tasks but the first: time of a"
        f" read, by batches of {END.reads}; mean, least and most of them. In the paper's Fig. 10,"
        " streams beside a program of PARSEC, different banks take 0.852 of the time in the same"
        " bank, different controllers 0.6.",
    )


def _attacked(board: Board, results: Results) -> Table:
    where = (BUDDY, CONTROLLER, OWN)
    rows: list[list[Cell]] = []
    for n in FEW:
        buddy, *own = (results[Case(ATTACKED, n, at)].time for at in where)
        row: list[Cell] = [f"{n - 1} streams", *(round(time, 1) for time in (buddy, *own))]
        rows.append([*row, *(round(time / buddy, 3) for time in own)])
    spans = [min(its) / max(its) for its in (in_turn(results, at) for at in where)]
    row = ["in turn: shortest / longest batch", *(round(span, 3) for span in spans), None, None]
    rows.append(row)
    return Table(
        f"A task beside 1 to {max(FEW) - 1} streams, simulated: {board.name}",
        (
            "beside",
            *(f"{at}, clocks a read" for at in where),
            *(f"{at} / {BUDDY}" for at in where[1:]),
        ),
        rows,
        "Simulated: random accesses. Paper Table 4 (Canneal): ratios of 0.791 beside one attacker,"
        " 0.555 beside three; here with one color, and with several. Fig. 11 (X264): the"
        " shortest run is 0.45 of the longest under buddy; with colors they differ by 5.8 %."
        " buddy: all on the cores of one node, as there. In turn: batches beside one, two and"
        " three, of three simulations, while in the paper the number changes as the program runs.",
    )


def _policies(board: Board, results: Results) -> Table:
    rows: list[list[Cell]] = []
    for load in POLICY_LOADS:
        for n in policy_tasks(load):
            for policy in POLICIES:
                told = results[Case(load, n, policy)]
                means = [task.mean_latency for task in (told.first, *told.others)]
                row: list[Cell] = [load.name, n, policy, round(told.time, 1)]
                row += [round(told.spread, 2), round(statistics.mean(means), 1)]
                rows.append([*row, round(statistics.pstdev(means), 1), told.first.latency(99)])
    return Table(
        f"Policies, simulated: {board.name}",
        ("load", "tasks", "policy", "clocks a read", "spread %", "latency", "between tasks", "p99"),
        rows,
        f"Simulated. Up to {PACKED} tasks on the cores of one node, or {max(TASKS)} on those of"
        f" {NODES}."
        " buddy: local node; interleave: pages of all nodes by turns; bank only: a bank of its own"
        " for each task, on whatever node (PALLOC); CAMC: so many banks of its own on its own"
        " node. All on the same kernel, whose allocator gave each task its pages. Memory"
        f" of another node is {boards.HOP_NS} ns farther each way, an assumption. latency: mean of"
        " all tasks, in clocks, with the standard deviation between them.",
    )


def _by_colors(board: Board, results: Results) -> Table:
    where = (*map(_colors, COLORS), BUDDY)
    rows: list[list[Cell]] = [
        [pattern.name, pattern.mlp, *(round(throughput(results, pattern, at), 3) for at in where)]
        for pattern in ALONE
    ]
    return Table(
        f"Throughput of one task by the number of its colors, simulated: {board.name}",
        ("load", "at a time", *where),
        rows,
        f"Simulated, alone, beside {_colors(max(COLORS))}. A task that waits for several accesses"
        " at a time loses bank parallelism with a single color (paper 4.6, Fig. 17): it wants more"
        " of them. buddy: no colors, pages of whatever banks of its node (all banks in Fig. 17).",
    )


def _placement_plot(board: Board, results: Results, load: Load) -> Plot:
    return Plot(
        f"{load.name}, simulated: {board.name}",
        "lines",
        "tasks",
        "time of a read / alone",
        [
            Line(where, [(n, slowdown(results, Case(load, n, where))) for n in TASKS])
            for where in PLACEMENTS
        ],
    )


def _latency_plot(board: Board, results: Results) -> Plot:
    lines = []
    for where in PLACEMENTS:
        told = [results[Case(load, PACKED, where)].first for load in LOADS]
        lines.append(Line(where, [(at, first.latency(99)) for at, first in enumerate(told)]))
    return Plot(
        f"Latency beside {PACKED - 1} others, simulated: {board.name}",
        "bars",
        "load",
        "99th percentile of a read, clocks",
        lines,
        groups=[load.name.replace(" beside", "\nbeside") for load in LOADS],
    )


def _others_plot(board: Board, results: Results) -> Plot:
    several = [n for n in TASKS if n > 1]
    lines = []
    for where in PLACEMENTS:
        told = [(n, results[Case(ATTACKED, n, where)].others_times) for n in several]
        lines.append(Line(where, [(n, statistics.mean(its)) for n, its in told if its]))
    return Plot(
        f"The streams beside random, simulated: {board.name}",
        "lines",
        "tasks",
        "time of a read of theirs, clocks",
        lines,
    )


def _turns_plot(board: Board, results: Results) -> Plot:
    return Plot(
        f"random beside 1, 2 and 3 streams in turn, simulated: {board.name}",
        "lines",
        "batch",
        "time of a read, clocks",
        [
            Line(where, list(enumerate(in_turn(results, where), 1)))
            for where in (BUDDY, CONTROLLER, OWN)
        ],
    )


def _color_plot(board: Board, results: Results) -> Plot:
    return Plot(
        f"Colors of one task, simulated: {board.name}",
        "lines",
        "colors of the task",
        f"throughput / that of {max(COLORS)} colors",
        [
            Line(pattern.name, [(k, throughput(results, pattern, _colors(k))) for k in COLORS])
            for pattern in ALONE
            if pattern != SEQUENTIAL  # it loses nothing, and there are six colours
        ],
    )


def _run(run: Run, results: Results) -> Run:
    samples = {
        f"{case.name}: clocks of {END.reads} reads": told.first.batches
        for case, told in results.items()
    }
    return Run(**{**vars(run), "samples": samples})


def told_of(by_board: Mapping[Board, Results]) -> tuple[list[Table], list[Plot]]:
    """Of all boards."""
    tables, drawn = [], []
    for board, results in by_board.items():
        tables.append(_placements(board, results))
        tables.append(_others(board, results))
        tables.append(_attacked(board, results))
        tables.append(_policies(board, results))
        tables.append(_by_colors(board, results))
        drawn += [_placement_plot(board, results, load) for load in LOADS]
        drawn += [
            draw(board, results) for draw in (_latency_plot, _others_plot, _turns_plot, _color_plot)
        ]
    return tables, drawn


def camc_isolation(kernels: Kernels) -> Outcome:
    """simulated: a task's memory accesses beside 1 to 15 others, by bank and controller"""
    wanted = {board: scenarios(board) for board in BOARDS}
    guests = {board: recording.guest(kernels, board.text, wanted[board]) for board in BOARDS}
    outputs = run_all("camc-isolation", list(guests.values()), GUEST_SECONDS)
    runs, by_board, wrong = [], {}, 0
    for board, guest in guests.items():
        output = outputs[guest.name]
        pages = recording.recorded(output, wanted[board])
        wrong += recording.wrong(board.text, wanted[board], pages)
        by_board[board] = simulate(board, wanted[board], pages)
        runs.append(_run(output.run(), by_board[board]))
    tables, drawn = told_of(by_board)
    told = values(list(by_board.values()))
    return Outcome(runs, tables, drawn, {**told, "camc-isolation-wrong": wrong})
