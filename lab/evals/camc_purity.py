# SPDX-License-Identifier: GPL-2.0-or-later
"""Do all pages of colored programs have their colors? Programs of the host, while they run; others
at their first run from a fresh filesystem; a task beside another one that swaps in."""

import json
from collections.abc import Mapping

from lab import boot, measure, workloads
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output, run_all
from lab.machine import Machine
from lab.results import Cell, Outcome, Table

MEMORY_MIB = 1024
COLORS, ALL = 2, 16
SECONDS = 200  # of the guest on an idle machine
LOOK_SECONDS = 40  # at one load at most
OWN = ("stack", "heap", "anonymous", "data")  # what no other task can have brought into memory
OTHERS = ("text", "file")  # what one may have
KINDS = (*OWN, *OTHERS)

# The loads: name -> shell. Each runs in an empty folder, on a tmpfs.
LOADS: Mapping[str, str] = {
    "gcc": (
        'for i in $(seq 400); do echo "int f$i(int x) { return x * $i + (x >> $((i % 7))); }";'
        " done >x.c; for i in 1 2 3; do gcc -O2 -c x.c -o x.o || exit; done"
    ),
    "sqlite": (
        "(echo 'pragma cache_size=-16000;create table t(a integer primary key, b text);begin;';"
        " for i in $(seq 4000); do echo \"insert into t(b) values('row $i $i $i $i');\"; done;"
        " echo 'insert into t(b) with recursive n(x) as (select 1 union all select x+1 from n"
        " where x<20000) select hex(randomblob(200)) from n;"
        "commit;select count(*), sum(length(b)) from t;"
        "create index i on t(b);select max(b) from t;') | sqlite3 t.db"
    ),
    "redis": (
        "redis-server --port 0 --unixsocket s --save '' --dir . >log &"
        " for i in 1 2 3 4 5 6 7 8 9; do [ -S s ] && break; sleep 1; done;"
        " redis-benchmark -s s -n 3000 -r 1000 -d 3000 -t set,get,lpush -q"
    ),
    "stress-ng": "stress-ng --vm 1 --vm-bytes 24M --vm-ops 2000 --timeout 10s -q",
    "fork storm": "stress-ng --fork 2 --fork-ops 300 --timeout 15s -q",
}
# The same in a group with less memory than they need, and zram to swap to: memory.high
SWAPPING: Mapping[str, str] = {
    "gcc": "12M",
    "sqlite": "8M",
    "redis": "8M",
    "stress-ng": "16M",
    "fork storm": "3M",
}
SWAPS_TOO = ", swapping"  # all of them, once more
# And of these, once more, in a machine of which another process has locked all memory but so much,
# of which the kernel wants to have the greater part free
MACHINE = ("gcc", "redis", "stress-ng")
LEFT_MIB = 64
MIN_FREE_MIB = 40
SHORT = ", the machine is short of memory"

SCRIPT = f"""\
color={workloads.program("color")}
mkdir -p /tmp/purity /tmp/groups
mount -t tmpfs tmpfs /tmp/purity
cd /tmp/purity
$color map
echo 96M >/sys/block/zram0/disksize
mkswap /dev/zram0 >/dev/null
swapon /dev/zram0
mount -t cgroup2 cgroup /tmp/groups
echo +memory >/tmp/groups/cgroup.subtree_control
mkdir /tmp/groups/small
look() {{ # NAME GROUP COMMAND
	rm -rf /tmp/purity/*
	sync
	echo 3 >/proc/sys/vm/drop_caches
	section "$1"
	sh -c 'echo 0 >'"/tmp/groups/$2/cgroup.procs"'; exec "$@"' sh \\
		$color watch {COLORS} {LOOK_SECONDS} sh -c "$3"
	section "$1, swapped"
	grep -E "^(pswpin|pgscan_kswapd|pgscan_direct) " /proc/vmstat
}}
"""


def _script() -> str:
    lines = [SCRIPT]
    for name, command in LOADS.items():
        quoted = command.replace("'", "'\\''")
        lines.append(f"look '{name}' . '{quoted}'")
        lines.append(f"echo {SWAPPING[name]} >/tmp/groups/small/memory.high")
        lines.append(f"look '{name}{SWAPS_TOO}' small '{quoted}'")
        if name in MACHINE:
            lines.append("echo 3 >/proc/sys/vm/drop_caches")
            lines.append(f"hog=$($color hoard {LEFT_MIB})")
            lines.append("min=$(cat /proc/sys/vm/min_free_kbytes)")
            lines.append(f"echo {MIN_FREE_MIB << 10} >/proc/sys/vm/min_free_kbytes")
            lines.append(f"look '{name}{SHORT}' . '{quoted}'")
            lines.append("echo $min >/proc/sys/vm/min_free_kbytes")
            lines.append("kill $hog")  # fails if it did not hold out
    return "\n".join(lines) + "\n"


def names() -> list[str]:
    loads = []
    for name in LOADS:
        loads += [name, f"{name}{SWAPS_TOO}"]
        loads += [f"{name}{SHORT}"] if name in MACHINE else []
    return loads


