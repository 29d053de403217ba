# SPDX-License-Identifier: GPL-2.0-or-later
"""Which pages a guest gives to tasks, by policy: lab/guest/pages.c in a machine of four nodes.

All tasks are of one kernel with CAMC: those with colors are given their pages by it, those without
by the buddy allocator. A page of another color than its task asked for is counted, not replaced:
what is made of a recording is made of the pages that the tasks have.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lab import systems, workloads
from lab.dram import maps
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output
from lab.machine import Machine

NODES = 4
NODE_CPUS = 4
NODE_MIB = 512
HOW = "pages that the kernel gave to tasks of these colors"  # for a table's note

# The paper's Opteron (Table 1, Fig. 5) with 2 GiB of memory in place of 32: nodes one after the
# other, in each of them channels, in each of those ranks; banks by bits 14 to 16. 128 colors.
OPTERON = "map opteron-2g\n" + "".join(
    f"""\
region {node * NODE_MIB << 20:x}-{(node + 1) * NODE_MIB << 20:x} node {node} offset \
{node * NODE_MIB << 20:x}
controller 10000000
rank 8000000
bank 10000
bank 8000
bank 4000
"""
    for node in range(NODES)
)


def hashed(name: str, nodes: int, node_mib: int) -> str:
    """A map with a hash in the manner of those that Pessl et al. (USENIX Security 2016) found, each
    bit the parity of a low and a higher one, but of no machine: theirs have bits below the page.
    32 colors a node."""
    return f"map {name}\n" + "".join(
        f"""\
region {node * node_mib << 20:x}-{(node + 1) * node_mib << 20:x} node {node} offset \
{node * node_mib << 20:x}
rank 420000
bank 210000
bank 108000
bank 84000
bank 42000
"""
        for node in range(nodes)
    )


HASHED = hashed("hashed-2g", NODES, NODE_MIB)  # 128 colors too


@dataclass(frozen=True)
class Wanted:
    """A task's memory: of these nodes by turns, or of its CPU's; of these colors, or of any."""

    cpu: int
    pages: int
    colors: tuple[int, ...] = ()
    nodes: tuple[int, ...] = ()

    @property
    def spec(self) -> str:
        """As pages.c takes it."""
        nodes = f"interleave={_list(self.nodes)}" if self.nodes else "local"
        colors = f":colors={_list(self.colors)}" if self.colors else ""
        return f"{self.cpu}:{self.pages}:{nodes}{colors}"

    @property
    def node(self) -> int:
        """Of its CPU."""
        return self.cpu // NODE_CPUS


def _list(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


Scenarios = Mapping[str, Sequence[Wanted]]
Pages = Sequence[int]  # of a task: physical page numbers, in the order of its addresses
Recorded = Mapping[str, Sequence[Pages]]


def read(text: str) -> list[Pages]:
    """What pages.c prints: the pages of each task."""
    tasks: dict[int, dict[int, int]] = {}
    for line in text.splitlines():
        words = line.split()
        try:
            number, virtual, physical = int(words[0]), int(words[1], 16), int(words[2], 16)
            count = int(words[3])
        except (IndexError, ValueError):
            raise LabError(
                f"a recording has 'TASK VIRTUAL PHYSICAL COUNT' in a line, not {line!r}"
            ) from None
        pages = tasks.setdefault(number, {})
        for at in range(count):
            if virtual + at in pages:
                raise LabError(f"the recording has page {virtual + at:x} of task {number} twice")
            pages[virtual + at] = physical + at
    if sorted(tasks) != list(range(len(tasks))):
        raise LabError("the recording lacks a task")
    shared = [page for pages in tasks.values() for page in pages.values()]
    if len(set(shared)) < len(shared):
        raise LabError("the recording has a physical page twice")
    return [[page for _, page in sorted(tasks[number].items())] for number in sorted(tasks)]


def guest(kernels: Kernels, text: str, scenarios: Scenarios) -> Guest:
    """The guest that records all scenarios on a machine with this address map."""
    kernel = kernels("camc")
    if not kernel.has(systems.CAMC):
        raise LabError(
            f"the {kernel.flavour.name} kernel has no {systems.CAMC.symbol}, and only a kernel"
            " that has it gives tasks pages of their colors"
        )
    name = maps.read(text).name
    lines = [f"cat >/sys/kernel/mm/camc/map <<'end'\n{text}end\n"]
    for title, tasks in scenarios.items():
        specs = " ".join(task.spec for task in tasks)
        lines.append(f"section {title}\npages {specs}\n")
    return Guest(
        f"pages of {name}",
        kernel,
        Machine(NODES * NODE_MIB, NODES * NODE_CPUS, area_mib=0, nodes=NODES),
        "".join(lines),
        workloads.files("pages"),
    )


def recorded(output: Output, scenarios: Scenarios) -> Recorded:
    """The pages of each task of each scenario: as many as it wanted."""
    by_scenario = {title: read(output[title]) for title in scenarios}
    for title, tasks in scenarios.items():
        if [len(pages) for pages in by_scenario[title]] != [task.pages for task in tasks]:
            raise LabError(f"{title}: not every task has as many pages as it wanted")
    return by_scenario


def wrong(text: str, scenarios: Scenarios, by_scenario: Recorded) -> int:
    """How many pages have another color than their task asked for, by this lab's own reader."""
    address_map = maps.read(text)
    return sum(
        bool(task.colors) and address_map.color(page) not in task.colors
        for title, tasks in scenarios.items()
        for task, pages in zip(tasks, by_scenario[title], strict=True)
        for page in pages
    )
