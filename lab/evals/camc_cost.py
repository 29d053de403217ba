# SPDX-License-Identifier: GPL-2.0-or-later
"""What coloring costs: the pages of a colored task, everybody else's, and the memory it leaves."""

from collections.abc import Mapping
from dataclasses import dataclass

from lab import measure, systems, workloads
from lab.build import Kernel
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output, run_all
from lab.machine import Machine
from lab.results import Cell, Outcome, Table

AREA_MIB = 16  # an allocation from it drains the per-CPU lists
MEMORY_MIB = 1024
PAGES = 8192  # half of what one color of 16 has
HELD_COLORS = 8
HELD_PAGES = (MEMORY_MIB << 8) // 4
SECONDS = 40  # of a guest on an idle core
BLOCK_ORDER = 9  # 2 MiB
SWAP_MIB, OTHERS_MIB = 64, 16  # room to swap to, and what another task has that could go there

SCRIPT = f"""\
{workloads.STEADY}
drain() {{ bench 1 1 >/dev/null; }}
[ ! -e /sys/kernel/mm/camc ] || color map
[ ! -e /sys/kernel/mm/camc ] || echo @refill@ >/sys/kernel/mm/camc/refill
color hold 0 {PAGES} # all code is in the page cache
drain
section touch
color touch @colors@ {PAGES}
section lists
cat /sys/kernel/mm/camc/stats/refilled 2>/dev/null || echo 0
@more@
"""

# A task without colors, while somebody has some
KEY_ON = f"""\
color key &
sleep 1
drain
section uncolored
color touch 0 {PAGES}
kill $!
"""

# Free memory before and after a task that used a quarter of it
HOLD = f"""\
drain
color hold @held@ {PAGES}
drain
section before
cat /proc/buddyinfo
color hold @held@ {HELD_PAGES}
drain
section after
cat /proc/buddyinfo
"""

# A task comes to the end of its colors: what it is answered, and what others lose by that
ENDS = ("strict", "spill")
TAKEN = ("pswpout", "pgscan_direct", "pgscan_kswapd", "oom_kill")  # of /proc/vmstat
OTHERS = f"""\
{workloads.SWAPS["zram"].on(SWAP_MIB)}
sh -c 'pages=$(head -c {OTHERS_MIB << 20} /dev/zero | tr "\\0" x); sleep 1000' &
sleep 5
"""
ANSWERS = OTHERS + "".join(
    f"""\
section {end} before
grep -E '^({"|".join(TAKEN)}) ' /proc/vmstat
section {end}
color answer @colors@ {end}
section {end} after
grep -E '^({"|".join(TAKEN)}) ' /proc/vmstat
"""
    for end in ENDS
)


@dataclass(frozen=True)
class Variant:
    """One guest."""

    name: str
    colors: int = 0
    refill: str = "directed"
    held: int | None = None  # colors of the task that uses a quarter of memory
    flavour: str = "camc"
    key_on: bool = False
    ends: bool = False  # a task comes to the end of its colors

    def guest(self, kernels: Kernels) -> Guest:
        more = KEY_ON if self.key_on else ""
        if self.ends:
            more += ANSWERS.replace("@colors@", str(self.colors))
        if self.held is not None:
            more += HOLD.replace("@held@", str(self.held))
        script = SCRIPT.replace("@colors@", str(self.colors)).replace("@refill@", self.refill)
        return Guest(
            self.name,
            kernels(self.flavour),
            Machine(MEMORY_MIB + AREA_MIB, cpus=1, area_mib=AREA_MIB),
            script.replace("@more@", more),
            workloads.files("color"),
        )


BUDDY = Variant("buddy", held=0, key_on=True)
ONE = Variant("1 of 16", 1, held=HELD_COLORS)
FOUR = Variant("4 of 16", 4, ends=True)
WALK = Variant("1 of 16, the paper's refill", 1, "walk")
WITHOUT = Variant("buddy, CONFIG_CAMC=n", flavour="nocamc")
VARIANTS = (BUDDY, ONE, FOUR, WALK, WITHOUT)
CASES = ("cold", "warm", "prefilled", "unmap")


