# SPDX-License-Identifier: GPL-2.0-or-later
"""Many guests, one progress bar."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lab import boot, console, measure, process, systems, workloads
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
class Output:
    """What a guest printed, in sections."""

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

    def ladder(self, name: str) -> dict[int, list[measure.BenchSample]]:
        """Allocations, of which a policy that promises all may fail none: to refuse is cheap."""
        ladder = measure.ladder(self[name])
        failed = sum(map(measure.failures, ladder.values()))
        if failed and self.guest.machine.policy != systems.STOCK:
            raise LabError(f"{self.guest.name}, {name}: {failed} allocations failed")
        return ladder

    def sectors_read(self, disk: str, before: str, after: str) -> int:
        first, last = (measure.diskstats(self[f"diskstats {n}"], disk) for n in (before, after))
        return last.sectors_read - first.sectors_read

    def requests(self, disk: str, before: str, after: str) -> int:
        """To read."""
        first, last = (measure.diskstats(self[f"diskstats {n}"], disk) for n in (before, after))
        return last.reads - first.reads

    def run(
        self,
        samples: Mapping[str, Sequence[float]] | None = None,
        counters: Mapping[str, float] | None = None,
    ) -> Run:
        """The record of the run."""
        guest = self.guest
        return Run(
            name=guest.name,
            mode="exact" if guest.exact else "system",
            kernel=kernel_id(guest.kernel),
            machine=asdict(guest.machine),
            command=self.result.command,
            seed=guest.seed,
            seconds=round(self.result.seconds, 1),
            samples=samples or {},
            counters=counters or {},
        )


def kernel_id(kernel: Kernel) -> KernelId:
    """What tells this kernel from all others."""
    config = "".join(f"{name}={value}\n" for name, value in sorted(kernel.config.items()))
    digest = hashlib.sha256(config.encode()).hexdigest()
    return KernelId(kernel.release, kernel.flavour.name, digest, kernel.series)


def _run(guest: Guest) -> Output:
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
    return Output(guest, result, measure.sections(result.output))


def run_all(title: str, guests: Sequence[Guest], seconds: float) -> dict[str, Output]:
    """Run the guests; `seconds` is what one takes on an idle core.

    Exact guests run side by side, one a core: their time does not depend on the host's. System
    guests run alone.
    """
    workers = (os.cpu_count() or 1) if all(guest.exact for guest in guests) else 1
    outputs = {}
    with (
        console.progress(title, len(guests), seconds * len(guests) / workers) as step,
        ThreadPoolExecutor(workers) as pool,
    ):
        step.update(0)
        pending = [pool.submit(_run, guest) for guest in guests]
        try:
            for done in as_completed(pending):
                output = done.result()
                outputs[output.guest.name] = output
                step.update(len(outputs))
        except BaseException:
            process.abandon(pool, pending)  # or leaving the pool waits for the guests
            raise
    return {guest.name: outputs[guest.name] for guest in guests}
