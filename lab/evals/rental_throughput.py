# SPDX-License-Identifier: GPL-2.0-or-later
"""What lent memory is worth to programs, and what it costs them (paper Fig. 6, 7, 9, Table II).

Exact guests with a disk as slow as an SD card, whose time is the guest's own: counts and times
repeat.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import mean

from lab import loads, measure, rental, workloads
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output, run_all
from lab.loads import CLASSIC, GENERATIONS, NONE, SWITCH
from lab.rental import CLEAN, LAZY, NOCLEAN, VARIANTS
from lab.results import Cell, Line, Outcome, Plot, Table

SEEDS = (1, 2, 3)
SECONDS = 90  # of a guest on an idle core, in the mean

# Sysbench's file I/O, as the paper has it: no fsync(), files that were read before
SETS_MIB = (100, 150, 200, 300)
PREALLOCATED = (0, 64, 96)  # MiB of anonymous memory; who had the paper's 128 is killed
DRAWN_SETS, DRAWN_HELD = (100, 300), (0, 64)  # the paper's Fig. 6: of these each random sequence
MODES = ("rndrd", "rndrw")
REQUESTS = 30_000
SYSBENCH_MIB = 24  # the program and its libraries, in the initramfs
SYSBENCH = f"""\
sysbench_of() {{ # MIB MODE SEED COMMAND
	echo sysbench fileio --file-num=16 --file-total-size=$1M --file-block-size=16384 \\
		--file-test-mode=$2 --file-rw-ratio=1.5 --file-fsync-freq=0 --file-fsync-end=off \\
		--rand-type=uniform --rand-seed=$3 --threads=1 --time=0 --events={REQUESTS} \\
		--percentile=0 $4
}}
"""


def _seeds(mib: int, held: int) -> Sequence[int]:
    return SEEDS if mib in DRAWN_SETS and held in DRAWN_HELD else SEEDS[:1]


def _runs(held: int) -> str:
    lines = [
        f"file_io {mode} {mib} {held} {seed}"
        for mib in SETS_MIB
        for mode in MODES
        for seed in _seeds(mib, held)
    ]
    return "\n".join((f"hold {held}", *lines, "let_go\n"))


FILE_IO = f"""\
{SYSBENCH}
file_io() {{ # MODE MIB HELD SEED
	cd /disk/$2
	sync
	echo 1 >/proc/sys/vm/drop_caches
	cat test_file.* >/dev/null
	timed "$1 $2 $3 $4" $(sysbench_of $2 $1 $4 run)
}}
for mib in {" ".join(map(str, SETS_MIB))}; do
	mkdir /disk/$mib
	cd /disk/$mib
	$(sysbench_of $mib rndrd 1 prepare) >/dev/null
done
{"".join(map(_runs, PREALLOCATED))}"""

# Files in normal memory, nothing in the area; then an application whose memory grows
GROW_SETS_MIB = (100, 150, 200)
GROW_MIB = 128
GROW_REQUESTS = 30_000
JUDGED_SET = 150
GROW = f"""\
job fill /disk {max(GROW_SETS_MIB)} 1 >/dev/null
for mib in {" ".join(map(str, GROW_SETS_MIB))}; do
	for seed in {" ".join(map(str, SEEDS))}; do
		echo 1 >/proc/sys/vm/drop_caches
		take
		job chunks /disk $mib 1 $((mib * {loads.PAGES})) >/dev/null
		echo {rental.AREA_PAGES} >{workloads.DEBUG}/free
		timed "grow $mib 0 $seed" \\
			rental grow /disk/data $mib $seed {GROW_REQUESTS} {GROW_MIB}
	done
done
"""

CONVERT = f"""\
{rental.PICTURE}
for held in {" ".join(map(str, DRAWN_HELD))}; do
	hold $held
	rm -f /disk/out.jpg
	sync
	echo 1 >/proc/sys/vm/drop_caches
	timed "convert {rental.IMAGE_MIB} $held 1" {rental.CONVERT}
	let_go
