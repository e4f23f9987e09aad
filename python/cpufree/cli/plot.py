"""Pictures as files: how a solve converged, and the values of an array."""

from __future__ import annotations

import os
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

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


def plot_array(values: NDArray[Any], path: str, title: str) -> None:
    """Save a picture of an array: a line, a map, or the middle one of its maps."""
    figure = Figure(figsize=(6, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    while values.ndim > 2:
        values = values[len(values) // 2]
    if values.ndim == 1:
        axes.plot(values)
        axes.set_xlabel("point")
    else:
        image = axes.imshow(values, origin="lower", aspect="equal")
        figure.colorbar(image, ax=axes)
        axes.set_xlabel("axis 1")
        axes.set_ylabel("axis 0")
    axes.set_title(title)
    kind = os.path.splitext(path)[1][1:].lower()
    with write_file(path) as stream:
        figure.savefig(stream, format=kind, dpi=150)
