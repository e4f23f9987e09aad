"""The picture of a result: time relative to SciPy, fraction of the triad, small systems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

COLORS = {"cg": "#9db8d6", "prcg": "#2563a8", "pipecg": "#e0a458"}
INK, LINE, GRID, GOOD, BAD = "#222222", "#b3261e", "#e6e6e6", "#2c7a3f", "#b3261e"
UNCLEAR = "#8a8a8a"
BAR = 0.26


def whiskers(spreads: Sequence[dict[str, float]]) -> list[list[float]]:
    """Return the distances from the medians down to the smallest and up to the largest."""
    down = [s["median"] - s["min"] for s in spreads]
    up = [s["max"] - s["median"] for s in spreads]
    return [down, up]


def tidy(axes: Axes, title: str) -> None:
    """Give a panel the common looks."""
    axes.set_title(title, loc="left", fontsize=10.5, color=INK, pad=18)
    axes.grid(True, axis="x", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(colors=INK, labelsize=9)


def mark(axes: Axes, value: float, text: str) -> None:
    """Draw a vertical line with a word on top."""
    axes.axvline(value, color=LINE, linewidth=1.2, linestyle=(0, (5, 3)), zorder=4)
    axes.annotate(
        text,
        xy=(value, 1),
        xycoords=("data", "axes fraction"),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=8.5,
        color=LINE,
        ha="center",
        va="bottom",
    )


def draw_bars(axes: Axes, large: Sequence[dict[str, Any]], key: str) -> None:
    """Draw one bar per matrix and method of the spread `key`, whiskers from smallest to largest."""
    for index, (method, color) in enumerate(COLORS.items()):
        spreads = [matrix["derived"]["methods"][method][key] for matrix in large]
        axes.barh(
            [row + (index - 1) * BAR for row in range(len(large))],
            [s["median"] for s in spreads],
            height=BAR * 0.92,
            color=color,
            label=method,
            xerr=whiskers(spreads),
            error_kw={"elinewidth": 1.0, "ecolor": INK, "capsize": 2},
        )
    axes.set_yticks(range(len(large)))
    axes.set_ylim(len(large) - 0.45, -0.75)
    axes.set_xlim(left=0)


def draw_small(axes: Axes, systems: Sequence[dict[str, Any]]) -> None:
    """Draw the ratio of whole calls of each system, coloured by the verdict."""
    shades = {"faster": GOOD, "slower": BAD, "within noise": UNCLEAR}
    ratios = [system["derived"]["ratio_to_scipy"] for system in systems]
    for row, (system, ratio) in enumerate(zip(systems, ratios, strict=True)):
        axes.errorbar(
            [ratio["median"]],
            [row],
            xerr=whiskers([ratio]),
            fmt="o",
            markersize=6,
            color=shades[system["derived"]["against_scipy"]],
            ecolor=INK,
            elinewidth=1.0,
            capsize=2,
            zorder=3,
        )
    axes.set_yticks(range(len(systems)))
    axes.set_yticklabels([f"{system['name']}, {system['rows']:,} rows" for system in systems])
    axes.set_ylim(len(systems) - 0.4, -0.6)
    axes.set_xscale("log")
    low, high = min(r["min"] for r in ratios), max(r["max"] for r in ratios)
    axes.set_xlim(low / 1.3, max(1.6, high * 1.2))
    ticks = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", which="minor", length=0)
    mark(axes, 1.0, "SciPy")
    axes.set_xlabel(
        "time relative to SciPy's, logarithmic (left of the line is faster)", fontsize=9
    )


def label(matrix: dict[str, Any], rows_of_target: int) -> str:
    """Return name and rows of a matrix; those too small for the targets say so."""
    note = "" if matrix["rows"] >= rows_of_target else "\n(no target)"
    return f"{matrix['name']}\n{matrix['rows'] / 1e6:.2f}M rows{note}"


def draw_large(figure: SubFigure, record: dict[str, Any]) -> None:
    """Draw time relative to SciPy on the left, fraction of the triad on the right."""
    large, targets = record["large"], record["targets"]
    left, right = figure.subplots(1, 2)
    draw_bars(left, large, "ratio_to_scipy")
    left.set_xlim(right=max(left.get_xlim()[1], 1.25 * targets["most_of_scipy"]))
    left.set_yticklabels([label(matrix, targets["rows_from"]) for matrix in large])
    tidy(left, "Time per iteration, relative to SciPy's cg with Jacobi")
    mark(left, targets["most_of_scipy"], f"at most {targets['most_of_scipy']}")
    left.set_xlabel("whole solve, set-up apart (shorter is better)", fontsize=9)

    draw_bars(right, large, "fraction_of_triad")
    right.set_yticklabels([])
    tidy(right, "Speed, relative to what the triad allows")
    mark(right, targets["least_of_triad"], f"at least {targets['least_of_triad']}")
    right.set_xlabel("triad's time for the bytes / kernels' time (longer is better)", fontsize=9)
    right.legend(
        frameon=False, fontsize=9, loc="lower center", bbox_to_anchor=(-0.02, 1.06), ncols=3
    )


def draw(record: dict[str, Any], path: Path) -> None:
    """Save the picture; the suffix of path tells the format."""
    small = [system for system in record["small"] if "derived" in system]
    small.sort(key=lambda system: system["rows"])
    heights = [0.62 * len(record["large"]) + 1.8, 0.26 * len(small) + 1.5]
    figure = Figure(figsize=(11, sum(heights) + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    parts: Any = figure.subfigures(2, 1, height_ratios=heights)
    top, bottom = parts
    draw_large(top, record)
    axes = bottom.subplots()
    tidy(axes, f"Small systems: whole calls to rtol {record['settings']['small_rtol']:g}")
    draw_small(axes, small)
    machine, triad = record["machine"], record["triad"]
    notes = ["QUICK: says nothing about speed"] if record["quick"] else []
    notes += ["DISTURBED by other programs"] if record["disturbed"] else []
    headline = [
        f"cpufree {record['versions']['cpufree']} on {machine['cpu']}, {machine['cores']} cores",
        f"SciPy {record['versions']['scipy']}",
        f"triad {triad['bytes_per_second']['median'] / 1e9:.1f} GB/s",
        record["date"][:10],
        f"medians and range of {record['settings']['rounds']} rounds",
        *notes,
    ]
    figure.suptitle("  ·  ".join(headline), fontsize=9.5, color=INK, x=0.01, ha="left")
    figure.savefig(path, dpi=140)
