# SPDX-License-Identifier: GPL-2.0-or-later
"""The systems' programs below tools/testing/selftests: built on the host, run in system guests."""

import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path

from lab import boot, kcsan, ktap, paths, process, systems
from lab.build import Kernel
from lab.errors import LabError
from lab.ktap import Case
from lab.machine import SHARED, Machine

SECONDS = 3600  # time limit of one round, on a debug kernel too
SOAK_SECONDS = 8 * 3600
LATE = "late"  # instead of a status
SKIP_STATUS = 4  # kselftest's KSFT_SKIP
LONGEST = "gcma_swap"  # takes as long as all others: in a guest of its own, beside them


class Form(Enum):
    """How much of everything the programs do: the variables that tell them."""

    SHORT = "GCMA_SHORT=1"
    LONG = ""
    SOAK = "GCMA_SOAK=1"


@dataclass(frozen=True)
class Round:
    """One boot: a machine, what it has to have, and the programs it is for."""

    name: str
    machine: Machine
    must: str  # GCMA_MUST of the programs: words of resources[] in cma_util.c
    programs: tuple[str, ...] = ("gcma_*",)  # shell patterns
    prepare: str = ""  # a line of shell
    on_slow: tuple[str, ...] | None = None  # instead, on kernels that check each access
    in_soak: tuple[str, ...] = ()  # more of them
    system: systems.System | None = None  # beside the one that the policy is of

    def runs(self, program: str) -> bool:
        return any(fnmatchcase(program, pattern) for pattern in self.programs)

    @property
    def needs(self) -> list[systems.System]:
        """What a kernel has to have."""
        offering = systems.offering(self.machine.policy)
        return [offering, self.system] if self.system else [offering]

    def boots(self, kernel: Kernel) -> bool:
        return all(kernel.has(system) for system in self.needs)

    def on(self, kernel: Kernel, form: Form) -> "Round":
        """The round as it is on a kernel, in a form of the tests."""
        few = self.on_slow if slow(kernel) else None
        more = self.in_soak if form is Form.SOAK else ()
        return replace(self, programs=(*(self.programs if few is None else few), *more))


def slow(kernel: Kernel) -> bool:
    """Whether the kernel checks each access."""
    return any(kernel.config.get(f"CONFIG_{name}") == "y" for name in ("KASAN", "KCSAN"))


_USUAL = Machine(memory_mib=512, cpus=2, area_mib=64, policy="gcma")
_RENTAL = replace(_USUAL, policy="rental")
_LOW = replace(_RENTAL, args=("cma=64M@96M",))  # in the lower half, where compaction comes by
_CAMERA = "vivid.allocators=1"  # its buffers through dma-contig, as a real camera's
_ANY = "aio area bench btrfs cachestat debugfs encryption erofs ext4 f2fs generations heap"
_ANY += " io_uring kpageflags ksm loop nullblk poison shrinkers squashfs swap thp tracing"
_ANY += " userfaultfd xfs zram zswap"
_GCMA = f"{_ANY} admission dirty gcma policy"
# of the debug kernel
_BY_OPTION = {"FAILSLAB": "faults", "GUP_TEST": "gup_test", "HIBERNATION": "hibernation"}
_HUGE = ("hugetlb_cma=1G", "cma_policy=none,reserved:gcma,hugetlb0:gcma")
# some memory can go offline, more than the kernel takes of its end at boot (KASAN an eighth)
_COLORS = replace(_USUAL, policy=systems.STOCK, memory_mib=1024, args=("movablecore=50%",))
_GENERATIONS = "echo {} >/sys/kernel/mm/lru_gen/enabled"  # the LRU of them, or the classic one
ROUNDS = (
    Round("gcma", replace(_USUAL, args=(_CAMERA,)), f"{_GCMA} camera"),
    Round(
        "gcma, generations",
        replace(_USUAL, args=(_CAMERA,)),
        f"{_GCMA} camera",
        ("gcma_content", "gcma_invalidate"),
        _GENERATIONS.format("y"),
        (),  # such kernels begin with generations
        ("gcma_swap",),
    ),
    Round(
        "wrong words",  # so that the area is movable
        replace(_USUAL, args=("cma_policy=cleancache,nowhere:gcma", _CAMERA)),
        f"{_ANY} policy camera",
        ("gcma_policy", "gcma_clients"),
    ),
    Round(
        "1 GiB pages, areas by name",
        replace(_USUAL, memory_mib=2560, args=_HUGE),
        f"{_GCMA} hugetlb",
        ("gcma_policy", "gcma_clients"),
    ),
    Round(
        "rental",
        _LOW,
        f"{_ANY} policy rental sample",
        ("rental_*", "gcma_fsx"),
        _GENERATIONS.format("n"),
        ("rental_*",),
        ("gcma_race",),
    ),
    Round(
        "rental, generations",
        _RENTAL,
        f"{_ANY} policy rental sample",
        ("rental_failure", "rental_returns", "rental_writes"),
        _GENERATIONS.format("y"),
        ("rental_failure", "rental_race", "rental_writes"),
        ("rental_race",),
    ),
    Round("coloring", _COLORS, _ANY, ("camc_*",), system=systems.CAMC),
    Round(
        "coloring, two nodes",
        replace(_COLORS, memory_mib=2048, nodes=2),
        _ANY,
        ("camc_*",),
        system=systems.CAMC,
    ),
    Round(
        "coloring, lent frames",
        _RENTAL,
        f"{_ANY} coloring policy rental sample",
        ("lent_colors",),
        system=systems.CAMC,
    ),
)
# for a kernel without any of our policies
PLAIN = Round("movable", replace(_USUAL, policy="movable", args=(_CAMERA,)), f"{_ANY} camera")


