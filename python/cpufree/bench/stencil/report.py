"""The report on stencils: Markdown with all tables, plots beside it, and a summary to look at."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from cpufree.bench.report.captions import warnings
from cpufree.bench.report.document import head, markdown, shown
from cpufree.bench.report.tables import failures, overheads
from cpufree.bench.stencil import tables
from cpufree.bench.stencil.context import PUBLISHED
from cpufree.bench.stencil.results import Setting, StencilResults
from cpufree.output_file import write_text


def write_report(results: StencilResults, folder: Path, plots: bool = True) -> list[Path]:
    """Write report.md into a folder, plots beside it; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[Path, Setting] = {}
    if plots:
        from cpufree.bench.stencil.plots import draw_all

        drawn = draw_all(results, folder)
    report = folder / "report.md"
    write_text(report, "\n".join(_sections(results, drawn)))
    return [report, *drawn]


def _sections(results: StencilResults, drawn: dict[Path, Setting]) -> list[str]:
    parts = ["# Jacobi stencils: cpufree and host-driven baselines\n", *head(results), ""]
    for setting in results.settings():
        parts += [f"## {tables.setting_text(setting).capitalize()}\n"]
        parts += [markdown(tables.summary(results, setting))]
        parts += [f"![{p.stem}]({p.name})\n" for p in drawn if drawn[p] == setting]
        for case in results.cases(setting):
            parts += _case(results, setting, case)
    parts += ["## Contenders\n", markdown(tables.contenders(results))]
    if results.failures:
        parts += ["## Not measured\n", markdown(failures(results))]
    if results.headers[0]["machine"]["gpus"]:
        parts += ["## Context: published figures of other machines\n"]
        for published in PUBLISHED:
            parts += [f"{published.title}; {published.source}.\n"]
            parts += [markdown(tables.context(published))]
    return parts


def _case(results: StencilResults, setting: Setting, case: str) -> list[str]:
    parts = [f"### {tables.case_text(case)}\n"]
    for variant, what in (("full", ""), ("no-compute", "Communication alone:\n")):
        table = tables.scaling(results, setting, case, variant)
        if table is not None:
            parts += [*filter(None, [what]), markdown(table)]
    if (more := tables.added(results, setting, case)) is not None:
        parts += [markdown(more)]
    for group in results.groups_of(setting, case):
        if not results.of(group):
            continue
        where = f"{tables.pes_text(group.pes)}, {tables.shape_of(results, group)} points"
        parts += [f"#### {where}\n", markdown(tables.detail(results, group))]
        if (over := overheads(results, group)) is not None:
            parts += [markdown(over)]
    return parts


def show(results: StencilResults, console: Console) -> None:
    """Print the summary of each setting, and what could not be measured."""
    for setting in results.settings():
        title = tables.setting_text(setting).capitalize()
        console.print(shown(tables.summary(results, setting), title))
        for series in results.series.values():
            if series.problems():
                where = f"{series.name} on {series.group.case}, {series.group.pes} PEs"
                line = f"  {where} does not count: {'; '.join(series.problems())}"
                console.print(Text(line, style="red"))
    if results.failures:
        console.print(shown(failures(results), "Not measured"))
    if not results.series:
        console.print(Text("nothing was measured", style="red"))
    for line in warnings(results):
        console.print(Text(f"  {line}", style="yellow"))
