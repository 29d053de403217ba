# SPDX-License-Identifier: GPL-2.0-or-later
"""What checkpatch.pl --strict of Linux says of the mails, but for what is listed with a reason."""

import os
import re
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from lab import console, process
from lab.errors import LabError

LIST = Path(__file__).with_name("checkpatch.toml")
COLUMNS = 100  # of a line: checkpatch's own limit, and that of Documentation/process
SECONDS = 1  # of a mail
REMARK = re.compile(r"^(?P<file>[^:]*):\d+: (?:ERROR|WARNING|CHECK):(?P<type>\w+): .*$", flags=re.M)


@dataclass(frozen=True)
class Allowed:
    """Remarks that stay as they are."""

    type: str
    files: tuple[str, ...]  # shell patterns
    why: str

    def covers(self, remark: re.Match[str]) -> bool:
        return remark["type"] == self.type and any(
            fnmatchcase(remark["file"], pattern) for pattern in self.files
        )


def read(path: Path = LIST) -> list[Allowed]:
    entries = tomllib.loads(path.read_text()).get("allowed", [])
    try:
        return [Allowed(entry["type"], tuple(entry["files"]), entry["why"]) for entry in entries]
    except KeyError as missing:
        raise LabError(f"{path}: an entry has no {missing}") from None


def check(mails: Sequence[Path], tree: Path, *, whole: bool) -> None:
    """Raise LabError if checkpatch of `tree` remarks what is not listed, or, of the whole series,
    if something is listed that it does not remark.
    """
    with (
        console.progress("checkpatch", len(mails), SECONDS * len(mails)) as step,
        # no repository to look into, and a place for the names that it collects from the tree
        tempfile.TemporaryDirectory(prefix="gcma-checkpatch-") as folder,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        place = Path(folder)
        outputs = [run(mail, tree, place) for mail in mails[:1]]  # the others find the names
        for output in pool.map(lambda mail: run(mail, tree, place), mails[1:]):
            outputs.append(output)
            step.update(len(outputs))
    lines = judge(outputs, read(), whole=whole)
    if lines:
        raise LabError(f"checkpatch remarks what {LIST.name} does not list", "\n".join(lines))


def run(mail: Path, tree: Path, place: Path) -> str:
    """Its remarks: FILE:LINE: LEVEL:TYPE: WORDS, the mail's name where it is of the log.

    checkpatch runs in `place`, and leaves there what it knows of the tree.
    """
    command = ["perl", str(tree / "scripts/checkpatch.pl"), "--root", str(tree)]
    command += ["--strict", "--terse", "--showfile", "--show-types", "--no-summary"]
    command += [f"--max-line-length={COLUMNS}", str(mail)]
    answer = process.run(command, cwd=place, check=False)
    if answer.stderr or answer.returncode not in (0, 1):
        raise LabError(f"checkpatch failed on {mail.name}", answer.stderr)
    return re.sub(r"^(?=:\d)", mail.name, answer.stdout, flags=re.M)


def judge(outputs: Iterable[str], listed: Sequence[Allowed], *, whole: bool) -> list[str]:
    """A line for each remark that is not listed, and for each entry that has no remark."""
    remarks = [match for output in outputs for match in REMARK.finditer(output)]
    lines = [match[0] for match in remarks if not any(each.covers(match) for each in listed)]
    if whole:
        lines += [
            f"{LIST.name} lists more than it has to: {each.type} in {', '.join(each.files)}"
            for each in listed
            if not any(map(each.covers, remarks))
        ]
    return lines
