# SPDX-License-Identifier: GPL-2.0-or-later
"""Where things lie: the checkout, and the cache folder beside the user's other caches."""

import os
import re
import shutil
from pathlib import Path

from lab.errors import LabError

REPO = Path(__file__).resolve().parents[1]
KERNEL = REPO / "kernel"
SELFTESTS = KERNEL / "files/tools/testing/selftests"

MB = 1_000_000


def cache() -> Path:
    """The cache folder, made if missing: $GCMA_CACHE, else gcma beside the user's other caches."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    # as make and cmake need it, which run elsewhere
    folder = Path(os.environ.get("GCMA_CACHE") or Path(caches) / "gcma").absolute()
    if re.search(r"[\s:]", str(folder)):
        raise LabError(
            f"the kernel's make takes no blanks and colons: {folder!s} cannot be the cache"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"cannot write to the cache folder {folder}: {error.strerror}") from error
    return folder


def require_space(folder: Path, megabytes: int, what: str) -> None:
    """Refuse to start what would fill the disk."""
    free = shutil.disk_usage(folder).free // MB
    if free < megabytes:
        raise LabError(f"no space: {what} needs {megabytes} MB in {folder}, {free} MB are free")
