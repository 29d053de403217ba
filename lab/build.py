# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels: their configuration, make with progress."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lab import console, flavours, paths, process, source, systems, targets
from lab.errors import LabError
from lab.flavours import Flavour
from lab.systems import System
from lab.targets import Target

CONFIGS = paths.KERNEL / "configs"
STAMP = "gcma-image.key"  # among the objects: what the image was made of
COPY_MB = 200  # of what boots
RELEASE = "include/config/kernel.release"  # the same: its name
ALONE = "alone"  # the kernel of a part of the series

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
    target: Target = targets.DEFAULT
    series: str = ""  # digest of what was laid over Linux when it was built

    @property
    def image(self) -> Path:
        return self.objects / self.target.image

    def has(self, system: System) -> bool:
        return self.config.get(system.symbol) == "y"


def tree(
    flavour: Flavour, target: Target = targets.DEFAULT, more: Sequence[source.Patch] = ()
) -> source.Tree:
    """The flavour's source tree, brought up to date; with `more` patches behind the series."""
    base = source.pristine(target.linux, paths.cache())
    if not flavour.patched:
        return base
    series = source.read_series(paths.KERNEL, target.linux)
    series = replace(series, patches=[*series.patches, *more])
    return source.patched(base, series, base.path.with_name("patched"))


def build(name: str, target: Target = targets.DEFAULT, more: Sequence[source.Patch] = ()) -> Kernel:
    """Build one flavour for a target; only what changed is compiled."""
    flavour = flavours.find(name)
    return _build(flavour, target, tree(flavour, target, more))


def alone(series: source.Series, target: Target = targets.DEFAULT) -> Kernel:
    """A kernel of these patches and nothing else of ours, with all that they offer."""
    names = systems.with_needs({patch.system for patch in series.patches})
    what = " and ".join(system.name for system in names)
    flavour = Flavour(ALONE, f"{what} alone", (*flavours.PLAIN, *systems.fragments(names)))
    base = source.pristine(target.linux, paths.cache())
    return _build(flavour, target, source.patched(base, series, base.path.with_name(ALONE)))


def _build(flavour: Flavour, target: Target, src: source.Tree) -> Kernel:
    name = flavour.name
    objects = src.path.with_name(target.objects) / name
    objects.mkdir(parents=True, exist_ok=True)
    make = Make(target, src, objects)
    text = "".join(path.read_text() for path in fragments(flavour, target))
    tools = tools_key()
    config = configure(text, make, tools)
    refused = missing_symbols(read_config(text), config)
    if refused:
        raise LabError(f"the {name} configuration lost {', '.join(refused)}")
    kernel = Kernel(flavour, src.release, objects, config, target, _digest(src.series))
    key = _key((objects / ".config").read_text(), src.key, tools)
    stamp = objects / STAMP
    if not (stamp.exists() and stamp.read_text() == key and kernel.image.exists()):
        stamp.unlink(missing_ok=True)
        _compile(flavour, make)
        stamp.write_text(key)
    return kernel


def _digest(series: source.Series) -> str:
    """Of the patches, in order, and the new files."""
    digest = hashlib.sha256()
    for patch in series.patches:
        digest.update(patch.text.encode())
    for path in series.files.values():
        digest.update(path.read_bytes())
    return digest.hexdigest()


def load(name: str, objects: Path, target: Target = targets.DEFAULT) -> Kernel:
    """A kernel that was built before, as it is: nobody asks whether its source has changed."""
    release = (objects / RELEASE).read_text().strip()
    config = read_config((objects / ".config").read_text())
    return Kernel(flavours.find(name), release, objects, config, target)


def copy(kernel: Kernel, folder: Path) -> Kernel:
    """As much of a kernel as boots, in a folder where the next build leaves it alone."""
    shutil.rmtree(folder, ignore_errors=True)
    paths.require_space(folder.parent, COPY_MB, f"a copy of {kernel.flavour.name}")
    for name in (kernel.target.image, ".config", RELEASE):
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(kernel.objects / name, place)
    return replace(kernel, objects=folder)


# Configuration


