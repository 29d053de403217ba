# SPDX-License-Identifier: GPL-2.0-or-later
"""Child processes that do not outlive us."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO

from lab import console
from lab.errors import LabError

Stream = int | IO[str] | IO[bytes] | None


@contextmanager
def started(
    command: Sequence[str],
    *,
    stdin: Stream = subprocess.DEVNULL,
    stdout: Stream = None,
    stderr: Stream = None,
    env: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command in a session of its own; whatever is left of it at the end is killed."""
    console.show_command(command)
    try:
        child = subprocess.Popen(
            command, stdin=stdin, stdout=stdout, stderr=stderr, env=env, start_new_session=True
        )
    except FileNotFoundError:
        raise LabError(f"{command[0]} is missing: run `./gcma setup`") from None
    try:
        yield child
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