def other_symbols(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """By what two configurations differ, but for memory coloring."""
    return sorted(
        symbol
        for symbol in one.keys() | other.keys()
        if one.get(symbol, "n") != other.get(symbol, "n")
        and symbol != systems.CAMC.symbol
        and not symbol.startswith(f"{systems.CAMC.symbol}_")
    )


def check_kernels(coloring: Kernel, without: Kernel) -> None:
    """Refuse two kernels of which one has more than memory coloring before the other."""
    if not coloring.has(systems.CAMC) or without.has(systems.CAMC):
        raise LabError(f"{coloring.flavour.name} is to have memory coloring, the other one not")
    if others := other_symbols(coloring.config, without.config):
        raise LabError(
            f"{coloring.flavour.name} and {without.flavour.name} are to differ in memory coloring"
            f" alone, and differ in {', '.join(others)}"
        )


def large_blocks(buddyinfo: str) -> int:
    """Free memory in blocks of 2 MiB and larger, in blocks of 2 MiB."""
    blocks = 0
    for line in buddyinfo.splitlines():
        orders = [int(word) for word in line.split("zone", 1)[1].split()[1:]]
        blocks += sum(nr << order - BLOCK_ORDER for order, nr in enumerate(orders) if order >= 9)
    return blocks


def lost_blocks(output: Output) -> tuple[int, int]:
    """Of how many free 2 MiB blocks a task took how many with it."""
    before, after = (large_blocks(output[name]) for name in ("before", "after"))
    return before, before - after


@dataclass(frozen=True)
class Answer:
    """What a task met at the end of its colors."""

    pages: int  # that it had
    instructions: int  # of the touch that was answered
    colors: int  # that it has then
    taken: int  # of others: pages swapped out or scanned for it, and processes killed


def answers(output: Output, colors: int) -> Mapping[str, Answer]:
    """By the answer: one more color, or SIGBUS."""
    told = {}
    for end in ENDS:
        got = measure.counters(output[end])
        gained = measure.since(output[f"{end} before"], output[f"{end} after"])
        taken = sum(gained[name] for name in TAKEN)
        told[end] = Answer(got["touched"], got["answer"], got["has"], taken)
        if got["has"] != colors + (end == "spill"):
            raise LabError(f"{end}: a task of {colors} colors had {got['has']} at their end")
    return told


def _costs(output: Output, section: str = "touch") -> Mapping[str, float]:
    counted = measure.counters(output[section])
    cases = set(CASES)
    ready = min(counted.get(name, PAGES) for name in ("filled", "collected"))
    if ready < PAGES:
        if output.guest.name != WALK.name:
            raise LabError(f"{output.guest.name}: only {ready} pages were collected")
        cases.remove("prefilled")  # the lists are full of what the paper's refill met
    return {case: counted[case] / PAGES for case in CASES if case in cases & counted.keys()}


def _touched(costs: Mapping[str, float], others: Mapping[str, float]) -> float:
    """Touch and unmap a page, with a first touch or another: cost / others' cost, the worse one."""
    ratios = [
        (costs[case] + costs["unmap"]) / (others[case] + others["unmap"])
        for case in ("cold", "warm")
    ]
    return max(ratios)


def camc_cost(kernels: Kernels) -> Outcome:
    """instructions a page of colored tasks and of others; large blocks that are left"""
    check_kernels(kernels(BUDDY.flavour), kernels(WITHOUT.flavour))
    outputs = run_all("camc-cost", [each.guest(kernels) for each in VARIANTS], SECONDS)
    costs = {each: _costs(outputs[each.name]) for each in VARIANTS}
    key_on = _costs(outputs[BUDDY.name], "uncolored")
    buddy, without = costs[BUDDY], costs[WITHOUT]
    rows: list[list[Cell]] = [
        [
            each.name,
            *(round(costs[each][case], 1) if case in costs[each] else None for case in CASES),
            costs[each]["cold"] / buddy["cold"],
            costs[each]["warm"] / buddy["warm"],
            int(outputs[each.name]["lists"].split()[0]),
        ]
        for each in VARIANTS
    ]
    rows.append(
        ["buddy, another task is colored", *(key_on.get(c) for c in CASES), None, None, None]
    )
    ends = answers(outputs[FOUR.name], FOUR.colors)
    before, lost = lost_blocks(outputs[ONE.name])
    buddy_before, buddy_lost = lost_blocks(outputs[BUDDY.name])
    return Outcome(
        [outputs[each.name].run(counters=costs[each]) for each in VARIANTS],
        [
            Table(
                "Instructions of a page",
                (
                    *("task", "first touch", "once more", "prefilled", "unmapped"),
                    *("first / buddy", "once more / buddy", "pages that came to color lists"),
                ),
                rows,
                f"Exact: instructions. {PAGES} pages of anonymous memory, one CPU. First: per-CPU"
                " lists were drained before, the buddy allocator's too. Once more: after they were"
                " unmapped. Prefilled: after color lists were emptied, and as many pages collected"
                " by the task. Pages are zeroed by words. The paper's refill has nothing prefilled:"
                " its lists are full of what it met of other colors. The kernel without memory"
                " coloring differs from the others in nothing else.",
            ),
            Table(
                "Free blocks of 2 MiB",
                ("task", "before", "lost by a task that used a quarter of memory"),
                [
                    ["buddy", buddy_before, buddy_lost],
                    [f"{HELD_COLORS} of 16 colors", before, lost],
                ],
                "Exact. Per-CPU lists are drained before each count.",
            ),
            Table(
                f"A task at the end of its {FOUR.colors} colors",
                ("answer", "pages it had", "instructions until then", "taken of others"),
                [
                    [
                        "SIGBUS" if end == "strict" else "one more color",
                        *(told.pages, told.instructions, told.taken),
                    ]
                    for end, told in ends.items()
                ],
                "Exact. Instructions: of the touch that got it. Taken: pages that were swapped out"
                " or scanned meanwhile, and processes killed. Other colors have free memory; there"
                f" is a zram of {SWAP_MIB} MiB, and a task without colors that has {OTHERS_MIB}"
                " MiB.",
            ),
        ],
        values={
            "camc-cold-1": costs[ONE]["cold"] / buddy["cold"],
            "camc-cold-4": costs[FOUR]["cold"] / buddy["cold"],
            "camc-warm": max(
                costs[each][case] for each in (ONE, FOUR) for case in ("warm", "prefilled")
            )
            / buddy["warm"],
            "camc-walk": costs[WALK]["cold"] / buddy["cold"],
            "camc-off": _touched(buddy, without),
            "camc-on": _touched(key_on, without),
            "camc-off-unmap": buddy["unmap"] / without["unmap"],
            "camc-end": max(told.instructions for told in ends.values()),
            "camc-end-others": sum(told.taken for told in ends.values()),
            "camc-blocks": max(0, lost - buddy_lost) / before,
        },
    )
