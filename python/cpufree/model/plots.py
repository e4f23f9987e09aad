"""Plots of the communication model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cpufree.machine.communication import Communication
from cpufree.model.fit import MODE_OF, medians
from cpufree.model.loggop import PARTS, Payload, Verb
from cpufree.model.samples import Samples
from cpufree.model.solve import IterationTime
from cpufree.model.use import parameters, pipelined, single
from cpufree.model.validate import LARGEST_ERROR
from cpufree.output_file import write_file

COLORS = ("#2563a8", "#c8553d", "#2f8f5b", "#8a5aab", "#e0a458", "#5b6b7a", "#b0417e", "#3aa6a6",
          "#8c7a2a", "#1b2a49", "#f08fb0", "#8fc05a", "#6f4e37")  # fmt: skip
PART_COLORS = ("#2563a8", "#9db8d6", "#5b6b7a", "#e0a458", "#2f8f5b", "#c8553d", "#bbbbbb")
MARKERS = ("o", "s", "^", "v", "D")
LINE_INCHES = 0.19
"""Height of a line of a legend; figures grow with their legends, and with their bars:"""
BAR_INCHES = 0.3
UNDIVIDED = "parts not identifiable"
INK = "#222222"
BYTES = "message size [B]"
TIME = "time of a message [s]"
RESIDUAL = "predicted over measured, less 1"
LINEAR_UP_TO = 1.0
"""Residual up to which the scale is linear."""
LARGEST_RANGE = 20.0
"""Of costs that are stacked in microseconds; beyond, each is stacked in shares of its own."""
ITERATION = ("matrix", "vectors", "halo", "exchange", "sums", "loops", "network")
"""Parts of an iteration."""
STACKED = 8.0
"""Bytes of the messages whose cost is stacked."""


def save_plot(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure; the suffix of the path says in which format."""
    FigureCanvasAgg(figure)
    kind = os.path.splitext(path)[1][1:].lower()
    with write_file(path) as file:
        figure.savefig(file, dpi=150, format=kind)


def axes_of(figure: Figure, rows: int, columns: int) -> list[Axes]:
    made = figure.subplots(rows, columns, squeeze=False)
    return [cast(Axes, axes) for axes in made.flat]


def tidy(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=10, loc="left", color=INK)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(True, which="major", color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def legend_beside(figure: Figure, axes: Sequence[Axes], without: str = "\n") -> None:
    """Put one legend for several plots beside them, but for labels that end so."""
    shown: dict[str, Any] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            if not label.endswith(without):
                shown.setdefault(label, handle)
    if shown:
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, max(height, LINE_INCHES * len(shown)))
        figure.legend(
            list(shown.values()), list(shown), loc="outside right upper", frameon=False, fontsize=8
        )