def build() -> list[str]:
    """Build the programs of all systems in the cache, side by side, and name them."""
    share = shared_folder()
    shutil.rmtree(share, ignore_errors=True)
    shutil.copytree(paths.SELFTESTS, share)
    names: list[str] = []
    for system in systems.SYSTEMS.values():
        if system.selftests:
            names += _build(share / system.selftests, share)
    return names


def _build(folder: Path, output: Path) -> list[str]:
    _make(folder, f"OUTPUT={output}", "all")
    names = program_names(folder)
    if not names:
        raise LabError(f"the Makefile of {folder.name} names no programs")
    return names


def program_names(folder: Path) -> list[str]:
    """TEST_PROGS and TEST_GEN_PROGS of a kselftest Makefile: make itself is asked."""
    question = "gcma-names: ; @echo $(TEST_PROGS) $(TEST_GEN_PROGS)"
    return [Path(name).name for name in _make(folder, "--eval", question, "gcma-names").split()]


def _make(folder: Path, *args: str) -> str:
    options = ["-s", "--no-print-directory", f"-j{os.cpu_count()}", "-C", str(folder)]
    options.append(f'KHDR_INCLUDES=-I"{paths.KERNEL}/files/include/uapi"')
    failure = f"building the selftests of {folder.name} failed"
    return process.run(["make", *options, *args], failure=failure).stdout


def run(
    kernel: Kernel,
    programs: Sequence[str],
    adapt: Callable[[Machine], Machine],
    form: Form,
    *,
    advance: Callable[[float], None],
    within: float | None = None,
) -> tuple[list[Case], str]:
    """All rounds: their cases, and what the kernels had to report.

    `advance` is told what share of the programs has ended. What has not begun `within` so many
    seconds is skipped.
    """
    end = None if within is None else time.monotonic() + within
    rounds = [each for each in ROUNDS if each.boots(kernel)]
    lacking = [system for system in systems.SYSTEMS.values() if not kernel.has(system)]
    nothing = [pattern for system in lacking for pattern in system.programs]
    programs = [n for n in programs if not any(fnmatchcase(n, pattern) for pattern in nothing)]
    parts = [part for each in rounds or [PLAIN] for part in _parts(each.on(kernel, form), programs)]
    total = sum(len(part.programs) for part in parts)
    ended = 0

    def listen(text: str) -> None:
        nonlocal ended
        ended += text.count("ended\n")
        advance(ended / total)

    def one_boot(each: Round) -> tuple[list[Case], str]:
        ready = replace(each, machine=adapt(each.machine))
        left = None if end is None else end - time.monotonic()
        return run_round(kernel, ready, each.programs, form, listener=listen, within=left)

    by_round: list[tuple[str, Case]] = []
    details: list[str] = []
    with ThreadPoolExecutor(boot.GUESTS) as pool:
        for each, (cases, detail) in zip(parts, pool.map(one_boot, parts), strict=True):
            by_round += [(each.name, leaf) for case in cases for leaf in case.leaves()]
            details += [detail] if detail else []
    return merged(by_round), "\n".join(details)


def _parts(each: Round, programs: Sequence[str]) -> list[Round]:
    """The round with what it is to run, once or twice: the program that takes longest is apart."""
    chosen = [name for name in programs if each.runs(name)]
    apart = [LONGEST] if LONGEST in chosen else []
    rest = tuple(name for name in chosen if name not in apart)
    parts = [replace(each, programs=rest)] if rest else []
    if apart:
        parts.insert(0, replace(each, name=f"{each.name}, {LONGEST}", programs=(LONGEST,)))
    return parts


