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
    from matplotlib.axes import Axes


def save_picture(report: Report, path: str) -> None:
    """Write a picture: bytes between PEs, waits by cause, the critical path.

    Raises:
        UnsupportedError: Matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsupportedError(
            "a picture needs Matplotlib: pip install matplotlib, or leave out --plot"
        ) from None
    figure = Figure(figsize=(12, 4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(f"{report.facts.get('what', 'kernel')}, {report.facts.get('engine', '')}")
    left, middle, right = figure.subplots(1, 3)
    _draw_bytes(left, report)
    _draw_waits(middle, report)
    _draw_path(right, report)
    suffix = os.path.splitext(path)[1].lower().lstrip(".")
    with write_file(path) as file:
        figure.savefig(file, format=suffix, dpi=150)


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
    each = [1e6 * s / report.iterations for s in seconds.values()]
    axes.barh([*seconds], each, color="tab:green")
    axes.set(title="critical path of an iteration", xlabel="µs")
