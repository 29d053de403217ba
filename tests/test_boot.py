# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading what a guest left behind; all but the last without booting one."""

import io
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lab import boot, cpio, kernellog
from lab.build import Kernel
from lab.errors import LabError
from lab.flavours import FLAVOURS
from lab.kernellog import standing_cpu
from lab.machine import Machine

WARNING = """\
[    1.000000] mm: fine
[    1.100000] ------------[ cut here ]------------
[    1.100001] WARNING: CPU: 1 PID: 77 at mm/gcma.c:12 gcma_store+0x1/0x2
[    1.100002] Call Trace:
[    1.100003]  do_exit+0x1
[    1.100004] ---[ end trace 0000000000000000 ]---
[    1.200000] mm: going on
"""


def result(**changes: object) -> boot.BootResult:
    values: dict[str, object] = {
        "output": "",
        "errors": "",
        "console": "last words\n",
        "began": True,
        "status": 0,
        "seconds": 9.0,
        "timed_out": False,
        "panic": None,
        "pause": 0.0,
        "signal": None,
        "command": [],
    }
    return boot.BootResult(**(values | changes))  # type: ignore[arg-type]


KERNEL = Kernel(FLAVOURS["prod"], "6.12.7", Path("/nowhere"), {})
INT3 = """\
[    1.200000] Oops: int3: 0000 [#1] SMP
[    1.200001] CPU: 1 UID: 0 PID: 1 Comm: init Not tainted 6.12.117 #1
[    1.200002] RIP: 0010:native_sched_clock+0x6/0x60
[    1.200003] Code: 0f 1f 40 00 {before} <{at}> 44 00 00 55 48 89 e5
"""


def test_breakpoint_that_is_not_in_memory_is_told_from_a_true_one() -> None:
    assert kernellog.stale_breakpoint(INT3.format(before="0f", at="1f"))
    assert kernellog.stale_breakpoint(INT3.format(before="e9", at="10"))
    assert not kernellog.stale_breakpoint(INT3.format(before="cc", at="1f"))
    assert not kernellog.stale_breakpoint(WARNING)


# of a guest one of whose CPUs' threads was stopped on the host
STALL = """\
[    5.840194] rcu: INFO: rcu_sched detected stalls on CPUs/tasks:
[    5.840983] rcu: \t1-...0: (1 GPs behind) idle=d33c/1/0x4000000000000000 softirq=16/17 fqs=1249
[    5.840983] rcu: \t(detected by 0, t=5002 jiffies, g=-1159, q=1 ncpus=3)
[    5.840983] Sending NMI from CPU 0 to CPUs 1:
"""
IDLE = """\
[    5.840984] NMI backtrace for cpu 1 skipped: idling at default_idle+0xb/0x10
[    5.840985] rcu: rcu_sched kthread starved for 5002 jiffies! g-1159 f0x0 ->state=0x0 ->cpu=2
[    5.840986] Sending NMI from CPU 0 to CPUs 2:
[    5.840987] NMI backtrace for cpu 2 skipped: idling at default_idle+0xb/0x10
"""
HANGS = """\
[    5.840984] NMI backtrace for cpu 1
[    5.840985] CPU: 1 UID: 0 PID: 1 Comm: swapper/0 Not tainted 6.12.117 #1
[    5.840986] RIP: 0010:gcma_settle+0x102/0x1e0
"""
# the thread of RCU waits for a CPU that hangs, and that no other waits for
STARVED = IDLE.replace("cpu 2 skipped: idling at default_idle+0xb/0x10", "cpu 2") + HANGS
# the same, told by the CPU itself, which needs no NMI to show where it is
ITSELF = IDLE + "[    5.840988] RIP: 0010:gcma_settle+0x102/0x1e0\n"


