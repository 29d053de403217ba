# SPDX-License-Identifier: GPL-2.0-or-later
"""The simulated evaluations of coloring: the shapes they are to show, and that they can fail."""

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from lab import figures, flavours, plots, process
from lab.boot import BootResult
from lab.build import Kernel
from lab.dram.boards import BOARDS, DDR3, Board
from lab.dram.model import Batches, Job, Measured
from lab.dram.patterns import CHASE, RANDOM
from lab.dram.recording import NODE_MIB, NODES, Pages, Wanted
from lab.errors import LabError
from lab.evals import camc_cost, camc_irqs, camc_isolation, camc_purity, camc_schedule
from lab.evals.camc_isolation import BANK, CONTROLLER, LOADS, PLACEMENTS, SAME, Case, Load
from lab.guests import Guest, Output
from lab.machine import Machine

FEW = 32  # pages of a task
POOL = 16 * 1024  # pages of a node
TASKS = (1, 2, 4, 8)

Scenarios = Mapping[str, Sequence[Wanted]]


def handed_out(board: Board, wanted: Scenarios) -> dict[str, Sequence[Pages]]:
    """The pages of an allocator that gives the lowest address of the colors first, or of the node
    to whom has none."""
    by_color: dict[int, list[int]] = {}
    for node in range(NODES):
        first = (node * NODE_MIB) << 8
        for page in range(first, first + POOL):
            by_color.setdefault(board.map.color(page), []).append(page)
    given: dict[str, Sequence[Pages]] = {}
    for title, tasks in wanted.items():
        left = {color: iter(pages) for color, pages in by_color.items()}
        local = [iter(range((node * NODE_MIB) << 8, 1 << 40)) for node in range(NODES)]
        given[title] = [
            [
                next(left[task.colors[n % len(task.colors)]] if task.colors else local[task.node])
                for n in range(task.pages)
            ]
            for task in tasks
        ]
    return given


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[Case]:
    """Fewer pages, tasks and reads."""
    monkeypatch.setattr(camc_isolation, "PAGES", FEW)
    monkeypatch.setattr(camc_isolation, "TASKS", TASKS)
    monkeypatch.setattr(camc_isolation, "END", Batches(warm=200, reads=100, count=10))
    return [Case(load, n, where) for load in LOADS for n in TASKS for where in PLACEMENTS]


