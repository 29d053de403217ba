# SPDX-License-Identifier: GPL-2.0-or-later
"""What a large area does to small memory cgroups whose processes read many files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lab import machine, measure, workloads
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


@dataclass(frozen=True)
class Load:
    """So many groups, each with a limit and a process that reads so many files."""

    groups: int
    limit_kib: int
    files: int


LOADS = (Load(1, 48 * 1024, 45_000), Load(200, 1024, 450))

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
echo +memory >$group/cgroup.subtree_control
reader() {{ # NUMBER
	mkdir $group/$1
	echo {limit_kib}K >$group/$1/memory.max
	sh -c "echo 0 >$group/$1/cgroup.procs
		exec files read /disk/files $(($1 * {files})) {files} {rounds}" || true
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
"""


@dataclass(frozen=True)
class Fate:
    """What became of the groups of one guest."""

    oom_kills: int
    kernel: int  # bytes, the most that was seen
    peak: int  # bytes of all memory
    nodes_reclaimed: int

    @property
    def counters(self) -> dict[str, float]:
        return {
            "oom_kill": self.oom_kills,
            "kernel, bytes": self.kernel,
            "peak, bytes": self.peak,
            "workingset_nodereclaim": self.nodes_reclaimed,
        }


def read(output: Output) -> Fate:
    # the shell says there too who was killed
    kernel = re.findall(r"^kernel (\d+)$", output["kernel"], flags=re.M)
    return Fate(
        oom_kills=measure.counters(output["events"])["oom_kill"],
        kernel=max(map(int, kernel)),
        peak=measure.counters(output["peak"])["peak"],
        nodes_reclaimed=measure.counters(output["stat"])["workingset_nodereclaim"],
    )


def _guest(kernels: Kernels, policy: str, load: Load) -> Guest:
    script = SCRIPT.format(
        disk=workloads.ram_disk(DISK_MIB),
        all_files=load.groups * load.files,
        file_bytes=FILE_BYTES,
        limit_kib=load.limit_kib,
        files=load.files,
        rounds=ROUNDS,
        last=load.groups - 1,
    )
    return Guest(
        f"{policy}, {load.groups} groups",
        kernels("prod"),
        machine.beside(MEMORY_MIB, AREA_MIB, 1, policy),
        script,
        workloads.files("files", host=("mkfs.ext4",)),
    )


def values(fates: Mapping[tuple[str, int], Fate]) -> dict[str, float]:
    """The figures: by policy and number of groups, the worst of both numbers."""
    pairs = [(fates["gcma", load.groups], fates["none", load.groups]) for load in LOADS]
    return {
        "memcg-oom": max(gcma.oom_kills - none.oom_kills for gcma, none in pairs),
        "memcg-kernel": max(gcma.kernel / none.kernel for gcma, none in pairs),
    }


def memcg(kernels: Kernels) -> Outcome:
    """kernel memory and OOM kills of small memory cgroups beside a large area"""
    guests = {
        (policy, load.groups): _guest(kernels, policy, load)
        for load in LOADS
        for policy in POLICIES
    }
    outputs = run_all("memcg", list(guests.values()), SECONDS)
    fates = {key: read(outputs[guest.name]) for key, guest in guests.items()}
    rows: list[list[Cell]] = [
        [
            *(groups, policy, fate.oom_kills),
            *(round(fate.kernel / MIB, 1), round(fate.peak / MIB, 1), fate.nodes_reclaimed),
        ]
        for (policy, groups), fate in fates.items()
    ]
    lines = [
        Line(
            policy,
            [(float(at), fates[policy, load.groups].kernel / MIB) for at, load in enumerate(LOADS)],
        )
        for policy in POLICIES
    ]
    limits = "; ".join(
        f"{load.groups} with {load.limit_kib / 1024:g} MiB and {load.files:,} files each"
        for load in LOADS
    )
    columns = ("groups", "policy", "OOM kills", "kernel memory, MiB", "all memory, MiB")
    return Outcome(
        [outputs[guest.name].run(counters=fates[key].counters) for key, guest in guests.items()],
        [
            Table(
                "Groups whose processes read many files",
                (*columns, "nodes reclaimed"),
                rows,
                f"Groups: {limits}, of {FILE_BYTES // 1024} KiB, read {ROUNDS} times beside an area"
                f" of {AREA_MIB} MiB. Memory: the most of all groups together. Nodes: of shadows.",
            )
        ],
        [
            Plot(
                "Kernel memory of the groups",
                "bars",
                "groups",
                "MiB",
                lines,
                groups=[str(load.groups) for load in LOADS],
            )
        ],
        values(fates),
    )
