# SPDX-License-Identifier: GPL-2.0-or-later
"""What returns, replacing and lending of lent pages take: exact guests, and their reading."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab import loads, measure, rental, workloads
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output
from lab.loads import GCMA, MOVABLE, NONE
from lab.machine import Machine
from lab.rental import ADAPTIVE, CLEAN, LAZY, NOCLEAN, VARIANTS

LENT = (NOCLEAN, CLEAN, LAZY, ADAPTIVE)
PROMISED = (LAZY, ADAPTIVE)  # whose returns figures.toml judges
AREA_MIB = 32
AREA_PAGES = AREA_MIB * loads.PAGES
CACHE_MIB = 64  # room for all that a return may move
FILE_MIB = AREA_MIB + CACHE_MIB - 8  # a movable area is the last memory to be used, nearly
MEMORY_MIB = AREA_MIB + CACHE_MIB + rental.KERNEL_MIB + FILE_MIB
# 0 lent pages is the state "idle"; 512: a block of the page allocator
COUNTS = (1, 2, 512, 513, 1024, 1025, 4096, 4097, AREA_PAGES)
JUDGED = (4096, 4097, AREA_PAGES)
IDLE, READ, MAPPED = "idle", "clean", "mapped"
STATES = (IDLE, READ, "active", MAPPED, "mapped-4", "half-mapped", "locked")
PINNED = ("pinned-first", "pinned-middle", "pinned-last")
STATES_OF = {
    NONE: (IDLE,),
    MOVABLE: (*STATES, *PINNED),
    **dict.fromkeys(LENT, (*STATES, *PINNED)),
    GCMA: (IDLE, READ),  # of nothing else there can be a copy
}
READ_PAGES = {MOVABLE: FILE_MIB * loads.PAGES, GCMA: AREA_PAGES + 1024}
HELD = 0.9  # of the frames that gcma gives back
HOWS = ("write", "write-mapped", "store")
WRITES = (1, 512, 513, 4096)
JUDGED_WRITES = 4096
LENDS = (1, 512, 513, 4096)
JUDGED_LENDS = LENDS[1:]
SECONDS = 60  # of a guest on an idle core

SCRIPT = f"""\
{workloads.STEADY}
{workloads.ram_disk(FILE_MIB * 5 // 4, wait=False)}
echo 4096 >/sys/kernel/debug/fault_around_bytes
@scheme@
job fill /disk {FILE_MIB} 1 >/dev/null
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
group=/sys/fs/cgroup/job
mkdir $group
[ ! -e {workloads.AREA}/admission ] || echo always >{workloads.AREA}/admission
area begin
for state in @states@; do
	case $state in
	pinned*) counts={AREA_PAGES} ;;
	*) counts="{" ".join(map(str, COUNTS))}" ;;
	esac
	for count in $counts; do
		section "$state $count"
		@return@
	done
done
area returned
# nothing is written back while writes are measured
echo 0 >/proc/sys/vm/dirty_writeback_centisecs
echo 90 >/proc/sys/vm/dirty_ratio
echo 80 >/proc/sys/vm/dirty_background_ratio
for how in {" ".join(HOWS)}; do
	for pages in {" ".join(map(str, WRITES))}; do
		section "$how $pages"
		rental write /disk/data $pages $how
	done
done
# all schemes lend alike; after noclean's writes too few frames are idle
if grep -q {LAZY} {workloads.AREA}/scheme 2>/dev/null; then
	exec 3</disk/data
	for folios in {" ".join(map(str, LENDS))}; do
		section "lend $folios"
		echo "3 $folios" >{workloads.DEBUG}/bench_lend
		cat {workloads.DEBUG}/bench_lend
	done
fi
area end
"""


@dataclass(frozen=True)
class Cost:
    """Of one return."""

    pages: int
    instructions: int
    ok: bool
    used: int  # pages of the range that held the file
    lost: int  # pages that are not in memory any more

    @property
    def of_page(self) -> float:
        return self.instructions / self.pages


Costs = Mapping[tuple[str, int], Cost]  # by state and pages


def counts(state: str) -> Sequence[int]:
    return (AREA_PAGES,) if state in PINNED else COUNTS


def guest(kernels: Kernels, variant: str) -> Guest:
    pages = READ_PAGES.get(variant, AREA_PAGES)
    command = f"rental return {workloads.DEBUG} /disk/data {pages} $state $count"
    if variant == GCMA:
        group = 'sh -c "echo 0 >$group/cgroup.procs; exec'
        command = f'{group} {command} $group/memory.reclaim"'
    marks = {
        "@scheme@": VARIANTS[variant].script,
        "@states@": " ".join(STATES_OF[variant]),
        "@return@": command,
    }
    script = SCRIPT
    for mark, text in marks.items():
        script = script.replace(mark, text)
    return Guest(
        variant,
        kernels("prod"),
        Machine(MEMORY_MIB, 1, AREA_MIB, VARIANTS[variant].policy),
        script,
        workloads.files("job", "rental", host=("mkfs.ext4",)),
    )


def read_returns(output: Output) -> dict[tuple[str, int], Cost]:
    """What one exact guest gave back."""
    variant = output.guest.name
    costs = {}
    for state in STATES_OF[variant]:
        for count in counts(state):
            text = output[f"{state} {count}"]
            ((pages, (sample,)),) = measure.ladder(text).items()
            told = measure.counters(text)
            cost = Cost(pages, sample.alloc, sample.ok, told["used"], told["lost"])
            if variant in LENT and state != IDLE and cost.used != count:
                raise LabError(f"{variant}: {cost.used} of {count} pages were lent, {state}")
            if variant in LENT and state in PINNED and cost.ok:
                raise LabError(f"{variant}: a page was {state}, and returned all the same")
            costs[state, count] = cost
    if variant == GCMA:
        revoked = output.gained("area", "begin", "returned")["revoked"]
        if revoked < HELD * sum(COUNTS):
            raise LabError(f"gcma: only {revoked} of the frames had tenants")
    return costs


Writes = Mapping[tuple[str, int], int]  # instructions, by how they are done and pages


def write_costs(output: Output) -> dict[tuple[str, int], int]:
    replaced = output.gained("area", "returned", "end").get("replaced")
    stay = output.guest.name == NOCLEAN
    if replaced is not None and not stay and replaced < len(HOWS) * sum(WRITES):
        raise LabError(f"{output.guest.name}: only {replaced} lent pages were written to")
    return {
        (how, pages): measure.job(output[f"{how} {pages}"])[1] for how in HOWS for pages in WRITES
    }


def replacing(writes: Mapping[str, Writes], how: str, pages: int) -> float:
    """Of a page: what a write to a lent one takes more than one to a normal one."""
    return (writes[LAZY][how, pages] - writes[NONE][how, pages]) / pages


def lending(output: Output) -> dict[int, list[tuple[float, float]]]:
    """Of a page, by their number: allocation and free, of other memory and of a lent frame."""
    lends = {}
    for folios in LENDS:
        lines = re.findall(r"^(\d+) (\d+) ([01])$", output[f"lend {folios}"], flags=re.M)
        if [ok for *_, ok in lines] != ["1", "1"]:
            raise LabError(f"{folios} pages were not to be had, or not where they should be")
        lends[folios] = [(int(alloc) / folios, int(free) / folios) for alloc, free, _ in lines]
    return lends


def lend_ratio(of_page: Sequence[tuple[float, float]]) -> float:
    buddy, lent = map(sum, of_page)
    return lent / buddy


def of_page(costs: Costs, state: str) -> float:
    """Instructions a page, the worst of all larger returns."""
    return max(costs[state, count].of_page for count in JUDGED)
