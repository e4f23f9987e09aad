"""Several right-hand sides together: results per column, groups, refusals, interrupts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import cpufree
from cpufree import InvalidInputError, Reason, Solver, UnsupportedError, solve
from cpufree.errors import OutOfMemoryError
from cpufree.solvers import column_groups, solving
from cpufree.solvers.column_groups import Several, choose_way, groups_of, size_of

A = sp.csr_array(cpufree.generate.poisson2d(30, 20))
N = A.shape[0]


def rights(columns: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((N, columns))


@pytest.mark.parametrize("pc", ["jacobi", "none", "chebyshev", "fsai"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("columns", [2, 4, 8])
def test_each_column_has_the_bits_of_cg_by_itself(columns: int, dtype: Any, pc: str) -> None:
    b, rtol = rights(columns).astype(dtype), 1e-9 if dtype == np.float64 else 1e-4
    with Solver(A.astype(dtype), pes=2, pc=pc) as solver:
        result = solver.solve(b, rtol=rtol, pc=pc, columns="together")
        for number, column in enumerate(result.columns):
            alone = solver.solve(b[:, number].copy(), rtol=rtol, pc=pc, method="cg")
            assert result.x[:, number].tobytes() == alone.x.tobytes()
            assert column.history.tobytes() == alone.history.tobytes()
            assert (column.iterations, column.reason) == (alone.iterations, alone.reason)
            assert column.true_residual == alone.true_residual
    assert result.converged and result.method == "cg"


def test_columns_agree_with_scipy() -> None:
    b = rights(4)
    result = solve(A, b, rtol=1e-10, columns="together")
    for number in range(4):
        expected = spla.spsolve(sp.csc_array(A), b[:, number])
        assert np.allclose(result.x[:, number], expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("columns", [3, 5, 6, 7, 11])
def test_any_number_of_columns_comes_back_in_order(columns: int) -> None:
    b = rights(columns) * 10.0 ** np.arange(columns)
    result = solve(A, b, rtol=1e-10, columns="together", pes=3)
    assert len(result.columns) == columns
    assert np.all(np.linalg.norm(b - A @ result.x, axis=0) <= 1.001e-10 * np.linalg.norm(b, axis=0))
    for number, column in enumerate(result.columns):
        assert column.bnorm == pytest.approx(float(np.linalg.norm(b[:, number])))


def test_groups_hold_all_columns_once_and_pad_where_one_is_missing() -> None:
    for columns in range(1, 40):
        groups = groups_of(columns)
        assert [k for group in groups for k in group] == list(range(columns))
        assert all(size_of(len(group)) - len(group) <= 1 for group in groups)
    assert [len(group) for group in groups_of(11)] == [8, 3]
    assert [len(group) for group in groups_of(13)] == [8, 4, 1]
    assert [len(group) for group in groups_of(7)] == [7]


def test_guesses_are_of_each_column() -> None:
    b = rights(3)
    exact = spla.spsolve(sp.csc_array(A), b)
    result = solve(A, b, x0=exact, rtol=1e-8, columns="together")
    assert [column.iterations for column in result.columns] == [0, 0, 0]
    assert np.array_equal(result.x, exact)


def test_seconds_and_counts_of_a_group_are_added_once() -> None:
    b = rights(6)
    result = solve(A, b, rtol=1e-8, columns="together")
    four, two = result.columns[0], result.columns[5]
    assert result.iterations == sum(column.iterations for column in result.columns)
    assert result.counts["exchanges"] == four.counts["exchanges"] + two.counts["exchanges"]
    assert result.timings["kernel"] == pytest.approx(four.timings["kernel"] + two.timings["kernel"])
    assert "4 columns together, which share the product with A" in four.why


def test_a_column_that_fails_leaves_the_others_alone() -> None:
    b = rights(4)
    b[:, 1] = 0.0
    b[:, 2] = A @ np.ones(N)
    x0 = np.zeros((N, 4))
    x0[:, 2] = 1.0
    result = solve(A, b, x0=x0, rtol=1e-12, maxiter=5, columns="together")
    reasons = [column.reason for column in result.columns]
    failed = Reason.DIVERGED_ITS
    assert reasons == [failed, Reason.CONVERGED_ATOL, Reason.CONVERGED_RTOL, failed]
    assert "columns 0 and 3 of 4 columns" in result.message
    assert np.array_equal(result.x[:, 2], np.ones(N))


def test_every_column_tells_of_an_indefinite_matrix() -> None:
    indefinite = sp.csr_array(A - 3.0 * sp.eye_array(N))
    result = solve(indefinite, rights(2), columns="together")
    assert [c.reason for c in result.columns] == [Reason.DIVERGED_INDEFINITE_MAT] * 2


def test_an_interrupt_ends_the_group_and_begins_no_other() -> None:
    large = cpufree.generate.poisson2d(250, 250)
    b, guess = np.ones((62_500, 6)), np.full((62_500, 6), 0.5)
    calls: list[tuple[int, float]] = []

    def stop(iteration: int, residual: float) -> bool:
        calls.append((iteration, residual))
        return residual == 0.0  # nothing has been reported yet

    result = solve(
        large, b, x0=guess, rtol=0.0, maxiter=10**6, pc="none", time_limit=300.0, progress=stop,
        columns="together",
    )  # fmt: skip
    assert [column.reason for column in result.columns] == [Reason.INTERRUPTED] * 6
    assert all(column.iterations > 0 for column in result.columns[:4])
    assert [column.iterations for column in result.columns[4:]] == [0, 0]
    assert np.array_equal(result.x[:, 5], guess[:, 5])
    assert any(iteration > 0 and residual > 0.0 for iteration, residual in calls)


def test_what_cannot_be_solved_together_is_refused_with_the_reason() -> None:
    b = rights(2)
    with pytest.raises(UnsupportedError, match="method that solves them together is cg, not prcg"):
        solve(A, b, method="prcg", columns="together")
    with pytest.raises(UnsupportedError, match="amg takes one at a time"):
        solve(A, b, pc="amg", columns="together")
    with pytest.raises(InvalidInputError, match="unknown columns 'both'"):
        solve(A, b, columns="both")
    with pytest.raises(InvalidInputError, match="unknown columns 'both'"):
        solve(A, b[:, 0], columns="both")


def test_auto_takes_together_what_pays_and_says_why() -> None:
    large = Several(4, "auto", "jacobi", "", False, 1e8, vector_bytes=1e6, on_gpu=False)
    way = choose_way("auto", large)
    assert way.together and way.why == "4 columns together: the matrix is read once"
    for changed, why in (
        ({"method": "pipecg"}, "is cg, not pipecg"),
        ({"pc": "amg"}, "amg takes one at a time"),
        ({"pc": "chebyshev"}, "together with chebyshev has not been measured"),
        ({"refused": "with a process for each PE"}, "with a process for each PE"),
        ({"on_chip": True}, "stays on chip"),
        ({"matrix_bytes": 1e5}, "the matrix is small"),
        ({"vector_bytes": 2.5e7}, "rows are short"),
        ({"vector_bytes": 1.9e7, "columns": 3}, "rows are short"),
        ({"columns": 2}, "two are no faster"),
    ):
        other = choose_way("auto", replace(large, **changed))
        assert not other.together and why in other.why
    assert choose_way("auto", replace(large, vector_bytes=1.9e7)).together
    assert choose_way("auto", replace(large, on_gpu=True, vector_bytes=2e7)).together
    assert not choose_way("auto", replace(large, on_gpu=True, columns=2)).together
    assert not choose_way("one by one", large).together


def test_gpus_take_columns_by_fours() -> None:
    large = Several(11, "auto", "jacobi", "", False, 1e8, vector_bytes=1e6, on_gpu=True)
    way = choose_way("auto", large)
    assert [len(group) for group in way.groups(11)] == [4, 4, 3]
    assert [len(group) for group in way.groups(6)] == [4, 1, 1]
    asked = choose_way("together", large)
    assert [len(group) for group in asked.groups(10)] == [4, 4, 2]


def test_auto_solves_one_by_one_what_is_small_as_ever() -> None:
    b = rights(3)
    ever, asked = solve(A, b), solve(A, b, columns="one by one")
    assert ever.x.tobytes() == asked.x.tobytes()
    assert "columns one by one: the matrix is small" in ever.why
    assert "columns one by one: asked for" in asked.why


def test_auto_solves_large_matrices_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_groups, "LEAST_BYTES", 1.0)
    monkeypatch.setattr(column_groups, "LEAST_OF_VECTORS", 1.0)
    result = solve(A, rights(4), rtol=1e-8)
    assert result.converged and result.method == "cg"
    assert result.why.startswith("4 columns together: the matrix is read once; cg: 4 columns")


def test_what_does_not_fit_together_is_solved_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: Any) -> None:
        raise OutOfMemoryError("no room")

    monkeypatch.setattr(column_groups, "LEAST_BYTES", 1.0)
    monkeypatch.setattr(column_groups, "LEAST_OF_VECTORS", 1.0)
    monkeypatch.setattr(solving, "solve_group", no_room)
    result = solve(A, rights(3), rtol=1e-8)
    assert result.converged and result.method == "prcg"
    with pytest.raises(OutOfMemoryError, match="no room"):
        solve(A, rights(3), columns="together")


def test_an_update_is_seen_by_columns_together() -> None:
    b = rights(2)
    with Solver(A) as solver:
        before = solver.solve(b, rtol=1e-10, columns="together").x
        solver.update(2.0 * A)
        after = solver.solve(b, rtol=1e-10, columns="together").x
    assert np.allclose(before, 2.0 * after, rtol=1e-8)
