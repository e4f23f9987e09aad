"""Several right-hand sides: solved one after another on one set-up, told of one by one."""

from __future__ import annotations

import json
import threading
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from ranks_here import all_say, team

import cpufree
from cpufree import Reason, Solver, cg, solve
from cpufree.errors import VectorError

A = sp.csr_array(cpufree.generate.poisson2d(30, 20))
N = A.shape[0]
RIGHTS = np.random.default_rng(3).standard_normal((N, 3))


def test_each_column_has_the_bits_of_a_solve_of_its_own() -> None:
    guesses = np.random.default_rng(4).standard_normal((N, 3))
    with Solver(A, pes=2) as solver:
        result = solver.solve(RIGHTS, guesses, rtol=1e-9)
        for number, column in enumerate(result.columns):
            alone = solver.solve(RIGHTS[:, number].copy(), guesses[:, number].copy(), rtol=1e-9)
            assert result.x[:, number].tobytes() == alone.x.tobytes()
            assert column.history.tobytes() == alone.history.tobytes()
            assert (column.iterations, column.reason) == (alone.iterations, alone.reason)
    assert result.x.shape == (N, 3)


def test_sums_and_the_worst_column_stand_for_all() -> None:
    result = solve(A, RIGHTS, rtol=1e-8)
    columns = result.columns
    assert result.converged and bool(result)
    assert result.iterations == sum(column.iterations for column in columns)
    assert result.counts["reductions"] == sum(c.counts["reductions"] for c in columns)
    assert result.timings["kernel"] == pytest.approx(sum(c.timings["kernel"] for c in columns))
    assert result.relative_residual == max(column.relative_residual for column in columns)
    assert f"converged: all of 3 columns, after {result.iterations} iterations" in repr(result)


def test_columns_that_fail_are_named_and_the_others_are_solved() -> None:
    first = np.zeros(N)
    first[0] = 1.0
    easy = A @ np.ones(N)
    x0 = np.column_stack([np.zeros(N), np.ones(N), np.zeros(N)])
    result = solve(A, np.column_stack([first, easy, first]), x0=x0, rtol=1e-12, maxiter=3)
    assert not result
    assert [column.converged for column in result.columns] == [False, True, False]
    assert result.reason is Reason.DIVERGED_ITS
    assert result.message.startswith("NOT converged: columns 0 and 2 of 3 columns, after 6")
    assert "DIVERGED_ITS: maxiter iterations were not enough" in result.message
    assert np.array_equal(result.x[:, 1], np.ones(N))
    content = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert [column["reason"] == "DIVERGED_ITS" for column in content["columns"]] == [1, 0, 1]


def test_warnings_that_columns_have_in_common_are_told_once() -> None:
    single = A.astype(np.float32)
    with Solver(single) as solver:
        result = solver.solve(np.column_stack([RIGHTS[:, 0], np.zeros(N)]), rtol=0.0)
    common = [note for note in result.warnings if "rounded from float64" in note]
    own = [note for note in result.warnings if note.startswith("column 0: rounding errors")]
    assert (len(common), len(own)) == (1, 1)


def test_one_column_is_a_vector() -> None:
    result = solve(A, RIGHTS[:, :1])
    assert (result.x.shape, result.columns) == ((N, 1), ())


def test_lists_of_rows_are_taken() -> None:
    result = solve(np.diag([1.0, 2.0]), [[1, 2, 3], [2, 4, 6]])
    assert result.x == pytest.approx(np.array([[1, 2, 3], [1, 2, 3]]))


@pytest.mark.parametrize(
    ("b", "x0", "message"),
    [
        (np.ones((7, 3)), None, rf"b has shape \(7, 3\), but the matrix has {N} rows.*\({N}, k\)"),
        (np.ones((3, N)), None, rf"b has shape \(3, {N}\).*pass b.T"),
        (np.ones((N, 2, 2)), None, rf"b has shape \({N}, 2, 2\)"),
        (np.ones((N, 0)), None, "there is no right-hand side in it"),
        (RIGHTS, np.ones(N), rf"x0 has shape \({N},\), but b has \({N}, 3\)"),
        (RIGHTS, np.ones((N, 2)), rf"x0 has shape \({N}, 2\), but b has \({N}, 3\)"),
        (np.where(np.arange(3) == 2, np.nan, RIGHTS), None, r"b\[:, 2\]\[0\] = nan"),
        (sp.csr_array(RIGHTS), None, "b is sparse"),
        (RIGHTS, RIGHTS * 1j, r"x0\[:, 0\] is complex"),
    ],
)
def test_shapes_and_values_that_do_not_fit_are_refused(b: Any, x0: Any, message: str) -> None:
    with pytest.raises(VectorError, match=message):
        solve(A, b, x0=x0)


def test_cg_takes_one_right_hand_side_as_scipy_does() -> None:
    with pytest.raises(VectorError, match=r"cg takes one right-hand side.*cpufree\.solve"):
        cg(A, RIGHTS)


def test_columns_after_one_that_was_interrupted_are_not_begun() -> None:
    chain = cpufree.generate.poisson1d(100_000)
    rights, guess = np.ones((100_000, 3)), np.full((100_000, 3), 0.5)
    result = solve(
        chain, rights, x0=guess, rtol=1e-12, pc="none", time_limit=300.0, progress=lambda *_: False
    )
    assert [column.reason for column in result.columns] == [Reason.INTERRUPTED] * 3
    assert result.columns[0].iterations > 0
    assert [column.iterations for column in result.columns[1:]] == [0, 0]
    assert np.array_equal(result.x[:, 2], guess[:, 2])


def test_no_update_comes_between_columns() -> None:
    """An update that another thread asks for during the first column waits for the last one."""
    chain, rights = cpufree.generate.poisson1d(100_000), np.ones((100_000, 3))
    solver = Solver(chain, engine="cpu_threads")
    threads: list[threading.Thread] = []

    def progress(_iteration: int, _residual: float) -> None:
        if not threads:
            threads.append(threading.Thread(target=solver.update, args=(2 * chain,), daemon=True))
            threads[0].start()

    result = solver.solve(rights, pc="jacobi", maxiter=2000, progress=progress)
    threads[0].join(120)
    assert not threads[0].is_alive()
    for number, column in enumerate(result.columns):
        true_residual = np.linalg.norm(rights[:, number] - chain @ result.x[:, number])
        assert column.true_residual == pytest.approx(true_residual, rel=1e-6)


def test_ranks_solve_columns_together(place: str) -> None:
    assert [end.out for end in team("columns", place, 2)] == ["the same bits\n"] * 2


def test_ranks_with_other_numbers_of_columns_are_told(place: str) -> None:
    words = "rank 1 has another option columns than rank 0, 3 instead of 2"
    all_say(team("other_columns", place, 2), words, [0, 1])
