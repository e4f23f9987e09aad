"""Reports as Markdown and on the terminal: what all of them begin with, tables."""

from __future__ import annotations

import rich.table
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from cpufree.bench.core import noise
from cpufree.bench.report.captions import how_text, machine_text, warnings
from cpufree.bench.report.collected import AnyResults
from cpufree.bench.report.tables import Table


def markdown(table: Table) -> str:
    """Return a table as Markdown."""
    rows = [table.heads, *table.rows]
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([lines[0], "|" + " --- |" * len(table.heads), *lines[1:]]) + "\n"


def head(results: AnyResults) -> list[str]:
    """Return what was measured where and how, as a list."""
    lines = []
    for header in results.headers:
        lines += [f"- {machine_text(header)}", f"- `{header['command']}`", f"- {how_text(header)}"]
    rate = results.memory_rate()
    if rate is not None:
        where = "all cores" if rate[0] == "triad" else "one GPU"
        lines.append(
            f"- memory, measured in the same run: {rate[0]} {rate[1] / 1e9:.4g} GB/s, {where}"
        )
    lines += [
        f"- {rate['what']} not measured: {rate['error']}"
        for rate in results.rates
        if "error" in rate
    ]
    lines += [f"- **{line}**" for line in warnings(results)]
    lines.append(
        "- times: median (quartiles); *faster* and *slower*: Mann–Whitney test, "
        f"p ≤ {noise.SIGNIFICANCE}, and medians {noise.LEAST_DIFFERENCE:.0%} apart or more"
    )
    return lines


def shown(table: Table, title: str) -> RenderableType:
    """Return a table for the terminal; where that is narrow, cells are folded."""
    body = rich.table.Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for head in table.heads:
        body.add_column(head, overflow="fold")
    for row in table.rows:
        body.add_row(*map(Text, row))
    return Group(Text(title, style="bold"), Padding(body, (0, 0, 0, 2), expand=False))
