"""Mixed precision: what is called converged is so for A as it is, however it is rounded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import cpufree
from cpufree import Solver
from cpufree.errors import InvalidInputError, UnsupportedError
from cpufree.solvers.result import Reason

GRID = cpufree.generate.poisson2d(23, 21)


def scaled(matrix: Any, decades: float, seed: int = 1) -> sp.csr_array:
    """Return D A D, whose values are none of float32, symmetric to the bit."""
    factors = 10.0 ** np.random.default_rng(seed).uniform(-decades, decades, matrix.shape[0])
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    values = matrix.data * (factors[rows] * factors[matrix.indices])
    return sp.csr_array((values, matrix.indices.copy(), matrix.indptr.copy()), matrix.shape)


A = scaled(GRID, 1.0)
B = np.sin(np.arange(float(A.shape[0])))


def exact_residual(matrix: sp.csr_array, x: np.ndarray, b: np.ndarray) -> float:
    """Return ‖b - A x‖ / ‖b‖ in NumPy's longdouble."""
    products = matrix.data.astype(np.longdouble) * x[matrix.indices]
    r = b.astype(np.longdouble) - np.add.reduceat(products, matrix.indptr[:-1])
    return float(np.sqrt(r @ r)) / float(np.linalg.norm(b))


HOW: list[dict[str, Any]] = [
    {"method": "cg", "pc": "jacobi"},
    {"method": "prcg", "pc": "jacobi"},
    {"method": "prcg", "pc": "none"},
    {"method": "pipecg", "pc": "jacobi"},
    {"method": "prcg", "pc": "chebyshev"},
    {"method": "prcg", "pc": "fsai"},
    {"method": "cg", "pc": "amg"},
]


@pytest.mark.parametrize("how", HOW, ids=lambda how: "-".join(how.values()))
@pytest.mark.parametrize("pes", [1, 3])
def test_the_residual_of_a_as_it_is_meets_the_tolerance(how: Mapping[str, Any], pes: int) -> None:
    matrix = scaled(GRID, 0.3) if how["pc"] == "none" else A
    given: dict[str, Any] = {"rtol": 1e-10, "pes": pes, "engine": "cpu_threads", **how}
    result = cpufree.solve(matrix, B, precision="mixed", **given)
    plain = cpufree.solve(matrix, B, **given)
    assert result.converged and plain.converged
    assert exact_residual(matrix, result.x, B) <= 1.0001e-10
    assert result.counts["replacements"] >= 5 > plain.counts["replacements"] or how["pc"] == "amg"
    assert result.iterations <= 1.3 * plain.iterations + 10
    assert "mixed precision" in result.why and "mixed precision" not in plain.why


def test_columns_meet_the_tolerance_each_by_itself() -> None:
    b = np.column_stack([B, 1e-7 * np.cos(B), np.zeros_like(B)])
    with Solver(A, precision="mixed", engine="cpu_threads") as solver:
        assert solver.plan["single_values"]
        result = solver.solve(b, rtol=1e-10, columns="together")
    assert result.converged
    for k in range(2):
        assert exact_residual(A, result.x[:, k], b[:, k]) <= 1.0001e-10


def test_new_values_are_rounded_again() -> None:
    other = scaled(GRID, 1.0, seed=2)
    with Solver(A, precision="mixed", engine="cpu_threads", pc="jacobi") as solver:
        solver.update(other)
        result = solver.solve(B, rtol=1e-10)
        fresh = cpufree.solve(
            other, B, rtol=1e-10, precision="mixed", engine="cpu_threads", pc="jacobi"
        )
        assert np.array_equal(result.x, fresh.x)
        with pytest.raises(InvalidInputError, match="single precision does not hold"):
            solver.update(scaled(GRID, 30.0))
        assert np.array_equal(solver.solve(B, rtol=1e-10).x, fresh.x)


@pytest.mark.parametrize("factor", [1e-290, 1e-60, 1e50, 1e290])
def test_values_that_one_factor_brings_into_the_range_of_float32_are_solved(factor: float) -> None:
    result = cpufree.solve(
        factor * A, factor * B, rtol=1e-10, precision="mixed", engine="cpu_threads", pc="jacobi"
    )
    assert result.converged
    assert exact_residual(A, result.x, B) <= 1.001e-10