# no tick came for minutes, and then one that found the CPU in a program
LATE = (
    STALL.replace("0: (1 GPs behind)", "!: (0 ticks this GP)")
    + """\
[    5.840984] NMI backtrace for cpu 1
[    5.840985] CPU: 1 UID: 0 PID: 1 Comm: virtme-ng-init Not tainted 6.12.117 #1
[    5.840986] RIP: 0010:lapic_next_event+0xc/0x10
[    5.840987] Call Trace:
[    5.840987]  <TASK>
[    5.840988]  clockevents_program_min_delta+0x3e/0xe0
[    5.840989]  tick_handle_periodic+0x1b/0x60
[    5.840990]  sysvec_apic_timer_interrupt+0x2c/0x80
[    5.840991]  asm_sysvec_apic_timer_interrupt+0x16/0x20
[    5.840992] RIP: 0033:0x7faa53f56051
[    5.840993]  </TASK>
"""
)


def test_stall_of_a_cpu_that_stands_still_is_told_from_a_hang_of_the_kernel() -> None:
    assert standing_cpu(STALL)
    assert standing_cpu(STALL + IDLE)
    assert standing_cpu(LATE)
    assert not standing_cpu(LATE + HANGS)
    assert not standing_cpu(LATE.replace("RIP: 0033:0x7faa53f56051", "RIP: 0010:gcma_settle"))
    assert not standing_cpu(LATE.replace("(0 ticks this GP)", "(1 GPs behind)"))
    assert not standing_cpu(LATE.replace("lapic_next_event", "gcma_put"))
    assert standing_cpu(LATE + f"[    6.1] {kernellog.BEGINS}\n")
    assert not standing_cpu(f"[    5.1] {kernellog.BEGINS}\n" + LATE)
    assert not standing_cpu(STALL + HANGS)
    assert not standing_cpu(STALL + STARVED)
    assert not standing_cpu(STALL + ITSELF)
    assert not standing_cpu(STALL.replace("Sending NMI", "Not sending NMI"))
    assert not standing_cpu(STALL.replace("detected stalls on CPUs/tasks", "self-detected"))
    assert not standing_cpu("\n".join(STALL.splitlines()[::2]))  # RCU waits for no CPU
    assert not standing_cpu(WARNING)


@pytest.fixture
def booted(monkeypatch: pytest.MonkeyPatch) -> list[boot.BootResult]:
    """The ends of system guests to come; the last one stays."""
    ends: list[boot.BootResult] = []

    def next_end(*_: object, **__: object) -> boot.BootResult:
        return ends.pop(0) if len(ends) > 1 else ends[0]

    monkeypatch.setattr(boot, "_system", next_end)
    return ends


BROKEN = [
    result(console=INT3.format(before="0f", at="1f"), panic="Oops: int3"),
    result(signal=signal.SIGSEGV, status=None),
    result(signal=signal.SIGABRT, status=None),
    result(began=False, status=None),
]


@pytest.mark.parametrize("broken", BROKEN)
def test_guest_that_qemu_broke_boots_again(
    broken: boot.BootResult, booted: list[boot.BootResult], capsys: pytest.CaptureFixture[str]
) -> None:
    booted += [broken, result()]
    boot.system(KERNEL, Machine(), "true").check()
    assert "booting again" in capsys.readouterr().err


@pytest.mark.parametrize("broken", BROKEN)
def test_guest_that_qemu_always_breaks_is_given_up(
    broken: boot.BootResult, booted: list[boot.BootResult]
) -> None:
    booted.append(broken)
    with pytest.raises(LabError, match=r"int3|QEMU died of signal|stopped before"):
        boot.system(KERNEL, Machine(), "true").check()


def test_guest_that_ends_in_its_script_does_not_boot_again(booted: list[boot.BootResult]) -> None:
    booted += [result(status=None), result()]
    with pytest.raises(LabError, match="stopped before the command ended"):
        boot.system(KERNEL, Machine(), "true").check()


@pytest.mark.parametrize(("began", "status"), [(True, None), (False, 0)])
def test_script_that_may_not_run_twice_does_not(
    began: bool, status: int | None, booted: list[boot.BootResult]
) -> None:
    booted += [result(signal=signal.SIGSEGV, status=None, began=began), result()]
    assert boot.system(KERNEL, Machine(), "true", twice=False).status == status


