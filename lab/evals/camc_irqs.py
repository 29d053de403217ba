# SPDX-License-Identifier: GPL-2.0-or-later
"""How long coloring keeps interrupts off: tracepoints where they go off and on."""

from collections.abc import Mapping
from dataclasses import dataclass

from lab import targets, workloads
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output, run_all
from lab.machine import Machine
from lab.results import Cell, Outcome, Table

AREA_MIB = 16  # an allocation from it drains the per-CPU lists
MEMORY_MIB = 1024
PAGES = 8192
SECONDS = 150  # of a guest on an idle core

# All of one kind in a row: of a section the function that turned them off, how many, the longest
LONGEST = """\
/^# entries-in-buffer/ {
	split($3, entries, "/")
	lost = entries[2] - entries[1]
}
/ irq_disable: / { begin = $4 + 0 }
/ irq_enable: / {
	where = $7
	sub(/^parent=/, "", where)
	sub(/[+].*/, "", where)
	took = $4 - begin
	count[where]++
	if (took > longest[where])
		longest[where] = took
}
END {
	for (where in longest)
		print where, count[where], longest[where]
	if (lost) {
		print lost " events were lost" >"/dev/stderr"
		exit 1
	}
}
"""

SCRIPT = f"""\
{workloads.STEADY}
drain() {{ bench 1 1 >/dev/null; }}
cat >/longest <<'END'
{LONGEST}END
cat >/map <<'END'
@map@END
cat /map >/sys/kernel/mm/camc/map
color hold 0 {PAGES} # all code is in the page cache
cd /sys/kernel/tracing
echo {targets.DEFAULT.trace_clock} >trace_clock
echo 65536 >buffer_size_kb
traced() {{ # NAME COMMAND...
	section "$1"
	shift
	drain
	echo >trace
	echo 1 >events/preemptirq/enable
	"$@" >/dev/null
	echo 0 >events/preemptirq/enable
	awk -f /longest trace
}}
traced uncolored color touch 0 {PAGES}
@loads@
"""

# For comparison: where per-CPU lists are filled, and the compiler may have put it
STOCK = ("rmqueue_bulk", "__rmqueue_pcplist")


def hashed(regions: int, bits: int) -> str:
    """A map whose colors are XORs of two bits each, with so many regions that are all alike."""
    size = (MEMORY_MIB + AREA_MIB << 20) // regions >> 22 << 22
    text = "map worst\n"
    for at in range(regions):
        end = size * (at + 1) if at + 1 < regions else 1 << 40
        text += f"region {size * at:x}-{end:x}\n"
        text += "".join(f"bank {((1 << bits) + 1) << 12 + bit:x}\n" for bit in range(bits))
    return text


@dataclass(frozen=True)
class Variant:
    """One guest: a map, and how many colors the tasks have that use them."""

    name: str
    map: str
    touching: tuple[int, ...]
    ending: tuple[int, ...]

    @property
    def loads(self) -> str:
        lines = [f"traced '{nr} colors' color touch {nr} {PAGES}" for nr in self.touching]
        lines += [f"traced 'the end of {nr} colors' color end {nr}" for nr in self.ending]
        lines.append("echo walk >/sys/kernel/mm/camc/refill")
        nr = self.touching[0]
        lines.append(f'traced "{nr} colors, the paper\'s refill" color touch {nr} {PAGES}')
        return "\n".join(lines)

    def guest(self, kernels: Kernels) -> Guest:
        return Guest(
            self.name,
            kernels("camc-irqs"),
            Machine(MEMORY_MIB + AREA_MIB, cpus=1, area_mib=AREA_MIB),
            SCRIPT.replace("@map@", self.map).replace("@loads@", self.loads),
            workloads.files("color"),
        )


VARIANTS = (
    Variant("16 colors", hashed(1, 4), (1, 4, 15), (1, 15)),
    Variant("16 colors, 32 regions", hashed(32, 4), (1, 4), (1,)),
    Variant("1,024 colors, 24 regions", hashed(24, 10), (64, 512), (1, 64)),
)


def longest(text: str) -> Mapping[str, tuple[int, int]]:
    """What a guest printed of a load: how many sections a function has, and the longest."""
    lines = (line.split() for line in text.splitlines())
    return {name: (int(count), int(float(most))) for name, count, most in lines}


def _loads(output: Output) -> Mapping[str, Mapping[str, tuple[int, int]]]:
    loads = {name: longest(text) for name, text in output.sections.items() if "color" in name}
    if not any(name in loads["uncolored"] for name in STOCK):
        raise LabError("no section of the page allocator was traced", output["uncolored"])
    return loads


def _ours(function: str) -> bool:
    return function.startswith(("camc_", "__camc_"))


def camc_irqs(kernels: Kernels) -> Outcome:
    """how long coloring keeps interrupts off"""
    guests = [each.guest(kernels) for each in VARIANTS]
    outputs = run_all("camc-irqs", guests, SECONDS)
    rows: list[list[Cell]] = []
    worst, stock = 0, 0
    for name, output in outputs.items():
        for load, functions in _loads(output).items():
            for function, (count, most) in sorted(functions.items(), key=lambda item: -item[1][1]):
                if load == "uncolored" and function in STOCK:
                    stock = max(stock, most)
                elif _ours(function):
                    worst = max(worst, most)
                elif function != "free_pcppages_bulk":
                    continue
                rows.append([name, load, function, count, most])
    if not worst:
        raise LabError("no section of coloring was traced")
    return Outcome(
        [output.run() for output in outputs.values()],
        [
            Table(
                "Interrupts off, instructions",
                ("map", "load", "function", "times", "the longest"),
                rows,
                "Exact. One CPU; what it takes to trace both ends included, some 600 instructions."
                " free_pcppages_bulk(): what ordinary frees do, and the end of the colors in"
                " batches of its own.",
            ),
        ],
        values={"camc-irqs": worst, "camc-irqs-stock": stock},
    )
