# SPDX-License-Identifier: GPL-2.0-or-later
"""The model of DRAM against what is published: timings, bandwidth, latencies, queueing results."""

import random
from collections import defaultdict, deque
from dataclasses import replace

import pytest

from lab import workloads
from lab.dram import model
from lab.dram.maps import Location
from lab.dram.model import Access, Batches, Measured, Memory, Queues, Task, Until
from lab.dram.timings import DDR3_1333H, DDR3_1600K, DDR4_2400R, GRADES, Clocks, Grade
from lab.errors import LabError

ALL = pytest.mark.parametrize("grade", GRADES.values(), ids=lambda grade: grade.name)

DEFAULT = Queues()


def at(row: int, bank: int = 0, rank: int = 0, channel: int = 0, node: int = 0) -> Location:
    return Location(node, channel, rank, bank, row)


def reads(*places: Location) -> list[Access]:
    return [Access(place) for place in places]


def quiet(grade: Grade, queues: Queues = DEFAULT) -> Memory:
    """One channel that is never refreshed: what a test is about stands alone."""
    return Memory(grade, queues=queues, refresh=False)


def measure(memory: Memory, *tasks: Task, warm: int = 64, count: int = 2000) -> list[Measured]:
    """Each task on a core of its own."""
    return list(model.run(memory, [[task] for task in tasks], Batches(warm, count, 1)))


# Constants


