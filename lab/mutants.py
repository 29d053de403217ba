# SPDX-License-Identifier: GPL-2.0-or-later
"""Would a test notice if a hook were gone? Each is taken out of the kernel in turn.

A hook is what a patch adds to a file that was there before: a run of added lines, first as a whole,
then each of its lines alone. A mutant is one more patch behind the series that takes the lines out
again, and puts back what they replaced. It is built like any kernel, so that the next build of the
plain series restores the tree. Verdicts are kept in the cache by the content they were found for.
"""

import difflib
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from lab import build, console, paths, selftests, source, systems, targets, tests
from lab.errors import LabError
from lab.ktap import Case
from lab.source import Patch, Series

SYSTEMS = ("reserve", "gcma", "swap", "dirty", "rental")  # whose patches have hooks
COLORING = ("camc",)  # those that kernels of their own test
SECONDS = 900  # of one program: what takes longer hangs
MUTANT_SECONDS = 90  # one, as a rule
SUFFIXES = (".c", ".h", ".S")
# what is quick and sees much comes first, but for the swap's own systems
ORDER = ("gcma_policy", "gcma_invalidate", "gcma_content", "gcma_race", "gcma_clients")
OWN = {"swap": "gcma_swap", "dirty": "gcma_swap"}
HUNK = re.compile(r"^@@ -(?P<start>\d+)(?:,(?P<old>\d+))? \+\d+(?:,(?P<new>\d+))? @@")
COMPILER = re.compile(r"\berror:|undefined reference|modpost|\*\*\* ")
# nothing of this can be missed: the compiler knows, or nobody does
INERT = re.compile(
    r"\s*(?:$|#\s*(?:include|if\w*|else|endif)\b|/?\*|//|[{}]+\s*;?$|\w+:$)"
    r"|(?:static|inline|const|unsigned|struct|enum|bool|int|long|void|u64)\b[^;=]*[(,)]$"
)
# no more can what a header declares, of which the whole kernel would be built again
DECLARED = re.compile(
    r"extern\b|\w[^;={]*\);$|struct \w+;"
    r"|\s+(?:(?:const|unsigned|struct|enum)\s+)*\w+\s+[\w\s*\[\],:]+;"
)


@dataclass(frozen=True)
class Group:
    """Lines that follow each other in a patch: taken away, and put in their place."""

    patch: str  # as the series has it
    number: int  # in the patch
    file: str
    removed: tuple[str, ...]
    added: tuple[str, ...]

    @property
    def system(self) -> systems.System:
        """Whose patch it is."""
        return systems.find(self.patch.split("/", maxsplit=1)[0])

    @property
    def active(self) -> list[int]:
        """Which of the added lines do something."""
        header = self.file.endswith(".h")
        return [
            at
            for at, line in enumerate(self.added)
            if not INERT.match(line) and not (header and declares(line))
        ]


def declares(line: str) -> bool:
    """Whether the line of a header is a member, or names a type, variable or function."""
    return bool(DECLARED.match(line)) and line.split(maxsplit=1)[0] not in ("return", "goto")


@dataclass(frozen=True)
class Mutant:
    """A group, or one line of it, that is to be taken out."""

    group: Group
    line: int | None  # of the group; None: all
    at: int  # line of the patched file where it begins
    before: str  # the file's content
    after: str

    @property
    def name(self) -> str:
        return f"{self.group.file}:{self.at}"

    @property
    def text(self) -> str:
        """What is taken out, in one line."""
        chosen = self.group.active if self.line is None else [self.line]
        return " / ".join(" ".join(self.group.added[at].split()) for at in chosen)

    @property
    def patch(self) -> Patch:
        name = self.group.file
        before, after = (text.splitlines(keepends=True) for text in (self.before, self.after))
        diff = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
        return Patch(Path("mutant.patch"), "".join(diff))


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    killed: bool
    by: str  # the compiler, or the first test that failed

    def __str__(self) -> str:
        return f"found by {self.by}" if self.killed else "SURVIVED"


