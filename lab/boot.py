# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot a kernel, run one script as root in it, power off.

Three ways, one result:

- `system`: the host's userland, read-only, through virtme-ng. Any installed program runs in the
  guest; CPUs run in parallel; time is the host's.
- `exact`: an initramfs with busybox and the files given; guest time is the number of instructions
  retired, so that a run repeats bit for bit, whatever the host does.
- `alone`: the same initramfs, with disks and the host's time.

All are emulation (TCG) unless the machine of a system guest says `accel="kvm"`.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab import console, cpio, kernellog, paths, process
from lab.build import Kernel
from lab.errors import LabError
from lab.machine import SHARE, SHARED, Machine

Listener = Callable[[str], None]
Enough = Callable[[], bool]  # need the guest not go on?

POLL = 0.05  # seconds
CONSOLE_END = 25  # lines of console in an error's detail
BEGIN_SECONDS = 300  # until a system guest's script begins, on a debug kernel and a busy host too
PORTS = 3  # of a virtio-serial device: ours has two, and the first is for consoles
BOOTS = 4  # of one system guest, while QEMU is to blame for its end
# Side by side, of two CPUs and 4 GiB at most; while one waits, another has the CPUs
GUESTS = max(
    2,
    min(
        (os.cpu_count() or 2) // 2,
        os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 32,
    ),
)
STATUS = "gcma-exit-status:"  # in the log of an exact guest


@dataclass(frozen=True)
class BootResult:
    """What one guest left behind."""

    output: str  # the script's stdout (exact: with stderr)
    errors: str  # the script's stderr
    console: str  # the kernel's log
    began: bool  # the script, as far as is known
    status: int | None  # the script's exit status; None: it did not come to its end
    seconds: float  # wall clock, boot and shutdown included
    timed_out: bool
    panic: str | None  # the kernel's report of a panic, oops or warning
    signal: int | None  # that QEMU died of
    command: list[str]  # exactly what was run
    pause: float = 0.0  # the longest part of the seconds in which the lab itself did not run

    def check(self) -> "BootResult":
        """Raise a LabError unless the script ended with 0 and the kernel had nothing to report."""
        end = "\n".join(self.console.splitlines()[-CONSOLE_END:]) or "It printed nothing."
        if self.panic:
            detail = f"{self.panic}\n\nThe log's end:\n{end}"
            raise LabError(f"the kernel reported: {self.panic.splitlines()[0]}", detail)
        if self.timed_out:
            raise LabError(f"the guest did not end within {self.seconds:.0f} s", end)
        if self.signal:
            reason = signal.strsignal(self.signal)
            raise LabError(f"QEMU died of signal {self.signal} ({reason})", self.errors + end)
        if self.status is None:
            raise LabError("the guest stopped before the command ended", self.errors + end)
        if self.status:
            raise LabError(f"the command ended with {self.status} in the guest", self.errors)
        return self


# Whose mistake it was


def paused(result: BootResult) -> bool:
    """Did the host itself stand still for what the kernel reports, and it reports nothing else?"""
    least = kernellog.held_up(result.console)
    return least is not None and result.pause >= least


def qemus_mistake(result: BootResult) -> str | None:
    """What QEMU did wrong if a guest died of it.

    Its own death is one: QEMU 7.2 reads the table of memory regions on one CPU while another CPU,
    which gives addresses to PCI devices, replaces it. SIGKILL is not: somebody wanted that. Nor is
    a CPU that stands still once the script runs: what it does may be why. With several CPUs, code
    that the kernel patches while it boots may be run half patched: an oops at an int3 that is
    gone, or a machine that is reset at once.
    """
    if kernellog.stale_breakpoint(result.console):
        return "QEMU ran code that is not there (an int3 oops)"
    if result.signal and result.signal != signal.SIGKILL:
        return f"QEMU died of signal {result.signal} ({signal.strsignal(result.signal)})"
    if kernellog.standing_cpu(result.console) and kernellog.held_up(result.console):
        return kernellog.STANDING
    if paused(result):
        return f"the host stood still for {result.pause:.0f} s"
    silent = result.status is None and not (result.panic or result.timed_out or result.signal)
    if silent and not result.began:
        return "the machine was reset while it booted, without a word in the log"
    return None


