"""The convergence plot: what is drawn, and that files of each format come out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from cpufree.cli.plot import plot_convergence, shorten
from cpufree.errors import InvalidInputError
from cpufree.solvers.convergence_plot import draw_convergence
from cpufree.solvers.result import Reason, Result

TOLERANCE = 2e-5


def make_result(**changes: Any) -> Result:
    """Return a result with ‖b‖ = 2 and residuals 2, 0.2, ..., 2e-5 at every third iteration."""
    fields: dict[str, Any] = {
        "x": np.zeros(4),
        "converged": True,
        "reason": Reason.CONVERGED_RTOL,
        "iterations": 15,
        "residual": 2e-5,
        "true_residual": 3e-5,
        "bnorm": 2.0,
        "history": 2.0 * 10.0 ** -np.arange(6),
        "history_stride": 3,
        "method": "prcg",
        "pc": "jacobi",
        "why": "",
        "engine": "cpu_threads",
        "pes": 2,
        "blocks": 1,
        "timings": {"setup": 0.1, "solve": 0.2, "per_iteration": 0.01},
        "warnings": (),
    }
    return Result(**{**fields, **changes})


def draw(result: Result, tolerance: float = TOLERANCE) -> dict[str, tuple[Any, Any]]:
    """Draw a result; return (x data, y data) by label."""
    axes = Figure().add_subplot()
    draw_convergence(axes, result, tolerance)
    return {
        str(line.get_label()): (np.asarray(line.get_xdata()), np.asarray(line.get_ydata()))
        for line in axes.get_lines()
    }


def test_draws_history_relative_to_b_at_its_stride() -> None:
    iterations, norms = draw(make_result())["recursive residual"]
    np.testing.assert_array_equal(iterations, [0, 3, 6, 9, 12, 15])
    np.testing.assert_allclose(norms, 10.0 ** -np.arange(6))


def test_marks_true_residual_at_last_iteration() -> None:
    iterations, norms = draw(make_result())["true residual 1.50e-05"]
    assert (list(iterations), list(norms)) == ([15], [1.5e-05])


def test_draws_tolerance_relative_to_b() -> None:
    _, norms = draw(make_result())["tolerance 1.0e-05"]
    np.testing.assert_allclose(norms, 1e-5)


def test_leaves_out_tolerance_of_zero() -> None:
    assert not any(label.startswith("tolerance") for label in draw(make_result(), 0.0))


def test_leaves_out_what_a_logarithmic_axis_cannot_show() -> None:
    history = np.array([2.0, 0.0, np.nan, np.inf, 0.2])
    iterations, norms = draw(make_result(history=history))["recursive residual"]
    np.testing.assert_array_equal(iterations, [0, 12])
    np.testing.assert_allclose(norms, [1.0, 0.1])


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_writes_file_of_format(tmp_path: Path, suffix: str) -> None:
    start = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix]
    path = tmp_path / f"plot{suffix}"
    plot_convergence(make_result(), path, problem="a problem", tolerance=TOLERANCE)
    assert path.read_bytes().startswith(start)


def test_title_names_problem_and_verdict(tmp_path: Path) -> None:
    path = tmp_path / "plot.svg"
    result = make_result(converged=False, reason=Reason.DIVERGED_ITS)
    plot_convergence(result, path, problem="gen:poisson2d", tolerance=TOLERANCE)
    text = path.read_text()  # Matplotlib writes each text as a comment beside its glyphs
    assert "<!-- gen:poisson2d -->" in text
    assert "NOT converged: DIVERGED_ITS after 15 iterations" in text


@pytest.mark.parametrize(
    "changes",
    [
        {"bnorm": 0.0, "history": np.zeros(1), "iterations": 0, "true_residual": 0.0},
        {"history": np.full(3, np.nan), "true_residual": np.nan},
        {"history": np.array([])},
    ],
    ids=["b_is_zero", "all_nan", "empty_history"],
)
@pytest.mark.filterwarnings("error::RuntimeWarning", "error:.*(positive|log|identical):UserWarning")
def test_plots_degenerate_result_without_warning(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = tmp_path / "plot.png"
    plot_convergence(make_result(**changes), path, problem="degenerate", tolerance=0.0)
    assert path.stat().st_size > 1000


def test_rejects_unknown_suffix_with_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"'\.xyz' is not known.*\.png, \.svg, \.pdf"):
        plot_convergence(make_result(), tmp_path / "plot.xyz", problem="", tolerance=1.0)


def test_long_title_keeps_both_ends() -> None:
    assert shorten("a" * 80) == "a" * 80
    short = shorten("begin" + "x" * 200 + "end")
    assert len(short) <= 90
    assert short.startswith("begin")
    assert short.endswith("end")
