# SPDX-License-Identifier: GPL-2.0-or-later
"""Applications that are started one after the other, on a phone (rental paper Fig. 10, 11).

24 of the paper's Table III, each with several activities; the media player in the middle and the
camera at the end take the area for themselves. Exact guests with a disk as slow as an SD card.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from lab import loads, rental, stats, workloads
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output, run_all
from lab.loads import MOVABLE, NONE
from lab.rental import ADAPTIVE, LAZY, VARIANTS, Return
from lab.results import Cell, Line, Outcome, Plot, Table

SEEDS = (1, 2, 3, 4, 5)
SECONDS = 20  # of a guest on an idle core
LIBRARIES_MIB = 40  # that all share
ALIVE = 6  # applications that have memory: an older one is ended
VIDEO_MIB = 72  # the paper's two devices, which are all of the area
CAMERA_MIB = rental.AREA_MIB - VIDEO_MIB
PLAYER, CAMERA = "mediaplayer", "camera"
ACTIVITIES = 4  # as in lab/guest/rental.c
LIBRARY_PAGES = 48 * 8  # that an activity uses, the same
READS_A_WRITE = 200  # the paper's, pages


@dataclass(frozen=True)
class Category:
    """Of Table III, with sizes in MiB: what an application of it has."""

    apps: tuple[str, ...]
    text: int
    data: int
    anon: int


CATEGORIES = (
    Category(("email", "sms", "call"), 2, 3, 8),
    Category(("browser", "facebook", "twitter", "daum"), 6, 12, 16),
    Category(("gallery", PLAYER, CAMERA, "music"), 3, 16, 10),
    Category(("alarm", "calendar", "reader"), 2, 4, 8),
    Category(("settings", "scanner"), 2, 4, 8),
    Category(("angrybird", "quake", "alchemy"), 8, 16, 16),
    Category(("map", "mapsearch", "wingspoon"), 5, 10, 14),
    Category(("launcher", "vending"), 3, 5, 10),
)
# In the order in which they are started
ORDER = (
    *("launcher", "sms", "browser", "angrybird", "email", "map", "settings", "facebook"),
    *("calendar", "quake", "music", PLAYER, "gallery", "daum", "call", "vending", "mapsearch"),
    *("reader", "twitter", "alarm", "alchemy", "scanner", "wingspoon", CAMERA),
)
DEVICES = {PLAYER: (VIDEO_MIB, CAMERA_MIB), CAMERA: (CAMERA_MIB,)}


def category(app: str) -> Category:
    (matching,) = (category for category in CATEGORIES if app in category.apps)
    return matching


def writes(app: str) -> int:
    """Pages that each activity writes."""
    kind = category(app)
    read = (kind.text + kind.data) * loads.PAGES // ACTIVITIES + LIBRARY_PAGES
    return max(read // READS_A_WRITE, 1)


def line(app: str) -> str:
    """What lab/guest/rental.c has to know of it."""
    kind = category(app)
    pages = [mib * loads.PAGES for mib in (kind.text, kind.data, kind.anon)]
    devices = [mib * loads.PAGES for mib in DEVICES.get(app, ())]
    return " ".join(map(str, (app, *pages, writes(app), *devices)))


FILE_MIB = LIBRARIES_MIB + sum(category(app).text + category(app).data for app in ORDER)
LINES = "\n".join(map(line, ORDER))
SCRIPT = f"""\
{workloads.STEADY}
{rental.card(FILE_MIB)}
@scheme@
job fill /disk {FILE_MIB} 1 >/dev/null
echo 1 >/proc/sys/vm/drop_caches
cat >/tmp/apps <<END
{LINES}
END
snapshot before
section apps
rental apps {workloads.DEBUG} /disk/data {LIBRARIES_MIB * loads.PAGES} {ALIVE} @seed@ </tmp/apps
sync
snapshot after
area end
"""


@dataclass(frozen=True)
class Day:
    """What one guest's user saw."""

    starts: Sequence[float]  # ms
    others: Sequence[float]  # ms, of all other activities
    returns: Mapping[str, Return]  # by application
    sectors_read: int
    sectors_written: int
    counters: Mapping[str, int]  # of the area, pages

    @property
    def activities(self) -> list[float]:
        return [*self.starts, *self.others]


def _guest(kernels: Kernels, variant: str, seed: int) -> Guest:
    script = SCRIPT.replace("@scheme@", VARIANTS[variant].script)
    return Guest(
        f"{variant}, seed {seed}",
        kernels("prod"),
        rental.machine(variant, FILE_MIB),
        script.replace("@seed@", str(seed)),
        workloads.files("job", "rental", host=("mkfs.ext4",)),
        seed=seed,
    )


COUNTERS = ("lends", "taken_over", "replaced", "discarded", "activated", "moved_out")


def read(output: Output) -> Day:
    text = output["apps"]
    activities = re.findall(r"^activity \S+ (\S+) (\d+)$", text, flags=re.M)
    if len(activities) != len(ORDER) * (ACTIVITIES + 1) - 1:
        raise LabError(f"{output.guest.name}: {len(activities)} activities")
    returned = {}
    for app in DEVICES:
        found = rental.read_returns(text, f"return {app} ")
        if len(found) != 1:
            raise LabError(f"{output.guest.name}: {len(found)} returns for {app}")
        returned[app] = found[0]
    disk = rental.disk(output, "before", "after")
    area = output.gained("area", "before", "after")
    return Day(
        [int(ns) / 1e6 for which, ns in activities if which == "0"],
        [int(ns) / 1e6 for which, ns in activities if which != "0"],
        returned,
        disk.sectors_read,
        disk.sectors_written,
        {name: area[name] for name in COUNTERS if name in area},
    )