# Running and watching QEMU


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for one run of a guest, gone afterwards."""
    runs = paths.cache() / "runs"
    runs.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=runs))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _require_qemu(kernel: Kernel) -> None:
    if shutil.which(kernel.target.qemu) is None:
        raise LabError("QEMU is missing: run `./gcma setup`")


def _watch(
    command: list[str],
    folder: Path,
    output: Path,
    timeout: float,
    listener: Listener | None,
    *,
    began: Path | None = None,
    enough: Enough | None = None,
) -> tuple[float, float, bool, int]:
    """Run the command to its end or its time limit; tell the listener what `output` gains.

    The file `began` has to exist before BEGIN_SECONDS are over. It is killed once that is `enough`.
    Returns the command's seconds, the longest pause between two looks, whether it took too long,
    and the status it ended with.
    """
    start = looked = time.monotonic()
    pause = 0.0
    shown = 0
    running, timed_out = True, False
    with (
        (folder / "stdout").open("w") as out,
        (folder / "stderr").open("w") as err,
        process.started(command, stdout=out, stderr=err, env=_environment()) as guest,
    ):
        while running and not timed_out:
            try:
                guest.wait(POLL)
                running = False
            except subprocess.TimeoutExpired:
                late = began is not None and not began.exists()
                limit = min(timeout, BEGIN_SECONDS) if late else timeout
                timed_out = time.monotonic() - start > limit
            pause = max(pause, time.monotonic() - looked)
            if listener:
                shown = _tell(output, shown, listener)
            if enough and enough():
                break
            looked = time.monotonic()  # a listener may wait as long as it likes
    return time.monotonic() - start, pause, timed_out, guest.returncode


def _environment() -> dict[str, str]:
    """vng calls its own parts by name: they lie beside this Python."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def _tell(output: Path, shown: int, listener: Listener) -> int:
    if not output.exists():
        return shown
    with output.open("rb") as file:
        file.seek(shown)
        fresh = file.read()
    if fresh:
        listener(fresh.decode(errors="replace"))
    return shown + len(fresh)


def _read(path: Path) -> str:
    """A guest's text, with plain line ends."""
    if not path.exists():
        return ""
    return path.read_bytes().decode(errors="replace").replace("\r\n", "\n")


# System: virtme-ng

# vng does not tell how QEMU ended.
QEMU = """\
#!/bin/sh
{qemu} "$@"
echo $? >{status}
"""
# virtme-ng's own ports need udev to get their names; ours are found by the name in sysfs.
START = """\
port() {{
	for port in /sys/class/virtio-ports/*; do
		[ "$(cat $port/name)" = "$1" ] && echo /dev/${{port##*/}}
	done
}}
cd {cwd} 2>/dev/null || cd /
export GCMA_CACHE={cache}
: >/run/gcma/began
echo "{begins}" >/dev/kmsg
sh /run/gcma/script </dev/null >$(port gcma.output) 2>$(port gcma.errors)
echo $? >/run/gcma/status
"""


def system(
    kernel: Kernel,
    machine: Machine,
    script: str,
    *,
    share: Path | None = None,
    timeout: float = 300,
    listener: Listener | None = None,
    twice: bool = True,
    enough: Enough | None = None,
) -> BootResult:
    """Run a shell script as root on the host's userland.

    `share` is a folder of the host that the script may write, at /run/gcma/share. `listener` gets
    the script's output as it comes. A guest that dies of QEMU's own mistake is booted again; one
    whose CPUs stand still, once: what does so twice may be the kernel's. But not if the script had
    begun that may not run `twice`, for it leaves something behind. It is killed once that is
    `enough`.
    """
    mistakes: list[str] = []
    while True:
        result = _system(
            kernel,
            machine,
            script,
            share=share,
            timeout=timeout,
            listener=listener,
            enough=enough,
        )
        mistake = qemus_mistake(result)
        given_up = mistake == kernellog.STANDING and mistake in mistakes
        given_up |= result.began and not twice
        if not mistake or given_up or len(mistakes) == BOOTS - 1:
            return result
        mistakes.append(mistake)
        console.say(f"{mistake}: booting again")


