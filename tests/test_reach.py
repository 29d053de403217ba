# SPDX-License-Identifier: GPL-2.0-or-later
"""Which tests get to a line: what gcov tells, and who is chosen by it."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab import build, flavours, reach, selftests, tests
from lab.build import Kernel
from lab.errors import LabError
from lab.reach import Counted, Reach, Reached
from lab.selftests import Form, Round
from lab.trials import Program, Trial

SOURCE = """\
static int never(int n)
{
	return n + 1;
}

int main(int argc, char **argv)
{
	const int
		sum = argc;

	if (argc > 5)
		return never(sum);
	return 0;
}
"""


class Named(Trial):
    """Something that is chosen."""

    def __init__(self, name: str) -> None:
        self.name = name


@dataclass(frozen=True)
class Objects:
    """A kernel of one file, and a guest's folder of counters."""

    folder: Path

    def compile(self, text: str) -> None:
        """As the kernel's make does it: from the folder of the objects, which keeps the notes."""
        for folder in ("patched/mm", "objects/mm"):
            (self.folder / folder).mkdir(parents=True, exist_ok=True)
        (self.folder / "patched/mm/cma.c").write_text(text)
        self._gcc("-O0", "-c", "../patched/mm/cma.c", "-o", "mm/cma.o")

    def run(self) -> None:
        self._gcc("mm/cma.o", "-o", "cma")
        subprocess.run([self.folder / "objects/cma"], check=True)

    def read(self) -> dict[str, Counted]:
        """The counters as a guest leaves them: at the whole path of the object."""
        objects, share = self.folder / "objects", self.folder / "share"
        (objects / "source").symlink_to(self.folder / "patched")
        counters = share / objects.relative_to("/") / "mm/cma.gcda"
        counters.parent.mkdir(parents=True)
        shutil.move(objects / "mm/cma.gcda", counters)
        return reach.read(Kernel(flavours.find("gcov"), "6.12", objects, {}), counters, share)

    def _gcc(self, *args: str) -> None:
        subprocess.run(["gcc", "--coverage", *args], cwd=self.folder / "objects", check=True)


def test_what_gcov_tells(tmp_path: Path) -> None:
    objects = Objects(tmp_path)
    objects.compile(SOURCE)
    objects.run()
    files = objects.read()
    assert list(files) == ["mm/cma.c"]
    counted = files["mm/cma.c"]
    assert counted.gets_to(11, by_chance=False)
    assert counted.gets_to(12, by_chance=False) is False
    assert counted.gets_to(12, by_chance=True)  # its function ran: another time it may run as well
    assert counted.gets_to(3, by_chance=True) is False
    assert counted.gets_to(8, by_chance=False)  # no counter, but its function ran
    assert counted.gets_to(5, by_chance=False) is None


def test_the_quickest_first_and_who_is_not_known_last() -> None:
    trials = [Named(name) for name in ("unknown", "slow", "quick", "elsewhere")]
    here, there = (Counted((line,), (1, 2), [(1, 2, True)]) for line in (1, 2))
    reached = Reach(
        {
            "slow": Reached(9.0, {"mm/cma.c": here}),
            "quick": Reached(1.0, {"mm/cma.c": here}),
            "elsewhere": Reached(1.0, {"mm/cma.c": there}),
        }
    )

    def chosen(file: str, line: int) -> list[str]:
        return [trial.name for trial in reached.choose(trials, file, [line])]

    assert chosen("mm/cma.c", 1) == ["quick", "slow", "unknown"]
    assert chosen("mm/cma.c", 2) == ["elsewhere", "unknown"]
    assert chosen("mm/cma.c", 9) == ["quick", "elsewhere", "slow", "unknown"]  # in no function
    assert chosen("include/linux/mm.h", 1) == ["quick", "elsewhere", "slow", "unknown"]


def test_counters_of_another_kernel_are_refused(tmp_path: Path) -> None:
    objects = Objects(tmp_path)
    objects.compile("int main(void) { return 0; }\n")
    objects.run()
    objects.compile("int main(void)\n{\n\treturn 1 - 1;\n}\n")
    with pytest.raises(LabError, match="gcov cannot read"):
        objects.read()


def test_a_kernel_is_built_for_what_is_not_counted_yet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    built: list[str] = []

    def building(flavour: str, more: object) -> Kernel:
        built.append(flavour)
        return Kernel(flavours.find("gcov"), "6.12", tmp_path, {})

    def counting(trial: Trial, _: object) -> Reached:
        return Reached(float(len(trial.name)), {})

    monkeypatch.setenv("GCMA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(reach, "_counters", lambda _: None)
    monkeypatch.setattr(reach, "_count", counting)
    monkeypatch.setattr(build, "build", building)

    def counted(*names: str, content: str = "content") -> list[float]:
        every = [Named(name) for name in names]
        reached = reach.count(tests.Options(), every, ["mm/cma.c"], content).reached
        return [reached[name].seconds for name in names]

    assert counted("a", "two") == [1, 3]
    assert counted("two", "a") == [3, 1]
    assert len(built) == 1
    assert counted("a", "four") == [1, 4]
    assert counted("a", content="other") == [1]
    assert len(built) == 3


def test_what_is_counted_is_the_long_form(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forms: list[Form] = []

    def running(
        kernel: Kernel, _: Round, programs: list[str], form: Form, **more: object
    ) -> object:
        forms.append(form)
        (selftests.shared_folder() / "counters").mkdir(parents=True, exist_ok=True)
        return [], ""

    monkeypatch.setenv("GCMA_CACHE", str(tmp_path))
    monkeypatch.setattr(selftests, "run_round", running)
    context = tests.Context(tests.Options(), Kernel(flavours.find("prod"), "6.12", tmp_path, {}))
    program = Program(selftests.ROUNDS[0], "gcma_policy")
    program.run(context)
    program.run(context, tmp_path / "counters")
    program.run(tests.Context(tests.Options(long=True), context.kernel))
    assert forms == [Form.SHORT, Form.LONG, Form.LONG]
