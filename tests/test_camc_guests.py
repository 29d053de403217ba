# SPDX-License-Identifier: GPL-2.0-or-later
"""The camc tool on a kernel, not on folders that stand for one; and what simulations are fed."""

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab import boot, guests, measure, systems, workloads
from lab.build import Kernel
from lab.dram import maps, recording
from lab.dram.recording import HASHED, NODE_CPUS, NODES, Wanted
from lab.guests import Guest
from lab.machine import Machine
from tests.camc.machine import STATS

pytestmark = pytest.mark.guest

MEMORY_MIB = {"debug": 1024, "camc-debug": 1024}  # of others half
# 16 colors, by a statement that the kernel does not take
MAP = "map of-the-test\nregion 0-all\nbank 22000\nbank 44000\nbank 88000\nbank 110000\n"
# Colored, it writes a program to a tmpfs and becomes it: no page is of before.
FRESH = "cp /bin/busybox /tmp; exec /tmp/busybox sleep 1000"
CALL = """\
call() { # NAME COMMAND...: what it says, and how it ends
	echo "== $1"
	shift
	"$@" 2>&1
	echo "status $?"
}
"""
# Calls of somebody who is not root
OTHERS = """\
mkdir -p /etc
echo 'other:x:1000:1000::/:/bin/sh' >/etc/passwd
other() {
	su other -s /bin/sh -c "$*"
}
"""
WITH = f"""\
{OTHERS}
call 'no map' camc run true
call "other's map" other camc map load /root/map
call load camc map load /root/map
call again camc map load /root/map
call map camc map show
camc run --colors 2 -- sh -c '{FRESH}' &
fresh=$!
camc run --colors 3 --strict -- sleep 1000 & # a file that was in memory before
old=$!
sleep 10
call pids echo $fresh $old
call fresh camc check --json $fresh
call old camc check --json $old
call nobody camc check $$
call top camc top --once --json
call table camc top --once
call taken camc run --banks 0-15 true
call many camc run --colors 12 true
call "other's colors" other camc run --colors 2 true
echo 4 >/sys/kernel/mm/camc/limit
call "other's limit" other camc run --colors 5 true
call "other's own" other camc run --colors 4 -- sh -c "'exit 6'"
call "other's check" other camc check $fresh
call share camc run --share --banks 0-15 --prefill 1M -- sh -c 'exit 7'
kill $fresh $old
wait
call after camc top --once --json
"""
WITHOUT = """\
call run camc run true
call load camc map load /root/map
call top camc top --once
call check camc check $$
call map camc map check /root/map
call others camc check --map /root/map --colors 0-15 $$
"""


@dataclass(frozen=True)
class Call:
    """What a call of the tool said, and how it ended."""

    text: str
    status: int

    @property
    def json(self) -> Any:
        return json.loads(self.text)


def calls(kernel: Kernel, folder: Path, script: str) -> dict[str, Call]:
    """The script's calls by their names."""
    (folder / "map").write_text(MAP)
    machine = Machine(MEMORY_MIB.get(kernel.flavour.name, 512), cpus=1, area_mib=0)
    files = {"/bin/camc": workloads.camc_tool(), "/root/map": folder / "map"}
    result = boot.exact(kernel, machine, CALL + script, files=files, timeout=900).check()
    answers = {}
    for name, text in measure.sections(result.output).items():
        output, _, status = text.rpartition("status ")
        answers[name] = Call(output, int(status))
    return answers


