# SPDX-License-Identifier: GPL-2.0-or-later
"""Does the kernel compile after each patch of a series, without a new warning in what it touches?

That is, the folders of what it touches; nothing is linked: export --test builds the whole. The
compiler warns as W=1 has it, and sparse checks what is compiled.
"""

import re
import shutil
from collections.abc import Iterable
from pathlib import PurePosixPath

from lab import build, console, flavours, paths, source, systems
from lab.build import Make
from lab.errors import LabError
from lab.source import Patch, Series
from lab.targets import Target

SECONDS = 60  # of a patch
BUILT = re.compile(r"\.[cS]$|/Makefile$")
WARNING = re.compile(
    r"^(?P<name>[^\s:]+):\d+:(?:\d+:)? (?P<text>(?:warning|error): .*)$", flags=re.M
)


def check(series: Series, target: Target) -> None:
    """Lay one patch after the other over the tree and build the folders that it touches.

    What the tree without any patch is warned of may stay.
    """
    base = source.pristine(target.linux, paths.cache())
    objects = base.path.with_name(target.objects) / "stepwise"
    shutil.rmtree(objects, ignore_errors=True)  # what is not compiled is not warned of
    objects.mkdir(parents=True)
    text = _configuration(series, target)

    def build_with(number: int, touched: set[str], after: str) -> str:
        tree = source.patched(base, series.upto(number), base.path.with_name("stepwise"))
        chosen = folders(name for name in touched if (tree.path / name).exists())
        make = Make(target, tree, objects)
        try:
            build.configure(text, make)
            output = make.run("W=1", "C=1", "prepare", *chosen) if chosen else ""
        except LabError as error:
            raise LabError(f"after {after} the kernel does not build", error.detail) from None
        return output.replace(f"{tree.path}/", "")  # objects lie elsewhere: paths are whole

    everything = {name for patch in series.patches for name in patch.touches}
    count = len(series.patches)
    with console.progress("building after each patch", count + 1, SECONDS * (count + 1)) as step:
        old = set(warnings(build_with(0, everything, "no patch"), everything))
        step.update(1)
        for number, patch in enumerate(series.patches, start=1):
            touched = {*patch.touches, *series.upto(number).claims(patch)}
            warned = warnings(build_with(number, touched, patch.name), touched)
            _refuse_warnings(patch, [line for each, line in warned.items() if each not in old])
            step.update(number + 1)


def _configuration(series: Series, target: Target) -> str:
    """All fragments of the systems in the series: a symbol is ignored until its patch comes."""
    names = systems.with_needs({patch.system for patch in series.patches})
    flavour = flavours.Flavour("stepwise", "", (*flavours.PLAIN, *systems.fragments(names)))
    return "".join(path.read_text() for path in build.fragments(flavour, target))


def folders(names: Iterable[str]) -> list[str]:
    """What make is asked for to compile these files: their folders, not the headers'."""
    parents = {str(PurePosixPath(name).parent) for name in names if BUILT.search(name)}
    return sorted(f"{name}/" for name in parents if not name.startswith(("Documentation", "tools")))


def warnings(output: str, names: Iterable[str]) -> dict[tuple[str, str], str]:
    """What the compiler and sparse say of these files: by file and words, wherever in the file."""
    mine = set(names)
    matches = [match for match in WARNING.finditer(output) if match["name"] in mine]
    return {(match["name"], match["text"]): match[0] for match in matches}


def _refuse_warnings(patch: Patch, lines: list[str]) -> None:
    if lines:
        raise LabError(f"after {patch.name} the compiler or sparse warns", "\n".join(lines))
