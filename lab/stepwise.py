# SPDX-License-Identifier: GPL-2.0-or-later
"""Does the kernel build after each patch of a series, without a warning in what it touches?"""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from lab import build, console, paths, source, systems
from lab.build import Make
from lab.errors import LabError
from lab.source import Patch, Series
from lab.targets import Target

SECONDS = 60  # of a patch
BUILT = re.compile(r"\.[cS]$|/Makefile$")
WARNING = re.compile(r"^(?:\.\./)*(?P<name>[^\s:]+):\d+:(?:\d+:)? warning: .*$", flags=re.M)


def check(series: Series, target: Target) -> None:
    """Lay one patch after the other over the tree and build the folders that it touches (W=1)."""
    base = source.pristine(target.linux, paths.cache())
    objects = base.path.with_name(target.objects) / "stepwise"
    objects.mkdir(parents=True, exist_ok=True)
    text = _configuration(series, target)
    count = len(series.patches)
    with console.progress("building after each patch", count, SECONDS * count) as step:
        for number, patch in enumerate(series.patches, start=1):
            part = series.upto(number)
            tree = source.patched(base, part, base.path.with_name("stepwise"))
            make = Make(target, tree, objects)
            touched = {*patch.touches, *part.claims(patch)}
            chosen = folders(touched)
            try:
                build.configure(text, make)
                output = make.run("W=1", "prepare", *chosen) if chosen else ""
            except LabError as error:
                message = f"after {patch.name} the kernel does not build"
                raise LabError(message, error.detail) from None
            _refuse_warnings(patch, warnings(output, touched))
            step.update(number)


def _configuration(series: Series, target: Target) -> str:
    """All fragments of the systems in the series: a symbol is ignored until its patch comes."""
    names = systems.with_needs({patch.system for patch in series.patches})
    flavour = build.Flavour("stepwise", "", (*build.PLAIN, *systems.fragments(names)))
    return "".join(path.read_text() for path in build.fragments(flavour, target))


def folders(names: Iterable[str]) -> list[str]:
    """What make is asked for to compile these files: their folders, not the headers'."""
    found = {str(PurePosixPath(name).parent) for name in names if BUILT.search(name)}
    return sorted(f"{name}/" for name in found if not name.startswith(("Documentation", "tools")))


def warnings(output: str, names: Iterable[str]) -> list[str]:
    """The compiler's warnings of these files."""
    mine = set(names)
    return [found[0] for found in WARNING.finditer(output) if found["name"] in mine]


def _refuse_warnings(patch: Patch, found: list[str]) -> None:
    if found:
        raise LabError(f"after {patch.name} the compiler warns", "\n".join(found))
