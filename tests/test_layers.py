# SPDX-License-Identifier: GPL-2.0-or-later
"""The map of the lab is true: imports point one way, those inside of functions too."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import lab

ROOT = Path(lab.__file__).parent
PLACES = {name: number for number, line in enumerate(lab.LAYERS) for name in line.split()}


def module_name(path: Path) -> str:
    """'lab/evals/size.py' -> 'evals.size', 'lab/evals/__init__.py' -> 'evals'."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py")) if path.parent != ROOT}
MODULES |= {path.stem: path for path in sorted(ROOT.glob("*.py")) if path.stem != "__init__"}


def entry(name: str) -> str:
    """The map's entry for a module: its own, or that of the package it lies in."""
    while name not in PLACES and "." in name:
        name = name.rpartition(".")[0]
    return name


def imported(source: str) -> Iterator[str]:
    """The modules of the lab that a source imports, without the leading `lab.`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name[4:] for alias in node.names if alias.name.startswith("lab."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lab":
            package = (node.module or "").partition(".")[2]
            for alias in node.names:
                inner = f"{package}.{alias.name}".lstrip(".")
                yield inner if inner in MODULES else package


def faults(name: str, source: str) -> list[str]:
    """What a module imports against the map."""
    mine = entry(name)
    return [
        f"lab.{name} imports lab.{other}, which stands beside or after it in lab/__init__.py"
        for other in imported(source)
        if entry(other) != mine and PLACES[entry(other)] >= PLACES[mine]
    ]


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_one_way(name: str) -> None:
    assert not faults(name, MODULES[name].read_text())


def test_every_module_is_on_the_map_and_nothing_else() -> None:
    assert [name for name in MODULES if entry(name) not in PLACES] == []
    assert [name for name in PLACES if name not in MODULES] == []
    assert len(PLACES) == sum(len(line.split()) for line in lab.LAYERS)


@pytest.mark.parametrize(
    "source",
    [
        "from lab import boot, errors",
        "from lab.boot import system",
        "import lab.boot",
        "def late():\n    from lab import boot\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lab.boot import Boot\n",
    ],
)
def test_an_import_against_the_map_is_seen(source: str) -> None:
    (fault,) = faults("machine", source)
    assert fault.startswith("lab.machine imports lab.boot, which stands beside or after it")
    assert faults("tests", source) == []
