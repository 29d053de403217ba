# SPDX-License-Identifier: GPL-2.0-or-later
"""Results, figures and what is made of them; tests/golden holds what a report looks like.

After a wanted change: GCMA_GOLDEN=1 ./gcma test --only lab, then read the diff.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lab import cli, evals, figures, guests, paths, plots, present, report, results, setup
from lab.errors import LabError
from lab.figures import Promise
from lab.results import Figure, KernelId, Line, Outcome, Plot, Result, Run, Table

GOLDEN = Path(__file__).parent / "golden"
CDF = Plot(
    "Allocation <all>",
    "cdf",
    "us",
    "share",
    [Line("none", [(1, 0.5), (2, 1.0)]), Line("movable", [(10, 0.25), (1000, 1.0)])],
    log_x=True,
)
PROMISES = [
    Promise("a-ratio", "a ratio", "ratio", "sample", "lower", must=1.2, aim=1.05),
    Promise("b-share", "a share & more", "%", "sample", "higher", must=70, aim=90),
    Promise("c-told", "only told", "lines", "sample", "lower"),
    Promise("d-other", "of another evaluation", "ratio", "other", "lower", must=1),
]


def sample() -> Result:
    run = Run(
        "gcma, 1 CPU",
        "exact",
        KernelId("6.12.117", "prod", "c" * 64, "5" * 64),
        {"cpus": 2, "policy": "gcma"},
        ["qemu", "-append", "a&b"],
        seed=1,
        seconds=2.5,
        samples={"us": [1, 2]},
    )
    table = Table("Latency", ("policy", "max"), [["none", 1234567.0], ["gcma", None]], "A note.")
    outcome = Outcome([run], [table], [CDF], {"a-ratio": 1.1, "b-share": 60.0, "c-told": 700.0})
    judged = figures.judged("sample", outcome.values, PROMISES)
    made = results.make("sample", "what it is", outcome, judged)
    return replace(made, taken="2026-01-01T00:00:00+00:00")


def compare(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("GCMA_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def test_report_is_as_it_was() -> None:
    standings = figures.standings(PROMISES, {"sample": sample()})
    page = report.html([sample()], standings, "2026-01-02")
    # how matplotlib draws is not ours to keep
    compare("report.html", re.sub(r"<svg.*?</svg>", "<svg/>", page, flags=re.S))


def test_terminal_plot_is_as_it_was() -> None:
    compare("cdf.txt", plots.text(CDF) + "\n")


def test_report_of_stored_results_needs_no_kernel() -> None:
    code = "import sys, lab.report; print({'lab.build', 'lab.source'} & set(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=paths.REPO, capture_output=True, text=True, check=True
    )
    assert loaded.stdout == "set()\n"


def test_report_needs_nothing_from_elsewhere() -> None:
    page = report.html([sample()], [], "2026-01-02")
    outside = re.findall(r"(?:src|href)=[\"'](?!#)[^\"']*", page)
    assert outside == []
    assert "<script" not in page


def test_pictures_are_files_named_by_what_they_show(tmp_path: Path) -> None:
    written = present.write_pictures(tmp_path / "new", [sample()])
    assert [path.name for path in written] == ["sample-allocation-all.svg"]
    assert plots.svg(CDF) in written[0].read_text()


@pytest.mark.parametrize("kind", ["cdf", "lines", "points", "bars"])
def test_svg_is_the_same_again_and_names_its_lines(kind: str) -> None:
    plot = replace(CDF, kind=kind, groups=("x", "y"), log_x=False)
    once = plots.svg(plot)
    assert once == plots.svg(plot)
    assert once.startswith("<svg")
    assert "movable" in once


def test_steps_hold_until_the_next_value() -> None:
    assert plots.steps(CDF.lines[0]) == ([1, 1, 1, 2, 2], [0.0, 0.0, 0.5, 0.5, 1.0])


def test_result_survives_its_file() -> None:
    assert results.parse(results.to_json(sample())) == sample()


def test_result_tells_what_it_was_taken_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCMA_CACHE", str(tmp_path))
    # as compactfit's, which has no guest whose kernel would be told
    monkeypatch.setattr(evals, "EVALS", {"size": lambda _: Outcome([], [], [], {})})
    taken = evals.run("size")
    assert taken == results.load("size")
    assert re.fullmatch(r"\d+ x .+", taken.host["cpu"])
    assert "QEMU" in taken.host["qemu"] and "gcc" in taken.host["gcc"]
    assert taken.host["cpu"] in report.html([taken], [], "2026-01-02")
    before = json.loads(results.to_json(taken))
    del before["host"]
    assert results.parse(json.dumps(before)) == replace(taken, host={})


def test_nothing_is_measured_for_a_result_that_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hours(_: guests.Kernels) -> Outcome:
        raise AssertionError("must be refused before this")

    monkeypatch.setenv("GCMA_CACHE", str(tmp_path))
    monkeypatch.setattr(evals, "EVALS", {"size": hours})
    monkeypatch.setattr(evals, "RESULT_MB", 999_999_999)
    with pytest.raises(LabError, match="no space: the result of size needs"):
        evals.run("size")


def test_result_ends_in_its_figures() -> None:
    raw = json.loads(results.to_json(sample()))
    assert list(raw)[-1] == "figures"
    first = raw["figures"][0]
    assert list(first) == ["name", "value", "unit", "must", "aim", "holds"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": 0}', '{"schema": 1}', '{"schema": 1, "tables": [{"x": 1}]}']
)
def test_what_is_no_result_is_refused(text: str) -> None:
    with pytest.raises(LabError, match="not a result"):
        results.parse(text)


@pytest.mark.parametrize(
    ("better", "value", "holds"),
    [("lower", 1.0, True), ("lower", 1.3, False), ("higher", 1.0, False), ("higher", 1.3, True)],
)
def test_figures_are_judged(better: str, value: float, holds: bool) -> None:
    promise = Promise("x", "", "", "e", better, must=1.2)
    assert promise.judge(value).holds is holds
    assert promise.judge(None).holds is None


def test_a_stored_figure_that_just_misses_still_does() -> None:
    promise = Promise("pure", "share of pages", "share", "sample", "higher", must=1.0, aim=1.0)
    outcome = Outcome([], [], [], {"pure": 999_999 / 1_000_000 + 6e-7})
    judged = figures.judged("sample", outcome.values, [promise])
    stored = results.parse(results.to_json(results.make("sample", "", outcome, judged)))
    (standing,) = figures.standings([promise], {"sample": stored})
    assert (stored.figures[0].holds, figures.verdict(standing)) == (False, "FAILS")


def test_verdicts() -> None:
    standings = figures.standings(PROMISES, {"sample": sample()})
    assert [figures.verdict(standing) for standing in standings] == [
        "holds",
        "FAILS",
        "",
        "not taken",
    ]


def test_a_figure_that_was_to_be_measured_and_was_not_misses() -> None:
    promises = [*PROMISES, Promise("e-maybe", "", "", "sample", "lower", 1, optional=True)]
    judged = figures.judged("sample", {"b-share": 80.0}, promises)
    assert [figure.holds for figure in judged] == [False, True, None, None]
    taken = replace(sample(), figures=judged)
    later = [*promises, Promise("f-new", "promised since", "", "sample", "lower", must=1)]
    verdicts = [figures.verdict(each) for each in figures.standings(later, {"sample": taken})]
    assert verdicts == ["FAILS", "holds", "not taken", "not taken", "not taken", "not taken"]


def test_a_figure_that_misses_says_why() -> None:
    slow = figures.Promise("slow", "time", "s", "sample", "lower", must=1, why="two copies")
    for value, text in ((2.0, "time. Why not: two copies"), (1.0, "time"), (None, "time")):
        standing = figures.Standing(slow, slow.judge(value), None, None)
        assert figures.wording(standing) == text


def test_unknown_figure_is_refused() -> None:
    with pytest.raises(LabError, match="no figure typo of sample"):
        figures.judged("sample", {"typo": 1.0}, PROMISES)


def test_figures_file_errors_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "figures.toml"
    path.write_text('[a]\ntext = "t"\nunit = "u"\neval = "e"\nbetter = "sideways"\n')
    with pytest.raises(LabError, match="a: better is 'lower' or 'higher'"):
        figures.read(path)
    path.write_text("[a]\nnonsense = 1\n")
    with pytest.raises(LabError, match=r"figures\.toml"):
        figures.read(path)


def test_file_is_all_or_nothing(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="cannot write"):
        results.write_file(tmp_path / "none/report.html", "x")
    results.write_file(tmp_path / "report.html", "x")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_report_without_results_says_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GCMA_CACHE", str(tmp_path))
    assert cli.main(["report", str(tmp_path / "r.html")]) == 1
    assert "nothing was measured yet" in capsys.readouterr().err


def test_broken_result_in_the_cache_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GCMA_CACHE", str(tmp_path))
    (results.folder() / "size.json").write_bytes(b"\xff")
    for command in (["report", str(tmp_path / "r.html")], ["figures"]):
        assert cli.main(command) == 1
        assert f"{tmp_path}/results/size.json: this is not a result" in capsys.readouterr().err


def test_result_is_written_though_nobody_reads_the_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(_: Result) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setenv("GCMA_CACHE", str(tmp_path))
    monkeypatch.setattr(setup, "install_packages", lambda: None)
    monkeypatch.setattr(evals, "run", lambda _: sample())
    monkeypatch.setattr(present, "show", gone)
    assert cli.main(["eval", "size", "--json", str(tmp_path / "r.json")]) == 1
    assert results.parse((tmp_path / "r.json").read_text()) == sample()
    assert capsys.readouterr().err == ""


def test_report_replaces_no_file_that_is_not_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GCMA_CACHE", str(tmp_path))
    results.save(replace(sample(), name="size", figures=[]))
    page, other = tmp_path / "report.html", tmp_path / "results.json"
    other.write_text("{}\n")
    assert cli.main(["report", str(page)]) == 0
    assert cli.main(["report", str(page)]) == 0
    assert cli.main(["report", str(other)]) == 1
    assert "name another file" in capsys.readouterr().err
    assert other.read_text() == "{}\n"


def test_figures_verb_fails_if_a_figure_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GCMA_CACHE", str(tmp_path))
    assert cli.main(["figures", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["value"] is None
    bad = Figure("frame-table", 5.0, "%", 0.8, 0.5, holds=False)
    results.save(replace(sample(), name="size", figures=[bad]))
    assert cli.main(["figures"]) == 1


@pytest.mark.parametrize(
    ("better", "value", "before", "worse"),
    [
        ("lower", 102.0, 100.0, False),
        ("lower", 102.1, 100.0, True),
        ("higher", 98.0, 100.0, False),
        ("higher", 97.9, 100.0, True),
        ("lower", 0.1, 0.0, True),
        ("lower", 0.0, 0.0, False),
        ("higher", -1.03, -1.0, True),
        ("lower", None, 1.0, True),
        ("lower", None, None, False),
        ("lower", 9.0, None, False),
    ],
)
def test_a_figure_may_be_a_little_worse_than_before(
    *, better: str, value: float | None, before: float | None, worse: bool
) -> None:
    promise = figures.Promise("some", "time", "s", "sample", better)
    assert figures.Standing(promise, promise.judge(value), None, None, before).worse == worse


def test_figures_are_held_against_an_earlier_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def take(value: float) -> None:
        figure = Figure("frame-table", value, "%", 0.8, 0.5, holds=True)
        results.save(replace(sample(), name="size", figures=[figure]))

    monkeypatch.setenv("GCMA_CACHE", str(tmp_path))
    take(0.5)
    assert cli.main(["figures", "--json"]) == 0
    file = tmp_path / "before.json"
    file.write_text(capsys.readouterr().out)
    assert cli.main(["figures", "--against", str(file)]) == 0
    take(0.52)
    assert cli.main(["figures", "--against", str(file)]) == 1
    capsys.readouterr()
    assert cli.main(["figures", "--against", str(file), "--json"]) == 1
    assert {each["before"] for each in json.loads(capsys.readouterr().out)} == {None, 0.5}


@pytest.mark.parametrize(
    ("text", "words"),
    [(None, "No such file"), ("{}[", "not what"), ('{"a": 1}', "not what"), ("[{}]", "not what")],
)
def test_what_is_no_earlier_run_is_refused(text: str | None, words: str, tmp_path: Path) -> None:
    file = tmp_path / "before.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(LabError, match=words):
        figures.earlier(file)