def colored(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return a color for each name, and a marker that tells those of the same color apart."""
    return {
        name: (COLORS[k % len(COLORS)], MARKERS[k // len(COLORS) % len(MARKERS)])
        for k, name in enumerate(names)
    }


def draw_fit(found: Communication, samples: Samples) -> Figure:
    """Draw curves with the medians that they were fitted to, and the residuals below."""
    figure = Figure(figsize=(12.5, 7.4), layout="constrained")
    axes = axes_of(figure, 2, 2)
    for k, (kind, title) in enumerate(
        (("single", "Single messages (open: held out)"), ("pipelined", "Windows: time per message"))
    ):
        for way, (color, marker) in colored(found.ways).items():
            record = found.ways[way]
            if kind not in record.curves:
                continue
            fitted = record.curves[kind].curve
            for held_out in (False, True):
                there = medians(samples, way, MODE_OF[kind], held_out, record.curves[kind].messages)
                if there is None:
                    continue
                label = f"{way}, {'held out' if held_out else 'fitted'}"
                face = "white" if held_out else color
                style: dict[str, Any] = {"ms": 4.5, "color": color, "mfc": face, "lw": 0}
                style["label"] = label
                axes[k].plot(there.sizes, there.seconds, marker, **style)
                error = fitted(there.sizes) / there.seconds - 1.0
                axes[k + 2].plot(there.sizes, error, marker, **style)
            sizes = np.geomspace(*(record.curves[kind].sizes or (8, 2**23)), 400)
            axes[k].plot(sizes, fitted(sizes), "-", lw=1.3, color=color)
        axes[k].set_yscale("log")
        tidy(axes[k], title, BYTES, TIME)
        axes[k + 2].axhspan(-LARGEST_ERROR, LARGEST_ERROR, color="#f0f0f0", lw=0)
        axes[k + 2].axhline(0, color=INK, lw=0.8)
        # Residuals of a disturbed measurement may be large: the others are to be seen beside them.
        axes[k + 2].set_yscale("symlog", linthresh=LINEAR_UP_TO, linscale=2.0)
        axes[k + 2].yaxis.set_major_formatter("{x:.3g}")
        tidy(axes[k + 2], f"Residuals, {kind} (band: {LARGEST_ERROR:.0%})", BYTES, RESIDUAL)
        for one in (axes[k], axes[k + 2]):
            one.set_xscale("log", base=2)
    legend_beside(figure, axes[:2], ", held out")
    return figure


def draw_machine(found: Communication) -> Figure:
    """Draw time against size for all ways, and the cost of a small message in its parts."""
    width = 6.5 + max(6.5, BAR_INCHES * len(found.ways))
    figure = Figure(figsize=(width, 5), layout="constrained")
    left, right = axes_of(figure, 1, 2)
    sizes = np.geomspace(8, 2**23, 400)
    for name, (color, marker) in colored(found.ways).items():
        for times, dashes, kind in (
            (single(found.ways[name], sizes), "-", "single"),
            (pipelined(found.ways[name], sizes), "--", "pipelined"),
        ):
            if times is not None:
                style: dict[str, Any] = {"ls": dashes, "marker": marker, "markevery": 80}
                style |= {"ms": 3.5, "lw": 1.4}
                left.plot(sizes, times, color=color, label=f"{name}, {kind}", **style)
    left.set_xscale("log", base=2)
    left.set_yscale("log")
    tidy(left, f"{found.machine} (dashed: pipelined)", BYTES, TIME)
    legend_beside(figure, [left], ", pipelined")
    _stack(right, found)
    return figure


def _stack(axes: Axes, found: Communication) -> None:
    """Stack what the parameters add to a small message; one bar where they are not all known."""
    names, parts = [], []
    for name, way in found.ways.items():
        loggop, whole = parameters(way), single(way, STACKED)
        if loggop is not None:
            payload = cast(Payload, way.payload or "once")
            parts.append(loggop.parts(cast(Verb, way.verb), STACKED, payload))
        elif whole is not None:
            parts.append({UNDIVIDED: whole})
        else:
            continue
        names.append(name)
    bottom = np.zeros(len(names))
    totals = np.array([1e6 * sum(map(float, one.values())) for one in parts])
    shares = bool(names) and totals.max() > LARGEST_RANGE * totals.min()
    for part, color in zip((*PARTS, UNDIVIDED), PART_COLORS, strict=True):
        heights = np.array([float(one.get(part, 0.0)) * 1e6 for one in parts])
        heights = heights / totals if shares else heights
        if np.any(heights > 0):
            axes.bar(names, heights, bottom=bottom, color=color, width=0.6, label=part)
        bottom = bottom + heights
    for place, height in enumerate(bottom):
        said = f"{totals[place]:.2f} us" if shares else f"{height:.2f}"
        turn = 60 if shares else 0
        axes.annotate(said, (place, height), ha="center", va="bottom", fontsize=8, rotation=turn)
    if shares:
        axes.set_ylim(0, 1.25)
    title = f"Cost of a message of {STACKED:g} B"
    unit = "share of the time" if shares else "time [us]"
    tidy(axes, title if names else f"{title}: not known of any way", "", unit)
    turned = 90 if len(names) > 12 else 40 if len(names) > 4 else 25
    axes.tick_params(axis="x", rotation=turned)
    for label in axes.get_xticklabels():
        label.set_horizontalalignment("center" if turned == 90 else "right")
    if names:
        beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 0.4)}
        axes.legend(frameon=False, fontsize=8, **(beside if shares else {}))


def draw_prediction(name: str, pes: Sequence[int], times: Sequence[IterationTime]) -> Figure:
    """Draw time with its interval and parts, and efficiency, over the number of GPUs."""
    figure = Figure(figsize=(11.8, 4.4), layout="constrained")
    left, right = axes_of(figure, 1, 2)
    places = np.arange(len(pes))
    bottom = np.zeros(len(pes))
    for part, color in zip(ITERATION, COLORS, strict=False):
        heights = np.array([1e6 * one.parts.get(part, 0.0) for one in times])
        left.bar(places, heights, bottom=bottom, width=0.6, color=color, label=part)
        bottom += heights
    seconds = np.array([1e6 * one.seconds for one in times])
    low = seconds - [1e6 * one.low for one in times]
    high = np.array([1e6 * one.high for one in times]) - seconds
    left.errorbar(
        places, seconds, np.maximum([low, high], 0.0), fmt="none", ecolor=INK, capsize=3, lw=1
    )
    tidy(left, f"{name}: predicted iteration", "GPUs", "time [us]")
    legend_beside(figure, [left])
    efficiency = [
        times[0].seconds * pes[0] / (one.seconds * p) for p, one in zip(pes, times, strict=True)
    ]
    right.plot(places, efficiency, "o-", color=COLORS[0], ms=4)
    right.set_ylim(0, 1.05 * max(1.0, *efficiency))
    tidy(right, "Parallel efficiency", "GPUs", f"over {pes[0]} GPU{'' if pes[0] == 1 else 's'}")
    for axes in (left, right):
        axes.set_xticks(places, [str(p) for p in pes])
    return figure
