"""A picture of what a trace answers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from cpufree.errors import UnsupportedError
from cpufree.output_file import write_file
from cpufree.trace.compare import per_block
from cpufree.trace.report import Report

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def save_picture(report: Report, path: str) -> None:
    """Write a picture: bytes between PEs, waits by cause, the critical path.

    Raises:
        UnsupportedError: Matplotlib is not installed.
    """
    figure = new_figure(12, 4)
    figure.suptitle(f"{report.facts.get('what', 'kernel')}, {report.facts.get('engine', '')}")
    left, middle, right = figure.subplots(1, 3)
    _draw_bytes(left, report)
    _draw_waits(middle, report)
    _draw_path(right, report)
    write_figure(figure, path)


def save_hang(waiting: npt.NDArray[np.int64], cycle: list[int], path: str) -> None:
    """Draw how many blocks of each PE (row) wait for each other one; `cycle`: in red.

    Raises:
        UnsupportedError: Matplotlib is not installed.
    """
    figure = new_figure(6, 6)
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), title="who waits for whom")
    angle = 2 * np.pi * np.arange(len(waiting)) / max(1, len(waiting))
    places = np.column_stack([np.sin(angle), np.cos(angle)])
    red = set(zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))
    for pe, to in np.argwhere(waiting).tolist():
        colour = "tab:red" if (pe, to) in red else "tab:gray"
        bend = {"arrowstyle": "-|>", "color": colour, "connectionstyle": "arc3,rad=0.15"}
        ends = {"shrinkA": 18, "shrinkB": 18, "lw": 2}
        axes.annotate("", places[to], places[pe], arrowprops={**bend, **ends})
        middle = 0.5 * (places[pe] + places[to]) + 0.1 * (places[to] - places[pe])[::-1] * [1, -1]
        axes.text(
            middle[0], middle[1], str(waiting[pe, to]), color=colour, ha="center", va="center"
        )
    for pe, (x, y) in enumerate(places):
        box = {"boxstyle": "circle", "facecolor": "white", "edgecolor": "black"}
        axes.text(x, y, f"PE {pe}", ha="center", va="center", bbox=box)
    write_figure(figure, path)


def new_figure(width: float, height: float) -> Figure:
    """Return a figure; UnsupportedError where Matplotlib is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsupportedError(
            "a picture needs Matplotlib: pip install matplotlib, or leave out --plot"
        ) from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def write_figure(figure: Figure, path: str) -> None:
    """Write a figure in the format of the name, the same bytes for the same figure."""
    suffix = os.path.splitext(path)[1].lower().lstrip(".")
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    import matplotlib  # new_figure has found it

    with write_file(path) as file, matplotlib.rc_context({"svg.hashsalt": "cpufree"}):
        figure.savefig(file, format=suffix, dpi=150, metadata=undated.get(suffix))


def _draw_bytes(axes: Axes, report: Report) -> None:
    image: Any = axes.imshow(report.bytes / report.iterations, cmap="Blues")
    axes.figure.colorbar(image, ax=axes, shrink=0.8)
    axes.set(title="payload of an iteration [B]", xlabel="to PE", ylabel="from PE")
    pes = np.arange(len(report.bytes))
    axes.set_xticks(pes)
    axes.set_yticks(pes)


def _draw_waits(axes: Axes, report: Report) -> None:
    names = [*dict.fromkeys([*report.late_sender, *report.transfer])]
    late, transfer = (
        np.array([1e6 * per_block(report, of.get(name, 0.0)) for name in names])
        for of in (report.late_sender, report.transfer)
    )
    axes.barh(names, late, label="late sender")
    axes.barh(names, transfer, left=late, label="transfer")
    axes.set(title="waits of a block in an iteration", xlabel="µs")
    axes.legend()


def _draw_path(axes: Axes, report: Report) -> None:
    seconds = report.path.seconds
    each = [1e6 * s / report.recorded for s in seconds.values()]
    axes.barh([*seconds], each, color="tab:green")
    axes.set(title="critical path of an iteration", xlabel="µs")
