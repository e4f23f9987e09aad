"""What is called converged is so: residuals of solutions, computed in extended precision."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from extended import residual_norm

from cpufree import Reason, Solver, solve

METHODS = ["cg", "prcg", "pipecg"]
SHAPES = [(1, 1), (1, 2), (2, 1), (3, 2)]


@cache
def bordered(n: int, long: int) -> sp.csr_array:
    """Return [[I, Vᵀ], [V, V Vᵀ + 0.01 I]]: `long` rows with n entries whose terms cancel."""
    V = sp.csr_array(np.random.default_rng(0).standard_normal((long, n)) * 0.5)
    corner = (V @ V.T).toarray() + 0.01 * np.eye(long)
    return sp.csr_array(
        sp.block_array([[sp.eye_array(n), V.T], [V, sp.csr_array((corner + corner.T) / 2)]])
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("pes", "blocks"), SHAPES)
@pytest.mark.parametrize(("n", "long"), [(20_000, 1), (2000, 3)])
def test_systems_with_long_rows_are_called_converged_only_where_they_are(
    n: int, long: int, pes: int, blocks: int, method: str
) -> None:
    A, b = bordered(n, long), np.ones(n + long)
    reasons = set()
    with Solver(A, pes=pes, blocks=blocks) as solver:
        for rtol in (1e-8, 1e-9, 1e-10, 3e-11, 1e-11, 1e-13):
            result = solver.solve(b, rtol=rtol, method=method, maxiter=3000)
            norm = residual_norm(A, b, result.x)
            assert result.true_residual == pytest.approx(norm, rel=1e-2)  # extended: 11 bits more
            assert not result.converged or norm <= 1.01 * rtol * np.linalg.norm(b)
            reasons.add(result.reason)
    assert Reason.CONVERGED_RTOL in reasons
    assert reasons <= {Reason.CONVERGED_RTOL, Reason.STAGNATED}


@pytest.mark.parametrize("method", METHODS)
def test_single_precision_is_verified_in_double(method: str) -> None:
    A = bordered(3000, 1).astype(np.float32)
    b = np.ones(3001, np.float32)
    for rtol in (1e-2, 1e-3, 1e-4, 1e-5):
        result = solve(A, b, rtol=rtol, method=method, maxiter=2000, pes=2)
        norm = residual_norm(A, b, result.x)
        assert result.true_residual == pytest.approx(norm, rel=1e-6)
        assert not result.converged or norm <= 1.001 * rtol * np.linalg.norm(b)


def scaled_second_difference(n: int, decades: float) -> sp.csr_array:
    """Return S T S, S² between 10^-decades and 10^decades."""
    T = sp.diags_array([-np.ones(n - 1), np.full(n, 2.0), -np.ones(n - 1)], offsets=[-1, 0, 1])
    S = sp.diags_array(10.0 ** np.random.default_rng(1).uniform(-decades / 2, decades / 2, n))
    return sp.csr_array(S @ T @ S)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pes", [1, 3])
def test_a_residual_that_grows_by_scaling_alone_is_no_divergence(method: str, pes: int) -> None:
    A = scaled_second_difference(300, 12.0)
    # All of b lies where S is small, what becomes of it where S is large.
    b = np.zeros(300)
    b[np.argsort(A.diagonal())[20]] = 1.0
    result = solve(A, b, rtol=1e-2, method=method, pc="jacobi", pes=pes, maxiter=20_000)
    assert result.history.max() > 1e10 * result.bnorm  # beyond what would be divergence unscaled
    assert result.reason is Reason.CONVERGED_RTOL


@pytest.mark.parametrize("method", ["prcg", "pipecg"])
@pytest.mark.parametrize("scale", [1e-120, 1e-60, 1e60, 1e120])
def test_squares_within_range_are_no_breakdown(method: str, scale: float) -> None:
    A = scaled_second_difference(50, 0.0) * scale
    plain = solve(scaled_second_difference(50, 0.0), np.ones(50), method=method, pc="none")
    result = solve(A, np.ones(50), method=method, pc="none")
    assert result.converged
    assert abs(result.iterations - plain.iterations) <= 1
