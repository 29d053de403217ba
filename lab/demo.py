# SPDX-License-Identifier: GPL-2.0-or-later
"""`./gcma demo`: the main job in one command, in words, pictures and files."""

from pathlib import Path

from lab import evals, present, results
from lab.results import Result


def run(folder: Path) -> Result:
    """Take the photos and write what they show."""
    result = evals.run("photo-swap")
    results.write_file(folder / "results.json", results.to_json(result))
    present.write_report(folder / "report.html", [result])
    return result
