"""The picture of a GPU result: time per iteration over size, latencies against their targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cpu_plot import COLORS, GRID, INK, LINE, whiskers
from gpu_derive import TARGET_ROWS
from gpu_report import gpus_text, headline
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

SHADES = {1: "#7f8c99", 2: "#e0a458", 4: "#2563a8", 8: "#2c7a3f"}
OTHER = "#8e5ea2"
MARKERS = {"poisson2d": "o", "poisson3d": "s", "other": "^"}
BAR = 0.26

Row = dict[str, Any]


def family(name: str) -> str:
    """Return which kind of matrix a name is of."""
    return next((kind for kind in ("poisson2d", "poisson3d") if name.startswith(kind)), "other")


def tidy(axes: Axes, title: str, axis: str) -> None:
    """Give a panel the common looks."""
    axes.set_title(title, loc="left", fontsize=10.5, color=INK, pad=10)
    axes.grid(True, axis=axis, color=GRID, linewidth=0.8)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, labelsize=9)


def draw_sizes(axes: Axes, rows: list[Row]) -> None:
    """Draw the time of prcg over the rows, a colour for each number of GPUs, floors as lines."""
    tidy(axes, "prcg: time per iteration (5-point systems joined), and its floor", "both")
    for pes in sorted({row["pes"] for row in rows}):
        here = sorted((row for row in rows if row["pes"] == pes), key=lambda row: row["rows"])
        color = SHADES.get(pes, OTHER)
        for kind, marker in MARKERS.items():
            mine = [row for row in here if family(row["name"]) == kind]
            xs = [row["rows"] for row in mine]
            axes.errorbar(
                xs,
                [row["seconds_per_iteration"]["median"] * 1e6 for row in mine],
                yerr=[
                    [1e6 * side for side in sides]
                    for sides in whiskers([row["seconds_per_iteration"] for row in mine])
                ],
                fmt=marker,
                linestyle="-" if kind == "poisson2d" else "none",
                markersize=5,
                linewidth=1.6,
                color=color,
                elinewidth=1.0,
                label=gpus_text(pes) if kind == "poisson2d" else None,
                zorder=3,
            )
        flat = [r for r in here if family(r["name"]) == "poisson2d" and r["floor_seconds"]]
        floors = [row["floor_seconds"] * 1e6 for row in flat]
        axes.plot([row["rows"] for row in flat], floors, color=color, linewidth=0.8, alpha=0.8)
    for kind, marker in MARKERS.items():
        if any(family(row["name"]) == kind for row in rows):
            name = "elasticity" if kind == "other" else kind
            axes.plot([], [], marker, color=INK, markersize=5, label=name)
    axes.plot([], [], color=INK, linewidth=0.8, label="floor: reduction + bytes at copy rate")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        axis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: rows_text(value)))
    axes.set_xlabel("rows", fontsize=9)
    axes.set_ylabel("µs per iteration", fontsize=9)
    axes.legend(frameon=False, fontsize=8.5, loc="upper left")


def rows_text(value: float) -> str:
    """Return 3k, 10M."""
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k"


def draw_latency(axes: Axes, rows: list[Row]) -> None:
    """Draw a bar per number of GPUs and method, and its target as a short line."""
    counts = sorted({row["pes"] for row in rows})
    for index, (method, color) in enumerate(COLORS.items()):
        mine = [row for row in rows if row["method"] == method]
        places = [counts.index(row["pes"]) + (index - 1) * BAR for row in mine]
        spreads = [row["seconds_per_iteration"] for row in mine]
        axes.bar(
            places,
            [s["median"] * 1e6 for s in spreads],
            width=BAR * 0.92,
            color=color,
            label=method,
            yerr=[[1e6 * side for side in sides] for sides in whiskers(spreads)],
            error_kw={"elinewidth": 1.0, "ecolor": INK, "capsize": 2},
        )
        for place, row in zip(places, mine, strict=True):
            if row["target_seconds"] is not None:
                level = row["target_seconds"] * 1e6
                ends = [place - BAR / 2, place + BAR / 2]
                axes.plot(ends, [level, level], color=LINE, linewidth=1.6, zorder=4)
    if any(row["target_seconds"] is not None for row in rows):
        axes.plot([], [], color=LINE, linewidth=1.6, label="target: at most")
    axes.set_xticks(range(len(counts)))
    axes.set_xticklabels([gpus_text(pes) for pes in counts])
    axes.set_ylabel("µs per iteration", fontsize=9)
    highest = max(
        max(row["seconds_per_iteration"]["max"], row["target_seconds"] or 0) for row in rows
    )
    axes.set_ylim(0, 1.25e6 * highest)  # room for the legend
    axes.legend(frameon=False, fontsize=8.5, loc="upper left", ncols=2)
    tidy(axes, f"Latency: {rows[0]['name']}, Jacobi", "y")


def draw(record: Row, path: Path) -> None:
    """Save the picture; the suffix of path tells the format."""
    derived = record["derived"]
    sizes = [row for part in ("sweep", "large") for row in derived[part] if row["method"] == "prcg"]
    latency = [row for row in derived["latency"] if row["rows"] == TARGET_ROWS]
    latency = latency or [
        row for row in derived["latency"] if row["name"] == derived["latency"][0]["name"]
    ]
    figure = Figure(figsize=(13, 6), layout="constrained")
    FigureCanvasAgg(figure)
    panels: Any = figure.subplots(1, 2, width_ratios=(3, 2))
    for axes, rows, paint in zip(panels, (sizes, latency), (draw_sizes, draw_latency), strict=True):
        if rows:
            paint(axes, rows)
        else:
            axes.set_axis_off()
    notes = ["QUICK: says nothing about speed"] if record["quick"] else []
    rounds = f"medians and range of {record['settings']['rounds']} rounds or fewer"
    title = "  ·  ".join([headline(record).replace("; ", "  ·  "), rounds, *notes])
    figure.suptitle(title, fontsize=9.5, color=INK, x=0.01, ha="left")
    figure.savefig(path, dpi=140)