@pytest.mark.parametrize(
    ("grade", "published"),
    [
        # Micron MT41J1G4-15E, and JESD79-3F: tCK 1.5 ns
        (
            DDR3_1333H,
            Clocks(9, 7, 4, 9, 9, 24, 33, 4, 4, 20, 4, 4, 5, 10, 5, 5, 107, 5200, 1),
        ),
        # JESD79-3F, 11-11-11: tCK 1.25 ns
        (
            DDR3_1600K,
            Clocks(11, 8, 4, 11, 11, 28, 39, 5, 5, 24, 4, 4, 6, 12, 6, 6, 128, 6240, 1),
        ),
        # Micron MT40A-083E, 16-16-16: tCK 0.833 ns
        (
            DDR4_2400R,
            Clocks(16, 12, 4, 16, 16, 39, 55, 4, 6, 26, 4, 6, 9, 18, 3, 9, 420, 9360, 1),
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_nanoseconds_become_the_published_clocks(grade: Grade, published: Clocks) -> None:
    assert grade.clocks == published


@ALL
def test_grades_agree_with_their_names(grade: Grade) -> None:
    clocks = grade.clocks
    assert clocks.rc == clocks.ras + clocks.rp
    assert clocks.rrd_s <= clocks.rrd_l <= clocks.faw
    # a module of 64 bits: PC3-10600, PC3-12800, PC4-19200
    assert grade.gigabytes_a_second == pytest.approx(
        {"DDR3-1333H": 10.667, "DDR3-1600K": 12.8, "DDR4-2400R": 19.2}[grade.name], abs=0.001
    )


# Latencies of one read


@ALL
def test_row_hit_takes_cl_and_the_burst(grade: Grade) -> None:
    (told,) = measure(quiet(grade), Task(reads(at(1))))
    assert told.latencies == {grade.clocks.cl + 4: 2000}


@ALL
def test_row_miss_takes_trcd_more(grade: Grade) -> None:
    (told,) = measure(quiet(grade), Task(reads(at(1))), warm=0, count=1)
    assert told.latencies == {grade.clocks.rcd + grade.clocks.cl + 4: 1}


@ALL
def test_row_conflict_takes_trp_and_trcd_more(grade: Grade) -> None:
    # tRAS is over before the next one comes
    (told,) = measure(quiet(grade), Task(reads(at(1), at(2)), think=grade.clocks.rc))
    clocks = grade.clocks
    assert told.latencies == {clocks.rp + clocks.rcd + clocks.cl + 4: 2000}


@ALL
def test_conflicts_of_one_bank_come_each_trc(grade: Grade) -> None:
    (told,) = measure(quiet(grade), Task(reads(*map(at, range(64))), mlp=8))
    assert told.batches == [2000 * grade.clocks.rc]


@ALL
def test_way_to_the_controller_and_the_distance_of_a_node_add_up(grade: Grade) -> None:
    memory = quiet(grade, Queues(path=30))
    (told,) = measure(memory, Task([Access(at(1), extra=7)]))
    assert told.latencies == {grade.clocks.cl + 4 + 30 + 2 * 7: 2000}


# Bandwidth


@ALL
def test_row_hits_fill_the_bus(grade: Grade) -> None:
    groups = [at(1, bank) for bank in range(grade.groups)]
    (told,) = measure(quiet(grade), Task(reads(*groups), mlp=16))
    assert told.batches == [2000 * 4]  # the peak bandwidth: a burst of 64 bytes takes 4 clocks


def test_row_hits_of_one_bank_group_come_each_tccd_l() -> None:
    (told,) = measure(quiet(DDR4_2400R), Task(reads(at(1)), mlp=16))
    assert told.batches == [2000 * DDR4_2400R.clocks.ccd_l]


@ALL
def test_ranks_leave_a_gap_on_the_bus(grade: Grade) -> None:
    queues = Queues(cap=0)
    (told,) = measure(quiet(grade, queues), Task(reads(at(1), at(1, rank=1)), mlp=1))
    assert told.latencies == {grade.clocks.cl + 4: 2000}
    both = [Task(reads(at(1, rank=rank)), mlp=1) for rank in (0, 1)]
    told, _ = measure(quiet(grade, queues), *both)
    # each waits for nobody but the other's burst
    assert max(told.latencies) <= grade.clocks.cl + 4 + 4 + 1


@ALL
def test_activates_come_four_in_tfaw(grade: Grade) -> None:
    banks = range(grade.banks)
    misses = reads(*(at(row, bank) for row in range(16) for bank in banks))
    count = len(misses) * 20
    (told,) = measure(quiet(grade), Task(misses, mlp=32), count=count)
    clocks = grade.clocks
    limit = max(clocks.faw / 4, clocks.rrd_s, clocks.rc / grade.banks)
    assert told.batches[0] / count == pytest.approx(limit, rel=0.02)


@ALL
def test_refresh_takes_its_share(grade: Grade) -> None:
    memory = Memory(grade)
    clocks = grade.clocks
    groups = [at(1, bank) for bank in range(grade.groups)]
    count = 100 * clocks.refi // 4
    (told,) = measure(memory, Task(reads(*groups), mlp=16), count=count)
    busy = 1 - count * 4 / told.batches[0]
    # closing, refreshing, opening; the other rank is not in the way
    least, most = clocks.rfc, clocks.rfc + clocks.ras + clocks.rp + clocks.rcd
    assert least / clocks.refi <= busy <= most / clocks.refi


# Every command keeps its distance from all before it


class Protocol:
    """The rules of JESD79-3 and -4, each as it is written there, one pair of commands at a time.

    Shares nothing with the model, which keeps the earliest next times instead.
    """

    def __init__(self, grade: Grade, refresh: bool) -> None:
        self.grade, self.clocks, self.refresh = grade, grade.clocks, refresh
        self.past: dict[tuple[int, int], deque[tuple[int, str, int, int, int]]] = defaultdict(
            lambda: deque(maxlen=400)
        )
        self.open: dict[tuple[int, int, int, int], int] = {}
        self.counts: dict[str, int] = defaultdict(int)

    def group(self, bank: int) -> int:
        return bank % self.grade.groups

    def least(self, old: str, new: str, *, rank: bool, bank: bool, group: bool) -> int:
        """Clocks between two commands of a channel: of the same rank, bank, bank group?"""
        c = self.clocks
        if {old, new} <= {"RD", "WR"}:
            return self.columns(old, new, rank=rank, group=group)
        if not rank:
            return 1
        rules = {
            ("ACT", "ACT"): c.rc if bank else c.rrd_l if group else c.rrd_s,
            ("ACT", "RD"): c.rcd if bank else 1,
            ("ACT", "WR"): c.rcd if bank else 1,
            ("ACT", "PRE"): c.ras if bank else 1,
            ("PRE", "ACT"): c.rp if bank else 1,
            ("RD", "PRE"): c.rtp if bank else 1,
            ("WR", "PRE"): c.cwl + 4 + c.wr if bank else 1,
            ("PRE", "REF"): c.rp,
            ("ACT", "REF"): c.rc,
            ("REF", "ACT"): c.rfc,
            ("REF", "REF"): c.rfc,
        }
        return rules.get((old, new), 1)

    def columns(self, old: str, new: str, *, rank: bool, group: bool) -> int:
        c = self.clocks
        if not rank:
            begin = {"RD": c.cl, "WR": c.cwl}
            return begin[old] + 4 + c.rtrs - begin[new]  # bursts, with the gap of two ranks
        if (old, new) == ("RD", "WR"):
            return c.cl + 4 + 2 - c.cwl
        if (old, new) == ("WR", "RD"):
            return c.cwl + 4 + (c.wtr_l if group else c.wtr_s)
        return c.ccd_l if group else c.ccd_s

    def check(self, line: str) -> None:
        words = line.split()
        now, node, channel = map(int, words[:3])
        name, rank, bank, row = words[3], *map(int, words[4:])
        past = self.past[node, channel]
        place = (node, channel, rank, bank)
        for then, old, old_rank, old_bank, _ in reversed(past):
            if now - then > self.clocks.rfc:
                break
            least = self.least(
                old,
                name,
                rank=rank == old_rank,
                bank=rank == old_rank and (bank == old_bank or name == "REF"),
                group=self.group(bank) == self.group(old_bank),
            )
            assert now - then >= max(least, 1), f"{old} at {then}, then {line}: {least} apart"
        if name == "ACT":
            acts = [then for then, old, r, *_ in past if old == "ACT" and r == rank]
            assert len(acts) < 4 or now - acts[-4] >= self.clocks.faw, f"five in tFAW: {line}"
            assert place not in self.open, f"open already: {line}"
            self.open[place] = row
        elif name == "PRE":
            assert self.open.pop(place) == row
        elif name == "REF":
            assert not any(key[:3] == place[:3] for key in self.open), f"a bank is open: {line}"
        else:
            assert self.open[place] == row, f"another row is open: {line}"
        past.append((now, name, rank, bank, row))
        self.counts[name] += 1


def random_task(grade: Grade, seed: int, memory: Memory) -> Task:
    """Reads and write-backs, some in rows, some anywhere."""
    dice = random.Random(seed)  # noqa: S311
    accesses = []
    for _ in range(400):
        place = at(
            dice.randrange(6),
            dice.randrange(grade.banks),
            dice.randrange(grade.ranks),
            dice.randrange(memory.channels),
            dice.randrange(memory.nodes),
        )
        write = dice.random() < 0.3
        accesses += [Access(place, write, dice.choice((0, 13)))] * dice.choice((1, 1, 4))
    accesses.append(Access(at(1)))
    return Task(accesses, mlp=dice.choice((1, 4, 16)), think=dice.choice((0, 5, 60)))


@ALL
@pytest.mark.parametrize("seed", range(5))
def test_commands_keep_the_rules(grade: Grade, seed: int) -> None:
    queues = random.Random(seed).choice(  # noqa: S311
        (Queues(), Queues(cap=0), Queues(4, 4, 3, 1), Queues(1, 1, 1, 0))
    )
    memory = Memory(grade, nodes=1 + seed % 2, channels=1 + seed % 3, queues=queues)
    tasks = [[random_task(grade, 10 * seed + number, memory)] for number in range(1 + 2 * seed)]
    protocol = Protocol(grade, memory.refresh)
    for line in model.output(memory, tasks, Until(25_000), "-c").splitlines():
        if line[0].isdigit():
            protocol.check(line)
    assert min(protocol.counts[name] for name in ("ACT", "PRE", "RD", "WR", "REF")) > 3


@pytest.mark.parametrize(
    ("shorter", "seed"),
    [
        *(("rcd", 0), ("rp", 1), ("ras", 2), ("rc", 2), ("faw", 3), ("rtp", 1), ("wr", 1)),
        *(("wtr_l", 1), ("ccd_l", 1), ("rrd_l", 3), ("rfc", 1), ("rtrs", 1), ("cl", 1)),
    ],
)
def test_the_rules_would_see_a_model_that_breaks_them(shorter: str, seed: int) -> None:
    grade = DDR4_2400R
    memory = Memory(grade)
    tasks = [[random_task(grade, seed * 10 + number, memory)] for number in range(4)]
    protocol = Protocol(grade, refresh=True)
    value = getattr(protocol.clocks, shorter)
    # one clock more in the rules is one less in the model
    protocol.clocks = replace(protocol.clocks, **{shorter: value + 1})
    with pytest.raises(AssertionError):
        for line in model.output(memory, tasks, Until(60_000), "-c").splitlines():
            if line[0].isdigit():
                protocol.check(line)


# Queueing


@ALL
@pytest.mark.parametrize("customers", [1, 2, 3, 5, 16])
@pytest.mark.parametrize("think", [0, 40, 500])
def test_closed_loops_keep_the_asymptotic_bounds(grade: Grade, customers: int, think: int) -> None:
    """N customers at one server of fixed time D, who think for Z: min(1/D, N/(D+Z)) a clock.

    Denning and Buzen, Computing Surveys 1978. Conflicts of one bank are such a server: D is tRC.
    What a read takes beyond it, when there is no queue, is part of Z.
    """
    clocks = grade.clocks
    tasks = [Task(reads(at(2 * n), at(2 * n + 1)), think=think) for n in range(customers)]
    told = measure(quiet(grade, Queues(cap=0)), *tasks, warm=200, count=1000)
    alone = max(clocks.rp + clocks.rcd + clocks.cl + 4, clocks.rc - think) + think
    clock_of_one = max(alone, customers * clocks.rc)
    assert told[0].batches[0] / 1000 == pytest.approx(clock_of_one, rel=0.01)


@ALL
def test_littles_law_holds(grade: Grade) -> None:
    memory = Memory(grade, channels=2)
    anywhere = [access for access in random_task(grade, 3, memory).accesses if not access.write]
    (told,) = measure(memory, Task(anywhere, mlp=8), warm=100, count=20_000)
    # 8 are under way all the time: N = X R
    assert told.mean_latency * told.reads / told.batches[0] == pytest.approx(8, rel=0.002)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_waiting_is_that_of_m_d_1(load: float) -> None:
    """Poisson arrivals at a server of fixed time S wait rho S / (2 (1 - rho)) on average.

    Pollaczek and Khinchine. Each arrival is a task of its own, with one job of one read; all
    conflict in one bank.
    """
    grade = DDR3_1600K
    clocks = grade.clocks
    dice = random.Random(7)  # noqa: S311
    waits: list[int] = []
    for _ in range(12):
        now, tasks = 0.0, []
        for number in range(1000):
            now += dice.expovariate(load / clocks.rc)
            job = Task(reads(at(number)), period=1 << 30, start=round(now), reads=1)
            tasks.append([job])
        told = model.run(quiet(grade, Queues(64, cap=0)), tasks, Until(round(now) + 100_000))
        # the first find an empty bank
        waits += [task.jobs[0].response or 0 for task in told[200:]]
    # closing, opening and the transfer come on top, but for what tRC leaves of them to others
    alone = clocks.rp + clocks.rcd + clocks.cl + 4
    mean = sum(waits) / len(waits) - alone
    assert mean == pytest.approx(load * clocks.rc / (2 * (1 - load)), rel=0.1)


# The scheduler


def test_row_hits_go_first_but_no_more_than_the_cap() -> None:
    grade = DDR3_1333H
    hits = Task(reads(at(1)), mlp=8)
    victim = Task(reads(at(2), at(3)))
    latencies = []
    for cap in (0, 4, 16):
        told = measure(quiet(grade, Queues(cap=cap)), hits, victim, warm=1000, count=20_000)
        latencies.append(told[1].mean_latency)
        clocks = grade.clocks
        # what is open when it comes, `cap` hits, then its own row
        most = clocks.rc + (cap + 8) * clocks.ccd_l + clocks.rp + clocks.rcd + clocks.cl + 4
        assert max(told[1].latencies) <= most
    assert latencies[0] < latencies[1] < latencies[2]


@pytest.mark.parametrize(("grade", "rank"), [(DDR3_1333H, 1), (DDR4_2400R, 1), (DDR4_2400R, 0)])
@pytest.mark.parametrize("cap", [0, 4])
def test_who_waits_for_the_bus_is_not_overtaken_for_ever(grade: Grade, rank: int, cap: int) -> None:
    """Hits of the rank that has the bus, or of another bank group by turns, are ready sooner."""
    hits = Task(reads(at(1, 1), at(1, 2)), mlp=32)
    victim = Task(reads(at(9, 5, rank)))
    memory = quiet(grade, Queues(reads=64, cap=cap))
    told = measure(memory, hits, victim, warm=1000, count=20_000)
    clocks = grade.clocks
    # those that came before it, those that overtake it, its own
    gap = max(clocks.ccd_l, clocks.bl + clocks.rtrs)
    most = hits.mlp * clocks.ccd_l + (cap + 2) * gap + clocks.cl + 4
    assert max(told[1].latencies) <= most
    assert told[1].reads > 200


def test_a_read_waits_for_a_drain_of_writes_but_not_for_ever() -> None:
    grade = DDR3_1333H
    writer = Task(
        [
            Access(at(row, bank), write)
            for row in range(64)
            for bank in range(8)
            for write in (False, True)
        ],
        mlp=16,
    )
    told = measure(Memory(grade), Task(reads(at(1), at(2))), writer, warm=100, count=5000)
    clocks = grade.clocks
    # 64 writes at most, each in a row of its own, then the reads before it
    assert max(told[0].latencies) < (64 + 32 + 2) * clocks.rc + clocks.rfc
    assert told[1].reads > 1000


# Jobs


def test_jobs_end_when_their_reads_do_and_miss_when_they_cannot() -> None:
    grade = DDR3_1333H
    hit = grade.clocks.cl + 4
    job = Task(reads(at(1)), period=1000, reads=10)
    (told,) = model.run(quiet(grade), [[job]], Until(10_000))
    first = grade.clocks.rcd + 10 * hit
    assert [entry.response for entry in told.jobs] == [first] + [10 * hit] * (len(told.jobs) - 1)
    assert [entry.release for entry in told.jobs] == [1000 * n for n in range(10)]
    (told,) = model.run(quiet(grade), [[replace(job, reads=77)]], Until(10_000))
    assert {entry.response for entry in told.jobs} == {None}


def test_higher_priority_preempts() -> None:
    grade = DDR3_1333H
    hit = grade.clocks.cl + 4
    high = Task(reads(at(1, 0)), period=1000, reads=20)
    low = Task(reads(at(1, 1)), period=3000, reads=100)
    first, second = model.run(quiet(grade), [[high, low]], Until(30_001))
    assert {entry.response for entry in first.jobs[1:]} == {20 * hit}
    # response-time analysis: R = 100 hits + ceil(R / 1000) * 20 hits, but for reads under way
    for entry in second.jobs[1:]:
        assert entry.response == pytest.approx(100 * hit + 2 * 20 * hit, abs=3 * hit)


# Bad input


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([[Task(reads(at(1, bank=8)))]], "bank: 8 is not within 0 to 7"),
        ([[Task(reads(at(1, node=1)))]], "node: 1 is not within 0 to 0"),
        ([[Task(reads(at(1)), mlp=0)]], "MLP: 0 is not within 1 to 64"),
        ([[Task([Access(at(1), write=True)])]], "it would never wait"),
        ([[Task([])]], "accesses: 0 is not within"),
        ([[Task(reads(at(1)), period=10)]], "JOB: 0 is not within"),
        ([[Task(reads(at(1)))] * 65], "task of a core: 64 is not within"),
        ([], "lacks timing, queues, tasks or an end"),
    ],
)
def test_bad_input_is_refused(tasks: list[list[Task]], message: str) -> None:
    with pytest.raises(LabError) as caught:
        model.run(quiet(DDR3_1333H), tasks, Until(10))
    assert message in caught.value.detail


def test_queues_that_cannot_be_are_refused() -> None:
    with pytest.raises(LabError) as caught:
        model.run(quiet(DDR3_1333H, Queues(high=32, low=32)), [[Task(reads(at(1)))]], Until(10))
    assert "LOW: 32 is not within 0 to 31" in caught.value.detail


def test_the_model_compiles_without_a_warning() -> None:
    assert workloads.compiled(model.SOURCE).exists()
