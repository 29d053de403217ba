# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines that cannot be are refused before booting."""

from pathlib import Path

import pytest

from lab.build import FLAVOURS, Kernel
from lab.errors import LabError
from lab.machine import Disk, Machine, beside, parse_mib

WITH = Kernel(FLAVOURS["prod"], "6.12.7", Path("/none"), {"CONFIG_GCMA": "y"})
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


def test_debug_kernel_panics_on_warnings() -> None:
    kernel = Kernel(FLAVOURS["debug"], "6.12.7", Path("/none"), {})
    assert "panic_on_warn=1" in Machine().kernel_args(kernel)


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (Machine(policy="cleancache"), "unknown policy cleancache"),
        (Machine(memory_mib=512, area_mib=512), "512 MiB does not fit"),
        (Machine(memory_mib=512, area_mib=1024), "1024 MiB does not fit"),
        (Machine(cpus=0), "0 CPUs"),
        (Machine(cpus=64), "64 CPUs"),
    ],
)
def test_impossible_machines_are_refused(machine: Machine, message: str) -> None:
    with pytest.raises(LabError, match=message):
        machine.kernel_args(WITH)


def test_policy_that_the_kernel_lacks_is_refused() -> None:
    with pytest.raises(LabError, match="unpatched kernel has no GCMA"):
        Machine(policy="none").kernel_args(WITHOUT)


def test_slow_disk() -> None:
    drive, device = Disk(Path("/d.img"), "work", bytes_per_second=20_000_000).qemu_args(0)[1::2]
    assert drive == "file=/d.img,if=none,id=d0,format=raw,throttling.bps-total=20000000"
    assert device == "virtio-blk-pci,drive=d0,serial=work"


def test_large_area_lies_above_4_gib_in_one_piece() -> None:
    machine = beside(256, 4096, cpus=1, policy="gcma")
    machine.check()
    assert machine.memory_mib - 2048 >= 4096
    assert machine.args == ("memmap=1920M$128M",)
    assert beside(256, 1024, cpus=1, policy="gcma") == Machine(1280, 1, 1024, "gcma")


def test_area_that_the_hole_below_4_gib_would_split_is_refused() -> None:
    with pytest.raises(LabError, match="give the guest 6208 MiB"):
        Machine(memory_mib=4352, area_mib=4096).check()
