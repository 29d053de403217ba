# SPDX-License-Identifier: GPL-2.0-or-later
"""
The kernel's protocols as models that spin searches to the end: what the kernel does holds, and
nothing of it can be left out.

A search that came to an end depends on nothing but the model, spin, the compiler and what they are
told: what it found is kept in the cache.
"""

import hashlib
import json
import re
import subprocess
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import pytest

from lab import paths

pytestmark = pytest.mark.model

MODELS = Path(__file__).parents[1] / "kernel/models"
MUTANT = re.compile(r"^#define (\w+)\s+\d+\s*/\* mutant: ", re.MULTILINE)
VIOLATED = re.compile(r"^pan:\d+: (assertion violated|invalid end state)", re.MULTILINE)
CUT = re.compile(r"not completed|depth too small|reached -DMEMLIM")
VERIFIER = ["-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=4000"]  # MB
SEARCH = ["./pan", "-m2000000", "-w24"]
SECONDS = 600

# What is searched to the end. Two overlapping attempts and two rounds of the primary at once
# would be ten times as many states.
COMPLETE = [
    ("hazard", ("ATTEMPTS=2", "ROUNDS=1")),
    ("hazard", ("ATTEMPTS=1", "ROUNDS=2")),
    ("frames", ()),
    ("passes", ()),
    ("loads", ()),
    ("dirty", ()),
    ("dirty", ("OTHERS",)),
    ("dirty", ("FEWER", "FAILING")),
]
# Where mutants are looked for: the smaller first.
BOUNDS: dict[str, list[tuple[str, ...]]] = {
    "hazard": [("ATTEMPTS=1", "ROUNDS=1"), ("ATTEMPTS=2", "ROUNDS=1")],
    "frames": [()],
    "passes": [()],
    "loads": [()],
    "dirty": [("FEWER",), ("FEWER", "FAILING"), ("FEWER", "OTHERS"), ()],
}


@dataclass(frozen=True)
class Search:
    """What the search of a model found."""

    complete: bool
    violated: bool
    output: str


@cache
def versions() -> str:
    commands = (["spin", "-V"], ["gcc", "--version"])
    answers = [
        subprocess.run(each, capture_output=True, text=True, check=True) for each in commands
    ]
    return "".join(answer.stdout for answer in answers)


def content(text: str, defines: tuple[str, ...], optimise: str) -> str:
    """What the finding of a search depends on."""
    told = (*VERIFIER, optimise, *SEARCH, VIOLATED.pattern, CUT.pattern, *defines)
    return hashlib.sha256("\0".join((text, versions(), *told)).encode()).hexdigest()[:24]


def search(folder: Path, model: str, defines: tuple[str, ...], optimise: str) -> Search:
    """What a search of the model finds, or found when it was the same."""
    text = (MODELS / f"{model}.pml").read_text()
    known = paths.cache() / "models" / f"{model}-{content(text, defines, optimise)}.json"
    if not known.exists():
        result = _search(folder, model, defines, optimise)
        if not (result.complete or result.violated):
            return result
        known.parent.mkdir(exist_ok=True)
        part = known.with_suffix(".part")
        part.write_text(json.dumps(asdict(result)))
        part.rename(known)
    return Search(**json.loads(known.read_text()))


def _search(folder: Path, model: str, defines: tuple[str, ...], optimise: str) -> Search:
    """Search all states of a model; stop at the first that breaks a promise."""
    verifier = ["gcc", optimise, "-w", *VERIFIER, "-o", "pan", "pan.c"]
    generate = ["spin", *(f"-D{define}" for define in defines), "-a", str(MODELS / f"{model}.pml")]
    for command in (generate, verifier, SEARCH):
        result = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS
        )
        output = result.stdout + result.stderr
        assert result.returncode == 0, output
    complete = "errors: 0" in output and not CUT.search(output)
    return Search(complete, bool(VIOLATED.search(output)), output)


def mutants(model: str) -> list[str]:
    return MUTANT.findall((MODELS / f"{model}.pml").read_text())


@pytest.mark.parametrize(("model", "defines"), COMPLETE)
def test_all_states_are_sound(tmp_path: Path, model: str, defines: tuple[str, ...]) -> None:
    result = search(tmp_path, model, defines, "-O2")
    assert result.complete and not result.violated, result.output


@pytest.mark.parametrize(
    ("model", "mutant"), [(model, mutant) for model in BOUNDS for mutant in mutants(model)]
)
def test_nothing_can_be_left_out(tmp_path: Path, model: str, mutant: str) -> None:
    # Found so soon that the compiler takes most of the time.
    tries = (
        search(tmp_path, model, (f"LEAVE_OUT={mutant}", *bounds), "-O0") for bounds in BOUNDS[model]
    )
    assert any(result.violated for result in tries), f"{model} without {mutant} is not rejected"


def test_every_model_is_searched() -> None:
    models = {path.stem for path in MODELS.glob("*.pml")}
    assert models == {model for model, _ in COMPLETE} == set(BOUNDS)
    assert all(mutants(model) for model in models)


def test_what_was_found_is_kept_for_the_same_search_only(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [content("model", (), "-O2"), content("another", (), "-O2"), content("model", (), "-O0")]
    monkeypatch.setattr(f"{__name__}.SEARCH", ["./pan", "-m100"])
    keys.append(content("model", (), "-O2"))
    monkeypatch.setattr(f"{__name__}.CUT", re.compile("depth"))
    keys.append(content("model", (), "-O2"))
    monkeypatch.setattr(f"{__name__}.versions", lambda: "another compiler")
    keys.append(content("model", (), "-O2"))
    assert len(set(keys)) == len(keys)