def merged(by_round: list[tuple[str, Case]]) -> list[Case]:
    """The cases of all rounds, named after them; skipped is what ran in none."""
    ran = {case.name for _, case in by_round if not case.skipped}
    kept: dict[str, Case] = {}
    for name, case in by_round:
        if not case.skipped:
            full = f"{case.name} ({name})"
            kept[full] = replace(case, name=full, children=[])
        elif case.name not in ran:
            kept.setdefault(case.name, replace(case, children=[]))
    return list(kept.values())


def run_round(
    kernel: Kernel,
    each: Round,
    programs: Sequence[str],
    form: Form = Form.LONG,
    *,
    timeout: float = SECONDS,
    listener: boot.Listener | None = None,
    last: str = "",
    hasty: bool = False,
    within: float | None = None,
) -> tuple[list[Case], str]:
    """One round: the cases of these programs, and what the kernel had to report.

    `last` is shell that runs behind them. If `hasty`, the guest is killed at the first failure. A
    program that has not begun `within` so many seconds is skipped.
    """
    share = shared_folder()
    place = "results/" + re.sub(r"\W+", "-", each.name)
    results = share / place
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    more = [word for name, word in _BY_OPTION.items() if kernel.config.get(f"CONFIG_{name}") == "y"]
    lacking = {
        word
        for system in systems.SYSTEMS.values()
        if not kernel.has(system)
        for word in system.resources
    }
    must = " ".join(word for word in [*each.must.split(), *more] if word not in lacking)
    result = boot.system(
        kernel,
        each.machine,
        script(programs, place, must, each.prepare, form, slow=slow(kernel), within=within) + last,
        share=share,
        timeout=SOAK_SECONDS if form is Form.SOAK else timeout,
        listener=listener,
        enough=(lambda: any(map(ktap.any_failed, _told(results)))) if hasty else None,
    )
    (results / "console.log").write_text(result.console)
    result, races = kcsan.judge(kernel, result)
    cases = [*(program_case(results, name) for name in programs), *races]
    try:
        result.check()
    except LabError as error:
        sane = Case("the guest ends and its kernel is silent", passed=False, why=error.message)
        return [*cases, sane], f"{each.name}: {error.message}\n{error.detail}"
    return cases, ""


def _told(results: Path) -> Iterator[str]:
    """The KTAP of each program, as far as it is there."""
    for path in results.glob("*.ktap"):
        yield path.read_text(errors="replace")


def shared_folder() -> Path:
    """Of the programs and their results: what the guests share."""
    return paths.cache() / "selftests"


def script(
    programs: Iterable[str],
    results: str,
    must: str,
    prepare: str = "",
    form: Form = Form.LONG,
    *,
    slow: bool = False,
    within: float | None = None,
) -> str:
    """Run each program, its KTAP, its words and its status into a folder of the share."""
    lines = [f"cd {SHARED}", "unset GCMA_SHORT GCMA_SOAK"]
    lines.append(f"export GCMA_MUST={shlex.quote(must)} GCMA_SLOW={int(slow)} {form.value}".strip())
    lines += [prepare] if prepare else []
    for name in programs:
        base = f"{results}/{name}"
        begin = f"./{name} >{base}.ktap 2>{base}.log; echo $? >{base}.status"
        if within is not None:
            in_time = f"[ $(cut -d. -f1 /proc/uptime) -lt {max(int(within), 0)} ]"
            begin = f"if {in_time}; then {begin}; else echo {LATE} >{base}.status; fi"
        lines.append(begin)
        lines.append(f"echo {name} ended")
    return "\n".join(lines) + "\n"


def program_case(results: Path, name: str) -> Case:
    """One program as a case: its KTAP below it, its exit status above."""
    status_file = results / f"{name}.status"
    # a guest that dies may leave an empty file
    ended = status_file.read_text().strip() if status_file.exists() else ""
    if ended == LATE:
        return Case(f"{name} begins in time", passed=True, skipped=True, why="there was no more")
    ktap_file = results / f"{name}.ktap"
    children = ktap.parse(ktap_file.read_text(errors="replace")) if ktap_file.exists() else []
    if not ended:  # what passed before is no news, and the plan says no more than that
        children = [case for case in children if not case.passed and case.name != ktap.PLAN_NAME]
    for case in children:
        case.name = f"{name}: {case.name}"
    if not ended:
        return Case(name, passed=False, why="it did not end", children=children)
    status = int(ended)
    if status == SKIP_STATUS and not children:
        return Case(name, passed=True, skipped=True, why="it skipped itself")
    if not children:
        return Case(name, passed=False, why=f"no KTAP, exit status {status}")
    return Case(
        name, passed=status in (0, SKIP_STATUS), why=f"exit status {status}", children=children
    )
