# SPDX-License-Identifier: GPL-2.0-or-later
"""Taking hooks out of a series of patches."""

import itertools
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from lab import build, flavours, kernellog, mutants, paths, source, systems, tests
from lab.build import Kernel
from lab.errors import LabError
from lab.ktap import Case
from lab.mutants import Content, Verdict
from lab.reach import Counted, Reach, Reached
from lab.skips import Skip
from lab.source import Patch, Series
from lab.trials import GUESTS, Trial

CMA = """\
#include <linux/cma.h>
int take(int n)
{
    lock();
    count(n);
    unlock();
    return n;
}
"""
FIRST = """\
Subject: [PATCH] mm/cma: hooks

---
--- a/mm/cma.c
+++ b/mm/cma.c
@@ -1,8 +1,13 @@
 #include <linux/cma.h>
+#include <linux/hook.h>
 int take(int n)
 {
     lock();
-    count(n);
+    /* not of ours */
+    if (!ours(n))
+        count(n);
+    hook(n);
     unlock();
+    end(n);
     return n;
 }
"""
# written for a file that had three more lines above
SECOND = """\
Subject: [PATCH] mm/cma: one more

---
--- a/mm/cma.c
+++ b/mm/cma.c
@@ -14,3 +14,4 @@
     end(n);
+    late(n);
     return n;
 }
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "mm").mkdir()
    (tmp_path / "mm/cma.c").write_text(CMA)
    return tmp_path


@pytest.fixture
def series() -> Series:
    return Series(
        {},
        [
            Patch(Path("0001-hooks.patch"), FIRST, "reserve"),
            Patch(Path("0001-more.patch"), SECOND, "gcma"),
        ],
    )


def test_each_group_and_each_of_its_lines(base: Path, series: Series) -> None:
    groups = mutants.find(base, series)
    assert [[mutant.text for mutant in group] for group in groups] == [
        [
            "if (!ours(n)) / hook(n);",
            *("if (!ours(n))", "hook(n);"),
        ],
        ["end(n);"],
        ["late(n);"],
    ]
    assert [group[0].name for group in groups] == ["mm/cma.c:6", "mm/cma.c:11", "mm/cma.c:12"]


def test_includes_comments_and_braces_are_no_hooks() -> None:
    lines = (
        "#include <a.h>",
        "",
        "/* a */",
        " * b",
        "}",
        "{",
        "out:",
        "#endif",
        "#ifdef A",
        "f();",
    )
    group = mutants.Group("p", 0, "a.c", (), lines)
    assert group.active == [9]


def test_a_comment_is_no_store() -> None:
    lines = (
        "\t/* of all",
        "\t * groups",
        "\t *",
        "\t */",
        "\t*next = min(end, last);",
        "\t**p = 0;",
    )
    assert mutants.Group("p", 0, "a.c", (), lines).active == [4, 5]


def test_signatures_are_no_hooks() -> None:
    lines = (
        "static inline bool mapping_tenants(const struct address_space *mapping)",
        "unsigned long reclaim(struct list_head *list,",
        "\t\t      bool all)",
        "static int hooks = 1;",
        "late_initcall(hooks_init);",
    )
    assert mutants.Group("p", 0, "a.c", (), lines).active == [2, 3, 4]


def test_what_headers_declare_is_no_hook() -> None:
    lines = (
        "struct camc_set;",
        "extern struct key camc_key;",
        "#ifdef CONFIG_CAMC",
        "bool camc_ours(const struct page *page);",
        "\tstruct camc_zone *camc; /* lists */",
        "\tconst unsigned long *colors;",
        "\tatomic_t latency[BUCKETS];",
        "\tbool failed:1;",
        "\treturn camc_on;",
        "\tcamc_free(page);",
        "\tx = y;",
        "#define CAMC_MAX 1024",
    )
    assert mutants.Group("p", 0, "a.h", (), lines).active == [8, 9, 10, 11]
    assert len(mutants.Group("p", 0, "a.c", (), lines).active) == len(lines) - 1


def test_new_indentation_is_no_mutant(base: Path) -> None:
    """Of a declaration that became another type its second line only moves."""
    (base / "mm/cma.c").write_text("int x = take(n,\n  m);\n")
    patch = """--- a/mm/cma.c
