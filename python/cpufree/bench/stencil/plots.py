"""The plots of a report on stencils: scaling, communication alone, how much of it is hidden."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from cpufree.bench.core.entry import OURS
from cpufree.bench.report.figures import (
    INK,
    MOST_PANELS,
    colors,
    head,
    label_decades,
    overlap_bars,
    save,
    tidy,
    whiskers,
)
from cpufree.bench.stencil.results import Setting, StencilResults, StencilSeries, dims, weak
from cpufree.bench.stencil.tables import setting_text


def draw_all(results: StencilResults, folder: Path) -> dict[Path, Setting]:
    """Draw all plots that the results have data for; return the files with their settings."""
    figures: dict[str, tuple[Figure | None, Setting]] = {}
    for setting in results.settings():
        name = "-".join(setting)
        cases = results.cases(setting)
        for d in (2, 3):
            for kind, wanted in (("weak", True), ("strong", False)):
                mine = [case for case in cases if dims(case) == d and weak(case) == wanted]
                for variant in ("full", "no-compute"):
                    what = f"{kind.capitalize()} scaling in {d} dimensions"
                    what += ", communication alone" if variant != "full" else ""
                    figure = draw_scaling(results, setting, mine, variant, what)
                    more = "" if variant == "full" else f"-{variant}"
                    figures[f"{kind}-{d}d{more}-{name}"] = figure, setting
        figures[f"overlap-{name}"] = draw_overlap(results, setting), setting
    paths: dict[Path, Setting] = {}
    for name, (figure, setting) in figures.items():
        if figure is not None:
            paths[folder / f"{name}.png"] = setting
            save(figure, results, folder / f"{name}.png")
    return paths


def draw_scaling(
    results: StencilResults, setting: Setting, cases: Sequence[str], variant: str, what: str
) -> Figure | None:
    """Draw time per iteration over PEs, a panel a grid; None where there is nothing to draw.

    Bars where all is of one number of PEs.
    """
    cases = [
        case
        for case in cases
        if any(results.valid(group, variant) for group in results.groups_of(setting, case))
    ][:MOST_PANELS]
    if not cases:
        return None
    numbers = {g.pes for case in cases for g in results.groups_of(setting, case)}
    draw = _draw_bars if len(numbers) == 1 else _draw_lines
    columns = min(4, len(cases))
    rows = -(-len(cases) // columns)
    figure = Figure(figsize=(max(5.5, 3.3 * columns), 2.9 * rows + 1.0), layout="constrained")
    panels: Any = figure.subplots(rows, columns, squeeze=False)
    for index, axes in enumerate(panels.flat):
        if index >= len(cases):
            axes.set_axis_off()
            continue
        draw(axes, results, setting, cases[index], variant)
        axes.set_title(cases[index], loc="left", fontsize=10)
        tidy(axes, "both")
    where = "over PEs" if draw is _draw_lines else f"{numbers.pop()} PEs"
    unit = "µs per iteration" + (", logarithmic" if draw is _draw_lines else "")
    figure.supylabel(unit, fontsize=9)
    head(figure, f"{what}, {setting_text(setting)}; medians, quartiles, {where}")
    return figure


def _draw_bars(
    axes: Axes, results: StencilResults, setting: Setting, case: str, variant: str
) -> None:
    """Draw a bar a contender."""
    (group,) = results.groups_of(setting, case)
    there = {series.name: series.spread for series in results.valid(group, variant)}
    for place, name in enumerate(name for name in colors(results) if name in there):
        low, middle, high = (
            1e6 * t for t in (there[name].low, there[name].median, there[name].high)
        )
        axes.bar(
            [place],
            [middle],
            yerr=whiskers([(low, middle, high)]),
            color=colors(results)[name],
            label=name,
            error_kw={"elinewidth": 0.8, "ecolor": INK},
        )
        axes.annotate(
            f"{middle:.3g}",
            (place, high),
            (0, 2),
            textcoords="offset points",
            ha="center",
            fontsize=7.5,
            color=INK,
        )
    axes.set_xticks([])
    axes.margins(y=0.12)


def _draw_lines(
    axes: Axes, results: StencilResults, setting: Setting, case: str, variant: str
) -> None:
    """Draw a line a contender."""
    groups = results.groups_of(setting, case)
    lines: dict[str, list[StencilSeries]] = {}
    for group in groups:
        for series in results.valid(group, variant):
            lines.setdefault(series.name, []).append(series)
    for name in (name for name in colors(results) if name in lines):
        points = lines[name]
        ours = points[0].family == OURS
        spreads = [s.spread for s in points]
        axes.errorbar(
            [s.group.pes for s in points],
            [s.median * 1e6 for s in spreads],
            yerr=whiskers([(s.low * 1e6, s.median * 1e6, s.high * 1e6) for s in spreads]),
            marker="o",
            markersize=4,
            linewidth=1.8 if ours else 1.2,
            elinewidth=0.8,
            color=colors(results)[name],
            label=name,
            zorder=4 if ours else 3,
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(FixedLocator([group.pes for group in groups]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    label_decades(axes)


def draw_overlap(results: StencilResults, setting: Setting) -> Figure | None:
    """Draw the share of communication that is hidden, bars by grid; None where not measured."""
    groups = [g for case in results.cases(setting) for g in results.groups_of(setting, case)]
    found = {
        (index, name): share
        for index, group in enumerate(groups)
        for name in colors(results)
        if (share := results.overlap(group, name)) is not None
    }
    labels = [f"{group.case}\n{group.pes} PEs" for group in groups]
    return overlap_bars(results, setting_text(setting), labels, found)
