"""What the plots of all reports share: colours, axes, heads. Every plot names its unit."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter

from cpufree.bench.core.entry import BASELINE, OURS
from cpufree.bench.report.captions import machine_text, warnings
from cpufree.bench.report.collected import AnyResults
from cpufree.output_file import write_file

INK, FAINT, GRID = "#222222", "#8a8a8a", "#e6e6e6"
OURS_COLOR = "#2563a8"
BASELINE_COLORS = ("#e0a458", "#c8553d", "#8e5ea2", "#588157", "#b08968", "#d4a5a5", "#6d6875")
PEER_COLORS = ("#7f8c99", "#b7c0c8", "#4f5d66", "#9aa5ad")
MOST_PANELS = 24


def save(figure: Figure, results: AnyResults, path: Path) -> None:
    FigureCanvasAgg(figure)
    text = " · ".join([machine_text(results.headers[0]), *warnings(results)])
    text = textwrap.fill(text, int(17 * figure.get_figwidth()), break_on_hyphens=False)
    figure.supxlabel(text, fontsize=7.5, color=FAINT, x=0.01, ha="left")
    with write_file(path) as file:
        figure.savefig(file, dpi=150, format=path.suffix[1:])


def colors(results: AnyResults) -> dict[str, str]:
    """Return a colour for each contender: blue for cpufree, warm for baselines, grey for peers."""
    found: dict[str, str] = {}
    for series in results.series.values():
        name, family = series.task.contender, series.family
        if name not in found:
            used = sum(color in _palette(family) for color in found.values())
            found[name] = _palette(family)[used % len(_palette(family))]
    return found


def _palette(family: str) -> tuple[str, ...]:
    return {OURS: (OURS_COLOR,), BASELINE: BASELINE_COLORS}.get(family, PEER_COLORS)


def tidy(axes: Axes, axis: Any = "y") -> None:
    axes.grid(True, axis=axis, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, labelsize=8.5)


def whiskers(values: Sequence[tuple[float, float, float]]) -> list[list[float]]:
    """Return the distances from the middle of (low, middle, high) down and up."""
    return [[m - low for low, m, _ in values], [high - m for _, m, high in values]]


def head(figure: Figure, title: str) -> None:
    """Put title and legend above all panels; the order is that of the contenders' colours."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        found, labels = axes.get_legend_handles_labels()
        handles |= dict(zip(labels, found, strict=True))
    inches = figure.get_figwidth()
    figure.legend(
        handles.values(),
        handles,
        title=textwrap.fill(title, int(12 * inches)),
        alignment="left",
        loc="outside upper left",
        ncols=min(len(handles), int(inches / 1.1)),
        frameon=False,
        fontsize=8.5,
        title_fontsize=10,
    )


def label_decades(axes: Axes) -> None:
    """Label a logarithmic axis with plain numbers, densely enough for short ranges."""
    low, high = axes.get_ylim()
    steps = (1, 2, 5) if high / low < 100 else (1,)
    ticks = [s * 10.0**k for k in range(-3, 9) for s in steps if low <= s * 10.0**k <= high]
    if len(ticks) < 3:
        ticks = [tick for tick in MaxNLocator(5).tick_values(low, high) if low <= tick <= high]
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def name_places(axes: Axes, names: Sequence[str]) -> None:
    """Name the clusters of bars, slanted where the names would run into one another."""
    inches = float(axes.get_figure(root=True).get_figwidth())  # type: ignore[union-attr]
    longest = max((len(line) for name in names for line in name.split("\n")), default=0)
    slanted = longest * len(names) > 12 * inches
    axes.set_xticks(range(len(names)))
    axes.set_xticklabels(names, rotation=35 if slanted else 0, ha="right" if slanted else "center")
    axes.tick_params(axis="x", length=0)


def overlap_bars(
    results: AnyResults,
    title: str,
    labels: Sequence[str],
    shares: Mapping[tuple[int, str], float],
) -> Figure | None:
    """Draw shares of the communication that are hidden; None where there is none.

    `shares` have the place among the labels and the contender; places without any are left out.
    """
    if not shares:
        return None
    places = sorted({place for place, _ in shares})
    names = [name for name in colors(results) if any(key[1] == name for key in shares)]
    wide = max(7.0, min(17.0, 1.5 + 1.2 * len(places)))
    figure = Figure(figsize=(wide, 4.6), layout="constrained")
    axes = figure.add_subplot()
    width = min(0.28, 0.84 / len(names))
    for k, name in enumerate(names):
        mine = [(at, shares[i, name]) for at, i in enumerate(places) if (i, name) in shares]
        shift = (k - (len(names) - 1) / 2) * width
        axes.bar(
            [at + shift for at, _ in mine],
            [100.0 * share for _, share in mine],
            width=width * 0.94,
            color=colors(results)[name],
            label=name,
        )
    axes.set_ylim(0, 105)
    axes.set_ylabel("hidden communication, %", fontsize=9)
    tidy(axes)
    name_places(axes, [labels[i] for i in places])
    head(figure, f"{title}: 1 - (full - computing alone) / communication alone")
    return figure
