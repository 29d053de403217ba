# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel tree: Debian's tarball, unpacked once, and this project's changes laid over it.

The patched tree shares its unchanged files with the pristine one (hard links). The changes are
computed aside and a file is written only if its content differs, so that make rebuilds only what
a change really touches.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from lab import console, paths, process, targets
from lab.errors import LabError
from lab.targets import Linux

TREE_MB = 2200  # measured: 1.6 GB unpacked, 85,000 files
CHUNK = 1 << 20
CODE = (".c", ".h", ".S")


@dataclass(frozen=True)
class Patch:
    """One entry of the series."""

    path: Path
    text: str
    system: str = ""  # the folder that it lies in

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def header(self) -> str:
        """Everything above the first diff."""
        return re.split(
            r"^(?:diff --git |--- (?:a/|/dev/null))", self.text, maxsplit=1, flags=re.M
        )[0]

    @property
    def touches(self) -> list[str]:
        """The paths it changes, in order."""
        names = re.findall(r"^(?:---|\+\+\+) [ab]/(\S+)", self.text, flags=re.M)
        return list(dict.fromkeys(names))

    @property
    def adds(self) -> list[str]:
        """New files (or folders of them) that belong to this patch, from its `Adds:` lines."""
        return re.findall(r"^Adds: (\S+)$", self.header, flags=re.M)


@dataclass(frozen=True)
class Series:
    """This project's kernel part: whole new files, and patches to existing ones."""

    files: dict[str, Path]
    patches: list[Patch]

    @property
    def empty(self) -> bool:
        return not self.patches

    def claims(self, patch: Patch) -> list[str]:
        """The new files that this patch adds."""
        claimed = []
        for wanted in patch.adds:
            folder = wanted.rstrip("/") + "/"
            some = [name for name in self.files if name == wanted or name.startswith(folder)]
            if not some:
                raise LabError(f"{patch.name} says `Adds: {wanted}`, which is no new file")
            claimed += some
        return claimed

    def upto(self, count: int) -> "Series":
        """The first patches, with the new files that they bring."""
        patches = self.patches[:count]
        names = [name for patch in patches for name in self.claims(patch)]
        return Series({name: self.files[name] for name in names}, patches)


@dataclass(frozen=True)
class Tree:
    """A kernel tree ready to build."""

    path: Path
    release: str  # such as 6.12.117
    series: Series  # what was laid over it; empty for the pristine tree
    key: str  # the same for the same content
    config_key: str  # the same for the same content but for C, which no configuration reads


EMPTY = Series({}, [])


def read_series(kernel: Path, linux: Linux = targets.DEFAULT.linux) -> Series:
    """Read `files/` and the patches for one version below the project's kernel folder.

    The series names a patch by its system and its file: `gcma/0001-what-it-does.patch`.
    """
    root = kernel / "files"
    files = {
        str(path.relative_to(root)): path
        for path in sorted(root.rglob("*"))
        if path.is_file() and not _ignored(path)
    }
    folder = kernel / linux.patches
    listing = folder / "series"
    names = listing.read_text().splitlines() if listing.exists() else []
    names = [name.split("#")[0].strip() for name in names]
    patches = []
    for name in filter(None, names):
        path = folder / name
        if not path.exists():
            raise LabError(f"{listing} names {name}, which does not exist")
        patches.append(Patch(path, path.read_text(), name.rpartition("/")[0]))
    return Series(files, patches)


def _ignored(path: Path) -> bool:
    """Left over by building the selftests in place."""
    return path.suffix in (".o", ".pyc") or (
        os.access(path, os.X_OK) and not path.suffix and _is_elf(path)
    )


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _release(tree: Path) -> str:
    text = (tree / "Makefile").read_text()
    words = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL) = (\d+)$", text, flags=re.M))
    return "{VERSION}.{PATCHLEVEL}.{SUBLEVEL}".format(**words)


def pristine(linux: Linux, cache: Path) -> Tree:
    """Debian's kernel source, unpacked once for each content of the tarball."""
    if not linux.tarball.exists():
        raise LabError(f"{linux.tarball} is missing: run `./gcma setup`")
    key = _content_key(linux.tarball, cache / f"source-{linux.version}.json")
    ready = list(cache.glob(f"linux-{linux.version}.*-{key}/pristine"))
    if ready:
        return Tree(ready[0], _release(ready[0]), EMPTY, key, key)
    aside = cache / "source.part"
    shutil.rmtree(aside, ignore_errors=True)
    paths.require_space(cache, TREE_MB, "the kernel tree")
    _unpack(linux.tarball, aside)
    release = _release(aside)
    path = cache / f"linux-{release}-{key}" / "pristine"
    for old in cache.glob(f"linux-{linux.version}.*"):  # with the objects made from it
        shutil.rmtree(old)
    path.parent.mkdir()
    aside.rename(path)
    return Tree(path, release, EMPTY, key, key)