done
"""

# A return amid the work: sysbench's files are in memory and in use, the picture was read once
RETURNED_MIB = 100
RETURNED = f"""\
{SYSBENCH}
mkdir /disk/{RETURNED_MIB}
cd /disk/{RETURNED_MIB}
$(sysbench_of {RETURNED_MIB} rndrd 1 prepare) >/dev/null
for mode in {" ".join(MODES)}; do
	for seed in {" ".join(map(str, SEEDS))}; do
		sync
		echo 1 >/proc/sys/vm/drop_caches
		cat test_file.* >/dev/null
		$(sysbench_of {RETURNED_MIB} $mode 1$seed run) >/dev/null
		take
		timed "$mode-returned {RETURNED_MIB} 0 $seed" \
			$(sysbench_of {RETURNED_MIB} $mode $seed run)
		echo {rental.AREA_PAGES} >{workloads.DEBUG}/free
	done
done
rm test_file.*
{rental.PICTURE}
sync
echo 1 >/proc/sys/vm/drop_caches
cat /disk/in.ppm >/dev/null
take
timed "convert-returned {rental.IMAGE_MIB} 0 1" {rental.CONVERT}
echo {rental.AREA_PAGES} >{workloads.DEBUG}/free
"""

# A program that takes all memory there is, beside clean cache
OOM_FILE_MIB = rental.AREA_MIB + rental.CACHE_MIB + 64  # there is more room after the first time
OOM_ROUNDS = 3
FULL = 0.9  # of the area
LRUS = (CLASSIC, GENERATIONS)
OOM = f"""\
job fill /disk {OOM_FILE_MIB} 1 >/dev/null
for lru in {" ".join(LRUS)}; do
	[ $lru = {CLASSIC} ] && echo n >{SWITCH} || echo y >{SWITCH}
	for round in $(seq {OOM_ROUNDS}); do
		cat /disk/data >/dev/null
		area "before oom $lru $round"
		section "oom $lru $round"
		rental oom
	done
