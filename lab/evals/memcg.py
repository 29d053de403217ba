# SPDX-License-Identifier: GPL-2.0-or-later
"""What a large area does to limited memory cgroups whose processes read many files."""

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass

from lab import machine, measure, workloads
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output, run_all
from lab.results import Cell, Line, Outcome, Plot, Table

AREA_MIB = 1024
MEMORY_MIB = 512
DISK_MIB = 480  # mkfs.ext4 gives it an inode for each 4 KiB
FILE_BYTES = 8192  # two pages: the file's pages, or their shadows, take a node
ROUNDS = 2
SECONDS = 60  # of a guest on an idle core
POLICIES = ("none", "gcma")
MIB = 1 << 20
KILLED = str(128 + signal.SIGKILL)  # the status of who was killed for his memory


@dataclass(frozen=True)
class Load:
    """So many groups, each with a process that reads so many files, and a limit.

    Either each has its own, or all have one together: the limit of the group that they are in.
    """

    groups: int
    limit_kib: int
    files: int
    together: bool = False

    @property
    def name(self) -> str:
        return f"{self.groups} below one limit" if self.together else str(self.groups)

    @property
    def limits(self) -> str:
        """What a table says of them."""
        whose = "together" if self.together else "each"
        return (
            f"{self.groups} with {self.limit_kib / 1024:g} MiB {whose}, {self.files:,} files each"
        )

    def max_of(self, *, each: bool) -> str:
        """memory.max of each of the groups, or of the one they are in."""
        return f"{self.limit_kib}K" if each != self.together else "max"


LOADS = (Load(1, 48 * 1024, 45_000), Load(200, 1024, 450), Load(100, 48 * 1024, 450, together=True))

# The kernel's memory of all groups is sampled, as it has no peak of its own.
SCRIPT = """\
{disk}
mkdir /disk/files
files make /disk/files {all_files} {file_bytes}
sync
echo 3 >/proc/sys/vm/drop_caches
group=/sys/fs/cgroup/readers
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir $group
echo {max_of_all} >$group/memory.max
echo +memory >$group/cgroup.subtree_control
reader() {{ # NUMBER
	mkdir $group/$1
	echo {max_of_each} >$group/$1/memory.max
	sh -c "echo 0 >$group/$1/cgroup.procs
		exec files read /disk/files $(($1 * {files})) {files} {rounds}" ||
		echo "reader ended with $?"
}}
section kernel
(
	for number in $(seq 0 {last}); do reader $number & done
	wait
	touch /tmp/ended
) &
until [ -e /tmp/ended ]; do
	grep '^kernel ' $group/memory.stat
	sleep 0.005
done
section events
cat $group/memory.events
section stat
cat $group/memory.stat
section peak
echo "peak $(cat $group/memory.peak)"
area ended
"""


@dataclass(frozen=True)
class Fate:
    """What became of the groups of one guest."""

    oom_kills: int
    kernel: int  # bytes, the most that was seen
    peak: int  # bytes of all memory
    nodes_reclaimed: int
    tenants: int  # pages
    failed: int  # processes that ended before they had read all, and were not killed

    @property
    def ended(self) -> int:
        """Those that did not read all, whatever the reason."""
        return self.oom_kills + self.failed

    @property
    def counters(self) -> dict[str, float]:
        return {
            "oom_kill": self.oom_kills,
            "kernel, bytes": self.kernel,
            "peak, bytes": self.peak,
            "workingset_nodereclaim": self.nodes_reclaimed,
            "tenants_file": self.tenants,
            "failed": self.failed,
        }


def read(output: Output) -> Fate:
    # the shell says there too who was killed
    kernel = re.findall(r"^kernel (\d+)$", output["kernel"], flags=re.M)
    ended = re.findall(r"^reader ended with (\d+)$", output["kernel"], flags=re.M)
    if not kernel:
        raise LabError(f"{output.guest.name}: the readers had no memory", output["kernel"][-2000:])
    return Fate(
        oom_kills=measure.counters(output["events"])["oom_kill"],
        kernel=max(map(int, kernel)),
        peak=measure.counters(output["peak"])["peak"],
        nodes_reclaimed=measure.counters(output["stat"])["workingset_nodereclaim"],
        tenants=measure.counters(output["area ended"]).get("tenants_file", 0),
        failed=len(ended) - ended.count(KILLED),
    )


def _guest(kernels: Kernels, policy: str, load: Load) -> Guest:
    script = SCRIPT.format(
        disk=workloads.ram_disk(DISK_MIB),
        all_files=load.groups * load.files,
        file_bytes=FILE_BYTES,
        max_of_all=load.max_of(each=False),
        max_of_each=load.max_of(each=True),
        files=load.files,
        rounds=ROUNDS,
        last=load.groups - 1,
    )
    return Guest(
        f"{policy}, {load.name}",
        kernels("prod"),
        machine.beside(MEMORY_MIB, AREA_MIB, 1, policy),
        script,
        workloads.files("files", host=("mkfs.ext4",)),
    )


def values(fates: Mapping[tuple[str, str], Fate]) -> dict[str, float]:
    """The figures: by policy and name of the load, the worst of all loads."""
    pairs = [(fates["gcma", load.name], fates["none", load.name]) for load in LOADS]
    return {
        "memcg-oom": max(gcma.ended - none.ended for gcma, none in pairs),
        "memcg-kernel": max(gcma.kernel / none.kernel for gcma, none in pairs),
    }


def memcg(kernels: Kernels) -> Outcome:
    """kernel memory and OOM kills of small memory cgroups beside a large area"""
    guests = {
        (policy, load.name): _guest(kernels, policy, load) for load in LOADS for policy in POLICIES
    }
    outputs = run_all("memcg", list(guests.values()), SECONDS)
    fates = {key: read(outputs[guest.name]) for key, guest in guests.items()}
    rows: list[list[Cell]] = [
        [
            *(name, policy, fate.oom_kills, fate.failed),
            *(round(fate.kernel / MIB, 1), round(fate.peak / MIB, 1)),
            *(fate.nodes_reclaimed, fate.tenants),
        ]
        for (policy, name), fate in fates.items()
    ]
    lines = [
        Line(
            policy,
            [(float(at), fates[policy, load.name].kernel / MIB) for at, load in enumerate(LOADS)],
        )
        for policy in POLICIES
    ]
    limits = "; ".join(load.limits for load in LOADS)
    columns = ("groups", "policy", "OOM kills", "processes that failed")
    return Outcome(
        [outputs[guest.name].run(counters=fates[key].counters) for key, guest in guests.items()],
        [
            Table(
                "Groups whose processes read many files",
                (
                    *(*columns, "kernel memory, MiB", "all memory, MiB"),
                    *("nodes reclaimed", "pages in tenants"),
                ),
                rows,
                f"Groups: {limits}, of {FILE_BYTES // 1024} KiB, read {ROUNDS} times beside an area"
                f" of {AREA_MIB} MiB. Memory: the most of all groups together. Nodes: of shadows."
                " Tenants: of the area, at the end.",
            )
        ],
        [
            Plot(
                "Kernel memory of the groups",
                "bars",
                "groups",
                "MiB",
                lines,
                groups=[load.name for load in LOADS],
            )
        ],
        values(fates),
    )
