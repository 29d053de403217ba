# SPDX-License-Identifier: GPL-2.0-or-later
"""What failures tell; a kernel in miniature: a tarball of a few files, a series of one patch."""

import os
import tarfile
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab import build, source
from lab.build import Kernel
from lab.errors import LabError
from lab.targets import Linux
from tests.camc import machine

MAKEFILE = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 7\n"
CMA = "int a;\nint b;\nint c;\nint d;\nint e;\n"
PATCH = """\
From: A Maintainer <maintainer@kernel.example>
Subject: [PATCH 1/1] mm: cma: make b long

It was too short.

Adds: mm/gcma.c

Signed-off-by: A Maintainer <maintainer@kernel.example>
---
--- a/mm/cma.c
+++ b/mm/cma.c
@@ -1,4 +1,4 @@
 int a;
-int b;
+long b;
 int c;
 int d;
"""


@dataclass(frozen=True)
class Lab:
    """Folders of one test."""

    cache: Path
    kernel: Path
    tarball: Path

    @property
    def linux(self) -> Linux:
        return Linux("6.12", "linux-source-6.12", self.tarball, "patches-6.12")

    def pristine(self) -> source.Tree:
        return source.pristine(self.linux, self.cache)

    def patched(self) -> source.Tree:
        base = self.pristine()
        return source.patched(base, source.read_series(self.kernel), base.path.with_name("patched"))

    def write(self, name: str, text: str) -> Path:
        """A file below the project's kernel folder."""
        path = self.kernel / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


def tool(folder: Path, name: str, script: str) -> None:
    """A program that stands in for one of the host's."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def small_lab(tmp_path: Path) -> Lab:
    linux = tmp_path / "linux-source-6.12"
    (linux / "mm").mkdir(parents=True)
    (linux / "Makefile").write_text(MAKEFILE)
    (linux / "mm/cma.c").write_text(CMA)
    (linux / "mm/slab.c").write_text("int slab;\n")
    tarball = tmp_path / "linux.tar.xz"
    with tarfile.open(tarball, "w:xz") as archive:
        archive.add(linux, linux.name)
    cache = tmp_path / "cache"
    cache.mkdir()
    lab = Lab(cache, tmp_path / "kernel", tarball)
    lab.write("files/mm/gcma.c", "int gcma;\n")
    lab.write("patches-6.12/reserve/0001-b.patch", PATCH)
    lab.write("patches-6.12/series", "# in order\nreserve/0001-b.patch\n")
    return lab


@pytest.fixture(scope="session")
def kernel() -> Kernel:
    """What the test run has built, or, for pytest by hand, what is built now."""
    flavour = os.environ.get("GCMA_TEST_FLAVOUR", "prod")
    objects = os.environ.get("GCMA_TEST_OBJECTS")
    return build.load(flavour, Path(objects)) if objects else build.build(flavour)


@pytest.fixture(scope="session")
def camc_tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The camc program, with the compiler's checks and a kernel that answers as tests tell."""
    return machine.build(tmp_path_factory.mktemp("camc"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what a LabError tells below its line: a guest's last words, say."""
    report = yield
    error = call.excinfo.value if call.excinfo else None
    if report.failed and isinstance(error, LabError) and error.detail:
        report.sections.append(("What the error tells", error.detail))
    return report