done
"""

COMMON = f"""\
{rental.STEPS}timed() {{ # NAME COMMAND...
	name=$1
	shift
	snapshot "before $name"
	rental time "$@" >/tmp/timed
	sync
	section "$name"
	tail -n 2 /tmp/timed
	snapshot "after $name"
}}
"""


@dataclass(frozen=True)
class Part:
    """What runs in a guest of each variant."""

    script: str
    disk_mib: int  # what its content takes of memory
    programs_mib: int = 0
    host: tuple[str, ...] = ()


FILE_IO_PART, GROW_PART, CONVERT_PART = "file I/O", "growth", "image"
RETURNED_PART, OOM_PART = "returned", "OOM"
PARTS = {
    FILE_IO_PART: Part(FILE_IO, sum(SETS_MIB), programs_mib=SYSBENCH_MIB, host=("sysbench",)),
    GROW_PART: Part(GROW, max(GROW_SETS_MIB)),
    CONVERT_PART: Part(CONVERT, rental.CONVERT_MIB, host=rental.CONVERT_TOOLS),
    RETURNED_PART: Part(
        RETURNED,
        RETURNED_MIB + rental.CONVERT_MIB,
        programs_mib=SYSBENCH_MIB,
        host=("sysbench", *rental.CONVERT_TOOLS),
    ),
    OOM_PART: Part(OOM, OOM_FILE_MIB),
}


@dataclass(frozen=True)
class Job:
    """One of those that are timed: name as in the script, MiB of files, of memory that is held."""

    name: str
    mib: int
    held: int
    seeds: Sequence[int] = SEEDS
    requests: int = 1

    @property
    def label(self) -> str:
        return f"{self.name} {self.mib}" + (f", {self.held} held" if self.held else "")


@dataclass(frozen=True)
class Use:
    """Of one run of a job."""

    sectors_read: int
    sectors_written: int
    ns: int
    cpu_us: int  # of the job, not of what the kernel does beside it
    replaced: int  # pages that left the area before they were written to
    taken_over: int  # pages that were lent a frame when they would have been evicted


FILE_IO_JOBS = tuple(
    Job(mode, mib, held, seeds=_seeds(mib, held), requests=REQUESTS)
    for held in PREALLOCATED
    for mib in SETS_MIB
    for mode in MODES
)
CONVERT_JOBS = tuple(Job("convert", rental.IMAGE_MIB, held, seeds=(1,)) for held in DRAWN_HELD)
GROW_JOBS = tuple(Job("grow", mib, 0, requests=GROW_REQUESTS) for mib in GROW_SETS_MIB)
RETURNED_JOBS = (
    *(Job(f"{mode}-returned", RETURNED_MIB, 0, requests=REQUESTS) for mode in MODES),
    Job("convert-returned", rental.IMAGE_MIB, 0, seeds=(1,)),
)
JOBS = {
    FILE_IO_PART: FILE_IO_JOBS,
    CONVERT_PART: CONVERT_JOBS,
    GROW_PART: GROW_JOBS,
    RETURNED_PART: RETURNED_JOBS,
}
COPY_JOBS = tuple(job for job in FILE_IO_JOBS if job.name == "rndrw")
JUDGED_COPY = COPY_JOBS[0]

Uses = Mapping[tuple[Job, str], Sequence[Use]]  # by job and variant, each seed one


def _guest(kernels: Kernels, name: str, variant: str) -> Guest:
    part = PARTS[name]
    disk = rental.card(part.disk_mib)
    script = workloads.STEADY + disk + VARIANTS[variant].script + COMMON + part.script
    return Guest(
        f"{name}, {variant}",
        kernels("prod"),
        rental.machine(variant, part.disk_mib, part.programs_mib),
        f"{script}area end\n",
        workloads.files("job", "rental", host=("mkfs.ext4", *part.host)),
    )


def read(output: Output, job: Job) -> list[Use]:
    """Of each seed."""
    uses = []
    for seed in job.seeds:
        name = f"{job.name} {job.mib} {job.held} {seed}"
        marks = (f"before {name}", f"after {name}")
        disk = rental.disk(output, *marks)
        told = measure.counters(output[name])
        area = output.gained("area", *marks)
        uses.append(
            Use(
                *(disk.sectors_read, disk.sectors_written, told["ns"], told["cpu_us"]),
                *(area.get(name, 0) for name in ("replaced", "taken_over")),
            )
        )
    return uses


def read_oom(output: Output) -> dict[str, list[dict[str, int]]]:
    """By LRU, each round: `ns` until the program was killed, and the `pages` that it had."""
    rounds: dict[str, list[dict[str, int]]] = {}
    for lru in LRUS:
        rounds[lru] = []
        for number in range(1, OOM_ROUNDS + 1):
            lent = measure.counters(output[f"area before oom {lru} {number}"]).get("lent")
            if lent is not None and lent < FULL * rental.AREA_PAGES:
                raise LabError(f"{output.guest.name}: only {lent} pages were lent, {lru}")
            rounds[lru].append(measure.counters(output[f"oom {lru} {number}"]))
    return rounds


Ooms = Mapping[str, Mapping[str, Sequence[Mapping[str, int]]]]  # by variant


def of(uses: Uses, job: Job, variant: str, what: Callable[[Use], float]) -> float:
    """The mean of all seeds."""
    return mean(map(what, uses[job, variant]))


def cpu(use: Use) -> float:
    return use.cpu_us


def reads(use: Use) -> float:
    return use.sectors_read


def writes(use: Use) -> float:
    return use.sectors_written


def time(use: Use) -> float:
    return use.ns


def replaced(use: Use) -> float:
    return use.replaced


def taken_over(use: Use) -> float:
    return use.taken_over


def utilisation(use: Use) -> float:
    """Of the CPU, by the job, in percent."""
    return 100 * use.cpu_us * 1000 / use.ns


def copy_cost(uses: Uses, job: Job) -> float:
    """CPU time that pages of the area cost for leaving it before a write, in percent."""
    return 100 * (of(uses, job, CLEAN, cpu) / of(uses, job, NOCLEAN, cpu) - 1)


def oom_ratio(ooms: Ooms, lru: str) -> float:
    lazy, none = (mean(oom["ns"] for oom in ooms[variant][lru]) for variant in (LAZY, NONE))
    return lazy / none


def values(uses: Uses, ooms: Ooms) -> dict[str, float]:
    """The figures, but for the pages found dirty."""
    (judged,) = (job for job in GROW_JOBS if job.mib == JUDGED_SET)
    return {
        "rental-oom": max(oom_ratio(ooms, lru) for lru in LRUS),
        "rental-lazy-reads": loads.ratio(
            of(uses, judged, CLEAN, reads), of(uses, judged, LAZY, reads)
        ),
        "rental-copy": copy_cost(uses, JUDGED_COPY),
    }


def _use_table(uses: Uses, title: str, jobs: Sequence[Job], note: str, base: str = NONE) -> Table:
    rows: list[list[Cell]] = [
        [
            *(job.label, variant),
            round(of(uses, job, base, time) / of(uses, job, variant, time), 3),
            round(job.requests / of(uses, job, variant, time) * 1e9),
            *(round(of(uses, job, variant, what) / 2048, 1) for what in (reads, writes)),
            round(of(uses, job, variant, cpu) / 1000),
            *(
                round(of(uses, job, variant, what) / loads.PAGES, 1)
                for what in (replaced, taken_over)
            ),
        ]
        for job in jobs
        for variant in VARIANTS
    ]
    columns = (
        *("load", "variant", f"speed, / {base}", "a second", "read, MiB", "written, MiB"),
        "CPU, ms",
        *("replaced before a write, MiB", "moved into the area, MiB"),
    )
    return Table(title, columns, rows, note)


def _copy_table(uses: Uses) -> Table:
    rows: list[list[Cell]] = [
        [
            job.label,
            *(round(of(uses, job, variant, utilisation), 1) for variant in (NOCLEAN, CLEAN)),
            *(round(of(uses, job, variant, cpu) / 1000, 1) for variant in (NOCLEAN, CLEAN)),
            round(copy_cost(uses, job), 1),
            round(of(uses, job, CLEAN, replaced) / loads.PAGES, 1),
        ]
        for job in COPY_JOBS
    ]
    return Table(
        "What pages cost that leave the area before a write",
        (
            *("load", "noclean, CPU %", "clean, CPU %"),
            *("noclean, CPU ms", "clean, CPU ms", "more, %", "replaced, MiB"),
        ),
        rows,
        "The paper's Table II. CPU time of sysbench itself, at 1 ns an instruction, and its share"
        " of the time that sysbench took.",
    )


def _oom_table(ooms: Ooms) -> Table:
    rows: list[list[Cell]] = [
        [
            *(variant, lru, round(mean(oom["ns"] for oom in rounds) / 1e6)),
            round(mean(oom["pages"] for oom in rounds) / loads.PAGES),
            round(
                loads.ratio(
                    mean(oom["ns"] for oom in rounds), mean(oom["ns"] for oom in ooms[NONE][lru])
                ),
                3,
            ),
        ]
        for variant, by_lru in ooms.items()
        for lru, rounds in by_lru.items()
    ]
    return Table(
        "A program that takes memory until it is killed",
        ("variant", "LRU", "ms", "MiB that it had", "ms, / none"),
        rows,
        f"Mean of {OOM_ROUNDS}. Before each, {OOM_FILE_MIB} MiB of a file are read: the area and"
        " the memory beside it are full of clean cache. No swap.",
    )


def _bars(
    uses: Uses,
    title: str,
    jobs: Sequence[Job],
    what: Callable[[Use], float],
    base: str = NONE,
) -> Plot:
    """Speeds relative to a variant's, or MiB."""
    lines = []
    for variant in VARIANTS:
        heights = [of(uses, job, variant, what) for job in jobs]
        if what is time:
            heights = [
                of(uses, job, base, what) / height
                for job, height in zip(jobs, heights, strict=True)
            ]
        else:
            heights = [height / 2048 for height in heights]
        lines.append(Line(variant, [(float(x), height) for x, height in enumerate(heights)]))
    y = f"relative to {base}" if what is time else "MiB"
    return Plot(title, "bars", "", y, lines, groups=[f"{job.name} {job.mib}" for job in jobs])


