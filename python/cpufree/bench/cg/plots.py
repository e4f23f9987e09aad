"""The plots of a report: speed-ups, strong scaling, share of the memory's rate, where time goes.

Bars begin at zero. Every plot names its unit and what it compares with; whiskers are quartiles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from cpufree.bench.cg.configuration import Group
from cpufree.bench.cg.results import Results, Series
from cpufree.bench.cg.tables import Setting, setting_text
from cpufree.bench.core.entry import OURS
from cpufree.bench.core.noise import geometric_mean
from cpufree.bench.report.collected import fastest_of_each
from cpufree.bench.report.figures import (
    FAINT,
    INK,
    MOST_PANELS,
    colors,
    head,
    label_decades,
    name_places,
    overlap_bars,
    save,
    tidy,
    whiskers,
)
from cpufree.bench.report.tables import micro

PARTS = {
    "spmv": ("SpMV", "#2563a8"),
    "vector": ("vectors", "#9db8d6"),
    "halo_wait": ("waiting for halos", "#e0a458"),
    "reduction_wait": ("waiting for reductions", "#c8553d"),
    "other": ("other", "#d9d9d9"),
}


def draw_all(results: Results, folder: Path) -> dict[Path, Setting | None]:
    """Draw all plots that the results have data for; return the files.

    With each file the setting that it is of, None for scaling, which is over numbers of PEs.
    """
    figures: dict[str, tuple[Figure | None, Setting | None]] = {}
    for setting in results.settings():
        precision, preconditioner, pes = setting
        name = f"{precision}-{preconditioner}"
        figures[f"scaling-{name}"] = draw_scaling(results, setting), None
        for kind, draw in (
            ("speedup", draw_speedup),
            ("roofline", draw_roofline),
            ("breakdown", draw_breakdown),
            ("overlap", draw_overlap),
        ):
            figures[f"{kind}-{name}-{pes}"] = draw(results, setting), setting
    paths: dict[Path, Setting | None] = {}
    for name, (figure, place) in figures.items():
        if figure is not None:
            paths[folder / f"{name}.png"] = place
            save(figure, results, folder / f"{name}.png")
    return paths


Measure = Callable[[Series], "tuple[float, float, float] | None"]


def _bars(
    axes: Axes, results: Results, groups: Sequence[Group], measure: Measure, mean: bool
) -> bool:
    """Draw a cluster of bars a matrix, a bar for the fastest method of each contender.

    `measure` returns low, middle and high of a bar, None for no bar; `mean`: a last cluster with
    the geometric means over the matrices that a contender has all of. Returns whether there is any.
    """
    chosen = {g: {s.task.contender: s for s in fastest_of_each(results.valid(g))} for g in groups}
    bars: dict[str, dict[int, tuple[float, float, float]]] = {}
    for place, group in enumerate(groups):
        for name, series in chosen[group].items():
            if (bar := measure(series)) is not None:
                bars.setdefault(name, {})[place] = bar
    order = [name for name in colors(results) if name in bars]
    width = min(0.28, 0.84 / max(1, len(order)))
    for index, name in enumerate(order):
        found = dict(bars[name])
        if mean and len(groups) > 1 and len(found) == len(groups):
            middle = geometric_mean([bar[1] for bar in found.values()])
            found[len(groups)] = (middle, middle, middle)
            text = f"{middle:.1f}" if middle >= 0.95 else f"{middle:.2g}"
            axes.annotate(
                text,
                (len(groups) + (index - (len(order) - 1) / 2) * width, middle),
                (0, 3),
                textcoords="offset points",
                ha="center",
                rotation=90,
                fontsize=7.5,
                color=INK,
            )
        shift = (index - (len(order) - 1) / 2) * width
        axes.bar(
            [place + shift for place in found],
            [bar[1] for bar in found.values()],
            width=width * 0.94,
            color=colors(results)[name],
            label=name,
            yerr=whiskers(list(found.values())),
            error_kw={"elinewidth": 0.8, "ecolor": INK},
        )
    names = [group.case.removesuffix("-small") for group in groups]
    names += ["geometric\nmean"] if mean and len(groups) > 1 else []
    name_places(axes, names)
    axes.set_xlim(-0.6, len(names) - 0.4)
    if len(names) > len(groups):
        axes.axvline(len(groups) - 0.5, color=FAINT, linewidth=0.8)
    axes.set_ylim(0, max(1.05, axes.get_ylim()[1]))
    return bool(order)


def _wide(count: int) -> Figure:
    """Return a figure for N clusters of bars."""
    return Figure(figsize=(max(7.0, min(17.0, 1.5 + 0.95 * count)), 5.4), layout="constrained")


def draw_speedup(results: Results, setting: Setting) -> Figure | None:
    """Draw how much faster each contender is than classic CG on one PE; None without that."""
    groups = [g for g in results.groups_of(setting) if results.reference_for(g)]
    if not groups:
        return None

    def measure(series: Series) -> tuple[float, float, float] | None:
        one = results.reference_for(series.group)
        if one is None:
            return None
        unit = 1.0 if series.fixed else float(series.iterations)
        s = series.spread
        return tuple(one.median / (t * unit) for t in (s.high, s.median, s.low))  # type: ignore[return-value]

    figure = _wide(len(groups) + 1)
    axes = figure.add_subplot()
    _bars(axes, results, groups, measure, mean=True)
    axes.axhline(1.0, color=INK, linewidth=1.0, linestyle=(0, (5, 3)), zorder=3)
    axes.set_ylabel(f"speed-up over {results.reference()} cg on 1 PE", fontsize=9)
    tidy(axes)
    what = "each contender with its fastest method; medians, quartiles"
    head(figure, f"{setting_text(setting)}; {results.matrices(groups)}; {what}")
    return figure


def draw_roofline(results: Results, setting: Setting) -> Figure | None:
    """Draw the share of the memory's rate that each contender attains; None where not measured."""
    groups = results.groups_of(setting)
    rate = results.memory_rate()
    drawn = []

    def measure(series: Series) -> tuple[float, float, float] | None:
        available = results.rate_for(series)
        if available is None:
            return None
        drawn.append(series.group)
        share, s = series.roofline(available), series.spread
        return share * s.median / s.high, share, share * s.median / s.low

    figure = _wide(len(groups))
    axes = figure.add_subplot()
    if not _bars(axes, results, groups, measure, mean=False):
        return None
    axes.axhline(1.0, color=INK, linewidth=1.0, linestyle=(0, (5, 3)), zorder=3)
    against = (
        "the contenders' own copy" if rate is None else f"a {rate[0]} of {rate[1] / 1e9:.4g} GB/s"
    )
    axes.set_ylabel("time for the least bytes / time taken", fontsize=9)
    tidy(axes)
    what = f"least bytes of the method at the rate of {against}; above 1, caches serve a part"
    head(figure, f"{setting_text(setting)}; {results.matrices(drawn)}; {what}")
    return figure


