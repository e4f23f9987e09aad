"""Where the time of a message goes, on both sides (after LeBeane et al. 2017, Fig. 8)."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cpufree.bench.triggered.measure import TIMES, Series
from cpufree.output_file import write_file

STAGES = {
    "launch": "#9db8d6",
    "kernel, before the data are ready": "#2563a8",
    "kernel, after": "#7aa0cb",
    "teardown, until the host knows": "#5b6b7a",
    "NIC": "#c8553d",
    "target waits": "#e5e5e5",
    "target has the data": "#2f8f5b",
}
INK = "#222222"
TITLES = {"host": "HDN", "at_end": "GDS", "triggered": "GPU-TN", "stores": "stores"}


def smallest(measured: Sequence[Series]) -> list[Series]:
    """Return the messages of the smallest size, of kernels that go on longest."""
    messages = [one for one in measured if one.study == "messages" and one.samples]
    least = min((one.size for one in messages), default=0)
    longest = max((one.detail.get("after", 0.0) for one in messages), default=0.0)
    return [
        one for one in messages if one.size == least and one.detail.get("after", longest) == longest
    ]


def draw(measured: Sequence[Series]) -> Figure:
    """Draw medians of the smallest messages: two bars for each path, on one clock."""
    series = smallest(measured)
    figure = Figure(figsize=(9, 1.2 + 0.85 * len(series)), layout="constrained")
    axes = figure.add_subplot()
    labels, places = [], []
    ends = [1e6 * float(np.median(one.array()[:, [4, 7]].max(axis=1))) for one in series]
    for number, one in enumerate(series):
        at = {name: 1e6 * t for name, t in zip(TIMES, np.median(one.array(), axis=0), strict=True)}
        top = 3.0 * number
        _initiator(axes, at, top, 0.004 * max(ends))
        _bar(axes, top + 1.0, 0.0, at["seen"], "target waits")
        _bar(axes, top + 1.0, at["seen"], 1.05 * max(ends), "target has the data")
        nic = "" if one.back_end == "none" else f" by {one.back_end}"
        labels += [f"{TITLES[one.name]}{nic}: initiator", "target"]
        places += [top, top + 1.0]
    axes.set_yticks(places, labels)
    axes.invert_yaxis()
    axes.set_xlabel("time since the launch of the initiator's kernel [µs]")
    size = series[0].size if series else 0
    axes.set_title(f"Messages of {size} B: medians", fontsize=10, loc="left", color=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    handles = {text: bar for bar, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    axes.legend(handles.values(), handles.keys(), fontsize=8, loc="upper left", ncols=2,
                bbox_to_anchor=(0.0, -0.18), frameon=False)  # fmt: skip
    return figure


def _initiator(axes: Axes, at: dict[str, float], place: float, least: float) -> None:
    _bar(axes, place, 0.0, at["begun"], "launch")
    _bar(axes, place, at["begun"], at["ready"], "kernel, before the data are ready")
    _bar(axes, place, at["ready"], at["ended"], "kernel, after")
    _bar(axes, place, at["ended"], at["observed"], "teardown, until the host knows")
    if not np.isnan(at["nic_begun"]):
        width = max(at["nic_ended"] - at["nic_begun"], least)
        axes.barh(place + 0.45, width, 0.25, at["nic_begun"], color=STAGES["NIC"], label="NIC")


def _bar(axes: Axes, place: float, begin: float, end: float, stage: str) -> None:
    axes.barh(place, max(end - begin, 0.0), 0.8, begin, color=STAGES[stage], label=stage)


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure; the suffix of the path says in which format."""
    FigureCanvasAgg(figure)
    kind = os.path.splitext(path)[1][1:].lower()
    with write_file(path) as file:
        figure.savefig(file, dpi=150, format=kind)
