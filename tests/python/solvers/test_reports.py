"""What notebooks and terminals show of results and solvers: tables, plots, bars, logs."""

from __future__ import annotations

import builtins
import io
import logging
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import cpufree
from cpufree import Solver, solve
from cpufree.engines import progress_bar
from cpufree.errors import UnsupportedError
from cpufree.stencil import jacobi

A = cpufree.generate.poisson2d(30, 20)
B = np.ones(600)


@pytest.fixture(autouse=True)
def no_window(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Draw to memory, and close figures."""
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


def test_a_result_is_true_where_it_has_converged() -> None:
    assert solve(A, B)
    assert not solve(A, B, maxiter=2)


def test_a_stencil_result_is_true_where_all_was_done() -> None:
    assert jacobi(np.eye(9), 3)
    assert not jacobi(np.eye(9), 3, tol=0.0)


def test_html_has_verdict_rows_and_no_markup_of_values() -> None:
    html = solve(A, B, maxiter=2)._repr_html_()
    assert "Result: NOT converged after 2 iterations (DIVERGED_ITS" in html
    assert "b3261e" in html
    assert "<th" in html and "prcg, preconditioner jacobi" in html
    from cpufree.summary import as_html

    assert "&lt;b&gt;" in as_html("t", [("name", "<b>")])


def test_result_says_what_the_right_hand_side_was(tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", B)
    assert solve(A, B).rhs == "float64 (600,)"
    assert solve(A, list(B)).rhs == "list (600,)"
    assert solve(A, tmp_path / "b.npy").rhs == f"file {tmp_path / 'b.npy'}"
    several = solve(A, np.column_stack([B, 2 * B]))
    assert several.rhs == "float64 (600, 2)"
    assert several.columns[1].rhs == "column 1 of float64 (600, 2)"
    assert several.columns[1].to_dict()["rhs"] == "column 1 of float64 (600, 2)"


def test_reasons_are_a_list_in_html() -> None:
    result = solve(A, B, pes=2)
    html = result._repr_html_()
    for reason in result.why.split("; "):
        assert f"<li>{escape(reason)}</li>" in html


def test_stencil_result_has_html_too() -> None:
    html = jacobi(np.eye(9), 3)._repr_html_()
    assert "StencilResult: 3 iterations (CONVERGED_ITS" in html
    assert "2c7a3f" in html


def test_repr_of_a_solver_tells_size_place_and_whether_it_is_closed() -> None:
    solver = Solver(A, engine="cpu_threads", pes=2, blocks=1)
    lines = repr(solver).splitlines()
    assert lines[0] == "Solver: 600 rows, 2 900 nonzeros"
    assert "  engine              cpu_threads, 2 PEs × 1 block" in lines
    assert "Solver: 600 rows" in solver._repr_html_()
    solver.close()
    assert repr(solver).splitlines()[0] == "Solver: 600 rows, 2 900 nonzeros, closed"


# Plots


def test_plot_returns_axes_with_history_tolerance_and_true_residual() -> None:
    result = solve(A, B, rtol=1e-6)
    axes = result.plot()
    labels = [str(line.get_label()) for line in axes.get_lines()]
    assert labels[:2] == ["recursive residual", "tolerance 1.0e-06"]
    assert labels[2].startswith("true residual")


def test_plot_of_columns_has_a_curve_for_each_on_given_axes() -> None:
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    assert solve(A, np.eye(600)[:, :3], maxiter=4).plot(ax=axes) is axes
    labels = [str(line.get_label()) for line in axes.get_lines()]
    assert labels == [f"column {k}, DIVERGED_ITS" for k in range(3)]


def test_plot_without_matplotlib_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError("No module named 'matplotlib'")
        return load(name, *rest, **more)

    result = solve(A, B)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UnsupportedError, match=r"plots need Matplotlib.*pip install matplotlib"):
        result.plot()


def test_solving_loads_neither_matplotlib_nor_rich() -> None:
    program = (
        "import sys, numpy as np, cpufree; cpufree.solve(np.eye(3), np.ones(3)); "
        "print({'matplotlib', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr


# Bars


class Recorded(progress_bar.ProgressBar):
    """A bar on a terminal that is none, which remembers its calls."""

    calls: list[tuple[int, float]]

    def __init__(self, what: str, share: progress_bar.Share) -> None:
        super().__init__(what, share, Console(force_terminal=True, file=io.StringIO()))
        Recorded.calls = []

    def __call__(self, iteration: int, norm: float) -> None:
        super().__call__(iteration, norm)
        Recorded.calls.append((iteration, norm))


def test_progress_true_shows_a_bar_that_follows_a_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    from cpufree.solvers import solving

    monkeypatch.setattr(solving, "ProgressBar", Recorded)
    chain, b = cpufree.generate.poisson1d(100_000), np.ones(100_000)
    result = solve(chain, b, pc="jacobi", maxiter=2000, progress=True, engine="cpu_threads")
    assert result.iterations == 2000  # a bar does not end a solve
    assert Recorded.calls
    assert all(0 <= iteration <= 2000 and norm > 0 for iteration, norm in Recorded.calls)


def test_progress_true_shows_a_bar_that_follows_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    from cpufree.stencil import iterate

    monkeypatch.setattr(iterate, "ProgressBar", Recorded)
    jacobi(np.zeros((300, 300)), 20_000, progress=True, engine="cpu_threads")
    assert Recorded.calls


def test_progress_false_and_a_bar_without_a_terminal_are_silent(
    capfd: pytest.CaptureFixture[str],
) -> None:
    for progress in (False, True):
        assert solve(A, B, progress=progress)
    assert capfd.readouterr() == ("", "")


def test_bar_counts_digits_gained_or_iterations_done() -> None:
    digits = progress_bar.of_digits(1.0, 1e-8)
    assert digits(1, 1e-4) == pytest.approx(0.5)
    assert [digits(1, norm) for norm in (1.0, 1e-9, 10.0, float("nan"))] == [0.0, 1.0, 0.0, 0.0]
    assert progress_bar.of_digits(0.0, 0.0)(5, 1.0) == 0.0
    assert progress_bar.of_iterations(10)(4, float("nan")) == pytest.approx(0.4)


# Logs


def test_log_has_choices_at_info_and_seconds_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="cpufree"):
        solve(A, B, engine="cpu_threads")
        jacobi(np.eye(9), 3, engine="cpu_threads")
    infos = [r.message for r in caplog.records if r.levelno == logging.INFO]
    debugs = [r.message for r in caplog.records if r.levelno == logging.DEBUG]
    assert any(text.startswith("set up: 600 rows, 2 900 nonzeros, float64") for text in infos)
    assert any("cpu_threads: asked for" in text for text in infos)
    assert any("converged after" in text and "prcg: one reduction" in text for text in infos)
    assert any(text.startswith("jacobi: 3 iterations") for text in infos)
    assert any(text.startswith("solve, seconds: solve ") for text in debugs)


def test_what_a_user_should_know_is_logged_as_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    solve(A, B, rtol=0.0)
    assert any("rounding errors" in r.message for r in caplog.records)


def test_a_program_that_asks_for_no_log_gets_none() -> None:
    program = (
        "import numpy as np, cpufree; "
        "cpufree.solve(np.eye(3), np.ones(3), rtol=0.0, pes=8, blocks=64)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("", "")