def _content_key(tarball: Path, known: Path) -> str:
    """The digest of the tarball, taken again only if the file is another."""
    status = tarball.stat()
    stamp = [status.st_size, status.st_mtime_ns]
    if known.exists():
        record = json.loads(known.read_text())
        if record["stamp"] == stamp:
            return str(record["key"])
    with tarball.open("rb") as file:
        key = hashlib.file_digest(file, "sha256").hexdigest()[:12]
    _write(known, json.dumps({"stamp": stamp, "key": key}).encode())
    return key


def _unpack(tarball: Path, target: Path) -> None:
    target.mkdir()
    command = ["tar", "-xJ", "--strip-components=1", "-C", str(target)]
    size = tarball.stat().st_size
    with (
        tarball.open("rb") as file,
        console.progress("unpacking the kernel source", size, 20) as step,
        tempfile.TemporaryFile() as errors,
        process.started(command, stdin=subprocess.PIPE, stderr=errors) as tar,
    ):
        try:
            with cast(IO[bytes], tar.stdin) as pipe:
                while chunk := file.read(CHUNK):
                    pipe.write(chunk)
                    step.update(file.tell())
        except BrokenPipeError:
            pass  # tar gave up: its status tells
        status = tar.wait()
        errors.seek(0)
        message = errors.read().decode(errors="replace").strip()
    if status:
        raise LabError(f"{tarball} could not be unpacked", message)


def patched(base: Tree, series: Series, path: Path) -> Tree:
    """Bring the tree at `path` to base + series, writing only files whose content changes."""
    wanted = _patched_content(base, series)
    if not path.exists():
        aside = path.with_name(path.name + ".part")
        shutil.rmtree(aside, ignore_errors=True)
        process.run(["cp", "-al", str(base.path), str(aside)])
        aside.rename(path)
    manifest = path.with_name(path.name + ".json")
    before: list[str] = json.loads(manifest.read_text()) if manifest.exists() else []
    # First the names, then the files: after an interruption nothing overlaid is forgotten.
    _write(manifest, json.dumps(sorted({*before, *wanted})).encode())
    for name in before:
        if name not in wanted:
            original = base.path / name
            wanted[name] = original.read_bytes() if original.exists() else None
    for name, content in wanted.items():
        _bring(path / name, content, executable=_executable(series, base, name))
    overlaid = [name for name in wanted if name in series.files or _is_touched(series, name)]
    _write(manifest, json.dumps(sorted(overlaid)).encode())
    others = {name: it for name, it in wanted.items() if Path(name).suffix not in CODE}
    return Tree(path, base.release, series, _key(base, wanted), _key(base, others))


def _key(base: Tree, laid_over: Mapping[str, bytes | None]) -> str:
    digest = hashlib.sha256(base.key.encode())
    for name, content in sorted(laid_over.items()):
        digest.update(f"{name}\0".encode() + (content or b"") + b"\0")
    return digest.hexdigest()[:12]


def _is_touched(series: Series, name: str) -> bool:
    return any(name in patch.touches for patch in series.patches)


def _executable(series: Series, base: Tree, name: str) -> bool:
    model = series.files.get(name, base.path / name)
    return model.exists() and os.access(model, os.X_OK)


def _bring(path: Path, content: bytes | None, executable: bool) -> None:
    """Give the file this content (None: no file), leaving it alone if it has it."""
    if content is None:
        path.unlink(missing_ok=True)
    elif not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, content, 0o755 if executable else 0o644)


def _write(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Replace the file in one step. Never writes through a hard link."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.chmod(mode)
    part.rename(path)


def _patched_content(base: Tree, series: Series) -> dict[str, bytes | None]:
    """The content of every file that the series adds or changes; None: it removes it."""
    names = {*series.files, *(name for patch in series.patches for name in patch.touches)}
    with tempfile.TemporaryDirectory(prefix="gcma-patch-") as folder:
        scratch = Path(folder)
        for name in names:
            model = series.files.get(name, base.path / name)
            if model.exists():
                copy = scratch / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(model, copy)
        for patch in series.patches:
            apply_patch(patch, scratch, base.release)
        return {
            name: (scratch / name).read_bytes() if (scratch / name).exists() else None
            for name in sorted(names)
        }


def apply_patch(patch: Patch, folder: Path, release: str) -> None:
    """Apply without fuzz, or name the patch, the files and the point release."""
    if patch.adds and not re.search(r"^(diff|---|\+\+\+|@@) ", patch.text, flags=re.M):
        return  # it brings new files, and that is all
    command = ["patch", "-p1", "--fuzz=0", "--force", "--no-backup-if-mismatch", "-r", "-"]
    answer = process.run(command, cwd=folder, input=patch.text, check=False)
    if answer.returncode == 0:
        return
    failed = [name for name in patch.touches if not (folder / name).exists()]
    current = ""
    for line in answer.stdout.splitlines():
        if match := re.match(r"patching file '?([^']+?)'?$", line):
            current = match[1]
        elif "FAILED" in line or "malformed" in line:
            failed.append(current)
    where = ", ".join(dict.fromkeys(failed)) or ", ".join(patch.touches)
    raise LabError(
        f"{patch.name} does not apply to Linux {release}: {where}", answer.stdout.strip()
    )
