# SPDX-License-Identifier: GPL-2.0-or-later
"""Photo shots beside a job that works on more files than fit into memory: system guests.

The camera is the kernel's vivid driver, whose buffers come from the area as a real camera's do:
4 buffers of 1,013 pages a photo.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from lab import measure, paths, stats, workloads
from lab.guests import Guest, Kernels, Output, run_all
from lab.machine import POLICIES, Disk, Machine
from lab.measure import Allocation
from lab.results import Cell, Line, Outcome, Plot, Run, Table

PHOTOS = 30
AREA_MIB = 128
MEMORY_MIB = 384
FILES_MIB = 512
CPUS = 2
CARD_BYTES_PER_SECOND = 40_000_000  # an SD card, as the papers' boards have
SECONDS = 75  # of a guest on an idle machine, measured

SHOT = (
    "v4l2-ctl -d /dev/video0 --set-fmt-video=width=1920,height=1080"
    " --stream-mmap=4 --stream-count=1"
)

SETUP = f"""\
mountpoint -q /sys/kernel/tracing || mount -t tracefs trace /sys/kernel/tracing
mount -t tmpfs tmp /tmp
card=/dev/vda
mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 $card
mkdir /tmp/card
mount -t ext4 -o noatime $card /tmp/card
$job fill /tmp/card {FILES_MIB} 1 >/dev/null
"""

BACKGROUND = f"""\
$job mix /tmp/card {FILES_MIB} 2 &
$job zipf /tmp/card {FILES_MIB} 3 &
background=$!
sleep 5
"""

# the first shot, not counted, loads the programs
PHOTOS_SCRIPT = f"""\
{SHOT} >/dev/null 2>&1 || true
cd /sys/kernel/tracing
echo 4096 >buffer_size_kb
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
    sectors_read: int
    use: float | None  # share of the area that holds something, %

    @property
    def failed_allocations(self) -> int:
        return sum(not allocation.ok for allocation in self.allocations)

    @property
    def microseconds(self) -> list[float]:
        return [allocation.microseconds for allocation in self.allocations]


@contextmanager
def card() -> Iterator[Disk]:
    """An empty disk, as slow as an SD card."""
    with TemporaryDirectory(dir=paths.cache()) as folder:
        image = Path(folder) / "card"
        with image.open("wb") as file:
            file.truncate(FILES_MIB * 5 // 4 << 20)
        yield Disk(image, "card", bytes_per_second=CARD_BYTES_PER_SECOND)


def _guest(kernels: Kernels, policy: str, disk: Disk, script: str) -> Guest:
    machine = Machine(
        memory_mib=MEMORY_MIB,
        cpus=CPUS,
        area_mib=AREA_MIB,
        policy=policy,
        args=("vivid.allocators=1,1", "vivid.n_devs=1"),
        disks=(disk,),
    )
    script = f"job={workloads.program('job')}\n{SETUP}{script}"
    return Guest(policy, kernels("prod"), machine, script, exact=False, timeout=600)


def _area_use(output: Output, policy: str) -> float | None:
    """How much of the area held tenants, or, with movable, was not free."""
    total = AREA_MIB * 256
    if policy == "gcma":
        area = measure.counters(output["area after"])
        return 100 * (area["tenants_file"] + area.get("tenants_swap", 0)) / total
    if policy == "movable":
        return 100 * (1 - measure.counters(output["vmstat after"])["nr_free_cma"] / total)
    return 0.0


def _shots(output: Output, policy: str) -> Shots:
    lines = [line.split() for line in output["photos"].splitlines() if line.strip()]
    return Shots(
        photos=[int(micro) / 1000 for micro, _ in lines],
        failed=sum(ok != "1" for _, ok in lines),
        allocations=measure.allocations(output["trace"]),
        sectors_read=output.sectors_read("vda", "before", "after"),
        use=_area_use(output, policy),
    )


def _run(output: Output, shots: Shots) -> Run:
    samples = {"photo, ms": shots.photos, "allocation, us": shots.microseconds}
    counters = {
        "photos failed": shots.failed,
        "allocations failed": shots.failed_allocations,
        "sectors read": shots.sectors_read,
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


def _outcome(outputs: Mapping[str, Output]) -> Outcome:
    by_policy = {policy: _shots(output, policy) for policy, output in outputs.items()}
    photos = {policy: (shots.photos, shots.failed) for policy, shots in by_policy.items()}
    allocations = {
        policy: (shots.microseconds, shots.failed_allocations)
        for policy, shots in by_policy.items()
    }
    background: list[list[Cell]] = [
        [policy, shots.sectors_read / 2048, shots.use] for policy, shots in by_policy.items()
    ]
    return Outcome(
        runs=[_run(outputs[policy], shots) for policy, shots in by_policy.items()],
        tables=[
            _latency_table("Photo shot, ms", photos),
            _latency_table("Allocation in it (cma_alloc), us", allocations),
            Table(
                "Background job meanwhile",
                ("policy", "read from disk, MiB", "area in use, %"),
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


def photo(kernels: Kernels) -> Outcome:
    """photo shots while a background job reads and writes more files than fit (paper Fig. 6)"""
    with card() as disk:
        guests = [_guest(kernels, policy, disk, BACKGROUND + PHOTOS_SCRIPT) for policy in POLICIES]
        return _outcome(run_all("taking photos", guests, SECONDS))


# What the background job loses

TIMED_PAGES = 60_000

TIMED = f"""\
sync
section alone
$job mix /tmp/card {FILES_MIB} 7 {TIMED_PAGES // 2} >/dev/null
$job mix /tmp/card {FILES_MIB} 2 {TIMED_PAGES}
(while :; do {SHOT} >/dev/null 2>&1; sleep 0.5; done) &
section camera
snapshot before
section camera
$job mix /tmp/card {FILES_MIB} 3 {TIMED_PAGES}
snapshot after
"""


def background(kernels: Kernels) -> Outcome:
    """what a background job loses to photos taken all the time (paper Fig. 7, RFC's table)"""
    with card() as disk:
        guests = [_guest(kernels, policy, disk, TIMED) for policy in POLICIES]
        outputs = run_all("background job", guests, SECONDS)
    rate = {
        policy: [
            pages / cycles
            for pages, cycles in map(measure.job, (output["alone"], output["camera"]))
        ]
        for policy, output in outputs.items()
    }
    base = rate["none"][0]
    states = ("alone", "with the camera")
    rows: list[list[Cell]] = [
        [policy, *(value / base for value in values), 100 * (1 - values[1] / values[0])]
        for policy, values in rate.items()
    ]
    bars = [
        Line(policy, [(float(x), value / base) for x, value in enumerate(values)])
        for policy, values in rate.items()
    ]
    return Outcome(
        [
            output.run(counters={"rate alone": rate[p][0], "rate": rate[p][1]})
            for p, output in outputs.items()
        ],
        [
            Table(
                "Speed of a job of random reads and writes",
                ("policy", *states, "lost, %"),
                rows,
                "Relative to the job alone with policy none.",
            )
        ],
        [Plot("Speed of the background job", "bars", "", "relative", bars, groups=states)],
    )
