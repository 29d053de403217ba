# SPDX-License-Identifier: GPL-2.0-or-later
"""Data races in a kernel's log."""

import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab import flavours, kcsan
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
    assert races[0].frames == (
        kcsan.Frame("gcma_load.isra.0", 0x1C, 0x80, 1),
        kcsan.Frame("filemap_add_folio", 0x99, 0x140, 2),
        kcsan.Frame("page_cache_ra_unbounded", 0x1A0, 0x2B0, 3),
        kcsan.Frame("shrink_folio_list", 0x4F, 0x1000, 1),
    )
    assert "gcma_load" in races[0].functions
    assert "KCSAN" not in rest
    assert "BUG: KASAN" in rest
    assert rest.endswith("done")


def test_race_whose_report_is_cut_off_stays_in_the_log() -> None:
    _, rest = kcsan.split(LOG[: LOG.index("[    2.000008]")])
    assert "BUG: KCSAN" in rest


# Where each calls access(), the report has the address behind it.
STOCK_HEADER = """\
void access(int *x);
static inline __attribute__((always_inline)) void helper(int *x)
{
	access(x);
}
"""
OUR_HEADER = """\
#include <linux/stock.h>
static inline __attribute__((always_inline)) void our_hook(int *x)
{
	access(x);
}
"""
OUR_FILE = """\
#include <linux/ours.h>
static __attribute__((noinline)) void twin(int *x) { access(x); *x += 1; *x *= *x; }
void ours(int *x) { twin(x); *x += 2; }
void helped(int *x) { helper(x); *x += 10; }
"""
PRISTINE = """\
static __attribute__((noinline)) void twin(int *x) { access(x); *x += 3; }
void stock(int *x) { access(x); *x += 4; }
void stock_twin(int *x) { twin(x); *x += 5; }
void moved(int *x)
{
	access(x);
	*x += 6;
}
void patched(int *x)
{
	*x += 7;
}
"""
PATCHED = (
    f"#include <linux/ours.h>\n{PRISTINE}"
    "void hooked(int *x) { our_hook(x); *x += 8; }\n"
    "__attribute__((noinline)) void access(int *x) { *x += 9; }\n"
    "int main(void) { return 0; }\n"
)


@dataclass(frozen=True)
class Built:
    """A kernel in miniature, and where its functions call access()."""

    kernel: Kernel
    calls: dict[str, list[tuple[int, int]]]  # by function: offset and size, as a report has them

    def is_ours(self, symbol: str, depth: int = 1, which: int = 0) -> bool:
        offset, size = self.calls.get(symbol, [(4, 8)])[which]
        stack = ["stock+0x{:x}/0x{:x}".format(*self.calls["stock"][0])] * (depth - 1)
        stack.append(f"{symbol}+0x{offset:x}/0x{size:x}")
        title = f"{kcsan.TITLE}data-race in x / y"
        lines = [kcsan.RULE, title, "", "write:", *(f" {frame}" for frame in stack), kcsan.RULE]
        return bool(kcsan.judge(self.kernel, booted("\n".join(lines)))[1])


def booted(log: str) -> BootResult:
    return BootResult(
        *("", "", log, True, 0, 1.0), timed_out=False, panic=None, signal=None, command=[]
    )


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Built:
    tree, objects = tmp_path / "patched", tmp_path / "build"
    moved = PATCHED.replace("\taccess(x);", "\t\taccess(x);")
    sources = {
        "patched/include/linux/ours.h": OUR_HEADER,
        "patched/mm/ours.c": OUR_FILE,
        "patched/mm/stock.c": moved.replace("\t*x += 7;", "\taccess(x);\n\t*x += 7;"),
        "patched/include/linux/stock.h": STOCK_HEADER,
        "pristine/include/linux/stock.h": STOCK_HEADER,
        "pristine/mm/stock.c": PRISTINE,
        "ours/files/include/linux/ours.h": OUR_HEADER,
        "ours/files/mm/ours.c": OUR_FILE,
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    objects.mkdir()
    (objects / "source").symlink_to(tree)
    vmlinux = objects / "vmlinux"
    flags = ["-g", "-O1", "-fno-var-tracking", "-femit-struct-debug-baseonly"]
    units = [str(tree / "mm/stock.c"), str(tree / "mm/ours.c")]
    command = ["gcc", *flags, f"-I{tree}/include", *units, "-o", str(vmlinux)]
    subprocess.run(command, check=True)
    monkeypatch.setattr(kcsan.paths, "KERNEL", tmp_path / "ours")
    kernel = Kernel(flavours.find("kcsan"), "6.12", objects, {})
    return Built(kernel, calls_of(vmlinux))


def calls_of(vmlinux: Path) -> dict[str, list[tuple[int, int]]]:
    def ran(*command: str) -> str:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    starts = sorted(
        {
            int(line.split()[0], 16)
            for line in ran("nm", "--defined-only", str(vmlinux)).splitlines()
        }
    )
    calls: dict[str, list[tuple[int, int]]] = {}
    code = ran("objdump", "-d", "--no-show-raw-insn", str(vmlinux))
    for start, name, body in re.findall(r"^(\w+) <(\w+)>:\n((?:.+\n)+)", code, flags=re.M):
        if match := re.search(r"call .*<access>\n +(\w+):", body):
            at = int(start, 16)
            end = next(other for other in starts if other > at)
            calls.setdefault(name, []).append((int(match[1], 16) - at, end - at))
    return calls


def test_a_race_is_ours_by_the_lines_that_it_is_in(built: Built) -> None:
    assert built.is_ours("hooked")  # stock code, but for what is inlined
    assert built.is_ours("helped")  # our code, but for what is inlined
    assert built.is_ours("patched")
    assert not built.is_ours("stock")
    assert not built.is_ours("moved")


def test_a_race_near_a_file_of_ours_is_ours_and_one_further_in_is_not(built: Built) -> None:
    assert built.is_ours("hooked", depth=3)
    assert not built.is_ours("hooked", depth=4)
    assert not built.is_ours("patched", depth=2)


def test_functions_of_one_name_are_told_apart(built: Built) -> None:
    sizes = [size for _, size in built.calls["twin"]]
    assert len(set(sizes)) == len(sizes)
    assert [built.is_ours("twin", which=which) for which in range(2)] == [False, True]


def test_a_race_at_a_place_that_is_not_known_is_ours(built: Built) -> None:
    assert built.is_ours("unheard_of")
    subprocess.run(["strip", "--strip-debug", str(built.kernel.objects / "vmlinux")], check=True)
    assert built.is_ours("stock")


def test_what_the_scheduler_sees_of_a_task_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kcsan, "places", lambda *_: defaultdict(list))
    kernel = Kernel(flavours.find("kcsan"), "6.12", Path(), {})
    assert [case.passed for case in kcsan.judge(kernel, booted(LOG))[1]] == [False]
    theirs = LOG.replace("shrink_folio_list", "kthread_is_per_cpu")
    assert not kcsan.judge(kernel, booted(theirs))[1]
