# SPDX-License-Identifier: GPL-2.0-or-later
"""report.html: one self-contained page from stored results; its pictures as files."""

import re
from collections.abc import Sequence
from html import escape

from lab import figures, plots
from lab.figures import Standing
from lab.results import Cell, Result, Table

CSS = """\
:root { --ink: #1b1f24; --soft: #5c6670; --line: #dfe3e8; --ground: #ffffff; --band: #f6f8fa;
  --good: #00734f; --bad: #b3261e; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--band); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 28px 24px 80px; }
h1 { font-size: 28px; margin: 0 0 4px; } h2 { font-size: 21px; margin: 0 0 2px; }
h3 { font-size: 15px; margin: 22px 0 6px; }
p { margin: 4px 0; } .soft, .note { color: var(--soft); } .note { font-size: 13px; }
nav { margin: 14px 0 22px; } nav a { margin-right: 14px; }
a { color: #0b5cad; text-decoration: none; } a:hover { text-decoration: underline; }
section { background: var(--ground); border: 1px solid var(--line); border-radius: 10px;
  padding: 20px 24px; margin: 18px 0; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 12px; }
figure { margin: 8px 0 0; max-width: 640px; } figcaption { font-weight: 600; margin-bottom: 2px; }
svg { width: 100%; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th { text-align: left; color: var(--soft); font-weight: 600; border-bottom: 2px solid var(--line); }
td, th { padding: 4px 14px 4px 0; vertical-align: top; }
td { border-bottom: 1px solid var(--line); }
.number { text-align: right; }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 700; }
details { margin-top: 14px; } summary { cursor: pointer; color: var(--soft); }
code { font-size: 12px; overflow-wrap: anywhere; }
"""

FIGURE_COLUMNS = ("what", "value", "must", "aim", "", "eval", "taken", "kernel")
DOCTYPE = "<!DOCTYPE html>"
SVG_LICENCE = "<!-- SPDX-License-Identifier: GPL-2.0-or-later -->"


def html(results: Sequence[Result], standings: Sequence[Standing], made: str) -> str:
    """The page. `made` is its date."""
    links = "".join(f'<a href="#{result.name}">{escape(result.name)}</a>' for result in results)
    return f"""\
{DOCTYPE}
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>GCMA: measurements</title>
<style>
{CSS}</style></head><body><main>
<h1>GCMA: measurements</h1>
<p class="soft">Guaranteed contiguous memory on Linux, beside pure reservation (<b>none</b>) and
stock CMA (<b>movable</b>). Made {escape(made)}.</p>
<nav>{links}</nav>
{_figures(standings)}{"".join(_section(result) for result in results)}</main></body></html>
"""


def _figures(standings: Sequence[Standing]) -> str:
    if not standings:
        return ""
    rows = "".join(_standing(standing) for standing in standings)
    head = "".join(f"<th>{name}</th>" for name in FIGURE_COLUMNS)
    return (
        '<section id="figures"><h2>Figures</h2><div class="scroll">'
        f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div></section>\n"
    )


def _standing(standing: Standing) -> str:
    figure, promise, verdict = standing.figure, standing.promise, figures.verdict(standing)
    unit = "" if figure.unit == "ratio" else f" {figure.unit}"
    kind = "bad" if verdict == "FAILS" else "good" if verdict in ("holds", "aim") else "soft"
    return (
        f"<tr><td>{escape(figures.wording(standing))}</td>"
        f'<td class="number">{figures.number(figure.value)}{escape(unit)}</td>'
        f'<td class="number">{figures.number(figure.must)}</td>'
        f'<td class="number">{figures.number(figure.aim)}</td>'
        f'<td class="{kind}">{verdict}</td>'
        f'<td><a href="#{promise.eval}">{promise.eval}</a></td>'
        f'<td class="soft">{escape((standing.taken or "never")[:10])}</td>'
        f'<td class="soft">{escape(standing.kernel or "-")}</td></tr>\n'
    )


def _section(result: Result) -> str:
    pictures = "".join(
        f"<figure><figcaption>{escape(plot.title)}</figcaption>{plots.svg(plot)}</figure>\n"
        for plot in result.plots
    )
    when = f"{escape(result.taken)}, kernel {escape(', '.join(result.kernels) or 'none')}"
    when += "".join(f", {name} {escape(value[:60])}" for name, value in result.host.items())
    return (
        f'<section id="{result.name}"><h2>{escape(result.name)}</h2>\n'
        f'<p>{escape(result.title)}</p><p class="note">{when}</p>\n'
        f'<div class="plots">{pictures}</div>\n'
        f"{''.join(_table(table) for table in result.tables)}{_runs(result)}</section>\n"
    )


def pictures(results: Sequence[Result]) -> dict[str, str]:
    """File name -> picture, for all plots of these results."""
    return {
        f"{result.name}-{_slug(plot.title)}.svg": f"{SVG_LICENCE}\n{plots.svg(plot)}"
        for result in results
        for plot in result.plots
    }


def _slug(title: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))


def _table(table: Table) -> str:
    head = "".join(
        f"<th{_align(table, number)}>{escape(name)}</th>"
        for number, name in enumerate(table.columns)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td{_align(table, number)}>{escape(cell(value))}</td>"
            for number, value in enumerate(row)
        )
        + "</tr>\n"
        for row in table.rows
    )
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return (
        f'<h3>{escape(table.title)}</h3>{note}<div class="scroll"><table><thead><tr>{head}</tr>'
        f"</thead><tbody>\n{rows}</tbody></table></div>\n"
    )


def _align(table: Table, column: int) -> str:
    numbers = all(not isinstance(row[column], str) for row in table.rows)
    return ' class="number"' if numbers else ""


def cell(value: Cell) -> str:
    return value if isinstance(value, str) else figures.number(value)


def _runs(result: Result) -> str:
    """How each number was made."""
    rows = "".join(
        f"<p><b>{escape(run['name'])}</b> ({run['mode']}, seed {run['seed']},"
        f" {run['seconds']} s): <code>{escape(' '.join(run['command']))}</code></p>\n"
        for run in result.runs
    )
    return f"<details><summary>How: {len(result.runs)} guests</summary>\n{rows}</details>\n"
