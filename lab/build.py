# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels: flavours, their configuration, make with progress."""

import hashlib
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lab import console, paths, process, source
from lab.errors import LabError

CONFIGS = paths.KERNEL / "configs"
PLAIN = ("base", "x86_64", "memory", "storage", "media", "observe")


@dataclass(frozen=True)
class Flavour:
    """One kernel that the lab knows how to build. Expectations are for 2 idle cores."""

    name: str
    what: str
    fragments: tuple[str, ...]
    patched: bool = True
    kernel_args: tuple[str, ...] = ()
    objects: int = 0  # compiled in a full build
    seconds: int = 0  # of a full build
    megabytes: int = 1000  # of its objects


FLAVOURS = {
    flavour.name: flavour
    for flavour in (
        Flavour("prod", "as it would be used", (*PLAIN, "gcma"), objects=1700, seconds=300),
        Flavour(
            "debug",
            "KASAN, lockdep, DEBUG_VM, fault injection; a warning is a panic",
            (*PLAIN, "gcma", "debug"),
            kernel_args=("panic_on_warn=1",),
            objects=1800,
            seconds=600,
            megabytes=2000,
        ),
        Flavour("nogcma", "patched, CONFIG_GCMA=n", PLAIN, objects=1700, seconds=300),
        Flavour(
            "unpatched", "Debian's source as it is", PLAIN, patched=False, objects=1700, seconds=300
        ),
    )
}

# Symbols of this project; a fragment may ask for them before the series defines them.
OURS = frozenset(
    {
        *("CONFIG_GCMA", "CONFIG_GCMA_KUNIT_TEST", "CONFIG_CMA_BENCH"),
        *("CONFIG_COMPACTFIT", "CONFIG_COMPACTFIT_KUNIT_TEST", "CONFIG_COMPACTFIT_BENCH"),
    }
)

# The same source gives the same image, bit for bit, whoever builds it and when.
REPRODUCIBLE = {
    "KBUILD_BUILD_TIMESTAMP": "2026-01-01",
    "KBUILD_BUILD_USER": "gcma",
    "KBUILD_BUILD_HOST": "lab",
    "KBUILD_BUILD_VERSION": "1",
}


@dataclass(frozen=True)
class Kernel:
    """A kernel ready to boot."""

    flavour: Flavour
    release: str  # such as 6.12.117
    objects: Path
    config: Mapping[str, str]

    @property
    def image(self) -> Path:
        return self.objects / "arch/x86/boot/bzImage"

    @property
    def has_gcma(self) -> bool:
        return self.config.get("CONFIG_GCMA") == "y"


def tree(flavour: Flavour) -> source.Tree:
    """The flavour's source tree, brought up to date."""
    cache = paths.cache()
    base = source.pristine(paths.TARBALL, cache)
    if not flavour.patched:
        return base
    series = source.read_series(paths.KERNEL)
    return source.patched(base, series, base.path.with_name("patched"))


def build(name: str) -> Kernel:
    """Build one flavour; only what changed is compiled."""
    flavour = find(name)
    src = tree(flavour)
    objects = src.objects / name
    objects.mkdir(parents=True, exist_ok=True)
    config = _configure(flavour, src, objects)
    kernel = Kernel(flavour, src.release, objects, config)
    compiler = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True)
    key = _key((objects / ".config").read_text(), src.key, compiler.stdout)
    stamp = objects / "gcma-image.key"
    if not (stamp.exists() and stamp.read_text() == key and kernel.image.exists()):
        stamp.unlink(missing_ok=True)
        _compile(flavour, src, objects)
        stamp.write_text(key)
    return kernel


def find(name: str) -> Flavour:
    if name not in FLAVOURS:
        raise LabError(f"unknown flavour {name}: choose one of {', '.join(FLAVOURS)}")
    return FLAVOURS[name]


# Configuration


def read_config(text: str) -> dict[str, str]:
    """Symbols and values of a .config or a fragment; 'n' for what is switched off."""
    symbols = dict(re.findall(r"^(CONFIG_\w+)=(.*)$", text, flags=re.M))
    unset = re.findall(r"^# (CONFIG_\w+) is not set$", text, flags=re.M)
    return {**dict.fromkeys(unset, "n"), **symbols}


