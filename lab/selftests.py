# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of tools/testing/selftests/gcma: built on the host, run in system guests."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from lab import boot, console, ktap, paths, systems
from lab.build import Kernel
from lab.errors import LabError
from lab.ktap import Case
from lab.machine import Machine

SECONDS = 2400  # time limit of one round, on a debug kernel too
SOAK_SECONDS = 8 * 3600
SKIP_STATUS = 4  # kselftest's KSFT_SKIP


@dataclass(frozen=True)
class Round:
    """One boot: a machine, and the programs that it is for (none named: all)."""

    name: str
    machine: Machine
    programs: tuple[str, ...] = ()


_USUAL = Machine(memory_mib=512, cpus=2, area_mib=64, policy="gcma")
_CAMERA = "vivid.allocators=1"  # its buffers through dma-contig, as a real camera's
_POLICY = ("gcma_policy",)
ROUNDS = (
    Round("gcma", replace(_USUAL, args=(_CAMERA,))),
    Round("an unknown policy", replace(_USUAL, args=("cma_policy=cleancache",)), _POLICY),
    Round("an unknown area", replace(_USUAL, args=("cma_policy=nowhere:gcma",)), _POLICY),
    Round("an area by name", replace(_USUAL, args=("cma_policy=reserved:none",)), _POLICY),
    Round(
        "1 GiB pages",
        replace(_USUAL, memory_mib=2560, args=("hugetlb_cma=1G", "cma_policy=gcma,hugetlb0:gcma")),
        ("gcma_clients",),
    ),
)
PLAIN = Round(
    "movable", replace(_USUAL, policy="movable", args=(_CAMERA,))
)  # for a kernel without GCMA


def build() -> list[str]:
    """Build the programs in the cache and name them."""
    folder = _folder()
    shutil.rmtree(folder, ignore_errors=True)
    if not (paths.SELFTESTS / "gcma/Makefile").exists():
        return []
    shutil.copytree(paths.SELFTESTS / "gcma", folder)
    answer = _make(folder, "all")
    if answer.returncode:
        raise LabError("building the selftests failed", answer.stderr.strip())
    return program_names(folder)


def program_names(folder: Path) -> list[str]:
    """TEST_PROGS and TEST_GEN_PROGS of a kselftest Makefile: make itself is asked."""
    question = "gcma-names: ; @echo $(TEST_PROGS) $(TEST_GEN_PROGS)"
    answer = _make(folder, "--eval", question, "gcma-names")
    return [Path(name).name for name in answer.stdout.split()]


def _make(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    options = ["-s", "--no-print-directory", f"-j{os.cpu_count()}", "-C", str(folder)]
    return subprocess.run(["make", *options, *args], capture_output=True, text=True, check=False)


def run(
    kernel: Kernel, programs: list[str], adapt: Callable[[Machine], Machine], *, soak: bool
) -> tuple[list[Case], str]:
    """All rounds: their cases, and what the kernels had to report."""
    found: list[tuple[str, Case]] = []
    details: list[str] = []
    for each in ROUNDS if kernel.has(systems.GCMA) else (PLAIN,):
        chosen = [name for name in programs if not each.programs or name in each.programs]
        cases, detail = _run_round(kernel, replace(each, machine=adapt(each.machine)), chosen, soak)
        found += [(each.name, leaf) for case in cases for leaf in case.leaves()]
        details += [detail] if detail else []
    return merged(found), "\n".join(details)


def merged(found: list[tuple[str, Case]]) -> list[Case]:
    """The cases of all rounds, named after them; skipped is what ran in none."""
    ran = {case.name for _, case in found if not case.skipped}
    kept: dict[str, Case] = {}
    for name, case in found:
        if not case.skipped:
            full = f"{case.name} ({name})"
            kept[full] = replace(case, name=full, children=[])
        elif case.name not in ran:
            kept.setdefault(case.name, replace(case, children=[]))
    return list(kept.values())


def _run_round(
    kernel: Kernel, each: Round, programs: list[str], soak: bool
) -> tuple[list[Case], str]:
    if not programs:
        return [], ""
    share = _folder()
    place = "results/" + each.name.replace(" ", "-")
    results = share / place
    results.mkdir(parents=True)
    with console.progress(f"selftests: {each.name}", len(programs), 30 * len(programs)) as step:
        result = boot.system(
            kernel,
            each.machine,
            script(programs, place, soak=soak),
            share=share,
            timeout=SOAK_SECONDS if soak else SECONDS,
            listener=_counter(step),
        )
    (results / "console.log").write_text(result.console)
    cases = [program_case(results, name) for name in programs]
    try:
        result.check()
    except LabError as error:
        sane = Case("the guest ends and its kernel is silent", passed=False, why=error.message)
        return [*cases, sane], f"{each.name}: {error.message}\n{error.detail}"
    return cases, ""


def _folder() -> Path:
    return paths.cache() / "selftests"


def _counter(step: console.Progress) -> boot.Listener:
    """A listener that counts the programs which ended."""
    done = 0

    def listen(text: str) -> None:
        nonlocal done
        done += text.count("ended\n")
        step.update(done)

    return listen


def script(programs: list[str], results: str, *, soak: bool) -> str:
    """Run each program, its KTAP, its words and its status into a folder of the share."""
    lines = [f"cd {boot.SHARE}/share", "export GCMA_SOAK=1" if soak else "unset GCMA_SOAK"]
    for name in programs:
        base = f"{results}/{name}"
        lines.append(f"./{name} >{base}.ktap 2>{base}.log; echo $? >{base}.status")
        lines.append(f"echo {name} ended")
    return "\n".join(lines) + "\n"


def program_case(results: Path, name: str) -> Case:
    """One program as a case: its KTAP below it, its exit status above."""
    status_file = results / f"{name}.status"
    if not status_file.exists():
        return Case(name, passed=False, why="it did not end")
    status = int(status_file.read_text())
    children = ktap.parse((results / f"{name}.ktap").read_text(errors="replace"))
    for case in children:
        case.name = f"{name}: {case.name}"
    if status == SKIP_STATUS and not children:
        return Case(name, passed=True, skipped=True, why="it skipped itself")
    if not children:
        return Case(name, passed=False, why=f"no KTAP, exit status {status}")
    return Case(
        name, passed=status in (0, SKIP_STATUS), why=f"exit status {status}", children=children
    )