def rental_throughput(kernels: Kernels) -> Outcome:
    """what lent memory is worth to programs, and costs (rental paper Fig. 6, 7, 9, Table II)"""
    guests = {
        (name, variant): _guest(kernels, name, variant) for name in PARTS for variant in VARIANTS
    }
    printed = run_all("rental-throughput", list(guests.values()), SECONDS)
    outputs = {key: printed[guest.name] for key, guest in guests.items()}
    uses = {
        (job, variant): read(outputs[name, variant], job)
        for name, jobs in JOBS.items()
        for variant in VARIANTS
        for job in jobs
    }
    ooms = {variant: read_oom(outputs[OOM_PART, variant]) for variant in VARIANTS}
    counters: dict[tuple[str, str], dict[str, float]] = {key: {} for key in outputs}
    for (job, variant), of_seeds in uses.items():
        (name,) = (name for name, jobs in JOBS.items() if job in jobs)
        for seed, use in zip(job.seeds, of_seeds, strict=True):
            counters[name, variant] |= {
                f"{job.label}, seed {seed}: {what}": value for what, value in asdict(use).items()
            }
    machine = (
        f"One CPU; an area of {rental.AREA_MIB} MiB beside about {rental.CACHE_MIB} MiB;"
        f" {rental.SLOW_DISK}."
    )
    drawn = {
        held: [
            *(job for job in FILE_IO_JOBS if job.held == held and job.mib in DRAWN_SETS),
            *(job for job in CONVERT_JOBS if job.held == held),
        ]
        for held in DRAWN_HELD
    }
    return Outcome(
        [output.run(counters=counters[key]) for key, output in outputs.items()],
        [
            _use_table(
                uses,
                "Programs beside an idle area",
                (*FILE_IO_JOBS, *CONVERT_JOBS),
                f"{machine} sysbench: {REQUESTS:,} requests of 16 KiB, to files of so many MiB that"
                " were read before, 3 reads to 2 writes in rndrw, beside so many MiB of memory that"
                f" is held; mean of {len(SEEDS)} random sequences, of one for 150 and 200 MiB and"
                f" beside {PREALLOCATED[-1]} MiB, or all this would take more than twice the time."
                f" {PREALLOCATED[-1]}: 128, as in the paper, ends in a program's death for memory."
                f" convert: a picture of {rental.IMAGE_MIB} MiB. Written: with what is dirty at the"
                " end. CPU: of the program itself. The five MiBench programs of the paper's Fig. 6"
                " are left out: Debian does not have that suite, and of these the paper finds only"
                f" tiff2rgba any faster, for the reason that it gives for convert. {rental.NAMES}",
            ),
            _copy_table(uses),
            _use_table(
                uses,
                f"Reads beside a program that grows to {GROW_MIB} MiB",
                GROW_JOBS,
                f"{machine} {GROW_REQUESTS:,} random reads of 16 KiB, from files of so many MiB"
                " that lie in normal memory when the area is lent, while the memory of the same"
                f" process grows; mean of {len(SEEDS)} random sequences.",
            ),
            _use_table(
                uses,
                "Programs after a return",
                RETURNED_JOBS,
                f"{machine} The paper's Fig. 9. The device has its memory back for as long as the"
                f" program runs. sysbench: after as many requests to the same {RETURNED_MIB} MiB"
                " before, so that what lay in the area was in use; convert: the picture had been"
                " read once.",
                LAZY,
            ),
            _oom_table(ooms),
        ],
        [
            *(
                _bars(uses, f"Speed, {held} MiB preallocated", jobs, time)
                for held, jobs in drawn.items()
            ),
            _bars(uses, "Disk reads beside a program that grows", GROW_JOBS, reads),
            _bars(uses, "Speed after a return", RETURNED_JOBS, time, LAZY),
        ],
        {
            **values(uses, ooms),
            "rental-dirty-throughput": rental.dirty(outputs.values()),
        },
    )
