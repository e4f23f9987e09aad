"""Right-hand sides so large or small that the squares of their norms leave float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
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
