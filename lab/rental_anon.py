# SPDX-License-Identifier: GPL-2.0-or-later
"""What it takes to return anonymous memory, by what other memory holds (rental paper Fig. 5b).

Only stock CMA lends frames to it; this is why rental memory does not. An exact guest, and its
reading.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab import loads, rental, workloads
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output
from lab.loads import MOVABLE
from lab.rental import Return
from lab.results import Cell, Table

FILES_MIB = rental.CACHE_MIB
HELD_MIB = 120  # 140 in the paper: here who uses that is killed for memory
FREE, READ, WRITTEN, HELD = "nothing", "clean files", "dirty files", "memory in use"
# What fills other memory before; of FREE it is let go of before the return
FILLS = {
    FREE: f"hold {HELD_MIB}",
    READ: f"job chunks /disk {FILES_MIB} 1 {FILES_MIB * loads.PAGES} >/dev/null",
    WRITTEN: f"job seqwr /disk {FILES_MIB} 1 {FILES_MIB * loads.PAGES} >/dev/null",
    HELD: f"hold {HELD_MIB}",
}
SIZES_MIB = (10, 20, 40, 80)
ROUNDS = 3
SECONDS = 240  # of a guest on an idle core


def _section(state: str, mib: int, number: int) -> str:
    return f"{state}, {mib}, {number}"


def _cell(state: str, mib: int, number: int) -> str:
    section = _section(state, mib, number)
    return f"""\
echo 1 >/proc/sys/vm/drop_caches
take
hog=
{FILLS[state]}
echo {rental.AREA_PAGES} >{workloads.DEBUG}/free
: >/tmp/lent
rental hog {mib} >/tmp/lent &
lent=$!
while kill -0 $lent && ! grep -q held /tmp/lent; do sleep 0.01; done
{"let_go" if state == FREE else ""}
snapshot "before {section}"
section "{section}"
rental take {workloads.DEBUG} {rental.AREA_PAGES}
snapshot "after {section}"
kill $lent || true  # it may have been killed for its memory
wait $lent || true
{"let_go || true" if state == HELD else ""}
sync
"""


CELLS = [(state, mib) for state in FILLS for mib in SIZES_MIB]
SCRIPT = f"""\
{workloads.STEADY}
{rental.card(FILES_MIB)}
{rental.STEPS}
job fill /disk {FILES_MIB} 1 >/dev/null
{"".join(_cell(*cell, number) for cell in CELLS for number in range(ROUNDS))}
"""


def guest(kernels: Kernels) -> Guest:
    return Guest(
        "movable, anonymous memory",
        kernels("prod"),
        rental.machine(MOVABLE, FILES_MIB),
        SCRIPT,
        workloads.files("job", "rental", host=("mkfs.ext4",)),
    )


@dataclass(frozen=True)
class Returned:
    """The returns of a state and a size."""

    returns: Sequence[Return]
    moved_mib: float  # in the mean
    killed: int


def read(output: Output) -> Mapping[tuple[str, int], Returned]:
    returned = {}
    for state, mib in CELLS:
        returns: list[Return] = []
        moved, killed = 0, 0
        for number in range(ROUNDS):
            section = _section(state, mib, number)
            told = rental.read_returns(output[section])
            if not told:
                raise LabError(f"{output.guest.name}: no return of {section}")
            returns += told
            gained = output.gained("vmstat", f"before {section}", f"after {section}")
            moved += gained["pgmigrate_success"]
            killed += gained["oom_kill"]
        returned[state, mib] = Returned(returns, moved / loads.PAGES / ROUNDS, killed)
    return returned


def table(returned: Mapping[tuple[str, int], Returned]) -> Table:
    rows: list[list[Cell]] = []
    for (state, mib), of in returned.items():
        ms = rental.milliseconds(of.returns)
        rows.append(
            [
                *(state, mib, round(of.moved_mib, 1)),
                *(round(min(ms), 1), round(sum(ms) / len(ms), 1), round(max(ms), 1)),
                *(rental.failures(of.returns), of.killed),
            ]
        )
    return Table(
        "Return of a movable area that holds anonymous memory, ms",
        (
            *("other memory holds", "anonymous, MiB", "moved, MiB"),
            *("min", "mean", "max", "failed", "processes killed"),
        ),
        rows,
        f"{ROUNDS} returns of {rental.AREA_MIB} MiB each, one CPU. In about {rental.CACHE_MIB} MiB"
        f" of other memory: nothing; {FILES_MIB} MiB of files that were read, or written to, as far"
        f" as they fit; {HELD_MIB} MiB of a program that uses them. Under rental and gcma anonymous"
        " memory has no frames of an area. Failed: one try was not enough; a return lasts until"
        " the memory is there, or 5 s have passed.",
    )
