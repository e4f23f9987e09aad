"""The report on results: Markdown with all tables, plots beside it, and a summary to look at."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from cpufree.bench.cg import tables
from cpufree.bench.cg.results import Results
from cpufree.bench.cg.tables import Setting
from cpufree.bench.report.captions import warnings
from cpufree.bench.report.document import head, markdown, shown
from cpufree.bench.report.tables import failures, overheads
from cpufree.output_file import write_text


def write_report(results: Results, folder: Path, plots: bool = True) -> list[Path]:
    """Write report.md into a folder, plots beside it; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[Path, Setting | None] = {}
    if plots:
        from cpufree.bench.cg.plots import draw_all

        drawn = draw_all(results, folder)
    report = folder / "report.md"
    write_text(report, "\n".join(_sections(results, drawn)))
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
        parts += [f"{results.matrices(results.groups_of(setting)).capitalize()}.\n"]
        parts += [markdown(tables.overview(results, setting)), *pictures(setting)]
        for group in results.groups_of(setting):
            parts += [f"### {group.case}\n", markdown(tables.detail(results, group))]
            if (over := overheads(results, group)) is not None:
                parts += ["µs per iteration, and what communication takes:\n", markdown(over)]
            if (splits := tables.splits(results, group)) is not None:
                parts += ["µs per iteration, where they go:\n", markdown(splits)]
    parts += ["## Contenders\n", markdown(tables.contenders(results))]
    if results.failures:
        parts += ["## Not measured\n", markdown(failures(results))]
    return parts


def show(results: Results, console: Console) -> None:
    """Print the overview of each setting, the geometric means, and what could not be measured."""
    for setting in results.settings():
        title = f"{tables.setting_text(setting)}; {results.matrices(results.groups_of(setting))}"
        console.print(shown(tables.overview(results, setting), title))
    summary = tables.summary(results)
    if summary.rows:
        console.print(shown(summary, "Geometric means of the speed-up of cpufree"))
    if results.failures:
        console.print(shown(failures(results), "Not measured"))
    if not results.series:
        console.print(Text("nothing was measured", style="red"))
    for line in warnings(results):
        console.print(Text(f"  {line}", style="yellow"))
