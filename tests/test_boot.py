# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading what a guest left behind, without booting one."""

import io
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lab import boot, cpio
from lab.build import FLAVOURS, Kernel
from lab.errors import LabError
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
        "status": 0,
        "seconds": 9.0,
        "timed_out": False,
        "panic": None,
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
    assert boot.stale_breakpoint(INT3.format(before="0f", at="1f"))
    assert boot.stale_breakpoint(INT3.format(before="e9", at="10"))
    assert not boot.stale_breakpoint(INT3.format(before="cc", at="1f"))
    assert not boot.stale_breakpoint(WARNING)


@pytest.fixture
def booted(monkeypatch: pytest.MonkeyPatch) -> list[boot.BootResult]:
    """The ends of system guests to come; the last one stays."""
    ends: list[boot.BootResult] = []

    def one(*_: object, **__: object) -> boot.BootResult:
        return ends.pop(0) if len(ends) > 1 else ends[0]

    monkeypatch.setattr(boot, "_system", one)
    return ends


BROKEN = [
    result(console=INT3.format(before="0f", at="1f"), panic="Oops: int3"),
    result(signal=signal.SIGSEGV, status=None),
    result(signal=signal.SIGABRT, status=None),
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
    with pytest.raises(LabError, match=r"int3|QEMU died of signal"):
        boot.system(KERNEL, Machine(), "true").check()


def test_guest_that_somebody_killed_does_not_boot_again(booted: list[boot.BootResult]) -> None:
    booted += [result(signal=signal.SIGKILL, status=None), result()]
    with pytest.raises(LabError, match="QEMU died of signal 9"):
        boot.system(KERNEL, Machine(), "true").check()


def test_warning_is_cut_out_of_the_log() -> None:
    report = boot.find_report(WARNING)
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
    ],
)
def test_complaints_are_found(line: str) -> None:
    assert boot.find_report(f"[    0.1] fine\n[    0.2] {line}\n") == line


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
    assert boot.find_report(f"[    0.2] {line}\n") is None


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
