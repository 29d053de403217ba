# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces recorded from any program, by a library that is loaded before libc."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.compactfit import build, traces
from lab.errors import LabError


def environment(folder: Path) -> dict[str, str]:
    """What a program needs in its environment to be recorded into the folder."""
    library = build.tools() / "libcompactfit-record.so"
    before = os.environ.get("LD_PRELOAD")
    preload = f"{library}:{before}" if before else str(library)
    return {**os.environ, "LD_PRELOAD": preload, "CF_TRACE": str(folder.resolve())}


def record(command: Sequence[str], folder: Path, *, quiet: bool) -> tuple[int, list[Path]]:
    """Run a program while it is recorded: its status as a shell tells it, and the new traces."""
    if shutil.which(command[0]) is None:
        raise LabError(f"there is no program {command[0]}")
    folder.mkdir(parents=True, exist_ok=True)
    before = set(folder.glob("*" + traces.SUFFIX))
    stdout = sys.stderr if quiet else None
    status = subprocess.run(command, env=environment(folder), stdout=stdout, check=False).returncode
    fresh = sorted(set(folder.glob("*" + traces.SUFFIX)) - before)
    if not fresh:
        raise LabError(
            f"{command[0]} left no trace: it allocates nothing, is linked statically,"
            f" or may not write {folder}"
        )
    return (128 - status if status < 0 else status), fresh