@pytest.mark.parametrize("decades", [30.0, 145.0])
def test_values_of_a_wider_range_than_that_of_float32_are_refused(decades: float) -> None:
    with pytest.raises(InvalidInputError, match="leave out precision='mixed'"):
        cpufree.solve(scaled(GRID, decades), B, precision="mixed", engine="cpu_threads")


def test_values_of_float32_are_solved_for_in_float64() -> None:
    single = sp.csr_array(A, dtype=np.float32)
    result = cpufree.solve(
        single, B.astype(np.float32), rtol=1e-12, precision="mixed", engine="cpu_threads"
    )
    assert result.converged and result.x.dtype == np.float64


def test_a_type_of_float32_and_unknown_words_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="leave one of them out"):
        Solver(A, precision="mixed", dtype=np.float32)
    with pytest.raises(InvalidInputError, match="precision"):
        Solver(A, precision="half")


def test_auto_is_not_mixed() -> None:
    with Solver(A, engine="cpu_threads") as solver:
        assert not solver.plan["single_values"]


def near_singular(n: int, condition: float, seed: int) -> sp.csr_array:
    """Return a dense-ish positive definite matrix whose rounding to float32 may be indefinite."""
    random = np.random.default_rng(seed)
    q, _ = np.linalg.qr(random.standard_normal((n, n)))
    matrix = (q * np.logspace(0, -np.log10(condition), n)) @ q.T
    return sp.csr_array(np.triu(matrix) + np.triu(matrix, 1).T)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("condition", [1e5, 1e8, 1e11])
@pytest.mark.parametrize("method", ["cg", "prcg", "pipecg"])
def test_nothing_is_called_converged_above_the_tolerance(
    method: str, condition: float, seed: int
) -> None:
    matrix = near_singular(40, condition, seed)
    b = np.random.default_rng(seed).standard_normal(40)
    result = cpufree.solve(
        matrix, b, rtol=1e-8, method=method, precision="mixed", engine="cpu_threads", maxiter=4000
    )
    left = exact_residual(matrix, result.x, b)
    if result.converged:
        assert left <= 1.0001e-8
    else:
        assert left == pytest.approx(result.true_residual / result.bnorm, rel=1e-3)
        if result.reason is not Reason.DIVERGED_ITS:
            assert any("leave out precision='mixed'" in note for note in result.warnings)
    if condition <= 1e5:
        assert result.converged


def test_a_complex_matrix_is_solved_in_mixed_precision() -> None:
    phases = sp.diags(np.exp(1j * np.arange(float(A.shape[0]))))
    H, b = sp.csr_array(phases @ A @ phases.conj()), phases @ B
    for dtype in (None, complex):
        with Solver(H, dtype=dtype, precision="mixed", pc="jacobi") as solver:
            for scale in (1.0, 3.0):
                solver.update(scale * H)
                result = solver.solve(b, rtol=1e-10)
                assert result.converged
                assert np.linalg.norm(b - scale * (H @ result.x)) <= 2e-10 * np.linalg.norm(b)


def test_right_hand_sides_are_no_block_in_mixed_precision() -> None:
    columns = np.stack([B, B[::-1]], axis=1)
    with (
        Solver(A, precision="mixed", engine="cpu_threads", pc="jacobi") as solver,
        pytest.raises(UnsupportedError, match="in mixed precision each replaced residual"),
    ):
        solver.solve(columns, columns="block")


def test_memory_is_estimated_for_both_copies_of_the_values() -> None:
    many = scaled(cpufree.generate.poisson2d(300, 300), 1.0)  # values that blocks cannot number
    whole, mixed = Solver.estimate(many), Solver.estimate(many, precision="mixed")
    assert mixed.gpus[0].matrix > 1.2 * whole.gpus[0].matrix
    assert Solver.estimate(many, dtype=complex).needed > 1.8 * Solver.estimate(many).needed


@pytest.mark.parametrize("method", ["minres", "bicgstab"])
def test_methods_that_start_anew_meet_the_tolerance_too(method: str) -> None:
    with Solver(A, precision="mixed", pc="jacobi", method=method) as solver:
        result = solver.solve(B, rtol=1e-10)
    assert result.converged and exact_residual(A, result.x, B) <= 1.001e-10