def test_guest_that_somebody_killed_does_not_boot_again(booted: list[boot.BootResult]) -> None:
    booted += [result(signal=signal.SIGKILL, status=None), result()]
    with pytest.raises(LabError, match="QEMU died of signal 9"):
        boot.system(KERNEL, Machine(), "true").check()


STANDING = result(console=STALL, began=False, status=None, panic="rcu: a stall", timed_out=True)


def test_guest_whose_cpu_stands_still_boots_once_more(
    booted: list[boot.BootResult], capsys: pytest.CaptureFixture[str]
) -> None:
    booted += [STANDING, result()]
    boot.system(KERNEL, Machine(), "true").check()
    assert "stood still before the script began" in capsys.readouterr().err


def test_guest_whose_cpu_stands_still_twice_has_failed(booted: list[boot.BootResult]) -> None:
    booted += [STANDING, STANDING, result()]
    with pytest.raises(LabError, match="the kernel reported: rcu"):
        boot.system(KERNEL, Machine(), "true").check()


BEGUN = f"[    1.840194] {kernellog.BEGINS}\n"


def test_guest_that_is_late_because_the_host_stood_still_boots_again(
    booted: list[boot.BootResult], capsys: pytest.CaptureFixture[str]
) -> None:
    stall = "rcu: INFO: rcu_sched detected stalls on CPUs/tasks:"
    booted += [result(console=BEGUN + STALL + HANGS, panic=stall, pause=60.0), result()]
    boot.system(KERNEL, Machine(), "true").check()
    assert "the host stood still for 60 s" in capsys.readouterr().err


def test_report_of_something_else_while_the_host_stood_still_stays(
    booted: list[boot.BootResult],
) -> None:
    true = "[    9.840194] BUG: Bad page state in process job\n"
    stall = "rcu: INFO: rcu_sched detected stalls on CPUs/tasks:"
    late = {"panic": stall, "pause": 157.0}
    booted += [result(console=BEGUN + STALL + true, **late), result()]
    with pytest.raises(LabError, match="detected stalls"):
        boot.system(KERNEL, Machine(), "true").check()
    # nor if the CPU stood still before the script began
    booted[:] = [result(console=STALL + BEGUN + true, panic=stall), result()]
    with pytest.raises(LabError, match="detected stalls"):
        boot.system(KERNEL, Machine(), "true").check()
    # nor if it was too short for it
    booted[:] = [result(console=BEGUN + STALL, panic=stall, pause=59.0), result()]
    with pytest.raises(LabError, match="detected stalls"):
        boot.system(KERNEL, Machine(), "true").check()


@pytest.mark.parametrize("changes", [{"console": BEGUN + STALL}, {"console": STALL + HANGS}])
def test_guest_that_hangs_does_not_boot_again(
    changes: dict[str, object], booted: list[boot.BootResult]
) -> None:
    booted += [replace(STANDING, **changes), result()]  # type: ignore[arg-type]
    with pytest.raises(LabError, match="the kernel reported: rcu"):
        boot.system(KERNEL, Machine(), "true").check()


def test_warning_is_cut_out_of_the_log() -> None:
    report = kernellog.find_report(WARNING)
    assert report is not None
    assert report.splitlines()[0].startswith("WARNING: CPU: 1")
    assert report.splitlines()[-1].startswith("---[ end trace")


@pytest.mark.parametrize(
    "line",
    [
        "Kernel panic - not syncing: sysrq triggered crash",
        "BUG: kernel NULL pointer dereference, address: 0000000000000000",
        "BUG: KASAN: use-after-free in gcma_load+0x1",
        "BUG: sleeping function called from invalid context at mm/gcma.c:1",
        "WARNING: possible circular locking dependency detected",
        "INFO: task fio:99 blocked for more than 120 seconds.",
        "rcu: INFO: rcu_preempt self-detected stall on CPU",
        "Oops: general protection fault, probably for non-canonical address",
        "watchdog: BUG: soft lockup - CPU#0 stuck for 22s!",
        "BUG kmalloc-64 (Tainted: G    B             ): Right Redzone overwritten",
        "kernel BUG at mm/gcma.c:12!",
        "INFO: trying to register non-static key.",
        "turning off the locking correctness validator.",
        "UBSAN: array-index-out-of-bounds in mm/gcma.c:1:2",
        "Unable to handle kernel paging request at virtual address dead000000000100",
    ],
)
def test_complaints_are_found(line: str) -> None:
    assert kernellog.find_report(f"[    0.1] fine\n[    0.2] {line}\n") == line