# Finding them


@dataclass(frozen=True)
class Line:
    """A line of a file, and where it comes from."""

    text: str
    group: Group | None = None  # that added it
    at: int = 0  # line of the group


@dataclass(frozen=True)
class Hunk:
    """A piece of a patch: its lines with their marks, and the line where it begins in the old."""

    file: str
    start: int
    lines: tuple[str, ...]

    @property
    def old(self) -> list[str]:
        return [line[1:] for line in self.lines if line[0] != "+"]


def hunks(patch: Patch) -> list[Hunk]:
    found = []
    lines = patch.text.splitlines()
    file = ""
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("--- "):
            file = line.removeprefix("--- a/")
        if not (match := HUNK.match(line)):
            continue
        old, new = ((1 if match[key] is None else int(match[key])) for key in ("old", "new"))
        body = []
        while old or new:
            mark = lines[at][:1] or " "
            old -= mark in " -"
            new -= mark in " +"
            body.append(lines[at] or " ")
            at += 1
        found.append(Hunk(file, int(match["start"]), tuple(body)))
    return found


def annotated(text: str, file: str, patches: Iterable[Patch]) -> list[Line]:
    """The lines of a file with these patches applied to its text, each with its group."""
    lines = [Line(line) for line in text.splitlines()]
    for patch in patches:
        number, moved = 0, 0
        for hunk in hunks(patch):
            if hunk.file != file:
                number += len(hunk.lines)
                continue
            at = _place(lines, hunk, hunk.start - 1 + moved, patch)
            moved = at - (hunk.start - 1)
            fresh = list(_applied(lines[at:], hunk, patch, number))
            number += len(hunk.lines)
            old = len(hunk.old)
            lines[at : at + old] = fresh
            moved += len(fresh) - old
    return lines


def _place(lines: Sequence[Line], hunk: Hunk, near: int, patch: Patch) -> int:
    """Where the hunk applies: without fuzz, but maybe at another line of this point release."""
    old = hunk.old
    for at in sorted(range(len(lines) - len(old) + 1), key=lambda at: abs(at - near)):
        if all(line.text == text for line, text in zip(lines[at:], old, strict=False)):
            return at
    raise LabError(f"{patch.name} does not apply to {hunk.file}")


def _applied(old: Sequence[Line], hunk: Hunk, patch: Patch, number: int) -> Iterator[Line]:
    """The hunk's new lines; those that it keeps stay whose they are."""
    at = 0
    for same, run in itertools.groupby(enumerate(hunk.lines), lambda one: one[1][0] == " "):
        chosen = list(run)
        if same:
            yield from old[at : at + len(chosen)]
            at += len(chosen)
            continue
        removed = tuple(line[1:] for _, line in chosen if line[0] == "-")
        added = tuple(line[1:] for _, line in chosen if line[0] == "+")
        at += len(removed)
        name = f"{patch.system}/{patch.name}"
        group = Group(name, number + chosen[0][0], hunk.file, removed, added)
        yield from (Line(text, group, index) for index, text in enumerate(added))


def find(
    base: Path, series: Series, only: str = "", names: Sequence[str] = SYSTEMS
) -> list[list[Mutant]]:
    """For each group its mutants, the whole first; `only` names a patch or a part of its name."""
    hooked = [patch for patch in series.patches if patch.system in names]
    chosen = [patch for patch in hooked if only in f"{patch.system}/{patch.name}"]
    if not chosen:
        known = ", ".join(f"{patch.system}/{patch.name}" for patch in hooked)
        raise LabError(f"no patch is called {only}: choose of {known}")
    files = dict.fromkeys(name for patch in chosen for name in patch.touches)
    wanted = {f"{patch.system}/{patch.name}" for patch in chosen}
    found: list[list[Mutant]] = []
    for file in files:
        if Path(file).suffix in SUFFIXES and (base / file).exists():
            touching = [patch for patch in series.patches if file in patch.touches]
            lines = annotated((base / file).read_text(), file, touching)
            mine = (line.group for line in lines if line.group and line.group.patch in wanted)
            found += [each for group in dict.fromkeys(mine) if (each := mutants(lines, group))]
    return found