def _system(
    kernel: Kernel,
    machine: Machine,
    script: str,
    *,
    share: Path | None,
    timeout: float,
    listener: Listener | None,
    enough: Enough | None,
) -> BootResult:
    _require_qemu(kernel)
    with scratch() as folder:
        exchange = folder / "exchange"
        exchange.mkdir()
        (exchange / "script").write_text(script)
        (exchange / "start").write_text(
            START.format(
                cwd=shlex.quote(str(Path.cwd())),
                cache=shlex.quote(str(paths.cache())),
                begins=kernellog.BEGINS,
            )
        )
        qemu = folder / "qemu"
        status = shlex.quote(str(folder / "qemu.status"))
        qemu.write_text(QEMU.format(qemu=kernel.target.qemu, status=status))
        qemu.chmod(0o755)
        # By default each such device, vng's too, has 64 descriptors that QEMU polls at each event.
        ports = ["-global", f"virtio-serial-device.max_ports={PORTS}"]
        ports += ["-device", "virtio-serial-pci,id=gcma"]
        for name in ("output", "errors"):
            ports += ["-chardev", f"file,id=gcma.{name},path={folder / name}"]
            ports += ["-device", f"virtserialport,bus=gcma.0,name=gcma.{name},chardev=gcma.{name}"]
        command = [
            *_vng(kernel, machine),
            f"--qemu={shlex.quote(str(qemu))}",  # vng hands it to a shell
            "--verbose",  # the kernel's log to stderr
            f"--qemu-opts={shlex.join(ports)}",
            f"--rwdir={SHARE}={exchange}",
            *_shared(share),
            *("--exec", f"sh {SHARE}/start"),
        ]
        output, began = folder / "output", exchange / "began"
        seconds, pause, timed_out, _ = _watch(
            command, folder, output, timeout, listener, began=began, enough=enough
        )
        log = _read(folder / "stderr")
        status = _read(exchange / "status").strip()
        end = int(_read(folder / "qemu.status").strip() or 0)
        return BootResult(
            output=_read(output),
            errors=_read(folder / "errors"),
            console=log,
            began=began.exists(),
            status=int(status) if status else None,
            seconds=seconds,
            pause=pause,
            timed_out=timed_out,
            panic=kernellog.find_report(log),
            signal=end - 128 if end > 128 else None,  # as a shell has it
            command=command,
        )


def shell(kernel: Kernel, machine: Machine, prepare: str = "", share: Path | None = None) -> int:
    """An interactive root shell on the host's userland; `prepare` is run before it."""
    with scratch() as folder:
        login = folder / "login"
        login.write_text(f"#!/bin/sh\n{prepare}bash\n")
        login.chmod(0o755)
        command = [
            *_vng(kernel, machine),
            *([f"--rwdir={SHARE}={folder}", f"--shell={SHARE}/login"] if prepare or share else []),
            *_shared(share),
        ]
        console.show_command(command)
        return subprocess.run(command, check=False, env=_environment()).returncode


def _shared(share: Path | None) -> list[str]:
    return [f"--rwdir={SHARED}={share.resolve()}"] if share else []


def _vng(kernel: Kernel, machine: Machine) -> list[str]:
    """The part of the command that every system guest shares."""
    kvm = machine.accel == "kvm"
    options = [*([] if kvm else kernel.target.emulated), *machine.qemu_args()]
    args = [*kernel.target.busy, *machine.kernel_args(kernel)]
    return [
        str(Path(sys.executable).with_name("vng")),
        *("--run", str(kernel.image)),
        *([] if kvm else ["--disable-kvm"]),
        *(*kernel.target.vng, "--force-9p", "--user", "root"),
        *("--cpus", machine.smp, "--memory", f"{machine.memory_mib}M"),
        *(f"--append={arg}" for arg in args),
        *([f"--qemu-opts={shlex.join(options)}"] if options else []),
    ]


# Own initramfs; exact: time by instruction count

INIT = """#!/bin/busybox sh
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/
/bin/busybox --install -s
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t debugfs debug /sys/kernel/debug
mount -t tracefs trace /sys/kernel/tracing
mount -t configfs config /sys/kernel/config
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t tmpfs tmp /tmp
stty -F /dev/{output} raw -echo
sh /script >/dev/{output} 2>&1 </dev/null
status=$?
echo "{label} $status" >/dev/kmsg
poweroff -f
"""
FOLDERS = ("bin", "sbin", "usr/bin", "usr/sbin", "proc", "sys", "dev", "tmp", "etc", "root", "run")