def missing_symbols(
    wanted: Mapping[str, str], config: Mapping[str, str], tolerated: Iterable[str]
) -> list[str]:
    """What a fragment asked for and the tree's Kconfig did not grant."""
    return [
        f"{symbol}={value}"
        for symbol, value in wanted.items()
        if config.get(symbol, "n") != value and symbol not in tolerated
    ]


def _configure(flavour: Flavour, src: source.Tree, objects: Path) -> dict[str, str]:
    """The flavour's fragments and nothing else, made again only if an input changed."""
    fragments = "".join((CONFIGS / f"{name}.config").read_text() for name in flavour.fragments)
    dot_config = objects / ".config"
    stamp = objects / "gcma-config.key"
    key = _key(fragments, src.key)
    if not (stamp.exists() and stamp.read_text() == key and dot_config.exists()):
        stamp.unlink(missing_ok=True)
        all_config = objects / "gcma-all.config"
        all_config.write_text(fragments)
        _make(src, objects, "allnoconfig", f"KCONFIG_ALLCONFIG={all_config}")
    config = read_config(dot_config.read_text())
    unborn = OURS - src.series.symbols
    refused = missing_symbols(read_config(fragments), config, unborn)
    if refused:
        raise LabError(f"the {flavour.name} configuration lost {', '.join(refused)}")
    stamp.write_text(key)
    return config


def _key(*inputs: str) -> str:
    return hashlib.sha256("\0".join(inputs).encode()).hexdigest()


# Compilation

CHANGES_SECONDS = 20  # one changed mm file and the link


def _command(src: source.Tree, objects: Path, *targets: str) -> list[str]:
    jobs = f"-j{os.cpu_count()}"
    return ["make", "-C", str(src.path), f"O={objects}", jobs, *targets]


def _environment() -> dict[str, str]:
    # a caller's MAKEFLAGS or O= would leak into the kernel's make
    kept = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "O")}
    return {**kept, **REPRODUCIBLE, "LC_ALL": "C"}


def _make(src: source.Tree, objects: Path, *targets: str) -> None:
    command = _command(src, objects, "-s", *targets)
    console.show_command(command)
    answer = subprocess.run(
        command, capture_output=True, text=True, check=False, env=_environment()
    )
    if answer.returncode:
        raise LabError(f"make {targets[0]} failed", answer.stderr.strip())


def _compile(flavour: Flavour, src: source.Tree, objects: Path) -> None:
    counted = objects / "gcma-objects.count"
    changes_only = counted.exists()  # it was complete once
    if changes_only:
        title, expected = f"building what changed in {flavour.name}", CHANGES_SECONDS
        done, total = 0, int(counted.read_text())
    else:
        paths.require_space(objects, flavour.megabytes, f"building {flavour.name}")
        title, expected = f"building {flavour.name}", flavour.seconds
        done, total = _count_objects(objects), flavour.objects
    command = _command(src, objects, "bzImage")
    log = objects / "gcma-make.log"
    with (
        console.progress(title, total, expected, at_most=changes_only) as step,
        log.open("wb") as copy,
        process.started(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=_environment()
        ) as make,
    ):
        step.update(done)
        for line in make.stdout or ():
            copy.write(line)
            if line.startswith((b"  CC ", b"  AS ")):
                done += 1
                step.update(done)
        status = make.wait()
    if status:
        raise LabError(
            f"building {flavour.name} failed, see {log}",
            first_error(log.read_text(errors="replace")),
        )
    counted.write_text(str(_count_objects(objects)))


def _count_objects(objects: Path) -> int:
    return sum(1 for _ in objects.rglob("*.o"))


def first_error(log: str) -> str:
    lines = log.splitlines()
    for number, line in enumerate(lines):
        if re.search(r"\berror:|undefined reference|No space left|\*\*\* ", line):
            return "\n".join(lines[number : number + 8])
    return "\n".join(lines[-8:])