def mutants(lines: Sequence[Line], group: Group) -> list[Mutant]:
    """The whole group, then each of its lines that does something, if they are several."""
    there = [line.at for line in lines if line.group == group]
    active = [at for at in group.active if at in there]
    if not active:
        return []
    several = active if len(active) > 1 else []
    found = (_mutant(lines, group, which) for which in (None, *several))
    return [mutant for mutant in found if mutant.before.split() != mutant.after.split()]


def _mutant(lines: Sequence[Line], group: Group, which: int | None) -> Mutant:
    """Take out the lines, and put back those that they replaced."""
    goes = [line.group == group and which in (None, line.at) for line in lines]
    first = goes.index(True)
    back: Sequence[str] = group.removed
    if which is not None:
        paired = len(group.removed) == len(group.added)
        back = group.removed[which : which + 1] if paired else ()
    kept = [line.text for line, gone in zip(lines, goes, strict=True) if not gone]
    after = [*kept[:first], *back, *kept[first:]]
    before = "".join(f"{line.text}\n" for line in lines)
    return Mutant(group, which, first + 1, before, "".join(f"{text}\n" for text in after))


# Judging them


def run(options: tests.Options, only: str = "") -> list[Case]:
    """Try every mutant; a survivor is a failed case. What is known already is not tried again."""
    series, found = _found(options, only)
    flavour = build.find(options.flavour)
    judge = Judge(options, _ordered(tests.programs(options)), _content(series, flavour))
    total = sum(map(len, found))
    cases = []
    try:
        judge.healthy()
        with console.progress("mutants", total, MUTANT_SECONDS * total) as step:
            for group in found:
                for verdict, mutant in tried(group, judge):
                    console.say(f"{mutant.name}: {mutant.text}: {verdict}")
                    why = f"{mutant.text}: no test misses it ({mutant.group.patch})"
                    cases.append(Case(mutant.name, verdict.killed, why=why))
                step.update(step.done + len(group))
    finally:
        build.tree(flavour)  # the tree as it was
    return cases


def _found(options: tests.Options, only: str) -> tuple[Series, list[list[Mutant]]]:
    linux = targets.DEFAULT.linux
    series = source.read_series(paths.KERNEL, linux)
    base = source.pristine(linux, paths.cache()).path
    return series, find(base, series, only, COLORING if options.camc else SYSTEMS)


def tried(group: Sequence[Mutant], judge: "Judge") -> Iterator[tuple[Verdict, Mutant]]:
    """The whole group. If a test misses it, each line: a line that is missed alone survives.

    If the whole is not missed, its lines are not either, and if a line does not compile without the
    others it counts with them.
    """
    whole, *lines = group
    verdict = judge(whole)
    yield verdict, whole
    if verdict.killed:
        for line in lines:
            yield judge(line), line


