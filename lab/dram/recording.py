# SPDX-License-Identifier: GPL-2.0-or-later
"""Which pages a guest gives to tasks, by policy: lab/guest/pages.c in a machine of four nodes.

On a kernel with CAMC a task of some colors is given them by the kernel. On any other kernel it
takes its pages, in their order, from all that the same kernel handed out to a task without colors:
the addresses are the allocator's, the choice is ours, and results say so.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain

from lab import workloads
from lab.dram import maps
from lab.dram.maps import AddressMap
from lab.errors import LabError
from lab.guests import Guest, Kernels, Output
from lab.machine import Machine

NODES = 4
NODE_CPUS = 4
NODE_MIB = 512
MIB_PAGES = 256
COLORED = "CONFIG_CAMC"
# Of each node, on a kernel without CAMC: enough of any single color for all tasks.
POOL_MIB = 400

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
# A hash in the manner of those that Pessl et al. (USENIX Security 2016) found, each bit the parity
# of a low and a higher one, but of no machine: theirs have bits below the page. 128 colors too.
HASHED = "map hashed-2g\n" + "".join(
    f"""\
region {node * NODE_MIB << 20:x}-{(node + 1) * NODE_MIB << 20:x} node {node} offset \
{node * NODE_MIB << 20:x}
rank 420000
bank 210000
bank 108000
bank 84000
bank 42000
"""
    for node in range(NODES)
)


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


def colored(kernels: Kernels) -> bool:
    """Does the kernel give pages by colors?"""
    return kernels("prod").config.get(COLORED) == "y"


def guest(kernels: Kernels, text: str, scenarios: Scenarios) -> Guest:
    """The guest that records all scenarios on a machine with this address map."""
    name = maps.read(text).name
    lines = []
    if colored(kernels):
        lines.append(f"cat >/sys/kernel/mm/camc/map <<'end'\n{text}end\n")
    else:
        pools = [f"{node * NODE_CPUS}:{POOL_MIB * MIB_PAGES}:bind={node}" for node in range(NODES)]
        lines.append(f"section pools\npages {' '.join(pools)}\n")
    for title, tasks in scenarios.items():
        if colored(kernels) or not any(task.colors for task in tasks):
            lines.append(f"section {title}\npages {_specs(tasks)}\n")
    return Guest(
        f"pages of {name}",
        kernels("prod"),
        Machine(NODES * NODE_MIB, NODES * NODE_CPUS, area_mib=0, nodes=NODES),
        "".join(lines),
        workloads.files("pages"),
    )


def _specs(tasks: Iterable[Wanted]) -> str:
    return " ".join(task.spec for task in tasks)


class Pools:
    """Pages without an owner yet, of each node in the order in which they were handed out."""

    def __init__(self, address_map: AddressMap, pools: Iterable[Pages]) -> None:
        self.nodes: list[dict[int, list[tuple[int, int]]]] = []  # color -> (turn, page)
        for pool in pools:
            colors: dict[int, list[tuple[int, int]]] = {}
            for turn, page in enumerate(pool):
                colors.setdefault(address_map.color(page), []).append((turn, page))
            self.nodes.append(colors)

    def take(self, tasks: Sequence[Wanted]) -> list[Pages]:
        """For each task the first pages of its colors, of its nodes by turns; each page once."""
        taken: set[int] = set()
        found: list[Pages] = []
        for task in tasks:
            pages = self._fitting(task, taken)[: task.pages]
            if len(pages) < task.pages:
                raise LabError(
                    f"the colors {_list(task.colors)} have {len(pages)} pages left, {task.pages}"
                    " are wanted: record more"
                )
            taken.update(pages)
            found.append(pages)
        return found

    def _fitting(self, task: Wanted, taken: Set[int]) -> Pages:
        by_node = []
        for node in task.nodes or range(len(self.nodes)):
            turns = sorted(chain(*(self.nodes[node].get(color, ()) for color in task.colors)))
            by_node.append([page for _, page in turns if page not in taken])
        if task.nodes:
            return [page for turn in zip(*by_node, strict=False) for page in turn]
        return [page for pages in by_node for page in pages]


def recorded(output: Output, text: str, scenarios: Scenarios) -> Recorded:
    """The pages of each task of each scenario, checked."""
    address_map = maps.read(text)
    by_kernel = output.guest.kernel.config.get(COLORED) == "y"
    found: dict[str, Sequence[Pages]] = {}
    pools = None if by_kernel else Pools(address_map, read(output["pools"]))
    for title, tasks in scenarios.items():
        if pools is None or not any(task.colors for task in tasks):
            found[title] = read(output[title])
        else:
            found[title] = pools.take(tasks)
        check(address_map, title, tasks, found[title])
    return found


def check(
    address_map: AddressMap, title: str, tasks: Sequence[Wanted], pages: Sequence[Pages]
) -> None:
    """Has each task as many pages as it wanted, and of its colors only?"""
    if [len(its) for its in pages] != [task.pages for task in tasks]:
        raise LabError(f"{title}: not every task has as many pages as it wanted")
    for number, (task, its) in enumerate(zip(tasks, pages, strict=True)):
        wrong = [page for page in its if task.colors and address_map.color(page) not in task.colors]
        if wrong:
            raise LabError(
                f"{title}: {len(wrong)} of {len(its)} pages of task {number} have another color,"
                f" the first is page {wrong[0]:x} of color {address_map.color(wrong[0])}"
            )


def how(kernels: Kernels) -> str:
    """Where the colored pages come from, for a table's note."""
    return (
        "pages that the kernel gave to tasks of these colors"
        if colored(kernels)
        else "pages by color out of those that a kernel without coloring handed out"
    )