def test_the_tool_on_a_kernel_with_coloring(kernel: Kernel, tmp_path: Path) -> None:
    if not kernel.has(systems.CAMC):
        pytest.skip("this kernel has no memory coloring")
    answers = calls(kernel, tmp_path, WITH)

    assert answers["no map"] == Call(
        "camc: no address map is loaded: see camc map list, then camc map load MAP\n", 125
    )
    assert (answers["load"].text[:25], answers["load"].status) == ("of-the-test is loaded: 16", 0)
    assert answers["again"].status == 2
    assert "is loaded already (map of-the-test)" in answers["again"].text
    assert answers["map"].status == 0

    fresh, old = map(int, answers["pids"].text.split())
    own, others = answers["fresh"].json, answers["old"].json
    assert (answers["fresh"].status, own["pid"], len(own["colors"])) == (0, fresh, 2)
    assert own["total"]["wrong"] == 0
    assert own["total"]["right"] == own["total"]["pages"] > 100
    assert all(own["kinds"][kind]["right"] for kind in ("stack", "data", "text"))
    assert (answers["old"].status, others["pid"], len(others["colors"])) == (1, old, 3)
    wrong = {kind for kind, its in others["kinds"].items() if its["wrong"]}
    assert wrong <= {"text", "file"} and "text" in wrong
    assert not set(own["colors"]) & set(others["colors"])
    assert (answers["nobody"].status, "has no colors" in answers["nobody"].text) == (2, True)

    top = answers["top"].json
    assert (top["colors"], top["stats"].keys(), top["stats"]["taken"]) == (16, set(STATS), 5)
    assert top["stats"]["allocated"] >= own["total"]["pages"]
    sets = {tuple(each["pid"] for each in its["processes"]): its for its in top["sets"]}
    assert {pids: (its["flags"], its["colors"]) for pids, its in sets.items()} == {
        (fresh,): (["spill", "fork", "exec"], own["colors"]),
        (old,): (["strict", "fork", "exec"], others["colors"]),
    }
    assert f" {fresh} " in answers["table"].text and "(strict,fork,exec)" in answers["table"].text

    taken = re.fullmatch(
        r"camc: process (\d+) \((\w+)\) has color (\d+): take another.*\n", answers["taken"].text
    )
    assert taken, answers["taken"]
    assert int(taken[3]) in {fresh: own, old: others}[int(taken[1])]["colors"]
    assert answers["many"].status == answers["taken"].status == 125
    assert "fewer than 12 colors of this node are free" in answers["many"].text
    assert answers["other's map"] == Call(
        "camc: /proc/iomem hides the addresses of memory: run as root\n", 2
    )
    limit = "/sys/kernel/mm/camc/limit"
    assert answers["other's colors"] == Call(
        f"camc: only root may have colors, as long as {limit} is 0\n", 125
    )
    assert answers["other's limit"] == Call(
        f"camc: users may have 4 colors together ({limit}): take fewer, or be root\n", 125
    )
    assert answers["other's own"] == Call("", 6)
    assert answers["other's check"] == Call(
        f"camc: process {fresh} is of another user: run as root\n", 2
    )
    assert answers["share"] == Call("", 7)
    after = answers["after"].json
    assert (after["sets"], after["stats"]["taken"]) == ([], 0)


def test_the_tool_on_a_kernel_without_coloring(kernel: Kernel, tmp_path: Path) -> None:
    if kernel.has(systems.CAMC):
        pytest.skip("this kernel has memory coloring")
    answers = calls(kernel, tmp_path, WITHOUT)
    lacking = "camc: this kernel lacks CONFIG_CAMC: see GETTING CAMC in camc(8)\n"
    assert answers["run"] == Call(lacking, 125)
    for name in ("load", "top", "check"):
        assert answers[name] == Call(lacking, 2), name
    # what needs no kernel works all the same
    assert answers["map"].status == 0
    assert "of-the-test fits this machine: " in answers["map"].text
    assert answers["others"].status == 0
    assert "map of-the-test, its colors: 0-15" in answers["others"].text