class Judge:
    """Builds a mutant, and runs its tests until one fails.

    The suite of its own system comes first, then the programs, its own system's before others, and
    at last all suites.
    """

    def __init__(self, options: tests.Options, programs: Sequence[str], content: str) -> None:
        self.options = options
        self.programs = programs
        self.content = content
        self.known = paths.cache() / "mutants"
        self.known.mkdir(exist_ok=True)

    def healthy(self) -> None:
        """Without a mutation nothing may fail, or every mutant seems to be found."""
        verdict = self._kept("", (), None)
        if verdict.killed:
            self._file("").unlink()
            raise LabError(f"the kernel fails as it is: {verdict.by}")

    def __call__(self, mutant: Mutant) -> Verdict:
        return self._kept(mutant.patch.text, (mutant.patch,), mutant.group.system)

    def _kept(self, text: str, more: Sequence[Patch], system: systems.System | None) -> Verdict:
        file = self._file(text)
        if file.exists():
            return Verdict(**json.loads(file.read_text()))
        verdict = self._try(more, system)
        part = file.with_suffix(".part")
        part.write_text(json.dumps(asdict(verdict)))
        part.rename(file)
        return verdict

    def _file(self, text: str) -> Path:
        key = hashlib.sha256("\0".join((self.content, self.options.flavour, text)).encode())
        return self.known / f"{key.hexdigest()[:24]}.json"

    def _try(self, more: Sequence[Patch], system: systems.System | None) -> Verdict:
        try:
            kernel = build.build(self.options.flavour, more=more)
        except LabError as error:
            if not more or not COMPILER.search(error.detail):
                raise  # a full disk is no verdict
            return Verdict(True, "the compiler")
        context = tests.Context(self.options, kernel)
        tested = _tested(system) if system else None
        if tested and (failed := _first_failure(tests.kunit(context, tested).cases)):
            return Verdict(True, f"KUnit: {failed}")
        with ThreadPoolExecutor(tests.WORKERS) as pool:
            boots = [pool.submit(boot) for boot in self._boots(kernel, context, system)]
            for done in as_completed(boots):
                if failed := _first_failure(done.result()):
                    tests.abandon(pool, boots)
                    return Verdict(True, failed)
        if failed := _first_failure(tests.kunit(context).cases):
            return Verdict(True, f"KUnit: {failed}")
        return Verdict(False, "")

    def _boots(
        self, kernel: build.Kernel, context: tests.Context, system: systems.System | None
    ) -> Iterator[Callable[[], Sequence[Case]]]:
        """A guest for each program of each round, and those that compare groups."""
        for each in sorted(selftests.ROUNDS, key=lambda each: not _of(each, system)):
            ready = replace(each, machine=tests.enlarged(each.machine, context))
            first = OWN.get(system.name) if system else None
            for program in sorted(self.programs, key=lambda program: program != first):
                if each.runs(program) and each.boots(kernel):
                    yield partial(_one_program, kernel, ready, program)
        if not self.options.special:
            yield lambda: tests.groups(context).cases


def _one_program(kernel: build.Kernel, ready: selftests.Round, program: str) -> Sequence[Case]:
    apart = replace(ready, name=f"{ready.name} {program}")  # its results beside another's
    return selftests.run_round(kernel, apart, [program], timeout=SECONDS)[0]


def _tested(system: systems.System) -> systems.System:
    """The system whose suite tests it: its own, or that of what it is built on."""
    return system if system.suites else _tested(systems.find(system.needs[0]))


def _of(each: selftests.Round, system: systems.System | None) -> bool:
    """Whether the round is for the system."""
    return system in (each.system, systems.offering(each.machine.policy))


def _first_failure(cases: Iterable[Case]) -> str:
    for case in cases:
        for leaf in case.leaves():
            if not leaf.passed:
                return leaf.name
    return ""


def _ordered(programs: Iterable[str]) -> list[str]:
    return sorted(programs, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


def _content(series: Series, flavour: build.Flavour) -> str:
    """What a verdict depends on: all but the documentation, and systems that the kernel has not."""
    there = [name for name, system in systems.SYSTEMS.items() if flavour.should_have(system)]
    digest = hashlib.sha256()
    for patch in series.patches:
        if patch.system not in there:
            continue
        digest.update("\0".join(line for hunk in hunks(patch) for line in hunk.lines).encode())
        for name in series.claims(patch):
            if not name.startswith("Documentation/"):
                digest.update(f"{name}\0".encode() + series.files[name].read_bytes() + b"\0")
    for path in build.fragments(flavour, targets.DEFAULT):
        digest.update(path.read_bytes())
    return digest.hexdigest()


# Listing them


def listing(options: tests.Options, only: str = "") -> list[str]:
    """What would be tried, a line each."""
    return [
        f"{'' if mutant.line is None else '    '}{mutant.name}: {mutant.text}"
        for group in _found(options, only)[1]
        for mutant in group
    ]
