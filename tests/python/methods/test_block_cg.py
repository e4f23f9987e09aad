"""Block CG from Python: results per column, groups, refusals, dependent columns, interrupts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import cpufree
from cpufree import Reason, Solver, UnsupportedError, solve

A = sp.csr_array(cpufree.generate.poisson2d(30, 20))
N = A.shape[0]


def rights(columns: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((N, columns))


def residuals(x: Any, b: np.ndarray) -> Any:
    """Return ‖b - A x‖ / ‖b‖ of each column."""
    return np.linalg.norm(b - A @ x, axis=0) / np.linalg.norm(b, axis=0)


@pytest.mark.parametrize("pc", ["jacobi", "none", "chebyshev", "fsai"])
@pytest.mark.parametrize("columns", [2, 4, 8])
def test_columns_agree_with_scipy_in_fewer_iterations(columns: int, pc: str) -> None:
    b = rights(columns)
    block = solve(A, b, rtol=1e-10, pc=pc, pes=2, columns="block")
    assert block.converged and block.method == "block_cg"
    assert np.all(residuals(block.x, b) <= 1.001e-10)
    assert np.allclose(block.x, spla.spsolve(sp.csc_array(A), b), rtol=1e-7, atol=1e-9)
    apart = solve(A, b, rtol=1e-10, pc=pc, pes=2, columns="together")
    assert block.iterations < (1.0 if columns == 2 else 0.9) * apart.iterations


def test_results_have_the_same_bits_each_time_and_are_near_for_other_numbers_of_pes() -> None:
    b = rights(4)
    first, again, other = (solve(A, b, rtol=1e-10, columns="block", pes=pes).x for pes in (2, 2, 3))
    assert first.tobytes() == again.tobytes()
    assert np.allclose(first, other, rtol=1e-8, atol=1e-9)


def test_single_precision() -> None:
    b = rights(8).astype(np.float32)
    result = solve(A.astype(np.float32), b, rtol=1e-4, columns="block")
    assert result.converged and result.x.dtype == np.float32
    assert np.all(residuals(result.x.astype(np.float64), b.astype(np.float64)) <= 2e-4)


def test_columns_that_depend_on_others_are_named_and_solved() -> None:
    b = rights(8)
    b[:, 3] = b[:, 1]
    b[:, 5] = 0.0
    b[:, 6] = b[:, 0] - 2.0 * b[:, 2]
    result = solve(A, b, rtol=1e-10, columns="block", pes=2)
    assert result.converged
    assert np.array_equal(result.x[:, 5], np.zeros(N))
    solved = [0, 1, 2, 3, 4, 6, 7]
    assert np.all(residuals(result.x[:, solved], b[:, solved]) <= 1.001e-10)
    dependent = {k for k, column in enumerate(result.columns) if column.counts["dependent"]}
    assert len(dependent & {1, 3}) == 1 and len(dependent & {0, 2, 6}) == 1 and len(dependent) == 2
    assert result.counts["dependent"] == 2
    names = ", ".join(str(k) for k in sorted(dependent))
    assert f"columns {names} depend on the others" in result.why


def test_a_column_that_ends_leaves_the_others_to_go_on() -> None:
    b = rights(4)
    b[:, 2] = A @ np.ones(N)
    x0 = np.zeros((N, 4))
    x0[:, 2] = 1.0
    result = solve(A, b, x0=x0, rtol=1e-12, maxiter=5, columns="block")
    failed = Reason.DIVERGED_ITS
    reasons = [column.reason for column in result.columns]
    assert reasons == [failed, failed, Reason.CONVERGED_RTOL, failed]
    assert "columns 0, 1 and 3 of 4 columns" in result.message
    assert np.array_equal(result.x[:, 2], np.ones(N))


def test_a_breakdown_of_the_block_names_its_columns() -> None:
    indefinite = sp.csr_array(A - 3.0 * sp.eye_array(N))
    b = rights(4)
    b[:, 1] = 0.0
    result = solve(indefinite, b, pc="none", columns="block")
    broken = Reason.DIVERGED_INDEFINITE_MAT
    reasons = [column.reason for column in result.columns]
    assert reasons == [broken, Reason.CONVERGED_ATOL, broken, broken]
    assert "columns 0, 2 and 3 of 4 columns" in result.message


def test_any_number_of_columns_comes_back_in_order() -> None:
    b = rights(11) * 10.0 ** np.arange(11)
    result = solve(A, b, rtol=1e-10, columns="block", pes=2)
    assert np.all(residuals(result.x, b) <= 1.001e-10)
    for number, column in enumerate(result.columns):
        assert column.bnorm == pytest.approx(float(np.linalg.norm(b[:, number])))
    assert result.why.startswith("columns as a block: asked for")
    assert "3 columns together, which share the product with A and directions" in (
        result.columns[10].why
    )


def test_what_cannot_be_solved_as_a_block_is_refused_with_the_reason() -> None:
    b = rights(2)
    with pytest.raises(UnsupportedError, match=r"as a block: the method .* is cg, not prcg"):
        solve(A, b, method="prcg", columns="block")
    with pytest.raises(UnsupportedError, match="amg takes one at a time"):
        solve(A, b, pc="amg", columns="block")


def test_an_interrupt_ends_the_block() -> None:
    large = cpufree.generate.poisson2d(250, 250)
    b = np.random.default_rng(0).standard_normal((62_500, 4))
    result = solve(
        large, b, rtol=0.0, maxiter=10**6, pc="none", time_limit=300.0, columns="block",
        progress=lambda iteration, residual: residual == 0.0,
    )  # fmt: skip
    assert [column.reason for column in result.columns] == [Reason.INTERRUPTED] * 4
    assert np.all(np.isfinite(result.x))


def test_an_update_is_seen_by_blocks() -> None:
    b = rights(2)
    with Solver(A) as solver:
        before = solver.solve(b, rtol=1e-10, columns="block").x
        solver.update(2.0 * A)
        after = solver.solve(b, rtol=1e-10, columns="block").x
    assert np.allclose(before, 2.0 * after, rtol=1e-8)
