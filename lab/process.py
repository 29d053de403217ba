# SPDX-License-Identifier: GPL-2.0-or-later
"""Child processes that do not outlive us."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO

from lab import console
from lab.errors import LabError

Stream = int | IO[str] | IO[bytes] | None

_running: set[subprocess.Popen[bytes]] = set()


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
    _running.add(child)
    try:
        yield child
    finally:
        _running.discard(child)
        _kill(child)


def kill_all() -> None:
    """Kill what other threads have started and wait for: only the main thread is interrupted."""
    for child in list(_running):
        _kill(child)


def _kill(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        with suppress(ProcessLookupError):  # another thread has just waited for it
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
