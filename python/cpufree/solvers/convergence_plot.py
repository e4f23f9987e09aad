"""The convergence plot: residual norm over iterations, with tolerance, true residual, verdict.

Matplotlib is loaded when a plot is made, and not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from cpufree.errors import UnsupportedError
from cpufree.summary import BAD, GOOD

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, CURVE, GOAL = "#222222", "#2563a8", "#8a8a8a"
SIZE = (7.2, 4.5)
"""Of a figure, in inches."""


class Solved(Protocol):
    """What is drawn of a Result."""

    @property
    def converged(self) -> bool: ...
    @property
    def reason(self) -> Any: ...
    @property
    def iterations(self) -> int: ...
    @property
    def true_residual(self) -> float: ...
    @property
    def bnorm(self) -> float: ...
    @property
    def history(self) -> npt.NDArray[np.float64]: ...
    @property
    def history_stride(self) -> int: ...
    @property
    def method(self) -> str: ...
    @property
    def pc(self) -> str: ...
    @property
    def pes(self) -> int: ...
    @property
    def blocks(self) -> int: ...
    @property
    def columns(self) -> Sequence[Solved]: ...


def new_axes() -> Axes:
    """Return the axes of a new figure of pyplot; UnsupportedError without Matplotlib."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise UnsupportedError(
            f"plots need Matplotlib, which does not load ({error}): pip install matplotlib"
        ) from None
    axes: Axes = pyplot.subplots(figsize=SIZE, layout="constrained")[1]
    return axes


def draw_result(axes: Axes, result: Solved, tolerance: float, title: str = "") -> None:
    """Draw a result on axes: one curve, or one for each of its columns, and the verdict.

    `tolerance` is the absolute residual norm asked for; 0: none is drawn.
    """
    if result.columns:
        draw_columns(axes, result)
    else:
        draw_convergence(axes, result, tolerance)
    axes.grid(True, which="major", color="#e6e6e6", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK)
    axes.set_title(title, loc="left", fontsize=10.5, color=INK, pad=22)
    state = "converged" if result.converged else "NOT converged"
    axes.annotate(
        f"{state}: {result.reason} after {result.iterations} iterations"
        f"  ·  {result.method}, {result.pc}, PEs × blocks: {result.pes} × {result.blocks}",
        xy=(0, 1),
        xytext=(0, 7),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=8.5,
        color=GOOD if result.converged else BAD,
    )


def draw_convergence(axes: Axes, result: Solved, tolerance: float) -> None:
    """Draw the residual history of a result on axes.

    `tolerance` is the absolute residual norm asked for. Norms are drawn relative to ‖b‖ (absolute
    when b is 0). Zero norms, which a logarithmic axis cannot show, are left out.
    """
    scale = draw_history(axes, result, "recursive residual", CURVE)
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
    label_axes(axes, result.bnorm > 0, result.iterations)


def draw_columns(axes: Axes, result: Solved) -> None:
    """Draw the residual histories of all columns on axes."""
    for number, column in enumerate(result.columns):
        failed = "" if column.converged else f", {column.reason}"
        draw_history(axes, column, f"column {number}{failed}")
    most = max(column.iterations for column in result.columns)
    label_axes(axes, all(column.bnorm > 0 for column in result.columns), most)


def draw_history(axes: Axes, result: Solved, label: str, color: str | None = None) -> float:
    """Draw residuals over iterations; return what they are relative to."""
    scale = result.bnorm if result.bnorm > 0 else 1.0
    history = np.asarray(result.history, dtype=np.float64) / scale
    iterations = np.arange(history.size) * result.history_stride
    shown = np.isfinite(history) & (history > 0)
    few = np.count_nonzero(shown) < 40
    axes.semilogy(
        iterations[shown],
        history[shown],
        color=color,
        linewidth=1.6,
        marker="." if few else "",
        label=label,
        zorder=3,
    )
    return scale


def label_axes(axes: Axes, relative: bool, iterations: int) -> None:
    """Name both axes and the curves; the first axis ends after N iterations."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel("iteration")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.set_ylabel(r"$\|r\|_2\,/\,\|b\|_2$" if relative else r"$\|r\|_2$")
    axes.set_xlim(left=0, right=max(1, iterations) * 1.02)
    axes.legend(frameon=False, loc="best")