@pytest.mark.parametrize(
    "line",
    [
        "Kernel command line: panic=-1 panic_on_warn=1",
        "DEBUG: nothing",
        "rcu: RCU debug extended QS entry/exit.",
        "x86/fpu: WARNINGS are off",
    ],
)
def test_ordinary_lines_are_no_complaints(line: str) -> None:
    assert kernellog.find_report(f"[    0.2] {line}\n") is None


def test_check_passes_a_good_result() -> None:
    good = result()
    assert good.check() is good


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"timed_out": True, "status": None}, "the guest did not end within 9 s"),
        ({"status": None}, "stopped before the command ended"),
        ({"status": 3}, "ended with 3"),
        ({"panic": "BUG: bad\nmore"}, "the kernel reported: BUG: bad"),
    ],
)
def test_check_says_what_went_wrong(changes: dict[str, object], message: str) -> None:
    with pytest.raises(LabError, match=message):
        result(**changes).check()


def test_report_is_followed_by_the_consoles_end() -> None:
    with pytest.raises(LabError) as caught:
        result(panic="BUG: bad\nmore").check()
    assert caught.value.detail.startswith("BUG: bad\nmore\n")
    assert "last words" in caught.value.detail


def test_time_limit_shows_the_consoles_end() -> None:
    with pytest.raises(LabError) as caught:
        result(timed_out=True, status=None).check()
    assert "last words" in caught.value.detail


def test_exit_status_is_found_in_the_log() -> None:
    assert boot.find_status("[    1.0] a\n[    2.0] gcma-exit-status: 7\n[    2.1] b\n") == 7
    assert boot.find_status("[    1.0] a\n") is None


def test_cpio_reads_what_was_written(tmp_path: Path) -> None:
    file = io.BytesIO()
    writer = cpio.Writer(file)
    writer.add("usr/bin/tool", b"#!/bin/sh\n", 0o755)
    writer.add("usr/bin/data", b"12345", 0o644)
    writer.end()
    subprocess.run(["cpio", "-idm", "--quiet"], cwd=tmp_path, input=file.getvalue(), check=True)
    tool = tmp_path / "usr/bin/tool"
    assert tool.read_bytes() == b"#!/bin/sh\n"
    assert tool.stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "usr/bin/data").read_bytes() == b"12345"


def test_programs_bring_their_libraries() -> None:
    files = boot.programs(["sh"])
    assert any("libc" in name for name in files)
    assert all(path.exists() for path in files.values())


def test_missing_program_is_named() -> None:
    with pytest.raises(LabError, match="no-such-program is not installed"):
        boot.programs(["no-such-program"])


@pytest.mark.parametrize("way", [boot.system, boot.exact], ids=["system", "exact"])
def test_missing_qemu_is_one_line(
    way: Callable[..., boot.BootResult], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GCMA_CACHE", str(tmp_path))
    monkeypatch.setattr(boot.shutil, "which", lambda _: None)
    kernel = Kernel(FLAVOURS["prod"], "6.12.7", tmp_path, {})
    with pytest.raises(LabError, match=r"^QEMU is missing: run `\./gcma setup`$"):
        way(kernel, Machine(), "true")
    assert list(tmp_path.glob("runs/*")) == []


@pytest.mark.guest
def test_a_guest_whose_log_is_enough_is_ended(kernel: Kernel) -> None:
    machine = Machine(512, cpus=1, args=kernel.target.hasty)
    script = "echo so far >/dev/kmsg; while :; do :; done"
    result = boot.exact(kernel, machine, script, enough=lambda log: "so far" in log)
    assert not result.timed_out
    assert result.status is None
    assert "so far" in result.console
