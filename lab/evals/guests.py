# SPDX-License-Identifier: GPL-2.0-or-later
"""Many guests, one progress bar."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, field
from pathlib import Path

from lab import boot, console, measure, process, workloads
from lab.boot import BootResult
from lab.build import Kernel
from lab.errors import LabError
from lab.machine import Machine
from lab.results import KernelId, Run

Kernels = Callable[[str], Kernel]  # flavour -> kernel, built if need be


@dataclass(frozen=True)
class Guest:
    """One guest to run. The script may use what workloads.PRELUDE defines."""

    name: str
    kernel: Kernel
    machine: Machine
    script: str
    files: Mapping[str, Path] = field(default_factory=dict)  # exact guests only
    exact: bool = True
    seed: int = 1
    timeout: float = 3600


@dataclass(frozen=True)
class Said:
    """What a guest printed, in sections, and the record of the run without samples."""

    guest: Guest
    result: BootResult
    sections: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        if name not in self.sections:
            raise LabError(f"the guest {self.guest.name} did not print {name!r}")
        return self.sections[name]

    def gained(self, what: str, before: str, after: str) -> dict[str, int]:
        """Counters of two snapshots: what `area` or `vmstat` gained between them."""
        return measure.since(self[f"{what} {before}"], self[f"{what} {after}"])

    def sectors_read(self, disk: str, before: str, after: str) -> int:
        first, last = (measure.diskstats(self[f"diskstats {n}"], disk) for n in (before, after))
        return last.sectors_read - first.sectors_read

    def run(
        self,
        samples: Mapping[str, Sequence[float]] | None = None,
        counters: Mapping[str, float] | None = None,
    ) -> Run:
        guest = self.guest
        return Run(
            name=guest.name,
            mode="exact" if guest.exact else "system",
            kernel=KernelId.of(guest.kernel),
            machine=guest.machine,
            command=self.result.command,
            seed=guest.seed,
            seconds=round(self.result.seconds, 1),
            samples=samples or {},
            counters=counters or {},
        )


def _run(guest: Guest) -> Said:
    script = workloads.PRELUDE + guest.script
    if guest.exact:
        result = boot.exact(
            guest.kernel,
            guest.machine,
            script,
            files=guest.files,
            seed=guest.seed,
            timeout=guest.timeout,
        )
    else:
        result = boot.system(guest.kernel, guest.machine, script, timeout=guest.timeout)
    try:
        result.check()
    except LabError as error:
        detail = error.detail + result.output[-2000:]
        raise LabError(f"{guest.name}: {error.message}", detail) from None
    return Said(guest, result, measure.sections(result.output))


def run_all(title: str, guests: Sequence[Guest], seconds: float) -> dict[str, Said]:
    """Run the guests; `seconds` is what one takes on an idle core.

    Exact guests run side by side, one a core: their time does not depend on the host's. System
    guests run alone.
    """
    workers = (os.cpu_count() or 1) if all(guest.exact for guest in guests) else 1
    said = {}
    with (
        console.progress(title, len(guests), seconds * len(guests) / workers) as step,
        ThreadPoolExecutor(workers) as pool,
    ):
        step.update(0)
        pending = [pool.submit(_run, guest) for guest in guests]
        try:
            for done in as_completed(pending):
                one = done.result()
                said[one.guest.name] = one
                step.update(len(said))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            while wait(pending, timeout=0.1).not_done:
                process.kill_all()  # or leaving the pool waits for the guests
            raise
    return {guest.name: said[guest.name] for guest in guests}
