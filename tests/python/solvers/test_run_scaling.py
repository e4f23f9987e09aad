"""Right-hand sides so large or small that the squares of their norms leave float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from reference_cg import rhs

import cpufree
from cpufree import Reason, solve

A = cpufree.generate.poisson2d(12, 11)
b = rhs(A)


@pytest.mark.parametrize("power", [-900, -400, 400, 900])
@pytest.mark.parametrize("method", ["cg", "prcg", "pipecg"])
def test_extreme_right_hand_side_gives_the_scaled_solution_to_the_bit(
    power: int, method: str
) -> None:
    # Powers of two commute with rounding.
    factor = math.ldexp(1.0, power)
    plain = solve(A, b, rtol=1e-8, method=method)
    extreme = solve(A, b * factor, rtol=1e-8, method=method)
    assert extreme.reason is Reason.CONVERGED_RTOL
    assert np.array_equal(extreme.x, plain.x * factor)
    assert np.array_equal(extreme.history, plain.history * factor)
    for name in ("residual", "true_residual", "bnorm"):
        assert getattr(extreme, name) == getattr(plain, name) * factor


def test_absolute_tolerance_and_guess_are_scaled_along() -> None:
    factor = math.ldexp(1.0, -500)
    guess = np.linspace(0.0, 1.0, b.size)
    plain = solve(A, b, x0=guess, rtol=0.0, atol=1e-3)
    small = solve(A, b * factor, x0=guess * factor, rtol=0.0, atol=1e-3 * factor)
    assert small.reason is Reason.CONVERGED_ATOL
    assert small.iterations == plain.iterations
    assert np.array_equal(small.x, plain.x * factor)


@pytest.mark.cpu_only  # GPUs are done before there is progress to tell
def test_progress_tells_residuals_of_the_system_given() -> None:
    large = cpufree.generate.poisson2d(300, 300)
    seen: list[float] = []
    right = np.full(90_000, 1e-150)
    solve(large, right, rtol=1e-13, progress=lambda _, residual: seen.append(residual))
    assert seen
    assert all(0.0 < residual < 1e-140 for residual in seen)


def test_solution_beyond_float64_is_not_called_converged() -> None:
    result = solve(A * 2.0**-200, b * 2.0**900)
    assert result.reason is Reason.DIVERGED_NANORINF
    assert not result.converged


def test_denormal_right_hand_side_is_solved() -> None:
    result = solve(A, np.full(b.size, 5e-324))
    assert result.converged
    assert result.bnorm > 0.0
    assert result.iterations > 0


ENDS = [
    *(("float64", power) for power in (-1000, -700, -300, 300, 700, 1000)),
    *(("float32", power) for power in (-110, -60, 60, 110)),
]


@pytest.mark.parametrize(("dtype", "power"), ENDS)
@pytest.mark.parametrize("pc", ["none", "jacobi", "chebyshev"])
@pytest.mark.parametrize("method", ["cg", "prcg", "pipecg"])
def test_a_matrix_at_an_end_of_the_range_gives_the_scaled_solution_to_the_bit(
    dtype: str, power: int, method: str, pc: str
) -> None:
    near, right = A.astype(dtype), b.astype(dtype)
    far = sp.csr_array((np.ldexp(near.data, power), near.indices, near.indptr))
    guess = np.linspace(0.0, 1.0, b.size).astype(dtype)
    plain = solve(near, right, x0=guess, rtol=1e-4, method=method, pc=pc)
    result = solve(far, right, x0=np.ldexp(guess, -power), rtol=1e-4, method=method, pc=pc)
    assert result.converged
    assert np.array_equal(np.ldexp(result.x, power), plain.x)
    assert np.array_equal(result.history, plain.history)


@pytest.mark.parametrize("method", ["cg", "prcg", "pipecg"])
@pytest.mark.parametrize("pc", ["none", "jacobi"])
def test_a_matrix_of_denormal_numbers_is_solved(method: str, pc: str) -> None:
    result = solve(A * 1e-309, b * 1e-309, rtol=1e-8, method=method, pc=pc)
    assert result.converged


def test_columns_together_and_new_values_are_scaled_each_as_they_are() -> None:
    rights = np.column_stack([b, b[::-1]])
    with cpufree.Solver(A) as solver:
        plain = solver.solve(rights, x0=np.ones_like(rights), columns="together")
        solver.update(sp.csr_array((np.ldexp(A.data, 900), A.indices, A.indptr)))
        guess = np.full_like(rights, 2.0**-900)
        far = solver.solve(rights, x0=guess, columns="together")
        solver.update(A)
        again = solver.solve(rights, x0=np.ones_like(rights), columns="together")
    assert np.array_equal(np.ldexp(far.x, 900), plain.x)
    assert np.array_equal(again.x, plain.x)


@pytest.mark.parametrize(("power", "size"), [(-900, 2.0**200), (900, 2.0**-200)])
def test_a_solution_out_of_range_is_not_called_converged(power: int, size: float) -> None:
    far = sp.csr_array((np.ldexp(A.data, power), A.indices, A.indptr))
    assert solve(far, b * size).reason is Reason.DIVERGED_NANORINF
