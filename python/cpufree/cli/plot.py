"""The convergence plot as a file."""

from __future__ import annotations

import os

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cpufree.errors import InvalidInputError
from cpufree.output_file import write_file
from cpufree.solvers.convergence_plot import SIZE, draw_result
from cpufree.solvers.result import Result

SUFFIXES = (".png", ".svg", ".pdf")


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


def plot_convergence(
    result: Result, path: str | os.PathLike[str], *, problem: str, tolerance: float
) -> None:
    """Save a plot of how a solve converged.

    Parameters: `path` ends in .png, .svg or .pdf; `problem` names the system in the title;
    `tolerance` is the absolute residual norm asked for, max(rtol × ‖b‖, atol).
    Raises InvalidInputError for another suffix, and where the file cannot be written.
    """
    check_plot_path(path)
    figure = Figure(figsize=SIZE, layout="constrained")
    FigureCanvasAgg(figure)
    draw_result(figure.add_subplot(), result, tolerance, shorten(problem))
    kind = os.path.splitext(path)[1][1:].lower()
    with write_file(path) as file:
        figure.savefig(file, dpi=160, format=kind)