Days = Mapping[str, Sequence[Day]]  # by variant, each seed one


def returns(days: Days, variant: str, app: str) -> list[Return]:
    return [day.returns[app] for day in days[variant]]


def worst(days: Days, variant: str) -> float:
    """Of both applications and all seeds, ms."""
    return max(rental.worst(returns(days, variant, app)) for app in DEVICES)


def sectors_read(days: Days, variant: str) -> float:
    return mean(day.sectors_read for day in days[variant])


def values(days: Days) -> dict[str, float]:
    """The figures, but for the pages found dirty."""
    return {
        "rental-contention": worst(days, MOVABLE) / worst(days, ADAPTIVE),
        "rental-apps-reads": sectors_read(days, LAZY) / sectors_read(days, MOVABLE),
    }


def _latencies(days: Days, variant: str) -> list[float]:
    return [ms for day in days[variant] for ms in day.activities]


def _app_table(days: Days) -> Table:
    rows: list[list[Cell]] = []
    for variant, of in days.items():
        starts = [ms for day in of for ms in day.starts]
        latencies = _latencies(days, variant)
        written = mean(day.sectors_written for day in of)
        rows.append(
            [
                *(variant, round(mean(starts)), round(mean(latencies))),
                round(mean(latencies) / mean(_latencies(days, NONE)), 3),
                round(stats.percentile(latencies, 90)),
                *(round(sectors_read(days, variant) / 2048, 1), round(written / 2048, 1)),
            ]
        )
    return Table(
        "Applications that are started one after the other",
        (
            *("variant", "start, ms", "activity, ms", "/ none", "90 %, ms"),
            *("read, MiB", "written, MiB"),
        ),
        rows,
        f"{len(ORDER)} applications of {len(CATEGORIES)} categories, {ACTIVITIES} activities each,"
        f" and one of an older application after each; {ALIVE} have memory at a time. {FILE_MIB}"
        f" MiB of text, data and libraries, an area of {rental.AREA_MIB} MiB beside about"
        f" {rental.CACHE_MIB} MiB. One CPU, {rental.SLOW_DISK}. Mean of"
        f" {len(SEEDS)} random sequences. {rental.NAMES}",
    )


def _return_table(days: Days) -> Table:
    rows: list[list[Cell]] = []
    for app, mib in DEVICES.items():
        for variant in days:
            of = returns(days, variant, app)
            ms = rental.milliseconds(of)
            rows.append(
                [
                    *(app, sum(mib), variant, round(min(ms), 3), round(mean(ms), 3)),
                    *(round(max(ms), 3), rental.failures(of), rental.used_mib(variant, of)),
                ]
            )
    return Table(
        "Return when an application is started, ms",
        (
            *("application", "returned, MiB", "variant", "min", "mean", "max", "failed"),
            "used, MiB",
        ),
        rows,
        "Used: what all of a movable area held just before, in the mean; what is lent of a rental"
        " one came home as the last table tells.",
    )


def _page_table(days: Days) -> Table:
    rows: list[list[Cell]] = [
        [
            variant,
            *(round(mean(d.counters[name] for d in of) / loads.PAGES, 1) for name in COUNTERS),
        ]
        for variant, of in days.items()
        if VARIANTS[variant].scheme
    ]
    return Table("Pages of the area, MiB", ("variant", *COUNTERS), rows)


def rental_apps(kernels: Kernels) -> Outcome:
    """applications that are started, video and camera among them (rental paper Fig. 10, 11)"""
    guests = {
        (variant, seed): _guest(kernels, variant, seed) for variant in VARIANTS for seed in SEEDS
    }
    outputs = run_all("rental-apps", list(guests.values()), SECONDS)
    read_of = {key: read(outputs[guest.name]) for key, guest in guests.items()}
    days = {variant: [read_of[variant, seed] for seed in SEEDS] for variant in VARIANTS}
    bars = [
        Line(
            v,
            [
                (0.0, sectors_read(days, v) / 2048),
                (1.0, mean(d.sectors_written for d in of) / 2048),
            ],
        )
        for v, of in days.items()
    ]
    return Outcome(
        [
            outputs[guest.name].run(
                {
                    "activity, ms": read_of[key].activities,
                    **{f"return, {app}, ms": [r.ms] for app, r in read_of[key].returns.items()},
                },
                {
                    "sectors read": read_of[key].sectors_read,
                    "sectors written": read_of[key].sectors_written,
                    **read_of[key].counters,
                },
            )
            for key, guest in guests.items()
        ],
        [_app_table(days), _return_table(days), _page_table(days)],
        [
            Plot(
                "Activities of applications",
                "cdf",
                "ms",
                "share of activities",
                [Line(variant, stats.cdf(_latencies(days, variant))) for variant in days],
            ),
            *(
                Plot(
                    f"Return for the {app}",
                    "cdf",
                    "ms",
                    "share of returns",
                    [Line(v, stats.cdf(rental.milliseconds(returns(days, v, app)))) for v in days],
                    log_x=True,
                )
                for app in DEVICES
            ),
            Plot("Disk", "bars", "", "MiB", bars, groups=("read", "written")),
        ],
        {**values(days), "rental-dirty-apps": rental.dirty(outputs.values())},
    )
