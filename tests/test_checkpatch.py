# SPDX-License-Identifier: GPL-2.0-or-later
"""What checkpatch remarks, and what of it is allowed; with a checkpatch that greps."""

from pathlib import Path

import pytest

from lab import checkpatch, cli, setup, source
from lab.checkpatch import Allowed
from lab.errors import LabError
from tests.conftest import Lab

LONG = "mm/a.c:7: WARNING:LONG_LINE: line length of 101 exceeds 100 columns\n"
LOG = "0001-b.patch:3: WARNING:COMMIT_LOG_LONG_LINE: Prefer a maximum 75 chars per line\n"
HEADERS = Allowed("LONG_LINE", ("include/*",), "they are tables")
SOURCES = Allowed("LONG_LINE", ("include/*", "mm/*.c"), "they are wide")
# As the real one, it does not name the file of a remark on the log
SCRIPT = """
while (my $name = shift) {
    next if $name =~ /^--/;
    open(my $mail, "<", $name) or next;
    for (<$mail>) {
        print "mm/cma.c:2: ERROR:SPACING: long b\\n" if /^\\+long b/;
        print ":4: WARNING:BAD_WORD: $1\\n" if /(bad)/;
        die "no idea\\n" if /worse/;
    }
}
"""


@pytest.mark.parametrize(
    ("outputs", "listed", "whole", "lines"),
    [
        ([], [], True, []),
        ([LONG], [], False, [LONG.strip()]),
        ([LONG], [HEADERS], False, [LONG.strip()]),
        ([LONG + LOG, LONG], [SOURCES], True, [LOG.strip()]),
        ([LONG], [Allowed("SPACING", ("mm/a.c",), "")], False, [LONG.strip()]),
        ([LONG], [SOURCES, HEADERS], False, []),
        ([LONG], [SOURCES, HEADERS], True, ["LONG_LINE in include/*"]),
    ],
)
def test_remarks_are_listed_or_refused(
    *, outputs: list[str], listed: list[Allowed], whole: bool, lines: list[str]
) -> None:
    judged = checkpatch.judge(outputs, listed, whole=whole)
    assert len(judged) == len(lines)
    assert all(end in line for end, line in zip(lines, judged, strict=True))


def test_the_list_has_reasons() -> None:
    assert all(entry.why.strip() for entry in checkpatch.read())


def test_an_entry_without_a_reason_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "list.toml"
    path.write_text('[[allowed]]\ntype = "SPACING"\nfiles = ["mm/*"]\n')
    with pytest.raises(LabError, match=r"list\.toml: an entry has no 'why'"):
        checkpatch.read(path)


@pytest.fixture
def lab(small_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A tree with a checkpatch, and nothing that is allowed."""
    tree = small_lab.pristine()
    (tree.path / "scripts").mkdir()
    (tree.path / "scripts/checkpatch.pl").write_text(SCRIPT)
    empty = small_lab.cache / "allowed.toml"
    empty.write_text("")
    series = source.read_series(small_lab.kernel)
    monkeypatch.setenv("GCMA_CACHE", str(small_lab.cache))
    monkeypatch.setattr(setup, "install_packages", lambda: None)
    monkeypatch.setattr(source, "read_series", lambda *_: series)
    monkeypatch.setattr(source, "pristine", lambda *_: tree)
    monkeypatch.setattr(checkpatch.read, "__defaults__", (empty,))
    return small_lab


def test_remarked_patches_are_not_exported(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "mails"
    assert cli.main(["export", "--check", str(target)]) == 1
    assert "mm/cma.c:2: ERROR:SPACING: long b" in capsys.readouterr().err
    assert not target.exists()


@pytest.mark.parametrize(
    ("text", "words"), [("bad", "mail.patch:4: WARNING:BAD_WORD: bad"), ("fine", "")]
)
def test_remarks_on_a_log_name_the_mail(text: str, words: str, lab: Lab, tmp_path: Path) -> None:
    mail = tmp_path / "mail.patch"
    mail.write_text(text)
    assert checkpatch.run(mail, lab.pristine().path, tmp_path).strip() == words


def test_a_checkpatch_that_fails_is_an_error(lab: Lab, tmp_path: Path) -> None:
    mail = tmp_path / "mail.patch"
    mail.write_text("worse")
    with pytest.raises(LabError, match=r"checkpatch failed on mail\.patch"):
        checkpatch.check([mail], lab.pristine().path, whole=True)
