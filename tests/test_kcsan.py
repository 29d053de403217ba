# SPDX-License-Identifier: GPL-2.0-or-later
"""Data races in a kernel's log."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from lab import build, kcsan
from lab.boot import BootResult
from lab.build import Kernel

LOG = """\
[    1.000000] Linux version 6.12
[    2.000000] ==================================================================
[    2.000001] BUG: KCSAN: data-race in gcma_load.isra.0 / shrink_folio_list
[    2.000002]
[    2.000003] write to 0xffff888003a8c010 of 8 bytes by task 40 on cpu 1:
[    2.000004]  gcma_load.isra.0+0x1c/0x80
[    2.000005]  filemap_add_folio+0x99/0x140
[    2.000006]  page_cache_ra_unbounded+0x1a0/0x2b0
[    2.000007]  far_out+0x1a0/0x2b0
[    2.000008]
[    2.000009] read to 0xffff888003a8c010 of 8 bytes by task 41 on cpu 0:
[    2.000010]  shrink_folio_list+0x4f/0x1000
[    2.000011] ==================================================================
[    3.000000] ==================================================================
[    3.000001] BUG: KASAN: slab-use-after-free in x
[    3.000002] ==================================================================
[    4.000000] done
"""


def test_races_are_taken_out_of_the_log() -> None:
    races, rest = kcsan.split(LOG)
    assert [race.title for race in races] == ["data-race in gcma_load.isra.0 / shrink_folio_list"]
    assert races[0].functions == {
        *("gcma_load", "filemap_add_folio", "page_cache_ra_unbounded", "shrink_folio_list"),
    }
    assert "KCSAN" not in rest
    assert "BUG: KASAN" in rest
    assert rest.endswith("done")


def test_race_whose_report_is_cut_off_stays_in_the_log() -> None:
    _, rest = kcsan.split(LOG[: LOG.index("[    2.000008]")])
    assert "BUG: KCSAN" in rest


def test_functions_of_an_object_file(tmp_path: Path) -> None:
    unit = tmp_path / "a.c"
    unit.write_text("static int mine(int x) { return x; } int (*p)(int) = mine; int theirs();\n")
    subprocess.run(["gcc", "-c", str(unit), "-o", str(tmp_path / "a.o")], check=True)
    assert kcsan.functions_of([tmp_path / "a.o"]) == {"mine"}


def test_what_the_scheduler_sees_of_a_task_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kcsan, "objects", lambda _: [])
    monkeypatch.setattr(kcsan, "functions_of", lambda _: frozenset({"gcma_load"}))
    kernel = Kernel(build.find("kcsan"), "6.12", Path(), {})
    result = BootResult(
        *("", "", LOG, True, 0, 1.0), timed_out=False, panic=None, signal=None, command=[]
    )
    assert [case.passed for case in kcsan.judge(kernel, result)[1]] == [False]
    theirs = replace(result, console=LOG.replace("shrink_folio_list", "kthread_is_per_cpu"))
    assert not kcsan.judge(kernel, theirs)[1]