def _counts(output: Output, name: str) -> dict[str, tuple[int, int]]:
    """Right and wrong pages of each kind, of all looks together."""
    counted = measure.counters(output[name])
    if counted["status"]:
        raise LabError(f"{name} failed: {output[name][-500:]}")
    return {kind: (counted[f"{kind}_right"], counted[f"{kind}_wrong"]) for kind in KINDS}


def colors_had(output: Output) -> dict[str, int]:
    """By load: the most colors that its set had. It gets more than it asked for when it needs them,
    and pages of those count as right.
    """
    had = {name: measure.counters(output[name])["colors"] for name in names()}
    for name, colors in had.items():
        if colors < COLORS:
            raise LabError(f"{name} had {colors} of the {COLORS} colors that it asked for")
        if colors == ALL:
            raise LabError(f"{name} had all {ALL} colors in the end: no page could be wrong")
    return had


def reclaimed(output: Output) -> dict[str, tuple[int, int]]:
    """By load: pages that were swapped in, and looked at to be reclaimed, by the machine too. Those
    that are to swap have to, and where memory is short it has to be seen.
    """
    gained: dict[str, tuple[int, int]] = {}
    before = (0, 0)
    for name in names():
        now = measure.counters(output[f"{name}, swapped"])
        after = (now["pswpin"], now["pgscan_kswapd"] + now["pgscan_direct"])
        swapped_in, scanned = (late - early for late, early in zip(after, before, strict=True))
        gained[name], before = (swapped_in, scanned), after
        if name.endswith(SWAPS_TOO) and not swapped_in:
            raise LabError(f"{name}: nothing was swapped in")
        if name.endswith(SHORT) and not scanned:
            raise LabError(f"{name}: nothing was looked at to be reclaimed")
    return gained


def _share(counts: Mapping[str, tuple[int, int]], kinds: tuple[str, ...]) -> float:
    right, wrong = (sum(counts[kind][i] for kind in kinds) for i in (0, 1))
    if not right:
        raise LabError("no page of the load was seen")
    return right / (right + wrong)


# The first run of a program in the machine: nobody has read its files before

FILESYSTEMS = ("ext4", "xfs")
DISK_MIB = 96
# The program and what it is called with; what it does is its way to the first prompt, or client.
PROGRAMS: Mapping[str, str] = {
    "sqlite3": "/disk/sqlite3 -cmd 'select max(2, 3);'",
    "redis-server": "/disk/redis-server --port 0 --unixsocket s --save ''",
}
LOADED = ("text", "data", "file")  # kinds of camc(8) that come out of files
FIRST_SECONDS = 60  # of such a guest on an idle core


def first_run(kernels: Kernels, filesystem: str) -> Guest:
    """Programs and their libraries, written, unmounted, mounted and run by camc."""
    programs = boot.programs(list(PROGRAMS))
    libraries = [name for name in programs if name.rpartition("/")[2] not in PROGRAMS]
    loader = next(name for name in libraries if "/ld-linux" in name)
    started = f"/disk/lib/{loader.rpartition('/')[2]} --library-path /disk/lib"
    script = f"""\
{workloads.ram_disk(DISK_MIB, filesystem)}
color map
mkdir /disk/lib
cp {" ".join(libraries)} /disk/lib
cp {" ".join(name for name in programs if name not in libraries)} /disk
umount /disk
mount -t {filesystem} -o noatime /dev/disk /disk
cd /tmp
"""
    for name, call in PROGRAMS.items():
        script += f"""\
sleep 1000 | camc run --colors {COLORS} -- {started} {call} >out 2>&1 &
sleep 10
section {name}
camc check --json $! || [ $? = 1 ]
kill $!
sleep 1
"""
    return Guest(
        f"first run, {filesystem}",
        kernels("camc"),
        Machine(512 + DISK_MIB, cpus=1, area_mib=0),
        script,
        {
            **workloads.files("color", host=(f"mkfs.{filesystem}", *PROGRAMS)),
            "/bin/camc": workloads.camc_tool(),
        },
    )


def first_counts(output: Output, name: str) -> dict[str, tuple[int, int]]:
    """Right and wrong pages of each kind that is loaded from files."""
    kinds = json.loads(output[name])["kinds"]
    counts = {kind: (kinds[kind]["right"], kinds[kind]["wrong"]) for kind in LOADED}
    if not sum(counts["text"]):
        raise LabError(f"{output.guest.name}: {name} had no text in memory: did it start?")
    return counts


# Swap, beside a task without colors

SWAP_PAGES = 2048  # of each task
SWAP_MIB = 64
# What a kernel without a hint takes the swap for, and where it then looks for what to read ahead
SWAPS: Mapping[str, str] = {
    "zram": workloads.SWAPS["zram"].on(SWAP_MIB),
    "disk that does not rotate": workloads.SWAPS["disk"].on(SWAP_MIB),
    "rotating disk": workloads.SWAPS["disk"]
    .on(SWAP_MIB)
    .replace("mkswap", "echo 1 >/sys/block/swap/queue/rotational\nmkswap"),
}
ROTATING = "rotating disk"