def exact(
    kernel: Kernel,
    machine: Machine,
    script: str,
    *,
    files: Mapping[str, Path] | None = None,
    seed: int = 1,
    timeout: float = 300,
    listener: Listener | None = None,
    enough: Callable[[str], bool] | None = None,
) -> BootResult:
    """Run a busybox shell script; the result depends on nothing but the arguments.

    `files` maps guest paths to host files that the initramfs shall hold; `programs()` finds the
    libraries of a dynamic program. Call a program by its path: busybox's own of the same name win.
    Sleeping takes no time outside the guest. `seed` feeds the guest's random numbers. The guest is
    killed once the kernel's log is `enough`.
    """
    if machine.disks:
        raise LabError("an exact guest takes no disks: real I/O would break repeatability")
    exactly = ("-accel", "tcg,thread=single", *kernel.target.clock, "-seed", str(seed))
    return _from_initramfs(
        kernel, machine, script, files, exactly, timeout=timeout, listener=listener, enough=enough
    )


def alone(
    kernel: Kernel,
    machine: Machine,
    script: str,
    *,
    timeout: float = 300,
    listener: Listener | None = None,
) -> BootResult:
    """Run a busybox shell script with disks, on the host's clock, without the host's userland.

    Nothing of such a guest is in a process of the host, so that it can be hibernated: the script
    has no status then. The same call again resumes it, if an argument of the machine says where.
    """
    really = ("-accel", "tcg,thread=multi")
    return _from_initramfs(kernel, machine, script, {}, really, timeout=timeout, listener=listener)


def _from_initramfs(
    kernel: Kernel,
    machine: Machine,
    script: str,
    files: Mapping[str, Path] | None,
    options: Sequence[str],
    *,
    timeout: float,
    listener: Listener | None,
    enough: Callable[[str], bool] | None = None,
) -> BootResult:
    _require_qemu(kernel)
    target = kernel.target
    with scratch() as folder:
        initramfs = folder / "initramfs"
        init = INIT.format(output=target.output, label=STATUS)
        _make_initramfs(initramfs, init, script, files or {})
        log, output = folder / "console", folder / "output"
        args = [*machine.kernel_args(kernel), target.early_console, f"console={target.console}"]
        args += ["panic=-1", "ignore_loglevel", "printk.devkmsg=on"]
        command = [
            *(target.qemu, *target.machine, *target.emulated, *options),
            *("-smp", machine.smp, "-m", f"{machine.memory_mib}M"),
            *machine.qemu_args(),
            *("-nodefaults", "-display", "none", "-no-reboot"),
            *("-serial", f"file:{log}", "-serial", f"file:{output}"),
            *("-kernel", str(kernel.image), "-initrd", str(initramfs)),
            *("-append", " ".join(args)),
        ]
        stop = (lambda: enough(_read(log))) if enough else None
        seconds, pause, timed_out, end = _watch(
            command, folder, output, timeout, listener, enough=stop
        )
        text, status = _read(log), find_status(_read(log))
        return BootResult(
            output=_read(output),
            errors=_read(folder / "stderr"),
            console=text,
            began=status is not None or bool(_read(output)),
            status=status,
            seconds=seconds,
            pause=pause,
            timed_out=timed_out,
            panic=kernellog.find_report(text),
            signal=-end if end < 0 else None,  # as Python has it
            command=command,
        )


def find_status(log: str) -> int | None:
    """The exit status that an exact guest's init left in the kernel's log."""
    statuses = re.findall(rf"{STATUS} (\d+)$", log, flags=re.M)
    return int(statuses[-1]) if statuses else None


def _make_initramfs(path: Path, init: str, script: str, files: Mapping[str, Path]) -> None:
    with path.open("wb") as file:
        archive = cpio.Writer(file)
        for folder in FOLDERS:
            archive.folder(folder)
        archive.add("bin/busybox", Path("/bin/busybox").read_bytes(), 0o755)
        archive.add("init", init.encode(), 0o755)
        archive.add("script", script.encode(), 0o755)
        for name, source in sorted(files.items()):
            archive.add(name.lstrip("/"), source.read_bytes(), source.stat().st_mode & 0o777)
        archive.end()


def programs(names: Sequence[str]) -> dict[str, Path]:
    """Host programs and the libraries they need, for the `files` of an exact guest."""
    files = {}
    for name in names:
        program = shutil.which(name)
        if program is None:
            raise LabError(f"{name} is not installed: run `./gcma setup`")
        path = Path(program).resolve()
        files[program] = path
        listed = process.run(["ldd", str(path)], check=False)
        for library in re.findall(r"(/\S+) \(0x", listed.stdout):
            files[library] = Path(library).resolve()
    return files