def draw_scaling(results: Results, setting: Setting) -> Figure | None:
    """Draw time per iteration over PEs, a panel a matrix; None for a single number of PEs."""
    precision, preconditioner, _ = setting
    mine = [g for g in results.groups() if (g.precision, g.preconditioner) == setting[:2]]
    names = list(dict.fromkeys(g.case for g in mine))[:MOST_PANELS]
    counts = sorted({g.pes for g in mine})
    if len(counts) < 2:
        return None
    columns = min(6, len(names))
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(max(5.5, 2.9 * columns), 2.6 * rows + 1.0), layout="constrained")
    panels: Any = figure.subplots(rows, columns, squeeze=False, sharex=True)
    for index, axes in enumerate(panels.flat):
        if index < len(names):
            groups = [g for g in mine if g.case == names[index]]
            _draw_panel(axes, results, sorted(groups, key=lambda g: g.pes), counts)
            axes.set_title(names[index].removesuffix("-small"), loc="left", fontsize=10, color=INK)
            tidy(axes, "both")
        else:
            axes.set_axis_off()
    figure.supylabel("µs per iteration, logarithmic", fontsize=9)
    pc = "no preconditioner" if preconditioner == "none" else "Jacobi"
    what = "each contender with its fastest method"
    what += "; dotted: ideal" if _on_gpus(results) else "; all numbers of PEs use all cores"
    shown = results.matrices(g for g in mine if g.case in names)
    head(figure, f"Strong scaling over PEs, {precision} precision, {pc}; {shown}; {what}")
    return figure


