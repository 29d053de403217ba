# SPDX-License-Identifier: GPL-2.0-or-later
"""The host: Debian packages, and what is missing of them and of everything else."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from lab import console, paths, process
from lab.errors import LabError
from lab.targets import TARGETS

PACKAGES = {
    "kernel source": list(dict.fromkeys(target.linux.package for target in TARGETS.values())),
    "kernel build": [
        *("build-essential", "bc", "bison", "flex", "kmod", "xz-utils", "sparse"),
        *("libelf-dev", "libssl-dev", "patch", "git", "cpio"),
    ],
    "guests": [
        *dict.fromkeys(target.qemu_package for target in TARGETS.values()),
        *("busybox-static", "iproute2"),
    ],
    "filesystems": [
        *("e2fsprogs", "xfsprogs", "f2fs-tools", "erofs-utils"),
        *("squashfs-tools", "btrfs-progs"),
    ],
    "background jobs": ["fio", "sysbench", "stress-ng", "netpbm"],
    "camera": ["v4l-utils"],
    "models": ["spin"],
    "compactfit": [
        *("cmake", "libjemalloc2", "libmimalloc2.0", "pkgconf", "valgrind"),
        # 1.63, the oldest that the Rust crate supports: even if there is a newer one
        *("cargo", "rustc", "rustfmt", "rust-clippy", "rust-src"),
    ],
    "compactfit elsewhere": [
        *("gcc-i686-linux-gnu", "libc6-dev-i386-cross", "gcc-aarch64-linux-gnu"),
        *("libc6-dev-arm64-cross", "qemu-user", "gcc-arm-none-eabi"),
        *("libnewlib-arm-none-eabi", "qemu-system-arm"),
    ],
    "compactfit fuzzing and reading": ["clang", "libclang-rt-14-dev", "clang-tidy", "cppcheck"],
    "programs whose allocations are recorded": ["sqlite3", "redis-server", "redis-tools"],
}

DOWNLOAD_MB = 3500  # packages fetched and unpacked on a bare Debian 12, measured 3.2 GB
SECONDS_A_PACKAGE = 8
CACHE_MB = 9000  # kernel tree 1.8 GB, objects of two kernels, disks of the guests


@dataclass(frozen=True)
class Check:
    """One line of `gcma doctor`."""

    name: str
    ok: bool
    found: str
    mend: str


def packages() -> list[str]:
    return [name for group in PACKAGES.values() for name in group]


def missing_packages() -> list[str]:
    """The packages that dpkg does not know as installed."""
    query = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *packages()]
    if shutil.which(query[0]) is None:
        raise LabError(
            "dpkg-query is missing: the lab is set up on Debian, or in a container of it"
        )
    # it fails if it knows nothing of one of them
    lines = [line.split() for line in process.run(query, check=False).stdout.splitlines()]
    installed = {words[0] for words in lines if words[1:] == ["installed"]}
    return [name for name in packages() if name not in installed]


def root_prefix(what: str) -> list[str]:
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is None:
        raise LabError(f"no root and no sudo: as root, run: {what}")
    return ["sudo"]


def _apt_update(prefix: list[str]) -> None:
    command = [*prefix, "apt-get", "-q", "update"]
    console.show_command(command)
    # not by process.run(): in a session of its own sudo has no terminal to ask for the password
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    # apt-get update ends with 0 even if every server was out of reach
    if answer.returncode or "Failed to fetch" in answer.stderr:
        raise LabError("no network: apt-get update failed", answer.stderr.strip())


def apt_percent(line: str) -> float | None:
    """The percent in one line of apt's status: half for the download, half for the unpacking."""
    kind, _, percent, *_ = [*line.split(":"), "", ""]
    if kind not in ("dlstatus", "pmstatus"):
        return None
    return float(percent) / 2 + (50 if kind == "pmstatus" else 0)


def _apt_install(prefix: list[str], names: list[str]) -> None:
    """Not killed when we are: a dpkg cut off half-way would need mending by hand."""
    # stdout for apt's status, stderr for its words: sudo passes on no other descriptors
    command = [
        *(*prefix, "sh", "-c", 'exec "$@" 3>&1 1>&2', "sh"),
        *("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "Dpkg::Use-Pty=0"),
        *("-o", "APT::Status-Fd=3", "install", "--no-install-recommends", *names),
    ]
    console.show_command(command)
    title = f"installing {len(names)} packages"
    with (paths.cache() / "apt.log").open("w+") as log:
        with (
            console.progress(title, 100, SECONDS_A_PACKAGE * len(names)) as step,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as apt,
        ):
            for line in apt.stdout or ():
                percent = apt_percent(line)
                if percent is not None:
                    step.update(percent)
            status = apt.wait()
        log.seek(0)
        messages = log.read()
    if status:
        errors = [line for line in messages.splitlines() if line.startswith("E: ")]
        raise LabError(f"apt-get failed: {(errors or ['see apt.log'])[0]}", "\n".join(errors[1:]))


def install_packages() -> None:
    """Install what is missing; nothing if nothing is."""
    names = missing_packages()
    if not names:
        return
    paths.require_space(Path("/"), DOWNLOAD_MB, "installing the Debian packages")
    prefix = root_prefix("apt-get install " + " ".join(names))
    _apt_update(prefix)
    _apt_install(prefix, names)
    still = missing_packages()
    if still:
        raise LabError("apt-get did not install " + " ".join(still))


def doctor() -> list[Check]:
    """Everything the lab needs, each with the command that mends it."""
    checks = []
    names = missing_packages()
    checks.append(
        Check(
            "Debian packages",
            not names,
            f"{len(packages()) - len(names)} of {len(packages())}",
            "sudo apt-get install " + " ".join(names),
        )
    )
    for target in TARGETS.values():
        qemu = shutil.which(target.qemu)
        mend = f"sudo apt-get install {target.qemu_package}"
        checks.append(Check("QEMU", qemu is not None, qemu or "none", mend))
        tarball = target.linux.tarball
        mend = f"sudo apt-get install {target.linux.package}"
        checks.append(Check("kernel source", tarball.exists(), str(tarball), mend))
    vng = Path(sys.executable).with_name("vng")
    checks.append(Check("virtme-ng", vng.exists(), str(vng), "./gcma setup"))
    free = shutil.disk_usage(paths.cache()).free // paths.MB
    checks.append(
        Check(
            "disk space",
            free >= CACHE_MB,
            f"{free} MB free in {paths.cache()}",
            f"free {CACHE_MB} MB there, or set GCMA_CACHE to a folder on a larger disk",
        )
    )
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // paths.MB
    checks.append(
        Check("memory", memory >= 3000, f"{memory} MB", "use a machine with 4 GB of memory")
    )
    return checks
