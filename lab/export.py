# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel part as mails: what `git am` takes on a 6.12 tree.

New files that no patch names in an `Adds:` line come first, in a patch of their own; the patches
follow in the order of the series.
"""

import os
import re
import shutil
import tempfile
from email.parser import HeaderParser
from pathlib import Path

from lab import process
from lab.errors import LabError
from lab.source import Patch, Series, Tree, apply_patch

FIRST_SUBJECT = "mm: gcma: add the new files of guaranteed contiguous memory allocation"
FIRST_BODY = "Nothing refers to them yet: the following patches do."
DATE = "2026-01-01T00:00:00+0000"  # fixed, so that the same series gives the same mails


def export(base: Tree, series: Series, target: Path) -> list[Path]:
    """Write NNNN-subject.patch files to `target` and return them."""
    if series.empty and not series.files:
        raise LabError("there is nothing to export: the series is empty")
    if target.exists() and any(target.glob("*.patch")):
        raise LabError(f"{target} already holds patches: choose an empty folder")
    with tempfile.TemporaryDirectory(prefix="gcma-export-") as name:
        repo = Path(name)
        _start(repo, base, series)
        rest = dict(series.files)
        claims = [_claim(rest, patch) for patch in series.patches]
        if rest:
            _copy(rest, repo)
            author = next(filter(None, (_message(patch)[2] for patch in series.patches)), "")
            signed = f"\n\nSigned-off-by: {author}" if author else ""
            _commit(repo, FIRST_SUBJECT, FIRST_BODY + signed, author)
        for patch, files in zip(series.patches, claims, strict=True):
            _copy(files, repo)
            apply_patch(patch, repo, base.release)
            subject, body, author = _message(patch)
            _commit(repo, subject, body, author)
        target.mkdir(parents=True, exist_ok=True)
        said = _git(repo, "format-patch", "--no-signature", "-o", str(target.resolve()), "base")
    return [Path(line) for line in said.splitlines()]


def _claim(rest: dict[str, Path], patch: Patch) -> dict[str, Path]:
    """Take from `rest` the files that this patch adds."""
    claimed: dict[str, Path] = {}
    for wanted in patch.adds:
        found = [
            name for name in rest if name == wanted or name.startswith(wanted.rstrip("/") + "/")
        ]
        if not found:
            raise LabError(f"{patch.name} says `Adds: {wanted}`, which is no new file")
        claimed |= {name: rest.pop(name) for name in found}
    return claimed


def _start(repo: Path, base: Tree, series: Series) -> None:
    """A git repository of the files that the patches touch, as Linux has them."""
    touched = {name for patch in series.patches for name in patch.touches}
    _copy({name: base.path / name for name in touched if (base.path / name).exists()}, repo)
    _git(repo, "init", "-q")
    _commit(repo, f"Linux {base.release}", "", "")
    _git(repo, "tag", "base")


def _copy(files: dict[str, Path], repo: Path) -> None:
    for name, path in files.items():
        target = repo / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def _message(patch: Patch) -> tuple[str, str, str]:
    """Subject, body and author of a patch's header, which may lack any of them."""
    text = re.sub(r"\AFrom [0-9a-f]{40} .*\n", "", patch.header)
    mail = HeaderParser().parsestr(text)
    subject = re.sub(r"^\[PATCH[^]]*\]\s*", "", " ".join((mail["Subject"] or patch.name).split()))
    body = mail.get_payload()
    body = body if isinstance(body, str) else ""
    body = re.split(r"^---$", body, maxsplit=1, flags=re.M)[0]
    body = re.sub(r"^Adds: .*\n?", "", body, flags=re.M)
    return subject, body.strip(), mail["From"] or ""


def _commit(repo: Path, subject: str, body: str, author: str) -> None:
    _git(repo, "add", "-A", "-f")
    command = ["commit", "-q", "--allow-empty", "--date", DATE, "-m", subject]
    if body:
        command += ["-m", body]
    if author:
        command += ["--author", author]
    _git(repo, *command)


def _git(repo: Path, *args: str) -> str:
    # the user's own git configuration must not change the mails
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_AUTHOR_NAME": "GCMA project",
        "GIT_AUTHOR_EMAIL": "gcma@localhost",
        "GIT_COMMITTER_NAME": "GCMA project",
        "GIT_COMMITTER_EMAIL": "gcma@localhost",
        "GIT_COMMITTER_DATE": DATE,
    }
    failure = f"git {args[0]} failed"
    return process.run(["git", *args], cwd=repo, env=environment, failure=failure).stdout
