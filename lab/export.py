# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel part as mails: what `git am` takes on a tree of the same version.

The patches keep the order of the series. Each brings the new files that its `Adds:` lines name:
a file that no patch brings would be missing in every series. Of the systems only those that are
wanted are exported, and what they are built on.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from email.parser import HeaderParser
from pathlib import Path

from lab import process, systems
from lab.errors import LabError
from lab.source import Patch, Series, Tree, apply_patch

DATE = "2026-01-01T00:00:00+0000"  # fixed, so that the same series gives the same mails


def export(base: Tree, series: Series, target: Path, only: Sequence[str] = ()) -> list[Path]:
    """Write NNNN-subject.patch files to `target` and return them; `only` names systems."""
    chosen = selected(series, only)
    check_place(target)
    with tempfile.TemporaryDirectory(prefix="gcma-export-") as name:
        repo = Path(name)
        _start(repo, base, series)
        for patch in chosen.patches:
            _copy({name: chosen.files[name] for name in chosen.claims(patch)}, repo)
            apply_patch(patch, repo, base.release)
            subject, body, author = _message(patch)
            _commit(repo, subject, body, author)
        target.mkdir(parents=True, exist_ok=True)
        mails = _git(repo, "format-patch", "--no-signature", "-o", str(target.resolve()), "base")
    return [Path(line) for line in mails.splitlines()]


def check_place(target: Path) -> None:
    """Refuse, before the work, a folder that mails cannot or should not be written to."""
    if target.exists() and not target.is_dir():
        raise LabError(f"{target} is no folder: name one for the mails")
    if any(target.glob("*.patch")):
        raise LabError(f"{target} already holds patches: choose an empty folder")


def selected(series: Series, only: Sequence[str] = ()) -> Series:
    """The patches of these systems (none named: of all) and of what they need, with their files."""
    names = {system.name for system in systems.with_needs(only or systems.SYSTEMS)}
    for patch in series.patches:
        if patch.system not in systems.SYSTEMS:
            raise LabError(f"{patch.name} does not lie in a system's folder beside the series")
    owners = _owners(series)
    for name in series.files:
        if name not in owners:
            raise LabError(f"no patch brings {name}: name it in an `Adds:` line of one")
    files = {name: path for name, path in series.files.items() if owners[name].system in names}
    patches = [patch for patch in series.patches if patch.system in names]
    if not patches:
        raise LabError("there is nothing to export: the series has no patches of these systems")
    return Series(files, patches)


def _owners(series: Series) -> dict[str, Patch]:
    """The patch that brings each new file."""
    owners: dict[str, Patch] = {}
    for patch in series.patches:
        for name in series.claims(patch):
            if name in owners:
                raise LabError(f"{owners[name].name} and {patch.name} both add {name}")
            owners[name] = patch
    return owners


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
