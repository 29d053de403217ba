# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of ceilings in docs/compactfit.md is that of compactfit/tools/ceilings.h."""

import re

from lab import paths

ENGINE = re.compile(r'\{ "(?P<name>[^"]+)",\s*\{.*?\}, (?:true|false),\s*\{ (?P<costs>.*?) \} \}')


def test_the_documentation_has_the_figures_that_are_tested() -> None:
    header = (paths.REPO / "compactfit/tools/ceilings.h").read_text()
    tested = {
        match["name"]: [int(cost) for cost in re.findall(r"\{ (\d+),", f"{{ {match['costs']}")]
        for match in ENGINE.finditer(header.replace("\n", " "))
    }
    document = (paths.REPO / "docs/compactfit.md").read_text()
    _, table = document.split("| heap | malloc |", 1)
    rows = [line.strip("| ").split(" | ") for line in table.split("\n\n")[0].splitlines()[2:]]
    told = {
        name: [int(cost.replace(",", "").replace("-", "0")) for cost in costs]
        for name, *costs in rows
    }
    assert len(tested) == header.count('\t{ "')
    assert told == tested