+++ b/mm/cma.c
@@ -1,2 +1,2 @@
-int x = take(n,
-  m);
+long x = take(n,
+   m);
"""
    series = Series({}, [Patch(Path("0001-long.patch"), patch, "reserve")])
    groups = mutants.find(base, series)
    assert [[mutant.text for mutant in group] for group in groups] == [["long x = take(n,"]]


def test_what_a_group_replaced_is_back_without_it(base: Path, series: Series) -> None:
    whole, _, hook = mutants.find(base, series)[0]
    assert "lock();\n    count(n);\n    unlock();\n    end(n);\n    late(n);" in whole.after
    assert "hook" not in hook.after.replace("hook.h", "")
    assert "if (!ours(n))\n        count(n);\n    unlock();" in hook.after


def test_mutant_is_a_patch_behind_the_series(base: Path, series: Series) -> None:
    """The real patch(1) agrees with what is thought to be in the file."""
    for group in mutants.find(base, series):
        for mutant in group:
            for patch in (*series.patches, mutant.patch):
                source.apply_patch(patch, base, "6.12.0")
            assert (base / "mm/cma.c").read_text() == mutant.after
            (base / "mm/cma.c").write_text(CMA)


def test_only_one_patch(base: Path, series: Series) -> None:
    groups = mutants.find(base, series, "gcma/0001")
    assert [mutant.text for group in groups for mutant in group] == ["late(n);"]
    with pytest.raises(LabError, match=r"choose of reserve/0001-hooks.patch, gcma/0001-more.patch"):
        mutants.find(base, series, "rental")


def test_patch_that_does_not_apply_is_named(base: Path, series: Series) -> None:
    (base / "mm/cma.c").write_text(CMA.replace("unlock", "release"))
    with pytest.raises(LabError, match=r"0001-hooks.patch does not apply to mm/cma.c"):
        mutants.find(base, series)


class Seeing(Trial):
    """Fails where one hook is gone; or fails anyway, or because the machine is busy."""

    def __init__(self, name: str, seen: str, suite: systems.System | None = None) -> None:
        self.name = name
        self.seen = seen
        self.suite = suite
        self.met: list[str] = []
        self.told: list[str] = []
        self.broken = False
        self.busy = 0

    def run(
        self, context: tests.Context, counters: Path | None = None, within: float | None = None
    ) -> list[Case]:
        assert counters is None
        assert within is None or context.kernel.release  # the plain kernel has all the time
        text = context.kernel.release
        self.met.append(text)
        self.told.append(self.name)
        if self.busy and text:
            self.busy -= 1
            return [Case("the guest ends", passed=False, why="the guest did not end within 9 s")]
        return [Case("hooks are called", f"-    {self.seen}" not in text and not self.broken)]


class Kernels:
    """Builds what it is told."""

    def __init__(self, folder: Path) -> None:
        self.folders = (folder / str(number) for number in itertools.count())
        self.built: list[str] = []
        self.unused = ""  # what this configuration has not

    def build(self, _: str, more: tuple[Patch, ...] = ()) -> Kernel:
        text = "".join(patch.text for patch in more)
        self.built.append(text)
        if "-    if (" in text and "-        count" not in text:
            raise LabError("building prod failed", "mm/cma.c:8: error: misleading")
        objects = next(self.folders)
        kernel = Kernel(flavours.find("prod"), text, objects, {})
        objects.mkdir()
        kernel.image.write_text("" if self.unused and self.unused in text else text)
        return kernel


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kernels:
    kernels = Kernels(tmp_path)
    monkeypatch.setenv("GCMA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "build", kernels.build)
    monkeypatch.setattr(build, "copy", lambda kernel, _: kernel)
    monkeypatch.setattr(tests, "WORKERS", 1)
    return kernels


UNKNOWN = Reach({})
CONTENT = Content("code", "tests")


def judged(
    base: Path,
    series: Series,
    every: list[Trial],
    reached: Reach = UNKNOWN,
    content: Content = CONTENT,
) -> dict[str, str]:
    groups = mutants.find(base, series)
    with mutants.Judge(tests.Options(), every, reached, content) as judge:
        return {
            mutant.text: str(verdict)
            for group, following in itertools.pairwise([*groups, []])
            for verdict, mutant in mutants.tried(group, judge, following[:1])
        }


def test_verdicts(base: Path, series: Series, kernels: Kernels) -> None:
    program = Seeing("program", "end(n)")
    gcma = Seeing("gcma", "nothing", systems.GCMA)
    reserve = Seeing("reserve", "hook(n)", systems.RESERVE)
    every: list[Trial] = [program, gcma, reserve]
    verdicts = {
        "if (!ours(n)) / hook(n);": "found by reserve: hooks are called",
        "if (!ours(n))": "found by the compiler",
        "hook(n);": "found by reserve: hooks are called",
        "end(n);": "found by program: hooks are called",
        "late(n);": "SURVIVED",
    }
    assert judged(base, series, every) == verdicts
    # what the own suite finds others do not meet; what fails has passed on the plain kernel once
    assert [len(trial.met) for trial in (reserve, program)] == [5, 3]
    assert [trial.met.count("") for trial in (reserve, program, gcma)] == [1, 1, 0]
    built = len(kernels.built)
    assert built == len(set(kernels.built)) == len(verdicts) + 1
    assert judged(base, series, every) == verdicts
    assert len(kernels.built) == built  # all known


def test_who_survives_is_a_failure_unless_it_is_listed(base: Path, series: Series) -> None:
    (mutant,) = (
        each for group in mutants.find(base, series) for each in group if each.text == "late(n);"
    )
    survived, found = Verdict(False, ""), Verdict(True, "program")
    listed = [Skip(mutants.PART, f"{mutant.group.file}: late(n);", "it is too late", ())]
    other = [Skip(mutants.PART, "mm/other.c: late(n);", "it is too late", ())]
    assert mutants.case(mutant, found, []).passed
    assert not mutants.case(mutant, survived, other).passed
    told = mutants.case(mutant, survived, listed)
    assert (told.passed, told.skipped, told.why) == (True, True, "it is too late")
    stale = mutants.case(mutant, found, listed)
    assert not stale.passed
    assert "need not list it" in stale.why


def test_a_new_test_meets_what_survived(base: Path, series: Series, kernels: Kernels) -> None:
    program = Seeing("program", "end(n)")
    old = judged(base, series, [program])
    assert old["late(n);"] == "SURVIVED"
    kernels.built.clear()
    fresh = Seeing("fresh", "late(n)")
    new = judged(base, series, [program, fresh], content=Content("code", "more tests"))
    assert new["end(n);"] == old["end(n);"]
    assert new["late(n);"] == "found by fresh: hooks are called"
    assert not [text for text in kernels.built if f"-    {program.seen}" in text]


def test_what_was_found_is_known_until_its_file_changes(
    base: Path, series: Series, kernels: Kernels
) -> None:
    program = Seeing("program", "end(n)")
    old = judged(base, series, [program])
    kernels.built.clear()
    # code elsewhere: only survivors are judged again
    assert judged(base, series, [program], content=Content("other", "tests")) == old
    assert [text for text in kernels.built if "-    late(n)" in text]
    assert not [text for text in kernels.built if f"-    {program.seen}" in text]
    (base / "mm/cma.c").write_text((base / "mm/cma.c").read_text() + "/* more */\n")
    assert judged(base, series, [program]) == old
    assert [text for text in kernels.built if f"-    {program.seen}" in text]


def test_programs_of_its_own_come_first(
    base: Path, series: Series, kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    quick, own = Seeing("quick", "nothing"), Seeing("own", "nothing")
    own.program = "of_reserve"
    for trial in (quick, own):
        trial.told = order
    mine = replace(systems.RESERVE, suites={}, programs=("of_reserve",), needs=("gcma",))
    monkeypatch.setattr(systems, "find", {"reserve": mine, "gcma": systems.GCMA}.get)
    judged(base, series, [quick, own])
    assert order[:2] == ["own", "quick"]


def test_a_verdict_is_of_its_compiler_of_what_is_a_report_and_of_the_tests(
    series: Series, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in {name for each in GUESTS for name in each.sources}:
        (tmp_path / "tests").mkdir(exist_ok=True)
        (tmp_path / "tests" / name).write_text("")
    monkeypatch.setattr(paths, "REPO", tmp_path)
    monkeypatch.setattr(build, "tools_key", lambda: "gcc 1")

    def key(*args: str) -> Content:
        flavour = flavours.Flavour("small", "", (), kernel_args=args)
        return mutants._content(series, flavour, GUESTS, tests.Options().form)

    keys = [key(), key()]
    assert len(set(keys)) == 1
    keys.append(key("panic_on_warn=1"))
    (tmp_path / "tests/test_guests.py").write_text("assert False")
    keys.append(key())
    monkeypatch.setattr(build, "tools_key", lambda: "gcc 2")
    keys.append(key())
    monkeypatch.setattr(kernellog, "REPORT", re.compile("less"))
    keys.append(key())
    assert len(set(keys)) == 5
    assert len({key.code for key in keys}) == 2  # the compiler's
    assert len({key.tests for key in keys}) == 4


def test_what_fails_anyway_is_no_judge(base: Path, series: Series, kernels: Kernels) -> None:
    broken = Seeing("broken", "nothing")
    broken.broken = True
    for _ in range(2):  # nothing of it is remembered
        with pytest.raises(LabError, match="the kernel fails as it is: broken: hooks are called"):
            judged(base, series, [broken])
    assert "" in kernels.built


def test_a_busy_machine_is_no_judge(base: Path, series: Series, kernels: Kernels) -> None:
    slow = Seeing("slow", "nothing")
    slow.busy = 1
    assert judged(base, series, [slow])["late(n);"] == "SURVIVED"
    assert not slow.busy
    assert "" not in slow.met


def test_what_is_not_compiled_meets_no_test(base: Path, series: Series, kernels: Kernels) -> None:
    program = Seeing("program", "nothing")
    kernels.unused = "-    late(n)"
    assert judged(base, series, [program])["late(n);"] == f"SURVIVED: {mutants.SAME}"
    assert not [text for text in program.met if kernels.unused in text]
    assert program.met


def test_a_full_disk_is_no_judge(
    base: Path, series: Series, kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> Kernel:
        raise LabError("building prod failed", "cc1: fatal error: x: No space left on device")

    monkeypatch.setattr(build, "build", full)
    with pytest.raises(LabError, match="building prod failed"):
        judged(base, series, [])
    assert not kernels.built


def test_a_mutant_meets_the_tests_that_get_to_its_lines(
    base: Path, series: Series, kernels: Kernels
) -> None:
    first, second = Seeing("first", "late(n)"), Seeing("second", "late(n)")
    lines = [mutant for group in mutants.find(base, series) for mutant in group]
    late = lines[-1].lines
    everywhere = sorted({line for mutant in lines for line in mutant.lines})

    def ran(*numbers: int) -> Reached:
        # what counts nothing runs nothing: not even a function
        return Reached(1.0, {"mm/cma.c": Counted(numbers, everywhere, [])})

    reached = Reach({"first": ran(*set(everywhere) - set(late)), "second": ran(*late)})
    verdict = judged(base, series, [first, second], reached)["late(n);"]
    assert verdict == "found by second: hooks are called"
    nobody = Reach({"first": ran(), "second": ran()})
    shutil.rmtree(base / "cache")
    first.met.clear()
    verdicts = judged(base, series, [first, second], nobody)
    assert verdicts["late(n);"] == "SURVIVED: no test gets there"
    assert not first.met
    assert kernels.built


def test_the_line_above_counts_as_well(base: Path, series: Series) -> None:
    whole, *single = mutants.find(base, series)[0]
    hook = next(mutant for mutant in single if mutant.text == "hook(n);")
    above, at = hook.lines
    assert "hook(n);" in hook.before.splitlines()[at - 1]
    assert above == at - 1
    assert set(hook.lines) <= set(whole.lines)