def swapped(kernels: Kernels, name: str) -> Guest:
    script = f"""\
{SWAPS[name]}
color map
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/job
section pages
sh -c 'echo 0 >/sys/fs/cgroup/job/cgroup.procs; exec color swap {COLORS} {SWAP_PAGES}'
grep '^pswpin ' /proc/vmstat
"""
    machine = Machine(512 + SWAP_MIB, cpus=1, area_mib=0)
    return Guest(name, kernels("camc"), machine, script, workloads.files("color"))


def swapped_counts(output: Output) -> tuple[int, int, int]:
    """Right and wrong pages, and how many were swapped in for both tasks."""
    counted = measure.counters(output["pages"])
    if counted["pswpin"] < SWAP_PAGES:
        raise LabError(f"{output.guest.name}: only {counted['pswpin']} pages were swapped in")
    return counted["right"], counted["wrong"], counted["pswpin"]


def camc_purity(kernels: Kernels) -> Outcome:
    """share of right-colored pages of colored programs, by kind; with and without swapping"""
    machine = Machine(MEMORY_MIB, cpus=2, area_mib=0)
    guest = Guest("purity", kernels("camc"), machine, _script(), exact=False, timeout=1800)
    output = run_all("camc-purity", [guest], SECONDS)[guest.name]
    exact = [first_run(kernels, filesystem) for filesystem in FILESYSTEMS]
    exact += [swapped(kernels, name) for name in SWAPS]
    outputs = run_all("camc-purity, first runs and swap", exact, FIRST_SECONDS)
    firsts = {
        (filesystem, name): first_counts(outputs[f"first run, {filesystem}"], name)
        for filesystem in FILESYSTEMS
        for name in PROGRAMS
    }
    swaps = {name: swapped_counts(outputs[name]) for name in SWAPS}
    counts = {name: _counts(output, name) for name in names()}
    had, short = colors_had(output), reclaimed(output)
    rows: list[list[Cell]] = []
    for name, by_kind in counts.items():
        row: list[Cell] = [name, had[name], *short[name]]
        for kind in KINDS:
            row += list(by_kind[kind])
        rows.append(row)
    columns = ["load", "colors at most", "pages swapped in", "pages scanned"]
    columns += [f"{kind}, {what}" for kind in KINDS for what in ("right", "wrong")]
    sizes = [f"{size} ({name})" for name, size in SWAPPING.items()]
    return Outcome(
        [
            output.run(counters={n: _share(by_kind, OWN) for n, by_kind in counts.items()}),
            *(each.run() for each in outputs.values()),
        ],
        [
            Table(
                "Pages seen, by whether they have the colors",
                columns,
                rows,
                f"Ratio: a guest on the host's clock, so that the counts vary, and shares compare."
                f" {COLORS} of {ALL} colors, or as many as the set has got when it needed more:"
                " right is what has one of those; all processes of a load, ten times a second."
                " Text: pages of programs and libraries as they are in their files; file: of"
                " others, and shared memory. Both are of the page cache, and others (the shell, for"
                " one) may"
                f" have read them before. Swapping: in a group of {', '.join(sizes)}. Short of"
                f" memory: another process has locked all but {LEFT_MIB} MiB, of which the kernel"
                f" wants {MIN_FREE_MIB} free. Scanned: by kswapd and allocations.",
            ),
            Table(
                "Pages of the first run of a program in the machine",
                (
                    *("filesystem", "program"),
                    *(f"{kind}, {what}" for kind in LOADED for what in ("right", "wrong")),
                ),
                [
                    [*which, *(pages for kind in LOADED for pages in by_kind[kind])]
                    for which, by_kind in firsts.items()
                ],
                "Exact. By camc check. The program and its libraries, on a filesystem that was"
                " written, unmounted and mounted again, started by camc run"
                f" --colors {COLORS} (of {ALL}).",
            ),
            Table(
                "Pages that were swapped out and in beside those of a task without colors",
                ("swap", "right", "wrong", "swapped in for both"),
                [[name, *pages] for name, pages in swaps.items()],
                f"Exact. {SWAP_PAGES} pages of each, touched by turns; that without colors touches"
                " its own again first. With a rotating disk, what lies beside a page is read along,"
                " whoever's it is.",
            ),
        ],
        values={
            "camc-own": min(_share(by_kind, OWN) for by_kind in counts.values()),
            "camc-own-colors": max(nr for name, nr in had.items() if not name.endswith(SHORT)),
            "camc-text": min(_share(by_kind, LOADED) for by_kind in firsts.values()),
            "camc-swap": min(swaps[name][0] for name in SWAPS if name != ROTATING) / SWAP_PAGES,
            "camc-swap-disk": swaps[ROTATING][0] / SWAP_PAGES,
            "camc-files": min(_share(by_kind, OTHERS) for by_kind in counts.values()),
        },
    )
