"""The convergence plot: residual norm over iterations, with tolerance, true residual, verdict."""

from __future__ import annotations

import os

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cpufree.errors import InvalidInputError
from cpufree.output_file import write_file
from cpufree.solvers.result import Result

SUFFIXES = (".png", ".svg", ".pdf")
INK, CURVE, GOAL, GOOD, BAD = "#222222", "#2563a8", "#8a8a8a", "#2c7a3f", "#b3261e"


def check_plot_path(path: str | os.PathLike[str]) -> None:
    """Raise InvalidInputError unless the suffix is one that can be drawn."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in SUFFIXES:
        raise InvalidInputError(
            f"cannot plot to '{os.fspath(path)}': the suffix '{suffix}' is not known. "
            f"Use one of {', '.join(SUFFIXES)}."
        )


def shorten(text: str, most: int = 90) -> str:
    """Return text with its middle left out where it is longer than a title can be."""
    half = most // 2
    return text if len(text) <= most else f"{text[: half - 1]}…{text[-half:]}"


def draw_convergence(axes: Axes, result: Result, tolerance: float) -> None:
    """Draw the residual history of a result on axes.

    `tolerance` is the absolute residual norm asked for. Norms are drawn relative to ‖b‖ (absolute
    when b is 0). Zero norms, which a logarithmic axis cannot show, are left out.
    """
    scale = result.bnorm if result.bnorm > 0 else 1.0
    history = np.asarray(result.history, dtype=np.float64) / scale
    iterations = np.arange(history.size) * result.history_stride
    shown = np.isfinite(history) & (history > 0)
    few = np.count_nonzero(shown) < 40
    axes.semilogy(
        iterations[shown],
        history[shown],
        color=CURVE,
        linewidth=1.6,
        marker="." if few else "",
        label="recursive residual",
        zorder=3,
    )
    if tolerance > 0:
        axes.axhline(
            tolerance / scale,
            color=GOAL,
            linewidth=1.1,
            linestyle=(0, (5, 3)),
            label=f"tolerance {tolerance / scale:.1e}",
        )
    true = result.true_residual / scale
    if np.isfinite(true) and true > 0:
        axes.semilogy(
            [result.iterations],
            [true],
            linestyle="none",
            marker="D",
            markersize=7,
            markerfacecolor="white",
            markeredgewidth=1.8,
            markeredgecolor=GOOD if result.converged else BAD,
            label=f"true residual {true:.2e}",
            zorder=4,
            clip_on=False,
        )
    axes.set_xlabel("iteration")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.set_ylabel(r"$\|r\|_2\,/\,\|b\|_2$" if result.bnorm > 0 else r"$\|r\|_2$")
    axes.set_xlim(left=0, right=max(1, result.iterations) * 1.02)
    axes.legend(frameon=False, loc="best")


def plot_convergence(
    result: Result, path: str | os.PathLike[str], *, problem: str, tolerance: float
) -> None:
    """Save a plot of how a solve converged.

    Parameters: `path` ends in .png, .svg or .pdf; `problem` names the system in the title;
    `tolerance` is the absolute residual norm asked for, max(rtol × ‖b‖, atol).
    Raises InvalidInputError for another suffix, and where the file cannot be written.
    """
    check_plot_path(path)
    figure = Figure(figsize=(7.2, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    draw_convergence(axes, result, tolerance)
    axes.grid(True, which="major", color="#e6e6e6", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK)
    axes.set_title(shorten(problem), loc="left", fontsize=10.5, color=INK, pad=22)
    color = GOOD if result.converged else BAD
    state = "converged" if result.converged else "NOT converged"
    axes.annotate(
        f"{state}: {result.reason.value} after {result.iterations} iterations"
        f"  ·  {result.method}, {result.pc}, PEs × blocks: {result.pes} × {result.blocks}",
        xy=(0, 1),
        xytext=(0, 7),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=8.5,
        color=color,
    )
    kind = os.path.splitext(path)[1][1:].lower()
    with write_file(path) as file:
        figure.savefig(file, dpi=160, format=kind)
