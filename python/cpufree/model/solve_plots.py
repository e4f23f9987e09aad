"""Plots of predicted iterations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from cpufree.model.plots import COLORS, INK, axes_of, legend_beside, tidy
from cpufree.model.records import Comparison
from cpufree.model.solve import METHODS, IterationTime

PARTS = ("matrix", "vectors", "halo", "exchange", "sums", "loops", "network")
LARGEST = 0.25
"""The error of the band in the picture of a comparison."""


def draw_prediction(name: str, pes: Sequence[int], times: Sequence[IterationTime]) -> Figure:
    """Draw time with its interval and parts, and efficiency, over the number of GPUs."""
    figure = Figure(figsize=(11.8, 4.4), layout="constrained")
    left, right = axes_of(figure, 1, 2)
    places = np.arange(len(pes))
    bottom = np.zeros(len(pes))
    for part, color in zip(PARTS, COLORS, strict=False):
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


def draw_comparison(found: Comparison) -> Figure:
    """Draw predicted against measured times of iterations, by method and number of GPUs."""
    figure = Figure(figsize=(7.4, 5.4), layout="constrained")
    (axes,) = axes_of(figure, 1, 1)
    ends = [one.predicted for one in found.lines] + [one.measured.seconds for one in found.lines]
    line = 1e6 * np.array([min(ends) / 1.3, max(ends) * 1.3])
    axes.fill_between(line, line * (1 - LARGEST), line * (1 + LARGEST), color="#ececec", lw=0)
    axes.plot(line, line, color=INK, lw=0.8)
    for pes, color in zip(found.pes(), COLORS, strict=False):
        for method, marker in zip(METHODS, "os^", strict=True):
            lines = [
                one
                for one in found.lines
                if (one.measured.facts.pes, one.measured.method) == (pes, method)
            ]
            measured = [1e6 * one.measured.seconds for one in lines]
            predicted = [1e6 * one.predicted for one in lines]
            label = f"{pes} GPU{'' if pes == 1 else 's'}, {method}"
            axes.plot(measured, predicted, marker, color=color, mfc="none", ms=5, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    title = f"Iterations of records (band: {LARGEST:.0%})"
    tidy(axes, title, "measured [us]", "predicted [us]")
    legend_beside(figure, [axes])
    return figure
