# SPDX-License-Identifier: GPL-2.0-or-later
"""Photo shots beside jobs that work on more files, or memory, than fit: system guests.

The camera is the kernel's vivid driver, whose buffers come from the area as a real camera's do:
4 buffers of 1,013 pages a photo.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from lab import measure, paths, stats, workloads
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output, run_all
from lab.machine import POLICIES, Disk, Machine
from lab.measure import Allocation
from lab.results import Cell, Line, Outcome, Plot, Run, Table

PHOTOS = 30
BUFFERS = 4  # of a photo, an allocation each
AREA_MIB = 128
MEMORY_MIB = 384
FILES_MIB = 512
CPUS = 2
APPS = 12
APP_MIB = 32  # of each application: all together are as large as memory and area
SWAP_MIB = 2 * APPS * APP_MIB
CARD_BYTES_PER_SECOND = 40_000_000  # an SD card, as the papers' boards have

SHOT = (
    "v4l2-ctl -d /dev/video0 --set-fmt-video=width=1920,height=1080"
    f" --stream-mmap={BUFFERS} --stream-count=1"
)

SETUP = f"""\
mountpoint -q /sys/kernel/tracing || mount -t tracefs trace /sys/kernel/tracing
echo 4096 >/sys/kernel/tracing/buffer_size_kb  # while there is memory
mount -t tmpfs tmp /tmp
card=/dev/vda
mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 $card
mkdir /tmp/card
mount -t ext4 -o noatime $card /tmp/card
$job fill /tmp/card {FILES_MIB} 1 >/dev/null
"""

# Swap is on a card of its own, so that what is read from each can be told
SWAP_ON = """\
mkswap /dev/vdb >/dev/null
swapon /dev/vdb
"""


@dataclass(frozen=True)
class Load:
    """What photos are taken beside."""

    setup: str
    background: str  # for ever
    warm_up: str
    timed: str  # a part of it that ends, and says how long it took; @seed@ is a number
    seconds: int  # of a guest on an idle machine
    kinds: tuple[str, ...]  # of tenants that it makes


TIMED_PAGES = 60_000
FILES = Load(
    SETUP,
    f"""\
$job mix /tmp/card {FILES_MIB} 2 &
$job zipf /tmp/card {FILES_MIB} 3 &
sleep 5
""",
    f"$job mix /tmp/card {FILES_MIB} 7 {TIMED_PAGES // 2} >/dev/null",
    f"$job mix /tmp/card {FILES_MIB} @seed@ {TIMED_PAGES}",
    75,
    ("file",),
)

TIMED_ACCESSES = 6 * APPS * APP_MIB * 256  # half of them warm up
SWAP = Load(
    SETUP + SWAP_ON,
    f"""\
$memory apps {APP_MIB} 2 1000000000000 {APPS} >/tmp/apps &
until grep -q filled /tmp/apps; do sleep 0.2; done
$job zipf /tmp/card {FILES_MIB} 3 &
sleep 5
""",
    ":",
    f"$memory apps {APP_MIB} @seed@ {TIMED_ACCESSES} {APPS}",
    100,
    ("file", "swap"),
)

# the first shot, not counted, loads the programs
PHOTOS_SCRIPT = f"""\
{SHOT} >/dev/null 2>&1 || true
cd /sys/kernel/tracing
echo 1 >events/cma/cma_alloc_start/enable
echo 1 >events/cma/cma_alloc_finish/enable
snapshot before
section photos
for i in $(seq {PHOTOS}); do
	start=$(date +%s%N)
	nice -n -10 {SHOT} >/tmp/shot 2>&1 && grep -q '<' /tmp/shot && ok=1 || ok=0
	end=$(date +%s%N)
	echo "$(((end - start) / 1000)) $ok"
	sleep 0.2
done
snapshot after
section trace
cat trace
"""


@dataclass(frozen=True)
class Shots:
    """What one guest's camera and background job did."""

    photos: Sequence[float]  # ms
    failed: int
    allocations: Sequence[Allocation]
    sectors_read: int  # of files
    pages_swapped_in: int
    use: float  # share of the area that holds something, %
    tenants: Mapping[str, float]  # MiB: file, swap; empty: there cannot be any

    @property
    def failed_allocations(self) -> int:
        return sum(not allocation.ok for allocation in self.allocations)

    @property
    def microseconds(self) -> list[float]:
        return [allocation.microseconds for allocation in self.allocations]