def test_pages_that_are_simulated_are_of_the_colors(kernel: Kernel) -> None:
    """As the simulated evaluations ask for them: one, of all nodes, shared, and none."""
    if not kernel.has(systems.CAMC):
        pytest.skip("this kernel has no memory coloring")
    if kernel.flavour.name == "camc-debug":
        pytest.skip("the evaluations do not run on this kernel, whose 16 CPUs take minutes")
    scenarios = {
        "controllers": [Wanted(node * NODE_CPUS, 64, (node * 32 + 1,)) for node in range(NODES)],
        "shared": [Wanted(0, 64, (5,)), Wanted(1, 64, (5,))],
        "bank only": [Wanted(6, 64, tuple(range(3, 128, 32)), tuple(range(NODES)))],
        "buddy": [Wanted(0, 64), Wanted(NODE_CPUS, 64)],
    }
    guest = recording.guest(lambda _: kernel, HASHED, scenarios)
    output = guests.run_all("recording", [guest], 60)[guest.name]
    recorded = recording.recorded(output, scenarios)
    assert recording.wrong(HASHED, scenarios, recorded) == 0
    colors = [maps.read(HASHED).color(page) for page in recorded["bank only"][0]]
    assert Counter(colors) == dict.fromkeys(range(3, 128, 32), 16)
    assert len({maps.read(HASHED).color(page) for page in recorded["buddy"][0]}) > 1


NODE_MIB = {"camc-debug": 512}  # of others half
NODE_COLORS = 32
TASK_PAGES = 64
MACHINES = (1, 2, 4, 8)  # nodes


@pytest.mark.parametrize("nodes", MACHINES)
def test_colors_of_each_node(nodes: int, kernel: Kernel) -> None:
    """A CPU on each. Colors that are named, of a task's own node and of another; that the kernel
    chooses; and beside them what tasks without colors have of the policy of nodes."""
    if not kernel.has(systems.CAMC):
        pytest.skip("this kernel has no memory coloring")
    if kernel.flavour.name == "camc-debug" and nodes > 2:
        pytest.skip("this kernel, whose many CPUs take minutes")
    every = range(nodes)
    node_mib = NODE_MIB.get(kernel.flavour.name, 256)
    text = recording.hashed("nodes", nodes, node_mib)
    last = nodes - 1
    scenarios = {
        "one of each": [Wanted(n, TASK_PAGES, (n * NODE_COLORS + 1,)) for n in every],
        "of the last": [Wanted(n, TASK_PAGES, (last * NODE_COLORS + 2 + n,)) for n in every],
        "of all": [Wanted(last, TASK_PAGES, tuple(n * NODE_COLORS for n in every), tuple(every))],
        "local": [Wanted(n, TASK_PAGES) for n in every],
    }
    lines = [f"cat >/sys/kernel/mm/camc/map <<'end'\n{text}end"]
    for title, tasks in scenarios.items():
        lines.append(f"section {title}\npages {' '.join(task.spec for task in tasks)}")
    chosen = " ".join(f"{n}:{TASK_PAGES}:local:auto=3" for n in every)
    lines.append(f"section chosen\npages {chosen}")
    lines.append("section nodes\nls -d /sys/devices/system/node/node* | wc -l")
    machine = Machine(nodes * node_mib, cpus=nodes, area_mib=0, nodes=nodes)
    guest = Guest("nodes", kernel, machine, "\n".join(lines) + "\n", workloads.files("pages"))
    output = guests.run_all("nodes", [guest], 60)[guest.name]

    assert int(output["nodes"]) == nodes
    recorded = recording.recorded(output, scenarios)
    assert recording.wrong(text, scenarios, recorded) == 0
    color_of = maps.read(text).color

    def nodes_of(pages: recording.Pages) -> set[int]:
        """By addresses, whatever the map says."""
        return {page // (node_mib << 8) for page in pages}

    for n in every:
        assert nodes_of(recorded["one of each"][n]) == nodes_of(recorded["local"][n]) == {n}
        assert nodes_of(recorded["of the last"][n]) == {last}
    by_node = Counter(page // (node_mib << 8) for page in recorded["of all"][0])
    assert by_node == dict.fromkeys(every, TASK_PAGES // nodes)
    own = [{color_of(page) for page in pages} for pages in recording.read(output["chosen"])]
    for n, colors in enumerate(own):
        assert {color // NODE_COLORS for color in colors} == {n}
        assert 1 <= len(colors) <= 3
    assert len(set().union(*own)) == sum(map(len, own))  # nobody has another's
    assert any(len({color_of(page) for page in pages}) > 3 for pages in recorded["local"])
