# SPDX-License-Identifier: GPL-2.0-or-later
"""Taking hooks out of a series of patches."""

from pathlib import Path

import pytest

from lab import build, mutants, source, systems, tests
from lab.errors import LabError
from lab.ktap import Case
from lab.source import Patch, Series

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
    found = mutants.find(base, series)
    assert [[mutant.text for mutant in group] for group in found] == [
        [
            "if (!ours(n)) / count(n); / hook(n);",
            *("if (!ours(n))", "count(n);", "hook(n);"),
        ],
        ["end(n);"],
        ["late(n);"],
    ]
    assert [group[0].name for group in found] == ["mm/cma.c:6", "mm/cma.c:11", "mm/cma.c:12"]


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
    found = mutants.find(base, series)
    assert [[mutant.text for mutant in group] for group in found] == [
        ["long x = take(n, / m);", "long x = take(n,"]
    ]


def test_what_a_group_replaced_is_back_without_it(base: Path, series: Series) -> None:
    whole, _, _, hook = mutants.find(base, series)[0]
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
    found = mutants.find(base, series, "gcma/0001")
    assert [mutant.text for group in found for mutant in group] == ["late(n);"]
    with pytest.raises(LabError, match=r"choose of reserve/0001-hooks.patch, gcma/0001-more.patch"):
        mutants.find(base, series, "rental")


def test_patch_that_does_not_apply_is_named(base: Path, series: Series) -> None:
    (base / "mm/cma.c").write_text(CMA.replace("unlock", "release"))
    with pytest.raises(LabError, match=r"0001-hooks.patch does not apply to mm/cma.c"):
        mutants.find(base, series)


class Trial:
    """A kernel whose tests see no more than some hooks."""

    def __init__(self, seen: str) -> None:
        self.seen = seen
        self.built: list[str] = []
        self.suites: list[str] = []

    def build(self, _: str, more: tuple[Patch, ...]) -> str:
        text = "".join(patch.text for patch in more)
        self.built.append(text)
        if "-    if (" in text and "-        count" not in text:
            raise LabError("building prod failed", "mm/cma.c:8: error: misleading")
        return text

    def kunit(
        self, context: tests.Context, system: systems.System | None = None
    ) -> tests.PartResult:
        self.suites.append(system.name if system else "all")
        missing = f"-    {self.seen}" in str(context.built)
        return tests.PartResult("kunit", [Case("hooks are called", passed=not missing)])


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Trial:
    trial = Trial("hook(n)")
    monkeypatch.setenv("GCMA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "build", trial.build)
    monkeypatch.setattr(tests, "kunit", trial.kunit)
    nothing = tests.PartResult("guests", [Case("x", passed=True)])
    monkeypatch.setattr(tests, "groups", lambda _: nothing)
    monkeypatch.setattr(tests.Context, "kernel", property(lambda self: self.built))
    return trial


def judged(base: Path, series: Series) -> dict[str, str]:
    judge = mutants.Judge(tests.Options(), [], "content")
    judge.healthy()
    found = mutants.find(base, series)
    return {
        mutant.text: str(verdict)
        for group in found
        for verdict, mutant in mutants.tried(group, judge)
    }


def test_verdicts(base: Path, series: Series, trial: Trial) -> None:
    assert judged(base, series) == {
        "if (!ours(n)) / count(n); / hook(n);": "found by KUnit: hooks are called",
        "if (!ours(n))": "found by the compiler",
        "count(n);": "SURVIVED",
        "hook(n);": "found by KUnit: hooks are called",
        "end(n);": "SURVIVED",
        "late(n);": "SURVIVED",
    }
    # the plain kernel; then the suite of the patch's own system, and all for who survives it
    found, survived = ["reserve"], ["reserve", "all"]
    assert trial.suites == ["all", *found, *survived, *found, *survived, "gcma", "all"]
    tried = len(trial.built)
    judged(base, series)
    assert len(trial.built) == tried  # all known


def test_kernel_that_fails_unharmed_is_no_judge(
    base: Path, series: Series, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = tests.PartResult("kunit", [Case("broken", passed=False)])
    monkeypatch.setattr(tests, "kunit", lambda *_: failed)
    for _ in range(2):  # nothing of it is remembered
        with pytest.raises(LabError, match="the kernel fails as it is: KUnit: broken"):
            judged(base, series)