def _on_gpus(results: Results) -> bool:
    return bool(results.headers[0]["machine"]["gpus"])


def _draw_panel(axes: Axes, results: Results, groups: Sequence[Group], counts: list[int]) -> None:
    """Draw a line a contender; one that runs on one PE only is a point."""
    lines: dict[str, list[Series]] = {}
    for group in groups:
        for series in fastest_of_each(results.valid(group)):
            lines.setdefault(series.task.contender, []).append(series)
    order = [name for name in colors(results) if name in lines]
    for name in order:
        points = lines[name]
        spreads = [s.spread for s in points]
        axes.errorbar(
            [s.group.pes for s in points],
            [s.median * 1e6 for s in spreads],
            yerr=whiskers([(s.low * 1e6, s.median * 1e6, s.high * 1e6) for s in spreads]),
            marker="o",
            markersize=4,
            linewidth=1.8 if points[0].family == OURS else 1.2,
            elinewidth=0.8,
            color=colors(results)[name],
            label=name,
            zorder=4 if points[0].family == OURS else 3,
        )
        if points[0].family == OURS and len(points) > 1 and _on_gpus(results):
            first = points[0]
            ideal = [first.spread.median * 1e6 * first.group.pes / pes for pes in counts]
            axes.plot(counts, ideal, color=FAINT, linewidth=0.9, linestyle=":", zorder=1)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(FixedLocator(counts))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    label_decades(axes)


def draw_breakdown(results: Results, setting: Setting) -> Figure | None:
    """Draw where the time of an iteration goes, for contenders that tell; None where none does."""
    told = [
        (group, series.name, shares)
        for group in results.groups_of(setting)
        for series in fastest_of_each(results.valid(group))
        if (shares := series.split) is not None
    ]
    rows = [
        (f"{group.case.removesuffix('-small')}: {name}", shares) for group, name, shares in told
    ]
    if not rows:
        return None
    figure = Figure(figsize=(9.0, 1.6 + 0.27 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    left = [0.0] * len(rows)
    for part, (label, color) in PARTS.items():
        values = [100.0 * shares[part] / sum(shares.values()) for _, shares in rows]
        axes.barh(range(len(rows)), values, left=left, height=0.74, color=color, label=label)
        left = [a + b for a, b in zip(left, values, strict=True)]
    for place, (_, shares) in enumerate(rows):
        whole = f"{micro(sum(shares.values()))} µs"
        axes.text(101, place, whole, va="center", fontsize=8.5, color=INK)
    axes.set_yticks(range(len(rows)))
    axes.set_yticklabels([label for label, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of the time per iteration, which stands at the end of the bar", fontsize=9)
    tidy(axes, "x")
    shown = results.matrices(group for group, _, _ in told)
    head(figure, f"{setting_text(setting)}; {shown}: where the time of an iteration goes")
    return figure


def draw_overlap(results: Results, setting: Setting) -> Figure | None:
    """Draw the share of communication that is hidden, bars by matrix; None where not measured."""
    groups = results.groups_of(setting)
    shares = {
        (place, series.task.contender): share
        for place, group in enumerate(groups)
        for series in fastest_of_each(results.valid(group))
        if (share := results.overlap(group, series.name)) is not None
    }
    labels = [group.case.removesuffix("-small") for group in groups]
    shown = results.matrices(groups[place] for place, _ in shares)
    title = f"{setting_text(setting)}; {shown}; each contender with its fastest method"
    return overlap_bars(results, title, labels, shares)
