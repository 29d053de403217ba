# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel can fail, a boot each: a KUnit suite, or a program in one of its rounds.

A trial can bring home the counters of a kernel that has gcov's.
"""

import base64
import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lab import flavours, measure, paths, process, selftests, systems, tests
from lab.errors import LabError
from lab.ktap import Case
from lab.machine import SHARED
from lab.selftests import Form, Round

SECONDS = 900  # of a program: what takes longer hangs
# The counters of all objects, below a folder at the path of each on the host
COPY = """
cd /sys/kernel/debug/gcov && find . -name '*.gcda' | while read -r file; do
	mkdir -p {to}/${{file%/*}} && cat $file >{to}/$file
done
"""
# An exact guest has but a serial port.
PRINT = f"""{COPY.format(to="/run/counters")}
echo == counters
tar -cz -C /run/counters . | base64
"""


class Trial:
    """One of them."""

    name: str
    suite: systems.System | None = None  # whose it is
    program = ""
    counted = True  # can it bring counters?
    by_chance = False  # does it run a line one time, and another time not?

    def run(
        self, context: tests.Context, counters: Path | None = None, within: float | None = None
    ) -> Sequence[Case]:
        """What became of it; the counters go into that folder.

        If it has to end `within` so many seconds, it ends at the first failure, too.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        """All that decides what becomes of it, beside the kernel."""
        return self.name


class Suite(Trial):
    """A KUnit suite."""

    def __init__(self, system: systems.System) -> None:
        self.name = f"KUnit, {system.name}"
        self.suite = system

    def run(
        self, context: tests.Context, counters: Path | None = None, within: float | None = None
    ) -> Sequence[Case]:
        script = PRINT if counters else "true"
        result, output = tests.unit_tests(context, self.suite, script, within)
        if counters and not result.summary.failed:
            counters.mkdir()
            archive = counters / "all.tar.gz"
            archive.write_bytes(base64.b64decode(measure.sections(output)["counters"]))
            process.run(["tar", "-xzf", str(archive), "-C", str(counters)])
        return result.cases


class Program(Trial):
    """A program in a round."""

    def __init__(self, each: Round, program: str) -> None:
        self.name = f"{program}, {each.name}"
        self.round = each
        self.program = program
        self.by_chance = program in tests.RACY

    def run(
        self, context: tests.Context, counters: Path | None = None, within: float | None = None
    ) -> Sequence[Case]:
        # what the long form gets to is more than the short one's
        form = Form.LONG if counters else context.options.form
        name = f"{self.round.name} {self.program}"  # its results beside those of others
        machine = tests.enlarged(self.round.machine, context)
        apart = replace(self.round, name=name, machine=machine)
        share = selftests.shared_folder() / f"counters/{name}".replace(" ", "-").replace(",", "")
        shutil.rmtree(share, ignore_errors=True)
        last = ""
        if counters:
            share.mkdir(parents=True)
            last = COPY.format(to=f"{SHARED}/counters/{share.name}")
        cases, _ = selftests.run_round(
            context.kernel,
            apart,
            [self.program],
            form,
            timeout=within or SECONDS,
            last=last,
            hasty=within is not None,
        )
        if counters:
            shutil.move(share, counters)
        return cases

    def __repr__(self) -> str:
        return f"{self.program}, {self.round}"


class Guests(Trial):
    """Guests of pytest's, those of a file that have a word in their names."""

    counted = False

    def __init__(self, word: str, source: str) -> None:
        self.name = word
        self.sources = ("conftest.py", source)  # it is another if they are

    def run(
        self, context: tests.Context, counters: Path | None = None, within: float | None = None
    ) -> Sequence[Case]:
        if counters:
            raise LabError(f"{self.name} brings no counters")
        return tests.some_guests(context, self.name).cases

    def __repr__(self) -> str:
        digest = hashlib.sha256()
        for name in self.sources:
            digest.update((paths.REPO / "tests" / name).read_bytes())
        return f"{self.name}, {digest.hexdigest()}"


# What programs do not test: groups with tenants and without, and memory that ends
GUESTS = (Guests("groups", "test_guests.py"), Guests("test_lent", "test_lent.py"))


def all_of(options: tests.Options) -> list[Trial]:
    """Those of the options' kernel."""
    flavour = flavours.find(options.flavour)
    there = [each for each in systems.SYSTEMS.values() if flavour.should_have(each)]
    trials: list[Trial] = [Suite(each) for each in there if each.suites]
    trials += [
        Program(each, program)
        for program in tests.programs(options)
        for each in selftests.ROUNDS
        if each.runs(program) and all(needed in there for needed in each.needs)
    ]
    short = options.form is Form.SHORT
    return trials if options.special or short else [*trials, *GUESTS]
