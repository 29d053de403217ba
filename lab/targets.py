# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines that kernels are built for and booted on: all that differs from one to the next."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Linux:
    """One version of the kernel: Debian's source of it, and this project's patches to it."""

    version: str
    package: str
    tarball: Path
    patches: str  # below the project's kernel folder


@dataclass(frozen=True)
class Target:
    """An architecture, a kernel version, and the machine of QEMU's that boots it."""

    name: str
    linux: Linux

    # Building
    arch: str  # as the kernel's make has it
    fragments: str  # folder below kernel/configs: what this architecture adds to the fragments
    image: str  # in the folder of the objects
    make_target: str
    objects: str  # folder beside the tree

    # Booting
    qemu: str
    qemu_package: str
    machine: tuple[str, ...]  # options of QEMU
    clock: tuple[str, ...]  # the same, of an exact guest: time that only the guest's work moves
    vng: tuple[str, ...]  # options of virtme-ng
    emulated: tuple[str, ...]  # options of QEMU without KVM: the CPU
    busy: tuple[str, ...]  # kernel arguments where time is that of a host that may be busy
    hasty: tuple[str, ...]  # kernel arguments: one CPU boots sooner, where nothing is measured
    trace_clock: str  # of tracefs: what counts like the programs of lab/guest
    console: str  # the first serial port, for the kernel's log
    early_console: str  # kernel argument
    output: str  # the second serial port, for what an exact guest's script prints

    # Memory: a machine with more than the first has the second below a hole, the rest above it
    one_piece_mib: int
    low_mib: int
    hide: str  # kernel argument that hides {size} MiB of it from {start} MiB on
    firmware_kib: int  # at the end of all of it, which the kernel never has


LINUX_6_12 = Linux(
    "6.12", "linux-source-6.12", Path("/usr/src/linux-source-6.12.tar.xz"), "patches-6.12"
)

X86_64 = Target(
    "x86_64",
    LINUX_6_12,
    arch="x86",
    fragments="x86_64",
    image="vmlinux",
    make_target="vmlinux",
    objects="build",
    qemu="qemu-system-x86_64",
    qemu_package="qemu-system-x86",
    machine=("-machine", "q35"),
    clock=("-icount", "shift=0,sleep=off", "-rtc", "clock=vm,base=2026-01-01"),
    vng=("--disable-microvm",),
    # with ERMS the kernel and programs clear and copy by byte; each takes QEMU a step, and counts
    # as an instruction: what is copied by words, as pages are, would look eight times as cheap
    emulated=("-cpu", "max,-erms,-fsrm"),
    # or: "IO-APIC + timer doesn't work!", and stalls of RCU that are the host's
    busy=("no_timer_check", "rcupdate.rcu_cpu_stall_timeout=120"),
    # calibrating the CPU's own timer spins for a tenth of a second, most of an exact guest's boot;
    # the other timer's interrupts take longer
    hasty=("nolapic_timer",),
    trace_clock="x86-tsc",
    console="ttyS0",
    early_console="earlyprintk=serial,ttyS0",
    output="ttyS1",
    one_piece_mib=2816,
    low_mib=2048,
    hide="memmap={size}M${start}M",
    firmware_kib=128,
)

TARGETS = {target.name: target for target in (X86_64,)}
DEFAULT = X86_64