def read_config(text: str) -> dict[str, str]:
    """Symbols and values of a .config or a fragment; 'n' for what is switched off."""
    symbols = dict(re.findall(r"^(CONFIG_\w+)=(.*)$", text, flags=re.M))
    unset = re.findall(r"^# (CONFIG_\w+) is not set$", text, flags=re.M)
    return {**dict.fromkeys(unset, "n"), **symbols}


def missing_symbols(wanted: Mapping[str, str], config: Mapping[str, str]) -> list[str]:
    """What a fragment asked for and the tree's Kconfig did not grant."""
    return [
        f"{symbol}={value}" for symbol, value in wanted.items() if config.get(symbol, "n") != value
    ]


def fragments(flavour: Flavour, target: Target) -> list[Path]:
    """The files that make the flavour's configuration on this target."""
    candidates = []
    for name in flavour.fragments:
        candidates.append(CONFIGS / f"{name}.config")
        candidates.append(CONFIGS / target.fragments / f"{name}.config")
    return [path for path in candidates if path.exists()]


@dataclass(frozen=True)
class Make:
    """The kernel's make with one folder of objects."""

    target: Target
    src: source.Tree
    objects: Path

    def command(self, *targets: str) -> list[str]:
        variables = (f"ARCH={self.target.arch}", f"O={self.objects}")
        return ["make", "-C", str(self.src.path), *variables, f"-j{os.cpu_count()}", *targets]

    def run(self, *targets: str) -> str:
        """What make and the compiler have to say."""
        failure = f"make {targets[0]} failed"
        return process.run(self.command("-s", *targets), env=_environment(), failure=failure).stderr


def configure(text: str, make: Make, tools: str = "") -> dict[str, str]:
    """The symbols that the fragments ask for and nothing else, made again only if an input changed.

    What the tree does not know is left out: whoever minds compares.
    """
    dot_config = make.objects / ".config"
    stamp = make.objects / "gcma-config.key"
    key = _key(text, make.src.config_key, tools)
    if not (stamp.exists() and stamp.read_text() == key and dot_config.exists()):
        stamp.unlink(missing_ok=True)
        all_config = make.objects / "gcma-all.config"
        all_config.write_text(text)
        make.run("allnoconfig", f"KCONFIG_ALLCONFIG={all_config}")
        stamp.write_text(key)
    return read_config(dot_config.read_text())


def tools_key() -> str:
    """What configures and makes an image, beside what the lab tells it."""
    return "".join(process.run([tool, "--version"]).stdout for tool in ("gcc", "ld"))


def _key(*inputs: str) -> str:
    return hashlib.sha256("\0".join(inputs).encode()).hexdigest()


# Compilation

CHANGES_SECONDS = 20  # one changed mm file and the link
GRACE_SECONDS = 10  # for make to remove what is half written, which it would take for whole


def _environment() -> dict[str, str]:
    # a caller's MAKEFLAGS, KCFLAGS, LLVM, CROSS_COMPILE, ... would leak into the kernel's make
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ}
    return {**kept, **REPRODUCIBLE, "LC_ALL": "C"}


def _compile(flavour: Flavour, make: Make) -> None:
    objects = make.objects
    counted = objects / "gcma-objects.count"
    changes_only = counted.exists()  # it was complete once
    if changes_only:
        title, expected = f"building what changed in {flavour.name}", CHANGES_SECONDS
        done, total = 0, int(counted.read_text())
    else:
        paths.require_space(objects, flavour.megabytes, f"building {flavour.name}")
        title, expected = f"building {flavour.name}", flavour.seconds
        done, total = _count_objects(objects), flavour.objects
    command = make.command(make.target.make_target)
    log = objects / "gcma-make.log"
    with (
        console.progress(title, total, expected, at_most=changes_only) as step,
        log.open("wb") as copy,
        process.started(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_environment(),
            grace=GRACE_SECONDS,
        ) as child,
    ):
        step.update(done)
        for line in child.stdout or ():
            copy.write(line)
            if line.startswith((b"  CC ", b"  AS ")):
                done += 1
                step.update(done)
        status = child.wait()
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
