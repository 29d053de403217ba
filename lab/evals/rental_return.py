# SPDX-License-Identifier: GPL-2.0-or-later
"""What it takes to get lent memory back, and to lend it (paper Fig. 2, 5, 8).

Exact guests: instructions of a return by what the area holds, of replacing a page before a write,
of lending a frame; and how long returns take beside a load on the same CPU, as in the paper, with a
disk as slow as an SD card, all in the guest's own time. (An emulator that runs CPUs side by side
stops one for seconds now and then, perhaps with a page locked that a return waits for.)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean

from lab import loads, rental, rental_anon, rental_costs, stats, workloads
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output, run_all
from lab.loads import GCMA, MOVABLE
from lab.rental import ADAPTIVE, LAZY, VARIANTS, Return
from lab.rental_costs import (
    COUNTS,
    IDLE,
    LENT,
    MAPPED,
    PINNED,
    PROMISED,
    READ,
    STATES_OF,
    Costs,
    Writes,
)
from lab.results import Cell, Line, Outcome, Plot, Run, Table

READS, WRITES, CONVERT = "rndrd", ("rndrw", "seqwr"), "convert"
RETURNS = 8
BESIDE = (MOVABLE, *LENT, GCMA)
SECONDS = 330  # of a guest on an idle core


@dataclass(frozen=True)
class Load:
    """What runs beside returns: sysbench's name for it, of files of so many MiB; or pictures are
    converted while such files are read.
    """

    name: str
    files_mib: int
    held_mib: int = 0  # anonymous memory, allocated before

    @property
    def section(self) -> str:
        return f"{self.name} {self.files_mib} {self.held_mib}"

    @property
    def label(self) -> str:
        held = f", {self.held_mib} MiB held" if self.held_mib else ""
        return f"{self.name} {self.files_mib}{held}"


# Files that fit into the memory beside the area; the same where less of it is free; more than that.
# Loads that only read come first: nothing that is dirty is left for them.
LOADS = (
    *(Load(name, *memory) for name in (READS, *WRITES) for memory in ((100,), (100, 96), (200,))),
    Load(CONVERT, 100),
)
FILES_MIB = max(load.files_mib for load in LOADS)
DISK_MIB = FILES_MIB + rental.CONVERT_MIB
QUIET = LOADS[0]
SCRIPT = f"""\
{workloads.STEADY}
{rental.card(DISK_MIB)}
@scheme@
job fill /disk {FILES_MIB} 1 >/dev/null
{rental.PICTURE}
{rental.CONVERT} # once before, that the disk takes no memory later
cell() {{ # LOAD FILES HELD
	hog=
	if [ $3 != 0 ]; then
		: >/tmp/held
		rental hog $3 >/tmp/held &
		hog=$!
		while kill -0 $hog && ! grep -q held /tmp/held; do sleep 0.1; done
	fi
	: >/tmp/loading
	if [ $1 = {CONVERT} ]; then
		while [ -e /tmp/loading ]; do {rental.CONVERT}; done &
	else
		job $1 /disk $2 2 0 >/dev/null &
	fi
	loading=$!
	snapshot "before $*"
	section "$*"
	rental returns {workloads.DEBUG} /disk/data $2 {rental.AREA_PAGES} {RETURNS} 3
	snapshot "after $*"
	[ $1 != {CONVERT} ] || kill -0 $loading # it ran all the time
	rm /tmp/loading # a picture is finished
	[ $1 = {CONVERT} ] || kill $loading || true # one may have been killed for its memory
	[ -z "$hog" ] || kill $hog || true
	wait $loading $hog || true
}}
{"".join(f"cell {load.section}{chr(10)}" for load in LOADS)}\
area end
"""

DRAWN = (QUIET, *(load for load in LOADS if load.name in (WRITES[0], CONVERT)))  # paper Fig. 8

Returns = Mapping[Load, Sequence[Return]]
Lends = Mapping[int, Sequence[tuple[float, float]]]  # as rental_costs.lending() reads them


def _guest(kernels: Kernels, variant: str) -> Guest:
    return Guest(
        f"{variant}, beside loads",
        kernels("prod"),
        rental.machine(variant, DISK_MIB),
        SCRIPT.replace("@scheme@", VARIANTS[variant].script),
        workloads.files("job", "rental", host=("mkfs.ext4", *rental.CONVERT_TOOLS)),
    )


def read_beside(output: Output) -> dict[Load, list[Return]]:
    """The returns of a system guest."""
    returns = {}
    for load in LOADS:
        found = rental.read_returns(output[load.section])
        if len(found) != RETURNS:
            raise LabError(f"{output.guest.name}: {len(found)} of {RETURNS} returns, {load.label}")
        returns[load] = found
    return returns


def _marks(load: Load) -> tuple[str, str]:
    return f"before {load.section}", f"after {load.section}"


def check_writers(output: Output) -> None:
    """Raise a LabError if a load that writes did not, or if nothing was dirty, or under write-back,
    whenever memory was returned: returns beside it would tell nothing.
    """
    returns = read_beside(output)
    for load in LOADS:
        if load.name != READS and not rental.disk(output, *_marks(load)).sectors_written:
            raise LabError(f"{output.guest.name}: nothing was written by {load.label}")
        if load.name in WRITES and not any(map(_unclean, returns[load])):
            raise LabError(f"{output.guest.name}: no return met a dirty page of {load.label}")


def _unclean(each: Return) -> int:
    return each.dirty + each.writeback


def lent_mib(output: Output, load: Load) -> float | None:
    """What a return found lent, in the mean; None: that is not counted."""
    gained = output.gained("area", *_marks(load))
    if "discarded" not in gained:
        return None
    pages = sum(gained[name] for name in ("discarded", "activated", "moved_out"))
    return pages / RETURNS / loads.PAGES


def _median(returns: Sequence[Return]) -> float:
    return stats.percentile(rental.milliseconds(returns), 50)


def values(
    costs: Mapping[str, Costs],
    writes: Mapping[str, Writes],
    lends: Lends,
    beside: Mapping[str, Returns],
) -> dict[str, float]:
    """The figures, but for the pages found dirty."""
    lazy, adaptive, movable = (beside[variant] for variant in (LAZY, ADAPTIVE, MOVABLE))
    random_writes = [load for load in LOADS if load.name == "rndrw"]
    reading = {load: replace(load, name=READS) for load in LOADS}
    failed = {
        load: sum(rental.failures(beside[variant][load]) for variant in PROMISED) for load in LOADS
    }
    exact = [(state, cost) for variant in PROMISED for (state, _), cost in costs[variant].items()]
    return {
        "rental-simple-adaptive": max(rental.worst(movable[load]) for load in random_writes)
        / max(rental.worst(adaptive[load]) for load in random_writes),
        "rental-adaptive-lazy": max(
            loads.ratio(_median(adaptive[load]), _median(lazy[load])) for load in LOADS
        ),
        "rental-writes-reads": max(
            loads.ratio(_median(lazy[load]), _median(lazy[reading[load]]))
            for load in LOADS
            if load.name in WRITES
        ),
        "rental-clean": rental_costs.of_page(costs[LAZY], READ),
        "rental-mapped": rental_costs.of_page(costs[LAZY], MAPPED),
        "rental-idle": rental_costs.of_page(costs[LAZY], IDLE),
        "rental-replace": rental_costs.replacing(writes, "write", rental_costs.JUDGED_WRITES),
        "rental-replace-mapped": rental_costs.replacing(
            writes, "write-mapped", rental_costs.JUDGED_WRITES
        ),
        "rental-lend": max(
            rental_costs.lend_ratio(lends[folios]) for folios in rental_costs.JUDGED_LENDS
        ),
        "rental-failures": sum(not cost.ok for state, cost in exact if state not in PINNED)
        + sum(failed.values()),
        "rental-pin-lost": sum(cost.lost for state, cost in exact if state in PINNED),
        "rental-failures-dirty": sum(failed[load] for load in LOADS if load != QUIET),
    }


def _state_table(costs: Mapping[str, Costs]) -> Table:
    rows: list[list[Cell]] = [
        [
            state,
            *(
                round(costs[variant][state, rental_costs.AREA_PAGES].of_page, 1)
                if state in STATES_OF[variant]
                else None
                for variant in STATES_OF
            ),
            round(costs[MOVABLE][state, rental_costs.AREA_PAGES].used / rental_costs.AREA_PAGES, 2),
        ]
        for state in rental_costs.STATES
    ]
    return Table(
        "Instructions a page of a return, by what the area holds",
        ("state", *STATES_OF, "used of movable"),
        rows,
        f"One CPU, all {rental_costs.AREA_PAGES:,} pages of an area; in other memory is room for"
        " all of them. clean: read once; active: in use; mapped once, four times, every second"
        " page; locked: mlock(). gcma: of clean pages there are copies in the area, of others never"
        f" any. Used: of a movable area not every frame holds a page of the file. {rental.NAMES}",
    )


def _count_table(costs: Mapping[str, Costs]) -> Table:
    rows: list[list[Cell]] = [
        [
            *(state, count),
            *(
                costs[variant][state, count].instructions if state in STATES_OF[variant] else None
                for variant in STATES_OF
            ),
        ]
        for state in (IDLE, READ, MAPPED)
        for count in COUNTS
    ]
    columns = ("state", "pages", *STATES_OF)
    return Table("Instructions of a return, by its pages", columns, rows)


def _pin_table(costs: Mapping[str, Costs]) -> Table:
    rows: list[list[Cell]] = []
    for variant, states in STATES_OF.items():
        for state in PINNED:
            if state in states:
                cost = costs[variant][state, rental_costs.AREA_PAGES]
                ended = "returned" if cost.ok else "failed"
                rows.append([variant, state, ended, cost.lost, round(cost.instructions / 1e6, 1)])
    return Table(
        "Return of an area while a pipe holds one of its pages",
        ("variant", "the page", "", "pages lost", "ms, at 1 ns an instruction"),
        rows,
        "Lost: not in memory any more. Waiting counts.",
    )


def _write_table(writes: Mapping[str, Writes]) -> Table:
    rows: list[list[Cell]] = [
        [
            *(how, pages),
            *(round(writes[variant][how, pages] / pages) for variant in STATES_OF),
            round(rental_costs.replacing(writes, how, pages)),
        ]
        for how in rental_costs.HOWS
        for pages in rental_costs.WRITES
    ]
    return Table(
        "Instructions of the first write to a page",
        ("how", "pages", *STATES_OF, "lazy less none"),
        rows,
        "Of clean pages that were read once, under schemes of rental memory lent ones, which all"
        " but noclean replace: by write(), by write() while they are mapped, and through the"
        " mapping, where replacing a page makes one page fault more.",
    )


def _lend_table(lends: Lends) -> Table:
    rows: list[list[Cell]] = [
        [
            pages,
            *(round(cost, 1) for pair in of for cost in pair),
            round(rental_costs.lend_ratio(of), 3),
        ]
        for pages, of in lends.items()
    ]
    return Table(
        "Instructions of allocation and free of a page",
        ("pages", "buddy, allocation", "free", "lent frame, allocation", "free", "lent / buddy"),
        rows,
        "So many are allocated, then freed, in the kernel.",
    )


def _beside_table(beside: Mapping[str, Returns], outputs: Mapping[str, Output]) -> Table:
    rows: list[list[Cell]] = []
    for load in LOADS:
        for variant in BESIDE:
            returns = beside[variant][load]
            samples = rental.milliseconds(returns)
            lent = lent_mib(outputs[variant], load)
            killed = outputs[variant].gained("vmstat", *_marks(load))["oom_kill"]
            rows.append(
                [
                    *(load.label, variant, round(min(samples), 3), round(_median(returns), 3)),
                    *(round(max(samples), 3), rental.failures(returns)),
                    *(killed, None if lent is None else round(lent, 1)),
                    rental.used_mib(variant, returns),
                ]
            )
    return Table(
        "Return beside a load, ms",
        (
            *("load", "variant", "min", "median", "max", "failed"),
            *("processes killed", "lent, MiB", "used, MiB"),
        ),
        rows,
        f"{RETURNS} returns of {rental.AREA_MIB} MiB each, one CPU; files of so many MiB, 16 KiB at"
        f" a time, on {rental.SLOW_DISK}, in about {rental.CACHE_MIB} MiB beside the area,"
        " less what is held. A return lasts until the memory is there; failed: one try was not"
        " enough. Before each all clean cache is dropped and the file is read once more, for 15 s"
        " before the first, for 6 s before others, at most. Lent: found by a return, in the mean;"
        " used: what a movable area held just before one. Medians are nearest-rank. The paper has"
        " 50 returns, sysbench itself and 128 MiB held, with which programs here are killed for"
        " memory."
        " The paper's curve of vfat (Fig. 2) is left out: in Linux 6.12 dirty pages of vfat are"
        " moved as those of ext4 are, which was what it was for.",
    )


def _unclean_table(beside: Mapping[str, Returns]) -> Table:
    rows: list[list[Cell]] = []
    for load in LOADS:
        for variant in BESIDE if load.name in WRITES else ():
            returns = beside[variant][load]
            dirty, writeback = ([n / loads.PAGES for n in pages] for pages in _pages(returns))
            longest = max(returns, key=lambda each: each.ns)
            rows.append(
                [
                    *(load.label, variant, sum(map(bool, map(_unclean, returns)))),
                    *(round(mean(dirty), 1), round(max(dirty), 1)),
                    *(round(mean(writeback), 2), round(max(writeback), 2)),
                    *(round(_median(returns), 3), round(longest.ms, 3)),
                    *(round(n / loads.PAGES, 2) for n in (longest.dirty, longest.writeback)),
                ]
            )
    return Table(
        "Return by what is dirty or under write-back, ms",
        (
            *("load", "variant", "returns that met any"),
            *("dirty, MiB", "at most", "under write-back, MiB", "at most"),
            *("median", "max", "dirty then, MiB", "under write-back then, MiB"),
        ),
        rows,
        "The paper's Fig. 5c. Of the same returns: pages of the whole machine just before each, in"
        " the mean; then: before the longest. Under lazy and adaptive none of them is lent.",
    )


def _pages(returns: Sequence[Return]) -> tuple[list[int], list[int]]:
    return [each.dirty for each in returns], [each.writeback for each in returns]


def _unclean_plot(beside: Mapping[str, Returns], load: Load) -> Plot:
    lines = [
        Line(variant, [(each.writeback / loads.PAGES, each.ms) for each in beside[variant][load]])
        for variant in BESIDE
    ]
    x = "MiB under write-back"
    return Plot(f"Return under {load.label}, each", "points", x, "ms", lines, log_y=True)


def _cdf(beside: Mapping[str, Returns], load: Load) -> Plot:
    lines = [
        Line(variant, stats.cdf(rental.milliseconds(beside[variant][load]))) for variant in BESIDE
    ]
    return Plot(f"Return under {load.label}", "cdf", "ms", "share of returns", lines, log_x=True)


def _cost_plot(costs: Mapping[str, Costs]) -> Plot:
    lines = [
        Line(
            f"{variant}, {state}",
            [(float(n), float(costs[variant][state, n].instructions)) for n in COUNTS],
        )
        for variant in (MOVABLE, *PROMISED)  # noclean and clean have no way of their own
        for state in ("active", MAPPED)
    ]
    return Plot(
        "Return by its pages, in use or mapped",
        "lines",
        "pages",
        "instructions",
        lines,
        log_x=True,
        log_y=True,
    )


def _exact_run(output: Output, costs: Costs) -> Run:
    return output.run(
        {
            f"{state}, {count} pages, instructions": [cost.instructions]
            for (state, count), cost in costs.items()
        },
        {f"{state}, lost": c.lost for (state, _), c in costs.items() if state in PINNED},
    )


def rental_return(kernels: Kernels) -> Outcome:
    """what it takes to get lent memory back, and to lend it (rental paper Fig. 2, 5, 8)"""
    exact = run_all(
        "rental-return, costs",
        [rental_costs.guest(kernels, variant) for variant in STATES_OF],
        rental_costs.SECONDS,
    )
    guests = {variant: _guest(kernels, variant) for variant in BESIDE}
    outputs = run_all("rental-return, beside loads", list(guests.values()), SECONDS)
    anonymous = rental_anon.guest(kernels)
    lent_to_all = run_all("rental-return, anonymous", [anonymous], rental_anon.SECONDS)
    loaded = {variant: outputs[guest.name] for variant, guest in guests.items()}
    for output in loaded.values():
        check_writers(output)
    costs = {variant: rental_costs.read_returns(output) for variant, output in exact.items()}
    writes = {variant: rental_costs.write_costs(output) for variant, output in exact.items()}
    lends = rental_costs.lending(exact[LAZY])
    beside = {variant: read_beside(output) for variant, output in loaded.items()}
    return Outcome(
        [
            *(_exact_run(exact[variant], costs[variant]) for variant in exact),
            *(
                loaded[variant].run(
                    {
                        f"{load.label}, ms": rental.milliseconds(of)
                        for load, of in beside[variant].items()
                    }
                )
                for variant in BESIDE
            ),
        ],
        [
            _state_table(costs),
            _count_table(costs),
            _pin_table(costs),
            _write_table(writes),
            _lend_table(lends),
            _beside_table(beside, loaded),
            _unclean_table(beside),
            rental_anon.table(rental_anon.read(lent_to_all[anonymous.name])),
        ],
        [
            *(_cdf(beside, load) for load in LOADS if load in DRAWN),
            *(_unclean_plot(beside, Load(name, QUIET.files_mib)) for name in WRITES),
            _cost_plot(costs),
        ],
        {
            **values(costs, writes, lends, beside),
            "rental-dirty-return": rental.dirty([*exact.values(), *loaded.values()]),
        },
    )