def simulate(
    monkeypatch: pytest.MonkeyPatch, board: Board, cases: list[Case], swap: Mapping[str, str]
) -> camc_isolation.Results:
    scenarios = {case.scenario for case in cases}
    wanted = {k: v for k, v in camc_isolation.scenarios(board).items() if k in scenarios}
    pages = handed_out(board, wanted)
    pages |= {where: pages[other] for where, other in swap.items()}
    monkeypatch.setattr(camc_isolation, "cases", lambda: cases)
    return camc_isolation.simulate(board, wanted, pages)


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_same_bank_is_slowest_and_a_controller_of_ones_own_is_being_alone(
    quick: list[Case], board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = simulate(monkeypatch, board, quick, {})
    for load in LOADS:
        for n in TASKS[1:]:
            assert camc_isolation.ordered(results, load, n), f"{load.name}, {n} tasks"
            if n <= NODES:
                assert camc_isolation.from_alone(results, load, n) < 2
        same = camc_isolation.slowdown(results, Case(load, 4, SAME))
        assert same > 1.5 * camc_isolation.slowdown(results, Case(load, 4, CONTROLLER))


@pytest.mark.parametrize(
    ("swap", "ordered", "alone"),
    [
        ({CONTROLLER: SAME}, False, False),  # the kernel gave pages of another controller
        ({CONTROLLER: BANK}, True, False),
        ({SAME: BANK, BANK: SAME}, False, True),
    ],
)
def test_pages_in_the_wrong_place_break_the_shape(
    swap: dict[str, str],
    ordered: bool,
    alone: bool,
    quick: list[Case],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streams = LOADS[-1]
    cases = [case for case in quick if case.load == streams and case.tasks in (1, 4)]
    results = simulate(monkeypatch, DDR3, cases, swap)
    assert camc_isolation.ordered(results, streams, 4) == ordered
    assert (camc_isolation.from_alone(results, streams, 4) < 2) == alone


@pytest.mark.parametrize("own", [True, False])
def test_attackers_are_told_with_the_attacked(
    own: bool, quick: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a table of both says, and that it says other things of pages in the wrong place."""
    load = camc_isolation.ATTACKED
    scenarios = (camc_isolation.BUDDY, *PLACEMENTS, camc_isolation.OWN)
    cases = [Case(load, n, at) for n in (2, 3, 4) for at in scenarios]
    swap = {} if own else {CONTROLLER: SAME, camc_isolation.OWN: camc_isolation.BUDDY}
    results = simulate(monkeypatch, DDR3, cases, swap)
    same, controller = (results[Case(load, 4, at)].others_times for at in (SAME, CONTROLLER))
    assert (statistics.mean(controller) < 0.7 * statistics.mean(same)) == own
    (*rows, turns) = camc_isolation._attacked(DDR3, results).rows
    ratios = [row[5] for row in rows]  # with several colors
    assert (1 > ratios[0] > ratios[1] > ratios[2]) == own
    assert 0 < turns[1] < 0.9
    for where in (CONTROLLER, camc_isolation.OWN):
        batches = camc_isolation.in_turn(results, where)
        third = len(batches) // 3
        assert (batches == 3 * batches[:third]) == own  # whoever comes and goes


def test_a_model_in_which_nobody_is_in_anybodys_way_is_found_out() -> None:
    measured = Measured(latencies={10: 3, 20: 1}, batches=[500, 600])
    told = {case: camc_isolation.Told(measured, [measured]) for case in camc_isolation.cases()}
    values = camc_isolation.values([told])
    promises = {promise.name: promise for promise in figures.read()}
    holds = {name: promises[name].judge(value).holds for name, value in values.items()}
    assert holds["camc-isolation-order"] and holds["camc-isolation-alone"]
    assert holds["camc-isolation-same"] is False


def test_one_color_costs_a_task_that_waits_for_several_accesses_its_throughput(
    quick: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(camc_isolation, "PAGES", 8 * FEW)  # many rows in each of 8 banks
    loads = [Load(pattern.name, pattern, pattern) for pattern in (RANDOM, CHASE)]
    cases = [Case(load, 1, f"{k} colors") for load in loads for k in (1, 4, 8)]
    results = simulate(monkeypatch, DDR3, cases, {})
    of = {
        (pattern, k): camc_isolation.throughput(results, pattern, f"{k} colors")
        for pattern in (RANDOM, CHASE)
        for k in (1, 4, 8)
    }
    assert of[RANDOM, 1] < 0.5 < of[RANDOM, 4] < of[RANDOM, 8] == 1
    assert of[CHASE, 1] > 0.75


# Deadlines


def test_response_times_are_analysed() -> None:
    assert camc_schedule.analysed(0) == 60.7
    assert camc_schedule.analysed(1) == pytest.approx(54.3 + 60.7)


def test_analysis_counts_each_preemption(monkeypatch: pytest.MonkeyPatch) -> None:
    # Liu and Layland's classic: a job of the lower task is preempted twice
    tasks = (
        camc_schedule.Periodic("a", CHASE, 50, 25),
        camc_schedule.Periodic("b", CHASE, 100, 40),
    )
    monkeypatch.setattr(camc_schedule, "TASKS", tasks)
    assert camc_schedule.analysed(1) == 90


@pytest.mark.parametrize("share", [50, 100])
def test_only_attackers_on_the_same_controller_make_jobs_miss(
    share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(camc_schedule, "PAGES", FEW)
    monkeypatch.setattr(camc_schedule, "SCALE", 1000)
    monkeypatch.setattr(camc_schedule, "HYPERPERIODS", 3)
    wanted = camc_schedule.scenarios(DDR3)
    bench = camc_schedule.Bench(DDR3, wanted, handed_out(DDR3, wanted))
    jobs = [bench.job(number, share) for number in range(len(camc_schedule.TASKS))]
    missed = {
        where: camc_schedule.missed(bench.run(where, jobs)) for where in camc_schedule.PLACEMENTS
    }
    periods = [bench.clocks(task.period) for task in camc_schedule.TASKS]
    for number, task in enumerate(camc_schedule.TASKS):
        times = camc_schedule.executions(bench.run("alone", jobs), number, periods)
        # with the other one it shares the bank's open row, and nothing else
        assert times == pytest.approx([bench.clocks(task.alone)] * len(times), rel=0.03)
    assert missed["alone"] == missed["different controller"] == 0
    assert missed["same bank"] >= 40
    assert missed["same bank"] >= missed["different bank"]


def test_who_is_preempted_executes_less_than_until_its_response() -> None:
    high = Measured(jobs=[Job(0, 10), Job(50, 20), Job(100, None), Job(150, 10)])
    low = Measured(jobs=[Job(0, 45), Job(55, 40), Job(96, 60), Job(300, None), Job(400, 7)])
    assert camc_schedule.executions([high, low], 0, [50, 90]) == [10, 20, 10]
    # 10 of 45; 15 of 40; 50 of the job that is given up and 6 of the next of 60
    assert camc_schedule.executions([high, low], 1, [50, 90]) == [35, 25, 4, 7]
    middle = Measured(jobs=[Job(5, 15)])  # of which 5 are those of the highest
    assert camc_schedule.executions([high, middle, low], 2, [50, 60, 90]) == [25, 25, 4, 7]


def test_missed_deadlines_are_a_share_of_all_jobs() -> None:
    tasks = [
        Measured(jobs=[Job(0, 10), Job(100, None), Job(200, 30)]),
        Measured(jobs=[Job(0, None)]),
    ]
    assert camc_schedule.missed(tasks) == 50
    assert camc_schedule.responses(tasks[0]) == [10, 30]
    results = {
        (where, share): tasks[:1] if where == camc_schedule.CONTROLLER else tasks[1:]
        for where in camc_schedule.PLACEMENTS
        for share in camc_schedule.SHARES
    }
    assert camc_schedule.values(results) == {
        "camc-schedule-misses": pytest.approx(100 / 3),
        "camc-schedule-alone": 100,
        "camc-schedule-same": 100,
        "camc-schedule-bank": 100,
    }


def test_what_is_told_has_a_cell_for_each_column_and_can_be_drawn() -> None:
    measured = Measured(latencies={10: 3, 20: 1}, batches=[500, 600])
    told = {case: camc_isolation.Told(measured, [measured]) for case in camc_isolation.cases()}
    outcome = camc_isolation.told_of({DDR3: told})
    tasks = [Measured(jobs=[Job(0, 10), Job(100, None)]), Measured(jobs=[Job(0, None)])]
    results = {
        (where, share): tasks
        for where in camc_schedule.PLACEMENTS
        for share in camc_schedule.SHARES
    }
    scheduled = camc_schedule.told_of(camc_schedule.Bench(DDR3, {}, {}), results)
    for tables, drawn in (outcome, scheduled):
        for table in tables:
            assert {len(row) for row in table.rows} == {len(table.columns)}
        assert all("<svg" in plots.svg(plot) for plot in drawn)
        assert all("imulated" in words.title for words in (*tables, *drawn))


# Interrupts

TRACE = """\
# tracer: nop
#
# entries-in-buffer/entries-written: {}/5   #P:1
#
  color-7 [000] d.... 1000: irq_disable: caller=rmqueue_bulk+0x1/0x9 parent=rmqueue_bulk+0x2/0x9
  color-7 [000] d.... 1700: irq_enable: caller=rmqueue_bulk+0x3/0x9 parent=rmqueue_bulk+0x4/0x9
"""


@pytest.mark.parametrize(("entries", "status"), [(5, 0), (4, 1)])
def test_the_longest_section_is_told_if_no_event_is_lost(
    entries: int, status: int, tmp_path: Path
) -> None:
    (tmp_path / "longest").write_text(camc_irqs.LONGEST)
    (tmp_path / "trace").write_text(TRACE.format(entries))
    awk = ["busybox", "awk", "-f", str(tmp_path / "longest"), str(tmp_path / "trace")]
    answer = process.run(awk, check=False)
    assert answer.returncode == status
    assert camc_irqs.longest(answer.stdout) == {"rmqueue_bulk": (1, 700)}


# Costs


def test_the_kernel_without_coloring_may_lack_nothing_else() -> None:
    def kernel(name: str, **config: str) -> Kernel:
        symbols = {f"CONFIG_{symbol}": value for symbol, value in config.items()}
        return Kernel(flavours.find(name), "6.12", Path(), symbols)

    coloring = kernel("camc", CAMC="y", CAMC_KUNIT_TEST="y", KSM="y", SLUB_DEBUG="n")
    camc_cost.check_kernels(coloring, kernel("nocamc", CAMC="n", KSM="y"))
    with pytest.raises(LabError, match=r"memory coloring alone.* in CONFIG_COREDUMP, CONFIG_KSM"):
        camc_cost.check_kernels(coloring, kernel("nocamc", CAMC="n", COREDUMP="y"))
    with pytest.raises(LabError, match="camc is to have memory coloring, the other one not"):
        camc_cost.check_kernels(coloring, coloring)


UNJUDGED = ("camc-walk", "camc-off-unmap", "camc-end")
BUDDYINFO = "Node 0, zone DMA32 0 0 0 0 0 0 0 0 0 8 {}\n"
TOUCHED = "cold 24576000\nunmap 8192000\nwarm 16384000\n"
TOUCHED += "filled {0}\ncollected {0}\nprefilled 16384000\n"


def cost_of(title: str, told: Sequence[Guest], seconds: float) -> dict[str, Output]:
    """What guests print of which coloring costs nothing, but a block of 4 MiB."""
    outputs = {}
    for guest in told:
        filled = 8192 if guest.name != camc_cost.WALK.name else 100
        sections = {"touch": TOUCHED.format(filled), "lists": "7\n", "uncolored": TOUCHED}
        blocks = 4 if guest.name == camc_cost.BUDDY.name else 3
        sections |= {"before": BUDDYINFO.format(4), "after": BUDDYINFO.format(blocks)}
        for end in camc_cost.ENDS:
            sections |= {f"{end} {when}": "pswpout 5\npgscan_direct 0\n" for when in ("before",)}
            sections[f"{end} after"] = "pswpout 5\npgscan_kswapd 0\npgscan_direct 0\noom_kill 0\n"
            sections[end] = f"touched 90\nanswer 7000\nhas {5 if end == 'spill' else 4}\n"
        result = printed().result
        outputs[guest.name] = Output(guest, result, sections)
    return outputs


def test_costs_are_told_with_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernels(name: str) -> Kernel:
        has = "n" if name == "nocamc" else "y"
        return Kernel(flavours.find(name), "6.12", Path(), {"CONFIG_CAMC": has})

    monkeypatch.setattr(camc_cost, "run_all", cost_of)
    monkeypatch.setattr(camc_cost.workloads, "files", lambda *_: {})
    outcome = camc_cost.camc_cost(kernels)
    for table in outcome.tables:
        assert {len(row) for row in table.rows} == {len(table.columns)}
        assert table.note.startswith("Exact")
    assert outcome.values["camc-off"] == outcome.values["camc-on"] == 1
    assert outcome.values["camc-blocks"] == 2 / 16
    assert (outcome.values["camc-end"], outcome.values["camc-end-others"]) == (7000, 0)
    judged = figures.judged("camc-cost", outcome.values, figures.read())
    assert {figure.name for figure in judged if not figure.holds} <= {"camc-blocks", *UNJUDGED}
    without = [run.kernel.flavour for run in outcome.runs if run.kernel.flavour != "camc"]
    assert without == ["nocamc"]


@pytest.mark.parametrize("lacks", ["filled", "collected"])
def test_what_was_on_the_lists_before_is_not_prefilled(
    lacks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cost_of_lists(title: str, told: Sequence[Guest], seconds: float) -> dict[str, Output]:
        outputs = cost_of(title, told, seconds)
        sections = outputs[camc_cost.FOUR.name].sections
        sections["touch"] = sections["touch"].replace(f"{lacks} 8192", f"{lacks} 12")
        return outputs

    monkeypatch.setattr(camc_cost, "run_all", cost_of_lists)
    monkeypatch.setattr(camc_cost, "check_kernels", lambda *_: None)
    monkeypatch.setattr(camc_cost.workloads, "files", lambda *_: {})
    kernel = Kernel(flavours.find("camc"), "6.12", Path(), {"CONFIG_CAMC": "y"})
    with pytest.raises(LabError, match="4 of 16: only 12 pages were collected"):
        camc_cost.camc_cost(lambda _: kernel)


def test_what_the_end_of_colors_takes_of_others_is_told() -> None:
    def listing(at: int) -> str:
        return f"pswpout {at}\npgscan_kswapd 5\npgscan_direct {2 * at}\noom_kill {at // 10}\n"

    sections = {
        **{f"{end} before": listing(0) for end in camc_cost.ENDS},
        **{"strict after": listing(0), "spill after": listing(10)},
        "strict": "touched 90\nanswer 7000\nhas 4\n",
        "spill": "touched 80\nanswer 8000\nhas 5\n",
    }
    told = camc_cost.answers(printed(**sections), 4)
    assert told["strict"] == camc_cost.Answer(90, 7000, 4, 0)
    assert told["spill"] == camc_cost.Answer(80, 8000, 5, 31)
    with pytest.raises(LabError, match="spill: a task of 4 colors had 4 at their end"):
        camc_cost.answers(printed(**{**sections, "spill": sections["strict"]}), 4)


# Purity


def printed(**sections: str) -> Output:
    kernel = Kernel(flavours.FLAVOURS["camc"], "6.12", Path(), {})
    result = BootResult(
        "", "", "", True, 0, 1.0, timed_out=False, panic=None, signal=None, command=["qemu"]
    )
    return Output(Guest("first run, xfs", kernel, Machine(), ""), result, sections)


def test_pages_of_a_first_run_are_those_that_come_out_of_files() -> None:
    def check_json(text: int, wrong: int) -> str:
        counts = {kind: {"right": 1, "wrong": 0} for kind in ("data", "file", "heap")}
        return json.dumps({"kinds": {**counts, "text": {"right": text, "wrong": wrong}}})

    output = printed(a=check_json(7, 2), b=check_json(0, 0))
    by_kind = camc_purity.first_counts(output, "a")
    assert by_kind == {"text": (7, 2), "data": (1, 0), "file": (1, 0)}
    with pytest.raises(LabError, match="first run, xfs: b had no text in memory: did it start"):
        camc_purity.first_counts(output, "b")


def of_names(what: str) -> dict[str, str]:
    """What a guest prints behind each load: N is its number, from 0 on."""
    return {
        f"{name}, swapped": what.replace("N", str(at))
        for at, name in enumerate(camc_purity.names())
    }


def test_all_loads_swap_and_some_meet_a_machine_without_memory() -> None:
    names = camc_purity.names()
    for load in camc_purity.LOADS:
        assert {load, f"{load}{camc_purity.SWAPS_TOO}"} <= set(names)
    assert sum(name.endswith(camc_purity.SHORT) for name in names) == len(camc_purity.MACHINE) > 0
    script = camc_purity._script()
    assert [name for name in names if f"look '{name}' " in script] == names


def test_colors_that_a_set_got_are_told() -> None:
    names = camc_purity.names()
    sections = {name: f"colors {2 + at}\nlooks 9\nstatus 0\n" for at, name in enumerate(names)}
    assert list(camc_purity.colors_had(printed(**sections)).values()) == [
        2 + at for at in range(len(names))
    ]
    with pytest.raises(LabError, match="gcc had 0 of the 2 colors"):
        camc_purity.colors_had(printed(**{**sections, "gcc": "colors 0\n"}))
    with pytest.raises(LabError, match="gcc had all 16 colors in the end: no page could be wrong"):
        camc_purity.colors_had(printed(**{**sections, "gcc": "colors 16\n"}))


def test_loads_that_were_to_swap_or_to_meet_reclaim_did() -> None:
    told = printed(**of_names("pswpin N7\npgscan_kswapd N5\npgscan_direct 9\n"))
    gained = list(camc_purity.reclaimed(told).values())
    assert gained[:2] == [(7, 14), (10, 10)]
    swapping, short = (f"gcc{kind}" for kind in (camc_purity.SWAPS_TOO, camc_purity.SHORT))
    still = printed(**of_names("pswpin 5\npgscan_kswapd N\npgscan_direct 0\n"))
    with pytest.raises(LabError, match=f"{swapping}: nothing was swapped in"):
        camc_purity.reclaimed(still)
    idle = printed(**of_names("pswpin N\npgscan_kswapd 9\npgscan_direct 9\n"))
    with pytest.raises(LabError, match=f"{short}: nothing was looked at to be reclaimed"):
        camc_purity.reclaimed(idle)


def test_swap_that_was_not_used_shows_nothing() -> None:
    pages = camc_purity.SWAP_PAGES
    right = f"right {pages - 5}\nwrong 5\npswpin "
    assert camc_purity.swapped_counts(printed(pages=f"{right}{2 * pages}\n")) == (
        *(pages - 5, 5),
        2 * pages,
    )
    with pytest.raises(LabError, match="only 9 pages were swapped in"):
        camc_purity.swapped_counts(printed(pages=f"{right}9\n"))


def purity_of(title: str, told: Sequence[Guest], seconds: float) -> dict[str, Output]:
    """What guests print in which a quarter of the text and of what a rotating disk holds is not of
    the colors, and nothing else."""
    pages = camc_purity.SWAP_PAGES
    own = "".join(f"{kind}_right 5\n{kind}_wrong 0\n" for kind in camc_purity.OWN)
    others = "text_right 5\ntext_wrong 2\nfile_right 1\nfile_wrong 0\ncolors {}\nstatus 0\n"
    sections = of_names("pswpin N7\npgscan_kswapd N5\npgscan_direct 9\n")
    for name in camc_purity.names():
        sections[name] = own + others.format(9 if name.endswith(camc_purity.SHORT) else 3)
    kinds = {kind: {"right": 1, "wrong": 0} for kind in camc_purity.LOADED}
    sections |= {name: json.dumps({"kinds": kinds}) for name in camc_purity.PROGRAMS}
    outputs = {}
    for guest in told:
        wrong = pages // 4 if guest.name == camc_purity.ROTATING else 0
        swapped = f"right {pages - wrong}\nwrong {wrong}\npswpin {2 * pages}\n"
        outputs[guest.name] = Output(guest, printed().result, {**sections, "pages": swapped})
    return outputs


def test_purity_is_told_with_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = printed().guest.kernel

    def small(name: str) -> Guest:
        return Guest(name, kernel, Machine(), "")

    monkeypatch.setattr(camc_purity, "run_all", purity_of)
    monkeypatch.setattr(camc_purity, "first_run", lambda _, name: small(f"first run, {name}"))
    monkeypatch.setattr(camc_purity, "swapped", lambda _, name: small(name))
    outcome = camc_purity.camc_purity(lambda _: kernel)
    loads, *exact = outcome.tables
    assert loads.note.startswith("Ratio") and len(loads.rows) == len(camc_purity.names())
    assert all(table.note.startswith("Exact") for table in exact)
    for table in outcome.tables:
        assert {len(row) for row in table.rows} == {len(table.columns)}
    assert outcome.values == {
        **{"camc-own": 1, "camc-own-colors": 3, "camc-text": 1, "camc-files": 0.75},
        **{"camc-swap": 1, "camc-swap-disk": 0.75},
    }
    judged = figures.judged("camc-purity", outcome.values, figures.read())
    assert [figure.name for figure in judged if figure.holds is False] == ["camc-swap-disk"]
