# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of ceilings in docs/compactfit.md is that of compactfit/tools/ceilings.h."""

import re

from lab import paths

ENGINE = re.compile(r'\{ "(?P<name>[^"]+)",\s*\{.*?\}, (?:true|false),\s*\{ (?P<costs>.*?) \} \}')

REFUSED = 160  # instructions: what the documentation says of moving heaps that no row names


def _rows() -> dict[str, list[int]]:
    """The documentation's table."""
    document = (paths.REPO / "docs/compactfit.md").read_text()
    _, table = document.split("| heap | malloc |", 1)
    rows = [line.strip("| ").split(" | ") for line in table.split("\n\n")[0].splitlines()[2:]]
    return {
        name: [int(cost.replace(",", "").replace("-", "0")) for cost in costs]
        for name, *costs in rows
    }


def test_the_documentation_has_the_figures_that_are_tested() -> None:
    header = (paths.REPO / "compactfit/tools/ceilings.h").read_text()
    tested = {
        match["name"]: [int(cost) for cost in re.findall(r"\{ (\d+),", f"{{ {match['costs']}")]
        for match in ENGINE.finditer(header.replace("\n", " "))
    }
    told = _rows()
    assert len(tested) == header.count('\t{ "')
    assert told == tested


def test_the_last_row_of_an_engine_is_that_of_any_combination() -> None:
    rows = list(_rows().items())
    for engine in ("moving", "non-moving"):
        of = [(name, costs) for name, costs in rows if name.split(",")[0] == engine]
        for name, costs in of:
            last = list(of[-1 if "remote" in name else -2][1])
            if engine == "moving" and "remote" not in name:
                last[-1] = REFUSED
            assert all(cost <= most for cost, most in zip(costs, last, strict=True)), name
    document = " ".join((paths.REPO / "docs/compactfit.md").read_text().split())
    assert (
        f"a free that is refused takes {REFUSED} at most in a moving heap without them" in document
    )
