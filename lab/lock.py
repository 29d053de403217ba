# SPDX-License-Identifier: GPL-2.0-or-later
"""One command at a time on one cache folder."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.errors import LabError


@contextmanager
def exclusive(cache: Path, command: str) -> Iterator[None]:
    """Hold the cache's lock, or say who holds it. The kernel drops it with the process."""
    with (cache / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another gcma"
            raise LabError(f"`{holder}` is running on {cache}: wait for it to end") from None
        file.truncate(0)
        file.write(f"gcma {command}\n")
        file.flush()
        yield
