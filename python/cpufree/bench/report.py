"""The report on results: Markdown with all tables, plots beside it, and a summary to look at."""

from __future__ import annotations

from pathlib import Path

import rich.table
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from . import noise, tables
from .collected import AnyResults
from .records import Line
from .results import Results
from .tables import Setting, Table

DISTURBED = 0.02  # share of the processor that other programs may take


def markdown(table: Table) -> str:
    """Return a table as Markdown."""
    rows = [table.heads, *table.rows]
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([lines[0], "|" + " --- |" * len(table.heads), *lines[1:]]) + "\n"


def write_report(results: Results, folder: Path, plots: bool = True) -> list[Path]:
    """Write report.md into a folder, plots beside it; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[Path, Setting | None] = {}
    if plots:
        from .plots import draw_all

        drawn = draw_all(results, folder)
    report = folder / "report.md"
    report.write_text("\n".join(_sections(results, drawn)), encoding="utf-8")
    return [report, *drawn]


def _sections(results: Results, drawn: dict[Path, Setting | None]) -> list[str]:
    def pictures(place: Setting | None) -> list[str]:
        return [f"![{path.stem}]({path.name})\n" for path in drawn if drawn[path] == place]

    parts = ["# Conjugate gradients: cpufree and others\n", *head(results), "", *pictures(None)]
    summary = tables.summary(results)
    if summary.rows:
        parts += ["## Geometric means of the speed-up of cpufree\n", markdown(summary)]
    for setting in results.settings():
        parts += [f"## {tables.setting_text(setting)}\n"]
        parts += [markdown(tables.overview(results, setting)), *pictures(setting)]
        for group in results.groups_of(setting):
            parts += [f"### {group.case}\n", markdown(tables.detail(results, group))]
            if (over := tables.overheads(results, group)) is not None:
                parts += ["µs per iteration, and what communication takes:\n", markdown(over)]
            if (splits := tables.splits(results, group)) is not None:
                parts += ["µs per iteration, where they go:\n", markdown(splits)]
    parts += ["## Contenders\n", markdown(tables.contenders(results))]
    if results.failures:
        parts += ["## Not measured\n", markdown(tables.failures(results))]
    return parts


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


def warnings(results: AnyResults) -> list[str]:
    """Return why the results are not for the record, nothing where they are."""
    others = max((end["others"] or 0.0 for end in results.ends), default=0.0)
    found = []
    if others > DISTURBED:
        found.append(f"disturbed: other programs took {others:.0%} of the processor")
    if not results.ends:
        found.append("the run has not been finished")
    return found


def machine_text(header: Line) -> str:
    """Return machine, versions, commit and date in a line."""
    machine, versions = header["machine"], header["versions"]
    parts = [machine["gpus"]] if machine["gpus"] else []
    driver, cuda = versions.get("driver"), versions.get("cuda_runtime")
    parts += [f"driver {driver}"] if driver else []
    parts += [f"CUDA {cuda}"] if driver and cuda else []
    parts.append(f"{machine['cpu']}, {machine['cores']} cores")
    parts += [f"cpufree {versions['cpufree']}"] if versions["cpufree"] != "unknown" else []
    if header["commit"]:
        parts.append(f"commit {header['commit'][:10]}{' (modified)' if header['modified'] else ''}")
    return " · ".join([*parts, header["date"][:10]])


def how_text(header: Line) -> str:
    """Return how it was measured in a line."""
    c = header["configuration"]
    what = f"{c['iterations']} iterations" if c["iterations"] else f"to rtol {c['rtol']:g}"
    what += " at most" if c["iterations"] and "rtol" in c else ""  # of CG: cut where it ends
    return f"{what}, {c['repeats']} repeats, order from seed {c['seed']}"


def shown(table: Table, title: str) -> RenderableType:
    """Return a table for the terminal; where that is narrow, cells are folded."""
    body = rich.table.Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for head in table.heads:
        body.add_column(head, overflow="fold")
    for row in table.rows:
        body.add_row(*map(Text, row))
    return Group(Text(title, style="bold"), Padding(body, (0, 0, 0, 2), expand=False))


def show(results: Results, console: Console) -> None:
    """Print the overview of each setting, the geometric means, and what could not be measured."""
    for setting in results.settings():
        console.print(shown(tables.overview(results, setting), tables.setting_text(setting)))
    summary = tables.summary(results)
    if summary.rows:
        console.print(shown(summary, "Geometric means of the speed-up of cpufree"))
    if results.failures:
        console.print(shown(tables.failures(results), "Not measured"))
    if not results.series:
        console.print(Text("nothing was measured", style="red"))
    for line in warnings(results):
        console.print(Text(f"  {line}", style="yellow"))
