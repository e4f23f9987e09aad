"""The picture of the README: iterations of baselines and of persistent kernels on one time line.

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
from tools.results.solver_tables import (
    JITTERED_FOUR,
    distinct,
    groups,
    millions,
    nonzeros,
    ours,
)

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
BATCH = 4  # iterations in a graph of NCCL


def _series() -> tuple[Series, Series, Series]:
    """Return the best one that the host drives, the best loop in graphs, and cpufree's best."""
    results = solver_record(JITTERED_FOUR)
    group = next(g for g in groups(JITTERED_FOUR) if g.case == CASE)
    there = list(results.valid(group))
    host, loop = (
        min((s for s in there if s.task.contender == name), key=_median)
        for name in ("nccl_graph", "graph_while")
    )
    return host, loop, ours(results, group)


def _median(series: Series) -> float:
    return series.median


def description() -> str:
    """Return what the picture shows, with its figures; it is in the file's metadata."""
    host, loop, mine = _series()
    times = ", ".join(f"{s.name} {s.median * 1e6:.2f} us" for s in (host, loop, mine))
    split = mine.split
    assert split
    parts = ", ".join(f"{name} {split[name] * 1e6:.2f}" for name in PHASES)
    return f"{JITTERED_FOUR}, {CASE}: {times} per iteration; phases of the last: {parts}"


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
    host, loop, mine = _series()
    figure = Figure(figsize=(10.4, 5.4))
    axes = figure.add_axes((0.17, 0.10, 0.815, 0.80))
    axes.set_xlim(-9.0, END)
    axes.set_ylim(-1.15, 8.95)
    _baseline(axes, 6.5, host, ("Host-driven", "NCCL in CUDA graphs"))
    count, step = int(END / host.median / 1e6) + 1, host.median * 1e6
    for k in range(0, count, BATCH):
        _box(axes, k * step, step * BATCH, 7.75, 0.6, CPU)
    does = f"launches graphs of {BATCH} iterations, checks for the end"
    axes.text(0.7, 8.03, does, fontsize=10.5, color="white", va="center", weight="bold")
    _baseline(axes, 3.75, loop, ("Device-driven", "loop in CUDA graphs"))
    _launched_once(axes, 3.75)
    _persistent(axes, 0.55, mine, min((host, loop), key=_median))
    _legend(axes, -0.75)
    axes.set_yticks([])
    axes.set_xticks(range(0, 71, 10))
    axes.tick_params(labelsize=10.5, colors=FAINT, length=3)
    axes.set_xlabel("microseconds", fontsize=10.5, color=FAINT, labelpad=1)
    axes.spines[["top", "left", "right"]].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.axvline(0, color=FAINT, linewidth=0.6, zorder=0)
    figure.text(0.016, 0.945, _title(), fontsize=12, color=INK, fontweight="bold")
    return figure


def _title() -> str:
    results = solver_record(JITTERED_FOUR)
    group = next(g for g in groups(JITTERED_FOUR) if g.case == CASE)
    where = origin(JITTERED_FOUR).machine.partition(",")[0]
    count, values = millions(nonzeros(results, group)), distinct(results, group)
    return (
        f"CG without preconditioner on {where}; matrix {CASE}, {count} nonzeros, "
        f"{values} distinct values"
    )


def _name(axes: Axes, y: float, first: str, second: str) -> None:
    place = axes.get_yaxis_transform()
    axes.text(-0.19, y + 1.4, first, transform=place, fontsize=13, color=INK, weight="bold")
    axes.text(-0.19, y + 0.75, second, transform=place, fontsize=10, color=FAINT)


def _lanes(axes: Axes, y: float) -> None:
    for at, text in ((y + 1.55, "CPU"), (y + 0.55, "GPUs")):
        axes.text(-5.6, at, text, fontsize=10.5, color=FAINT, ha="right", va="center")


def _box(axes: Axes, at: float, width: float, y: float, high: float, color: str) -> None:
    end = min(at + width, END)
    if end > at:
        axes.broken_barh([(at, end - at)], (y, high), facecolor=color, edgecolor="white", lw=0.9)


def _baseline(axes: Axes, y: float, series: Series, name: tuple[str, str]) -> None:
    """Draw the iterations of a baseline on the GPUs."""
    step = series.median * 1e6
    _name(axes, y, *name)
    _lanes(axes, y)
    for k in range(int(END / step) + 1):
        _box(axes, k * step, step, y + 0.1, 0.9, HOST)
        end = min((k + 1) * step, END)
        text = f"iteration {k + 1}" + (f": {step:.1f} µs" if k == 0 else "")
        if end - k * step > 12:
            middle = (k * step + end) / 2
            axes.text(middle, y + 0.53, text, fontsize=12, color=INK, ha="center", va="center")


def _launched_once(axes: Axes, y: float) -> None:
    """Draw a CPU that launches once and then waits."""
    _box(axes, -4.9, 4.9, y + 1.25, 0.6, CPU)
    axes.text(-2.45, y + 1.53, "launch", fontsize=8.5, color="white", ha="center", va="center")
    axes.text(0.7, y + 1.53, "waits for the answer", fontsize=10.5, color=FAINT, va="center")


def _persistent(axes: Axes, y: float, mine: Series, best: Series) -> None:
    step, split = mine.median * 1e6, mine.split
    assert split
    _name(axes, y, "cpufree", "persistent kernel")
    _lanes(axes, y)
    _launched_once(axes, y)
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
    text = f"{step:.1f} µs per iteration, {ratio:.1f}× faster than the best baseline"
    axes.text(END, y + 1.53, text, fontsize=11.5, color=INK, ha="right", va="center", weight="bold")


def _legend(axes: Axes, y: float) -> None:
    at = 0.0
    for words, color in PHASES.values():
        axes.broken_barh([(at, 1.8)], (y, 0.42), facecolor=color)
        axes.text(at + 2.4, y + 0.2, words, fontsize=10.5, color=FAINT, va="center")
        at += 5.2 + 0.93 * len(words)
