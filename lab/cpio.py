# SPDX-License-Identifier: GPL-2.0-or-later
"""A cpio archive (newc) that depends on nothing but its content: no times, owners or inodes."""

import stat
from pathlib import PurePosixPath
from typing import BinaryIO

ALIGN = 4


class Writer:
    """Writes members in the order given, and the folders that they need before them."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.inode = 0
        self.folders: set[str] = set()

    def folder(self, name: str) -> None:
        for parent in [*reversed(PurePosixPath(name).parents), PurePosixPath(name)]:
            if str(parent) != "." and str(parent) not in self.folders:
                self.folders.add(str(parent))
                self._member(str(parent), b"", stat.S_IFDIR | 0o755)

    def add(self, name: str, content: bytes, permissions: int) -> None:
        self.folder(str(PurePosixPath(name).parent))
        self._member(name, content, stat.S_IFREG | permissions)

    def end(self) -> None:
        self._member("TRAILER!!!", b"", 0)

    def _member(self, name: str, content: bytes, mode: int) -> None:
        self.inode += 1
        raw = name.encode() + b"\0"
        fields = (self.inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(raw), 0)
        header = b"070701" + "".join(f"{field:08x}" for field in fields).encode()
        self._write(header + raw)
        self._write(content)

    def _write(self, data: bytes) -> None:
        self.file.write(data + b"\0" * (-len(data) % ALIGN))
