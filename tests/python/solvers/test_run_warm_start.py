"""First guesses that are far from a small right-hand side."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from extended import residual_norm

import cpufree
from cpufree import Solver, solve

METHODS = ["cg", "prcg", "pipecg"]
PRECONDITIONERS = ["none", "jacobi", "chebyshev", "fsai"]


def two_values(n: int, dtype: str) -> sp.csr_array:
    """Return a diagonal of which CG knows all after two steps: the residual vanishes at once."""
    return sp.csr_array(sp.diags_array(np.where(np.arange(n) % 2, 3.0, 1.3)).astype(dtype))


def guess_and_rhs(A: sp.csr_array, ratio: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return x0 and b with ‖b‖ = ratio ‖A x0‖, both random."""
    rng = np.random.default_rng(seed)
    n = A.shape[0]
    x0, b = rng.standard_normal(n).astype(A.dtype), rng.standard_normal(n)
    b *= ratio * np.linalg.norm(A @ x0) / np.linalg.norm(b)
    return x0, b.astype(A.dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pc", PRECONDITIONERS)
def test_a_guess_far_from_a_small_b_does_not_keep_a_solve_from_its_tolerance(
    pc: str, method: str, dtype: str
) -> None:
    for n in (1, 2, 3, 10, 300):
        A = two_values(n, dtype)
        with Solver(A, pc=pc, pes=1, blocks=1) as solver:
            for power in range(0, -23, -3):
                x0, b = guess_and_rhs(A, 10.0**power, n - power)
                result = solver.solve(b, x0=x0, rtol=1e-3, method=method)
                assert result.converged, (n, power, str(result.reason))
                assert residual_norm(A, b, result.x) <= 1.001e-3 * np.linalg.norm(b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", METHODS)
def test_a_guess_far_from_a_small_b_costs_at_most_a_few_solves(method: str, dtype: str) -> None:
    A = sp.csr_array(cpufree.generate.poisson2d(20, 20).astype(dtype))
    for power in range(0, -23, -3):
        x0, b = guess_and_rhs(A, 10.0**power, -power)
        cold = solve(A, b, rtol=1e-3, method=method, pes=1, blocks=1)
        warm = solve(A, b, x0=x0, rtol=1e-3, method=method, pes=1, blocks=1)
        assert warm.converged
        assert warm.iterations <= 8 * cold.iterations


def test_a_guess_whose_product_drowns_b_is_dropped() -> None:
    A = two_values(50, "float64")
    x0, b = guess_and_rhs(A, 1e-17, 1)
    without, with_guess = solve(A, b, rtol=1e-3), solve(A, b, x0=x0, rtol=1e-3)
    assert np.array_equal(with_guess.x, without.x)
    assert np.array_equal(with_guess.history, without.history)


def test_of_columns_together_those_whose_guess_drowns_b_drop_it() -> None:
    A = cpufree.generate.poisson2d(9, 8)
    rng = np.random.default_rng(3)
    x0, b = rng.standard_normal((72, 2)), rng.standard_normal((72, 2))
    b[:, 0] *= 1e-18
    with Solver(A) as solver:
        found = solver.solve(b, x0=x0, rtol=1e-6, columns="together")
        dropped = solver.solve(b, x0=x0 * [0.0, 1.0], rtol=1e-6, columns="together")
    assert found.converged
    assert np.array_equal(found.x, dropped.x)


def test_a_matrix_of_one_row_is_not_called_indefinite_whatever_the_guess() -> None:
    rng = np.random.default_rng(7)
    for dtype in ("float32", "float64"):
        for power in range(0, -30, -2):
            A = sp.csr_array(np.array([[rng.uniform(0.1, 10.0)]], dtype))
            x0, b = guess_and_rhs(A, 10.0**power, -power)
            for method in METHODS:
                assert solve(A, b, x0=x0, method=method, pes=1, blocks=1).converged
