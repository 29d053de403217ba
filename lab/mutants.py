# SPDX-License-Identifier: GPL-2.0-or-later
"""Would a test notice if a hook were gone? Each is taken out of the kernel in turn.

A hook is what a patch adds to a file that was there before: a run of added lines, first as a whole,
then each of its lines alone. A mutant is one more patch behind the series that takes the lines out
again, and puts back what they replaced. It is built like any kernel, so that the next build of the
plain series restores the tree. It meets those tests that get to its lines, and is built while the
one before meets its own. Verdicts are kept in the cache for the code they were found in. What a
test has found is not tried again when another test is written for what survived, or when that
meets the tests' long form; who makes tests weaker removes the cache's folder.
"""

import difflib
import filecmp
import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Event, Lock

from lab import (
    build,
    console,
    flavours,
    kernellog,
    ktap,
    paths,
    process,
    reach,
    skips,
    source,
    systems,
    targets,
    tests,
    trials,
)
from lab.build import Kernel
from lab.errors import LabError
from lab.ktap import Case
from lab.reach import Reach
from lab.selftests import Form
from lab.skips import Skip
from lab.source import Patch, Series
from lab.trials import Trial

PART = "mutants"  # of lab/skips.toml
COLORING = (systems.CAMC.name,)  # what kernels of its own test
# Whose patches have hooks
SYSTEMS = tuple(
    name for name, system in systems.SYSTEMS.items() if system.parts and name not in COLORING
)
MUTANT_SECONDS = 30  # one, as a rule
HUNK = re.compile(r"^@@ -(?P<start>\d+)(?:,(?P<old>\d+))? \+\d+(?:,(?P<new>\d+))? @@")
NOWHERE = "no test gets there"
SAME = "this kernel is the same without it"
COMPILER = re.compile(r"\berror:|undefined reference|modpost|\*\*\* ")
NO_COMPILER = re.compile("No space left|Killed|internal compiler error")
# A busy machine may be why, too
BUSY = re.compile("did not end|stall|blocked|died of signal|stopped before")
TEST = re.compile(r"^tools/testing/|_kunit\.c$")
BUILDER = "builder"  # the group of what it starts
# nothing of this can be missed: the compiler knows, or nobody does
INERT = re.compile(
    r"\s*(?:$|#\s*(?:include|if\w*|else|endif)\b|/\*|\*(?:\s|/|$)|//|[{}]+\s*;?$|\w+:$)"
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
        """Which of the added lines do something, and do not only stand further in than before."""
        header = self.file.endswith(".h")
        stood = {line.strip() for line in self.removed}
        return [
            at
            for at, line in enumerate(self.added)
            if not INERT.match(line)
            and not (header and declares(line))
            and line.strip() not in stood
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
    lines: tuple[int, ...]  # of the patched file: those that do something, and those above them
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
class Content:
    """Digests of all that a verdict depends on."""

    code: str
    tests: str


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    killed: bool
    by: str  # the compiler, or the first test that failed; or why none could

    def __str__(self) -> str:
        if self.killed:
            return f"found by {self.by}"
        return f"SURVIVED: {self.by}" if self.by else "SURVIVED"


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
    parsed = []
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
        parsed.append(Hunk(file, int(match["start"]), tuple(body)))
    return parsed


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
    for same, run in itertools.groupby(
        enumerate(hunk.lines), lambda numbered: numbered[1][0] == " "
    ):
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
    groups: list[list[Mutant]] = []
    for file in files:
        if Path(file).suffix in source.CODE and (base / file).exists():
            touching = [patch for patch in series.patches if file in patch.touches]
            lines = annotated((base / file).read_text(), file, touching)
            mine = (line.group for line in lines if line.group and line.group.patch in wanted)
            groups += [each for group in dict.fromkeys(mine) if (each := mutants(lines, group))]
    return groups


def mutants(lines: Sequence[Line], group: Group) -> list[Mutant]:
    """The whole group, then each of its lines that does something, if they are several."""
    there = [line.at for line in lines if line.group == group]
    active = [at for at in group.active if at in there]
    if not active:
        return []
    several = active if len(active) > 1 else []
    candidates = (_mutant(lines, group, which) for which in (None, *several))
    return [mutant for mutant in candidates if mutant.before.split() != mutant.after.split()]


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
    active = group.active if which is None else [which]
    mine = [at for at, line in enumerate(lines, 1) if line.group == group and line.at in active]
    # Behind an `if` without braces the next statement takes the place of the one that goes.
    numbers = tuple(sorted({*mine, *(at - 1 for at in mine if at > 1)}))
    return Mutant(group, which, first + 1, numbers, before, "".join(f"{text}\n" for text in after))


# Judging them


def run(options: tests.Options, only: str = "") -> list[Case]:
    """Try every mutant; a survivor is a failed case, unless lab/skips.toml says why it may be.

    What is known already is not tried again.
    """
    series, groups = _series_and_groups(options, only)
    flavour = flavours.find(options.flavour)
    every = trials.all_of(options)
    total = sum(map(len, groups))
    listed = [skip for skip in skips.read() if skip.covers(PART, flavour.name)]
    cases = []
    try:
        # the debug kernel runs other code: there each mutant meets all
        reached = Reach({}) if options.debug else _count(options, series, every)
        with (
            Judge(options, every, reached, _content(series, flavour, every, options.form)) as judge,
            console.progress("mutants", total, MUTANT_SECONDS * total) as step,
        ):
            for group, following in itertools.pairwise([*groups, []]):
                for verdict, mutant in tried(group, judge, following[:1]):
                    console.say(f"{mutant.name}: {mutant.text}: {verdict}")
                    cases.append(case(mutant, verdict, listed))
                step.update(step.done + len(group))
    finally:
        build.tree(flavour)  # the tree as it was
    return cases


def case(mutant: Mutant, verdict: Verdict, listed: Iterable[Skip]) -> Case:
    """Its result; `listed` are those that may survive, as "file: what is taken out"."""
    name = f"{mutant.group.file}: {mutant.text}"
    known = next(
        (skip.why for skip in listed if name == skip.case or fnmatchcase(name, skip.case)), ""
    )
    if known and verdict.killed:
        why = f"{mutant.text}: {verdict}, so {skips.LIST.name} need not list it"
        return Case(mutant.name, passed=False, why=why)
    if known:
        return Case(mutant.name, passed=True, skipped=True, why=known)
    why = f"{mutant.text}: {verdict} ({mutant.group.patch})"
    return Case(mutant.name, verdict.killed, why=why)


def _count(options: tests.Options, series: Series, every: Sequence[Trial]) -> Reach:
    """In all files with hooks, whichever of them are to be tried now."""
    files = {mutant.group.file for group in _series_and_groups(options, "")[1] for mutant in group}
    content = _content(series, flavours.find(reach.FLAVOUR), (), Form.LONG)
    return reach.count(options, every, files, content.code + content.tests)


def _series_and_groups(options: tests.Options, only: str) -> tuple[Series, list[list[Mutant]]]:
    linux = targets.DEFAULT.linux
    series = source.read_series(paths.KERNEL, linux)
    base = source.pristine(linux, paths.cache()).path
    return series, find(base, series, only, COLORING if options.camc else SYSTEMS)


def tried(
    group: Sequence[Mutant], judge: "Judge", following: Sequence[Mutant] = ()
) -> Iterator[tuple[Verdict, Mutant]]:
    """The whole group. If a test misses it, each line: a line that is missed alone survives.

    If the whole is not missed, its lines are not either, and if a line does not compile without the
    others it counts with them. The first of those that follow is built meanwhile.
    """
    for mutant, after in zip(group, [*group[1:], *following, None], strict=False):
        verdict = judge(mutant, after)
        yield verdict, mutant
        if mutant is group[0] and not verdict.killed:
            break


class Judge:
    """Builds a mutant, and lets it meet the tests that get to its lines, until one fails.

    The suite of its own system comes first, then programs of its own, then the others, the quick
    ones first. A test that fails has to pass on the plain kernel once.
    """

    def __init__(
        self,
        options: tests.Options,
        every: Sequence[Trial],
        reached: Reach,
        content: Content,
    ) -> None:
        self.options = options
        self.trials = every
        self.reach = reached
        self.content = content
        self.known = paths.cache() / "mutants"
        self.known.mkdir(exist_ok=True)
        self.builder = ThreadPoolExecutor(1, initializer=process.join, initargs=(BUILDER,))
        self.ahead: dict[str, Future[Kernel]] = {}
        # one is met by tests while the next is built
        self.places = itertools.cycle(self.known / f"kernel-{name}" for name in "ab")
        self.plain: Kernel | None = None
        self.asking, self.proving = Lock(), Lock()

    def __enter__(self) -> "Judge":
        return self

    def __exit__(self, *_: object) -> None:
        process.abandon(self.builder, list(self.ahead.values()), BUILDER)

    def __call__(self, mutant: Mutant, after: Mutant | None = None) -> Verdict:
        """The verdict; `after` may be built already."""
        verdict = self._verdict(mutant)
        if not verdict:
            kernel = self._building(mutant)
            if after and not self._verdict(after):
                self._building(after)
            verdict = self._try(mutant, kernel)
            file = self._file(mutant.before, mutant.patch.text)
            part = file.with_suffix(".part")
            part.write_text(json.dumps({**asdict(self.content), **asdict(verdict)}))
            part.rename(file)
        return verdict

    def _verdict(self, mutant: Mutant) -> Verdict | None:
        """What is known: that a test found it is so as long as the file that it is in is the same.

        That none did is so as long as all code and all tests are.
        """
        file = self._file(mutant.before, mutant.patch.text)
        if not file.exists():
            return None
        known = json.loads(file.read_text())
        then = Content(known.pop("code"), known.pop("tests"))
        verdict = Verdict(**known)
        return verdict if verdict.killed or then == self.content else None

    def _file(self, *what: str) -> Path:
        text = "\0".join((self.options.flavour, *what))
        return self.known / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"

    def _building(self, mutant: Mutant) -> "Future[Kernel]":
        """Its kernel, sooner or later; what was built ahead of another is forgotten."""
        key = mutant.patch.text
        if key not in self.ahead:
            self.ahead[key] = self.builder.submit(self._build, mutant)
        return self.ahead[key]

    def _build(self, mutant: Mutant) -> Kernel:
        place = next(self.places)
        return build.copy(build.build(self.options.flavour, more=(mutant.patch,)), place)

    def _try(self, mutant: Mutant, kernel: "Future[Kernel]") -> Verdict:
        try:
            context = tests.Context(self.options, kernel.result())
        except LabError as error:
            if not COMPILER.search(error.detail) or NO_COMPILER.search(error.detail):
                raise  # a full disk is no verdict
            return Verdict(True, "the compiler")
        own = _tested(mutant.group.system)
        chosen = self.reach.choose(self.trials, mutant.group.file, mutant.lines)
        first = [each for each in chosen if each.suite == own]
        programs = _programs(mutant.group.system)
        others = sorted(
            (each for each in chosen if each.suite != own),
            key=lambda each: each.program not in programs,
        )
        ended = Event()
        for trial in first:
            if failed := self._failed(trial, context, ended):
                return Verdict(True, f"{trial.name}: {failed}")
        if filecmp.cmp(context.kernel.image, self._plain().image, shallow=False):
            return Verdict(False, SAME)
        with ThreadPoolExecutor(tests.WORKERS) as pool:
            pending = {pool.submit(self._failed, each, context, ended): each for each in others}
            try:
                for done in as_completed(pending):
                    if failed := done.result():
                        return Verdict(True, f"{pending[done].name}: {failed}")
            finally:
                ended.set()
                tests.abandon(pool, list(pending))
        return Verdict(False, "" if chosen else NOWHERE)

    def _failed(self, trial: Trial, context: tests.Context, ended: Event) -> str:
        """What of the trial fails on this kernel, and not on the plain one; or nothing."""
        within = self.reach.limit(trial)
        failed = ktap.first_failure(trial.run(context, within=within))
        if failed and BUSY.search(failed.why) and not ended.is_set():
            wait(list(self.ahead.values()))
            failed = ktap.first_failure(trial.run(context, within=within))
        if failed is None or ended.is_set():  # then it was killed
            return ""
        self._prove(trial)
        return failed.name

    def _prove(self, trial: Trial) -> None:
        """Raise a LabError unless the plain kernel passes: then the mutation was not why."""
        with self.proving:
            file = self._file(self.content.code, self.content.tests, repr(trial))
            if file.exists():
                return
            if failed := ktap.first_failure(trial.run(tests.Context(self.options, self._plain()))):
                why = f"the kernel fails as it is: {trial.name}: {failed.name}"
                raise LabError(why, failed.why)
            file.write_text(json.dumps(trial.name))

    def _plain(self) -> Kernel:
        """Built between two mutants, once."""
        with self.asking:
            if not self.plain:
                self.plain = self.builder.submit(self._build_plain).result()
        return self.plain

    def _build_plain(self) -> Kernel:
        return build.copy(build.build(self.options.flavour), self.known / "kernel-plain")


def _tested(system: systems.System) -> systems.System:
    """The system whose suite tests it: its own, or that of what it is built on."""
    return system if system.suites else _tested(systems.find(system.needs[0]))


def _programs(system: systems.System) -> tuple[str, ...]:
    """Those that test nothing but it, or what it is built on."""
    if system.programs or not system.needs:
        return system.programs
    return _programs(systems.find(system.needs[0]))


def _content(
    series: Series, flavour: flavours.Flavour, every: Iterable[Trial], form: Form
) -> Content:
    """Of all but the documentation, and systems that the kernel has not."""
    there = [name for name, system in systems.SYSTEMS.items() if flavour.should_have(system)]
    code, judges = hashlib.sha256(), hashlib.sha256()
    for patch in series.patches:
        if patch.system not in there:
            continue
        built = (hunk for hunk in hunks(patch) if not hunk.file.startswith("Documentation/"))
        code.update("\0".join(line for hunk in built for line in hunk.lines).encode())
        for name in series.claims(patch):
            if not name.startswith("Documentation/"):
                digest = judges if TEST.search(name) else code
                digest.update(f"{name}\0".encode() + series.files[name].read_bytes() + b"\0")
    for path in build.fragments(flavour, targets.DEFAULT):
        code.update(path.read_bytes())
    code.update(build.tools_key().encode())
    others = (form.name, *flavour.kernel_args, kernellog.REPORT.pattern, *map(repr, every))
    judges.update("\0".join(others).encode())
    return Content(code.hexdigest(), judges.hexdigest())


# Listing them


def listing(options: tests.Options, only: str = "") -> list[str]:
    """What would be tried, a line each."""
    return [
        f"{'' if mutant.line is None else '    '}{mutant.name}: {mutant.text}"
        for group in _series_and_groups(options, only)[1]
        for mutant in group
    ]
