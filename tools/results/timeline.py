"""The picture of the README: host-driven and persistent iterations on one time line.

The lengths of iterations and phases are those of a record. What the CPU does between them is drawn
as a band, since no record times it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from cpufree.bench.cg.results import Series
from tools.results.records import ROOT, origin, solver_record
from tools.results.solver_tables import EIGHT, groups, millions, nonzeros, ours

PICTURE = ROOT / "docs/pictures/timeline.svg"
CASE = "hood-like"
INK, FAINT, CPU = "#1f2430", "#6b7280", "#d9772b"
HOST = "#c9ced6"
PHASES = {
    "spmv": ("matrix product", "#1f5a99"),
    "vector": ("vector updates", "#5b9bd5"),
    "halo_wait": ("waiting for halos", "#8fbf9f"),
    "reduction_wait": ("waiting for sums", "#cfe3d4"),
}
END = 78.0  # microseconds shown


def _series() -> tuple[Series, Series, Series]:
    results = solver_record(EIGHT)
    group = next(g for g in groups(EIGHT) if g.case == CASE)
    nccl = min((s for s in results.valid(group) if s.task.contender == "nccl"), key=_median)
    graph = min((s for s in results.valid(group) if s.task.contender == "nccl_graph"), key=_median)
    return nccl, graph, ours(results, group)


def _median(series: Series) -> float:
    return series.median


def description() -> str:
    """Return what the picture shows, with its figures; it is in the file's metadata."""
    nccl, graph, mine = _series()
    times = ", ".join(f"{s.name} {s.median * 1e6:.2f} us" for s in (nccl, graph, mine))
    split = mine.split
    assert split
    parts = ", ".join(f"{name} {split[name] * 1e6:.2f}" for name in PHASES)
    return f"{EIGHT}, {CASE}: {times} per iteration; phases of the last: {parts}"


def draw(path: Path) -> None:
    """Draw the picture as SVG, with text as paths: it looks the same everywhere."""
    path.parent.mkdir(parents=True, exist_ok=True)
    style: dict[Any, Any] = {
        "svg.fonttype": "path",
        "svg.hashsalt": "cpufree",
        "font.family": "DejaVu Sans",
    }
    with matplotlib.rc_context(style):
        figure = _figure()
        FigureCanvasSVG(figure)
        facts = {"Date": None, "Description": description()}
        figure.savefig(path, format="svg", facecolor="white", metadata=facts)


def _figure() -> Figure:
    nccl, graph, mine = _series()
    figure = Figure(figsize=(10.4, 5.4))
    axes = figure.add_axes((0.17, 0.10, 0.815, 0.80))
    axes.set_xlim(-9.0, END)
    axes.set_ylim(-1.15, 8.95)
    _host(axes, 6.5, nccl, 1, "NCCL", "launches kernels, exchanges and sums of every iteration")
    _host(
        axes, 3.75, graph, 4, "CUDA graphs", "launches graphs of 4 iterations, checks for the end"
    )
    _persistent(axes, 0.55, mine, graph)
    _legend(axes, -0.75)
    axes.set_yticks([])
    axes.set_xticks(range(0, 71, 10))
    axes.tick_params(labelsize=10.5, colors=FAINT, length=3)
    axes.set_xlabel("microseconds", fontsize=10.5, color=FAINT, labelpad=1)
    axes.spines[["top", "left", "right"]].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.axvline(0, color=FAINT, linewidth=0.6, zorder=0)
    figure.text(0.016, 0.945, _title(), fontsize=13.5, color=INK, fontweight="bold")
    return figure


def _title() -> str:
    results = solver_record(EIGHT)
    group = next(g for g in groups(EIGHT) if g.case == CASE)
    where = origin(EIGHT).machine
    count = millions(nonzeros(results, group)).replace(" M", " million")
    return f"Iterations of conjugate gradients on {where}: {CASE}, {count} nonzeros"


def _name(axes: Axes, y: float, first: str, second: str) -> None:
    place = axes.get_yaxis_transform()
    axes.text(-0.19, y + 1.4, first, transform=place, fontsize=13, color=INK, weight="bold")
    axes.text(-0.19, y + 0.75, second, transform=place, fontsize=11, color=FAINT)


def _lanes(axes: Axes, y: float) -> None:
    for at, text in ((y + 1.55, "CPU"), (y + 0.55, "GPUs")):
        axes.text(-5.6, at, text, fontsize=10.5, color=FAINT, ha="right", va="center")


def _box(axes: Axes, at: float, width: float, y: float, high: float, color: str) -> None:
    end = min(at + width, END)
    if end > at:
        axes.broken_barh([(at, end - at)], (y, high), facecolor=color, edgecolor="white", lw=0.9)


def _host(axes: Axes, y: float, series: Series, batch: int, name: str, does: str) -> None:
    step = series.median * 1e6
    _name(axes, y, "Host-driven", name)
    _lanes(axes, y)
    count = int(END / step) + 1
    for k in range(count):
        _box(axes, k * step, step, y + 0.1, 0.9, HOST)
        middle = (k * step + min((k + 1) * step, END)) / 2
        text = f"iteration {k + 1}" + (f": {step:.1f} µs" if k == 0 else "")
        if min((k + 1) * step, END) - k * step > 12:
            axes.text(middle, y + 0.53, text, fontsize=12, color=INK, ha="center", va="center")
    for k in range(0, count, batch):
        _box(axes, k * step, step * batch, y + 1.25, 0.6, CPU)
    axes.text(0.7, y + 1.53, does, fontsize=10.5, color="white", va="center", weight="bold")


def _persistent(axes: Axes, y: float, mine: Series, best: Series) -> None:
    step, split = mine.median * 1e6, mine.split
    assert split
    _name(axes, y, "cpufree", "persistent kernel")
    _lanes(axes, y)
    _box(axes, -4.9, 4.9, y + 1.25, 0.6, CPU)
    axes.text(-2.45, y + 1.53, "launch", fontsize=8.5, color="white", ha="center", va="center")
    axes.text(0.7, y + 1.53, "waits for the answer", fontsize=10.5, color=FAINT, va="center")
    # The launch lies before the time line, so the phases fill an iteration without it.
    scale = step / sum(split[name] for name in PHASES)
    for k in range(int(END / step) + 1):
        at = k * step
        for name, (_, color) in PHASES.items():
            width = max(0.0, min(split[name] * scale, END - at))
            axes.broken_barh([(at, width)], (y + 0.1, 0.9), facecolor=color)
            at += split[name] * scale
        axes.plot([at, at], [y + 0.05, y + 1.05], color="white", lw=2.2, clip_on=True)
        if k * step + 0.9 * step < END:
            place = k * step + 0.81 * step
            axes.text(place, y + 0.53, f"{k + 1}", fontsize=12, color=INK, ha="center", va="center")
    ratio = best.median / mine.median
    text = f"{step:.1f} µs per iteration, {ratio:.1f}× faster than the best host-driven solver"
    axes.text(END, y + 1.53, text, fontsize=11.5, color=INK, ha="right", va="center", weight="bold")


def _legend(axes: Axes, y: float) -> None:
    at = 0.0
    for words, color in PHASES.values():
        axes.broken_barh([(at, 1.8)], (y, 0.42), facecolor=color)
        axes.text(at + 2.4, y + 0.2, words, fontsize=10.5, color=FAINT, va="center")
        at += 5.2 + 0.93 * len(words)
