# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines that cannot be are refused before booting."""

from pathlib import Path

import pytest

from lab import build, systems
from lab.build import Kernel
from lab.errors import LabError
from lab.flavours import FLAVOURS, Flavour
from lab.machine import MAX_CPUS, Disk, Machine, beside, parse_mib

WITH = Kernel(
    *(FLAVOURS["prod"], "6.12.7", Path("/none")),
    {system.symbol: "y" for system in systems.SYSTEMS.values()},
)
WITHOUT = Kernel(FLAVOURS["unpatched"], "6.12.7", Path("/none"), {})


@pytest.mark.parametrize(
    ("text", "mib"), [("128M", 128), ("1G", 1024), ("2048K", 2), ("64MB", 64), ("64m", 64)]
)
def test_sizes(text: str, mib: int) -> None:
    assert parse_mib(text) == mib


@pytest.mark.parametrize("text", ["", "128", "-1M", "1.5G", "128T", "1K", "M"])
def test_wrong_sizes_are_refused(text: str) -> None:
    with pytest.raises(LabError):
        parse_mib(text)


def test_kernel_arguments() -> None:
    assert Machine(area_mib=64, policy="gcma", args=("quiet",)).kernel_args(WITH) == [
        *("cma=64M", "cma_policy=gcma", "quiet")
    ]


def test_kernel_without_gcma_gets_no_policy() -> None:
    assert Machine(area_mib=64).kernel_args(WITHOUT) == ["cma=64M"]


def test_named_policies_replace_the_policy() -> None:
    machine = Machine(area_mib=64, args=("cma_policy=camera:gcma",))
    assert machine.kernel_args(WITH) == ["cma=64M", "cma_policy=camera:gcma"]


@pytest.mark.parametrize(
    "flavour", [each for each in FLAVOURS.values() if "debug" in each.fragments]
)
def test_debug_kernel_panics_on_warnings(flavour: Flavour) -> None:
    args = Machine().kernel_args(Kernel(flavour, "6.12.7", Path("/none"), {}))
    assert "panic_on_warn=1" in args


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (Machine(policy="cleancache"), "unknown policy cleancache"),
        (Machine(memory_mib=512, area_mib=512), "512 MiB does not fit"),
        (Machine(memory_mib=512, area_mib=1024), "1024 MiB does not fit"),
        (Machine(cpus=0), "0 CPUs"),
        (Machine(cpus=65), "65 CPUs"),
        (Machine(nodes=0), "0 nodes of memory"),
        (Machine(nodes=4), "into one of 4 nodes of 128 MiB: give the guest 768 MiB"),
    ],
)
def test_impossible_machines_are_refused(machine: Machine, message: str) -> None:
    with pytest.raises(LabError, match=message):
        machine.kernel_args(WITH)


def test_policy_that_the_kernel_lacks_is_refused() -> None:
    with pytest.raises(
        LabError, match="unpatched kernel does not know the policy none: it has movable"
    ):
        Machine(policy="none").kernel_args(WITHOUT)


def test_slow_disk() -> None:
    drive = Disk(Path("/a,b.img"), "work").qemu_args(0)[1]
    assert drive.startswith("file=/a,,b.img,if=none")
    drive, device = Disk(Path("/d.img"), "work", bytes_per_second=20_000_000).qemu_args(0)[1::2]
    assert drive == "file=/d.img,if=none,id=d0,format=raw,throttling.bps-total=20000000"
    assert device == "virtio-blk-pci,drive=d0,serial=work"


def test_nodes_share_memory_and_cpus() -> None:
    args = Machine(memory_mib=513, cpus=3, area_mib=64, nodes=2).qemu_args()
    assert args[1::2] == [
        *("memory-backend-ram,id=node0,size=256M", "node,nodeid=0,memdev=node0,cpus=0-0"),
        *("memory-backend-ram,id=node1,size=257M", "node,nodeid=1,memdev=node1,cpus=1-2"),
    ]
    assert Machine().qemu_args() == []


def test_the_kernel_takes_as_many_cpus_as_a_machine() -> None:
    base = build.read_config((build.CONFIGS / "base.config").read_text())
    assert base["CONFIG_NR_CPUS"] == str(MAX_CPUS)


def test_large_area_lies_above_4_gib_in_one_piece() -> None:
    machine = beside(256, 4096, cpus=1, policy="gcma")
    machine.check()
    assert machine.memory_mib - 2048 >= 4096
    assert machine.args == ("memmap=1920M$128M",)
    assert beside(256, 1024, cpus=1, policy="gcma") == Machine(1280, 1, 1024, "gcma")


def test_area_that_the_hole_below_4_gib_would_split_is_refused() -> None:
    with pytest.raises(LabError, match="give the guest 6208 MiB"):
        Machine(memory_mib=4352, area_mib=4096).check()
