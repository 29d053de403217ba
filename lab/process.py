# SPDX-License-Identifier: GPL-2.0-or-later
"""Child processes that do not outlive us."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from lab import console
from lab.errors import LabError

Stream = int | IO[str] | IO[bytes] | None
Finished = subprocess.CompletedProcess[str]

TIMED_OUT = 124  # the status that timeout(1) gives

# What runs, and the group of the thread that started it: a group is abandoned as a whole
_running: dict[subprocess.Popen[bytes], str] = {}
_thread = threading.local()


def join(group: str) -> None:
    """Of what this thread starts from now on: abandon() leaves other groups alone."""
    _thread.group = group


@contextmanager
def started(
    command: Sequence[str],
    *,
    stdin: Stream = subprocess.DEVNULL,
    stdout: Stream = None,
    stderr: Stream = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    grace: float = 0,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command in a session of its own; whatever is left of that at the end is killed.

    The command is asked to end first, and has so many seconds of grace for it.
    """
    console.show_command(command)
    try:
        child = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise LabError(f"{command[0]} is missing: run `./gcma setup`") from None
    _running[child] = getattr(_thread, "group", "")
    try:
        yield child
    finally:
        del _running[child]
        try:
            if grace:
                _ask(child, grace)
        finally:  # nobody waits who interrupts once more
            _kill(child, and_rest=True)


def run(
    command: Sequence[str],
    *,
    failure: str = "",
    check: bool = True,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    input: str = "",
    timeout: float | None = None,
) -> Finished:
    """Run a command to its end and return its words; raise a LabError if it failed.

    `failure` is the error's line, the command's stderr the detail below it. With check=False the
    caller looks at the status himself. `env` is the whole environment. A command that takes longer
    than `timeout` seconds is killed and has failed with TIMED_OUT.
    """
    pipe = subprocess.PIPE
    with started(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, env=env) as child:
        late = ""
        try:
            raw = child.communicate(input.encode(), timeout)
        except subprocess.TimeoutExpired:
            _kill(child)
            raw = child.communicate()
            late = f"{Path(command[0]).name} did not end within {timeout:g} s\n"
    output, errors = (text.decode(errors="replace") for text in raw)
    status = TIMED_OUT if late else child.returncode
    if check and status:
        raise LabError(failure or f"{Path(command[0]).name} failed", (errors + late).strip())
    return Finished(command, status, output, errors + late)


def abandon(pool: ThreadPoolExecutor, pending: Sequence[Future[Any]], group: str = "") -> None:
    """Kill what other threads have started and wait for: only the main thread is interrupted."""
    pool.shutdown(wait=False, cancel_futures=True)
    # wait() would wait for ever for what had not begun
    while not all(future.done() for future in pending):
        for child, whose in list(_running.items()):
            if whose == group:
                _kill(child)
        time.sleep(0.1)


def _ask(child: subprocess.Popen[bytes], seconds: float) -> None:
    if child.poll() is None:
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(child.pid, signal.SIGTERM)
            child.wait(seconds)


def _kill(child: subprocess.Popen[bytes], *, and_rest: bool = False) -> None:
    """The command and what it started; the rest of that too, if it has ended itself already."""
    ended = child.poll() is not None
    # No new process gets a number that a group still has: if one has got it, nobody is left.
    if not ended or (and_rest and not _exists(child.pid)):
        with suppress(ProcessLookupError):  # another thread has just waited for it
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
