# SPDX-License-Identifier: GPL-2.0-or-later
"""Do all pages of colored programs have their colors? Programs of the host, while they run."""

from collections.abc import Mapping

from lab import measure, workloads
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output, run_all
from lab.machine import Machine
from lab.results import Cell, Outcome, Table

MEMORY_MIB = 1024
COLORS = 2  # of 16
SECONDS = 90  # of the guest on an idle machine
LOOK_SECONDS = 40  # at one load at most
KINDS = ("stack", "heap", "anonymous", "data", "file")
OWN = KINDS[:-1]  # what no other task can have brought into memory

# The loads: name -> shell. Each runs in a folder of its own, on a tmpfs.
LOADS: Mapping[str, str] = {
    "gcc": (
        'for i in $(seq 400); do echo "int f$i(int x) { return x * $i + (x >> $((i % 7))); }";'
        " done >x.c; for i in 1 2 3; do gcc -O2 -c x.c -o x.o || exit; done"
    ),
    "sqlite": (
        "(echo 'create table t(a integer primary key, b text);begin;';"
        " for i in $(seq 4000); do echo \"insert into t(b) values('row $i $i $i $i');\"; done;"
        " echo 'commit;select count(*), sum(length(b)) from t;"
        "create index i on t(b);select max(b) from t;') | sqlite3 t.db"
    ),
    "redis": (
        "redis-server --port 0 --unixsocket s --save '' --dir . >log &"
        " for i in 1 2 3 4 5 6 7 8 9; do [ -S s ] && break; sleep 1; done;"
        " redis-benchmark -s s -n 3000 -r 1000 -d 1000 -t set,get,lpush -q"
    ),
    "stress-ng": "stress-ng --vm 1 --vm-bytes 24M --vm-ops 2000 --timeout 10s -q",
    "fork storm": "stress-ng --fork 2 --fork-ops 300 --timeout 15s -q",
}
# The same in a group with less memory than they need, and zram to swap to
SWAPPING = ("gcc", "stress-ng")
HIGH = "16M"

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
echo {HIGH} >/tmp/groups/small/memory.high
look() {{ # NAME GROUP COMMAND
	sync
	echo 3 >/proc/sys/vm/drop_caches
	section "$1"
	sh -c 'echo 0 >'"/tmp/groups/$2/cgroup.procs"'; exec "$@"' sh \\
		$color watch {COLORS} {LOOK_SECONDS} sh -c "$3"
	section "$1, swapped"
	grep "^pswpin " /proc/vmstat
}}
"""


def _script() -> str:
    lines = [SCRIPT]
    for name, command in LOADS.items():
        quoted = command.replace("'", "'\\''")
        lines.append(f"look '{name}' . '{quoted}'")
        if name in SWAPPING:
            lines.append(f"look '{name}, swapping' small '{quoted}'")
    return "\n".join(lines) + "\n"


def names() -> list[str]:
    found = []
    for name in LOADS:
        found += [name, f"{name}, swapping"] if name in SWAPPING else [name]
    return found


def _counts(output: Output, name: str) -> dict[str, tuple[int, int]]:
    """Right and wrong pages of each kind, of all looks together."""
    counted = measure.counters(output[name])
    if counted["status"]:
        raise LabError(f"{name} failed: {output[name][-500:]}")
    return {kind: (counted[f"{kind}_right"], counted[f"{kind}_wrong"]) for kind in KINDS}


def _share(counts: Mapping[str, tuple[int, int]], kinds: tuple[str, ...]) -> float:
    right, wrong = (sum(counts[kind][i] for kind in kinds) for i in (0, 1))
    if not right:
        raise LabError("no page of the load was seen")
    return right / (right + wrong)


def camc_purity(kernels: Kernels) -> Outcome:
    """share of right-colored pages of colored programs, by kind; with and without swapping"""
    machine = Machine(MEMORY_MIB, cpus=2, area_mib=0)
    guest = Guest("purity", kernels("camc"), machine, _script(), exact=False, timeout=1800)
    output = run_all("camc-purity", [guest], SECONDS)[guest.name]
    counts = {name: _counts(output, name) for name in names()}
    rows: list[list[Cell]] = []
    for name, by_kind in counts.items():
        row: list[Cell] = [name]
        for kind in KINDS:
            row += list(by_kind[kind])
        rows.append(row)
    columns = ["load", *(f"{kind}, {what}" for kind in KINDS for what in ("right", "wrong"))]
    return Outcome(
        [output.run(counters={n: _share(by_kind, OWN) for n, by_kind in counts.items()})],
        [
            Table(
                "Pages seen, by whether they have the colors",
                columns,
                rows,
                f"{COLORS} of 16 colors; all processes of a load, ten times a second. File: pages"
                " of the page cache, which others (the shell, for one) may have read before.",
            )
        ],
        values={
            "camc-own": min(_share(by_kind, OWN) for by_kind in counts.values()),
            "camc-files": min(_share(by_kind, ("file",)) for by_kind in counts.values()),
        },
    )