@contextmanager
def cards() -> Iterator[Sequence[Disk]]:
    """Empty disks for files and for swap, as slow as an SD card."""
    with TemporaryDirectory(dir=paths.cache()) as folder:
        disks = []
        for name, mib in (("card", FILES_MIB * 5 // 4), ("swap", SWAP_MIB)):
            image = Path(folder) / name
            with image.open("wb") as file:
                file.truncate(mib << 20)
            disks.append(Disk(image, name, bytes_per_second=CARD_BYTES_PER_SECOND))
        yield disks


def _guest(kernels: Kernels, policy: str, disks: Sequence[Disk], script: str) -> Guest:
    machine = Machine(
        memory_mib=MEMORY_MIB,
        cpus=CPUS,
        area_mib=AREA_MIB,
        policy=policy,
        args=("vivid.allocators=1,1", "vivid.n_devs=1"),
        disks=tuple(disks),
    )
    programs = "".join(f"{name}={workloads.program(name)}\n" for name in ("job", "memory"))
    return Guest(policy, kernels("prod"), machine, programs + script, exact=False, timeout=600)


def _tenants(output: Output) -> dict[str, float]:
    """MiB of each kind in the area."""
    area = measure.counters(output["area after"])
    kinds = {kind: area.get(f"tenants_{kind}") for kind in ("file", "swap")}
    return {kind: pages / 256 for kind, pages in kinds.items() if pages is not None}


def _area_use(output: Output, policy: str) -> float:
    """How much of the area held tenants, or, with movable, was not free."""
    if policy == "movable":
        free = measure.counters(output["vmstat after"])["nr_free_cma"] / 256
        return 100 * (1 - free / AREA_MIB)
    return 100 * sum(_tenants(output).values()) / AREA_MIB


def _shots(output: Output, policy: str) -> Shots:
    lines = [line.split() for line in output["photos"].splitlines() if line.strip()]
    return Shots(
        photos=[int(micro) / 1000 for micro, _ in lines],
        failed=sum(ok != "1" for _, ok in lines),
        allocations=measure.allocations(output["trace"]),
        sectors_read=output.sectors_read("vda", "before", "after"),
        pages_swapped_in=output.gained("vmstat", "before", "after")["pswpin"],
        use=_area_use(output, policy),
        tenants=_tenants(output),
    )


def check(name: str, shots: Shots, kinds: Sequence[str] = ()) -> None:
    """Raise a LabError if not all was seen: what is lost may be what took longest.

    Or if photos took nothing away, for an area that can have tenants has not all these kinds.
    """
    taken = len(shots.photos) - shots.failed
    if len(shots.photos) != PHOTOS or len(shots.allocations) < BUFFERS * taken:
        raise LabError(
            f"{name}: {len(shots.photos)} of {PHOTOS} photos, and {len(shots.allocations)}"
            f" allocations of {BUFFERS * taken} at least"
        )
    missing = [kind for kind in kinds if shots.tenants and not shots.tenants[kind]]
    if missing:
        raise LabError(f"{name}: no tenants beside the photos: {', '.join(missing)}")


def _run(output: Output, shots: Shots) -> Run:
    samples = {"photo, ms": shots.photos, "allocation, us": shots.microseconds}
    counters = {
        "photos failed": shots.failed,
        "allocations failed": shots.failed_allocations,
        "sectors read": shots.sectors_read,
        "pages swapped in": shots.pages_swapped_in,
        **{f"tenants {kind}, MiB": mib for kind, mib in shots.tenants.items()},
    }
    return output.run(samples, counters)


def _latency_table(title: str, by_policy: Mapping[str, tuple[Sequence[float], int]]) -> Table:
    rows: list[list[Cell]] = []
    for policy, (samples, failed) in by_policy.items():
        summary = stats.summary(samples)
        rows.append(
            [
                *(policy, summary.count, summary.min, summary.median),
                *(summary.p99, summary.max, failed),
            ]
        )
    columns = ("policy", "count", "min", "median", "p99", "max", "failed")
    return Table(title, columns, rows, "Percentiles are nearest-rank.")


def _outcome(outputs: Mapping[str, Output], kinds: Sequence[str]) -> Outcome:
    by_policy = {policy: _shots(output, policy) for policy, output in outputs.items()}
    for policy, shots in by_policy.items():
        check(policy, shots, kinds)
    photos = {policy: (shots.photos, shots.failed) for policy, shots in by_policy.items()}
    allocations = {
        policy: (shots.microseconds, shots.failed_allocations)
        for policy, shots in by_policy.items()
    }
    background: list[list[Cell]] = [
        [
            *(policy, shots.sectors_read / 2048, shots.pages_swapped_in / 256, shots.use),
            *(shots.tenants.get(kind) for kind in ("file", "swap")),
        ]
        for policy, shots in by_policy.items()
    ]
    return Outcome(
        runs=[_run(outputs[policy], shots) for policy, shots in by_policy.items()],
        tables=[
            _latency_table("Photo shot, ms", photos),
            _latency_table("Allocation in it (cma_alloc), us", allocations),
            Table(
                "Background job meanwhile",
                (
                    *("policy", "files read from disk, MiB", "swapped in, MiB", "area in use, %"),
                    *("file pages in it, MiB", "swapped-out pages in it, MiB"),
                ),
                background,
            ),
        ],
        plots=[
            _cdf("Photo shot", "ms", {policy: of[0] for policy, of in photos.items()}),
            replace(
                _cdf("Allocation", "us", {policy: of[0] for policy, of in allocations.items()}),
                log_x=True,
            ),
        ],
    )


def _cdf(title: str, unit: str, by_policy: Mapping[str, Sequence[float]]) -> Plot:
    lines = [Line(policy, stats.cdf(samples)) for policy, samples in by_policy.items()]
    return Plot(title, "cdf", unit, "share", lines)


def _photo(kernels: Kernels, load: Load) -> Outcome:
    with cards() as disks:
        script = load.setup + load.background + PHOTOS_SCRIPT
        guests = [_guest(kernels, policy, disks, script) for policy in POLICIES]
        return _outcome(run_all("taking photos", guests, load.seconds), load.kinds)


def photo(kernels: Kernels) -> Outcome:
    """photo shots while a background job reads and writes more files than fit (paper Fig. 6)"""
    return _photo(kernels, FILES)


def photo_swap(kernels: Kernels) -> Outcome:
    """photo shots while applications are switched, all of which do not fit, and files are read"""
    return _photo(kernels, SWAP)


# What the background job loses

TIMED = f"""\
sync
section alone
@warm_up@
@alone@
(while :; do
	{SHOT} >/tmp/shot 2>&1 && grep -q '<' /tmp/shot && echo 1 || echo 0
	sleep 0.5
done >/tmp/shots) &
section camera
snapshot before
section camera
@beside@
snapshot after
section shots
cat /tmp/shots
"""


def taken_beside(policy: str, shots: str) -> tuple[int, int]:
    """Photos that were taken beside the job, and that failed."""
    taken, failed = (shots.split().count(ok) for ok in "10")
    if not taken + failed:
        raise LabError(f"{policy}: no photo was tried beside the job")
    return taken, failed


def _background(kernels: Kernels, load: Load, what: str) -> Outcome:
    script = TIMED.replace("@warm_up@", load.warm_up)
    for place, seed in (("@alone@", "2"), ("@beside@", "3")):
        script = script.replace(place, load.timed.replace("@seed@", seed))
    with cards() as disks:
        guests = [_guest(kernels, policy, disks, load.setup + script) for policy in POLICIES]
        outputs = run_all("background job", guests, load.seconds)
    rate = {
        policy: [
            pages / cycles
            for pages, cycles in map(measure.job, (output["alone"], output["camera"]))
        ]
        for policy, output in outputs.items()
    }
    base = rate["none"][0]
    states = ("alone", "with the camera")
    taken = {policy: taken_beside(policy, output["shots"]) for policy, output in outputs.items()}
    rows: list[list[Cell]] = []
    for policy, values in rate.items():
        row: list[Cell] = [policy, *(value / base for value in values)]
        rows.append([*row, 100 * (1 - values[1] / values[0]), *taken[policy]])
    bars = [
        Line(policy, [(float(x), value / base) for x, value in enumerate(values)])
        for policy, values in rate.items()
    ]
    return Outcome(
        [
            output.run(
                counters={
                    "rate alone": rate[p][0],
                    "rate": rate[p][1],
                    "photos": taken[p][0],
                    "photos failed": taken[p][1],
                }
            )
            for p, output in outputs.items()
        ],
        [
            Table(
                f"Speed of {what}",
                ("policy", *states, "lost, %", "photos taken", "failed"),
                rows,
                "Relative to the job alone with policy none. A photo begins half a second after"
                " the one before ended: who takes long for one, or gets none, takes less from the"
                " job.",
            )
        ],
        [Plot("Speed of the background job", "bars", "", "relative", bars, groups=states)],
    )


def background(kernels: Kernels) -> Outcome:
    """what a background job loses to photos taken all the time (paper Fig. 7, RFC's table)"""
    return _background(kernels, FILES, "a job of random reads and writes")


def background_swap(kernels: Kernels) -> Outcome:
    """the same where applications are switched, all of which do not fit: swap"""
    return _background(kernels, SWAP, "applications that are switched")
