"""pipecg where systems are so ill-conditioned that its recurrences get nowhere: it hands over."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np
import pytest
import scipy.sparse as sp
from extended import residual_norm

from cpufree import generate, solve


def rotated(n: int, decades: float) -> sp.csr_array:
    """Return eigenvalues from 10^-decades to 1, mixed by six layers of random rotations."""
    rng = np.random.default_rng(n)
    A = np.diag(np.logspace(0, -decades, n))
    for _ in range(6):
        pairs = rng.permutation(n).reshape(-1, 2)
        G = np.eye(n)
        for (i, j), angle in zip(pairs, rng.uniform(0, 2 * np.pi, len(pairs)), strict=True):
            G[[i, j], [i, j]] = np.cos(angle)
            G[i, j], G[j, i] = -np.sin(angle), np.sin(angle)
        A = G @ A @ G.T
    return sp.csr_array((A + A.T) / 2)


def graded(n: int, rho: float, decades: float) -> sp.csr_array:
    """Return the diagonal on which CG is most delayed by rounding (Strakoš 1991)."""
    low, high = 10.0 ** (-decades / 2), 10.0 ** (decades / 2)
    i = np.arange(1, n + 1)
    return sp.csr_array(sp.diags_array(low + (i - 1) / (n - 1) * (high - low) * rho ** (n - i)))


def scaled(n: int, decades: float) -> sp.csr_array:
    """Return S T S with the second difference T and S² over a number of decades."""
    T = sp.diags_array([-np.ones(n - 1), np.full(n, 2.0), -np.ones(n - 1)], offsets=[-1, 0, 1])
    S = sp.diags_array(10.0 ** np.random.default_rng(n).uniform(-decades / 4, decades / 4, n))
    return sp.csr_array(S @ T @ S)


SYSTEMS: dict[str, Callable[[], sp.csr_array]] = {
    "rotated over 6 decades": partial(rotated, 200, 6.0),
    "rotated over 10 decades": partial(rotated, 50, 10.0),
    "graded over 4 decades": partial(graded, 60, 0.9, 4.0),
    "graded over 12 decades": partial(graded, 200, 0.7, 12.0),
    "scaled over 4 decades": partial(scaled, 200, 4.0),
    "scaled over 12 decades": partial(scaled, 200, 12.0),
}


RIGHT_HAND_SIDES = 9  # rounding decides when recurrences lose touch: one alone says little


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("rtol", [1e-8, 0.0])
def test_pipecg_mostly_takes_three_times_the_iterations_of_prcg_at_most_and_attains_what_cg_does(
    name: str, rtol: float
) -> None:
    A = SYSTEMS[name]()
    delays, losses = [], []
    for seed in range(RIGHT_HAND_SIDES):
        b = A @ np.random.default_rng(seed).standard_normal(A.shape[0])
        b /= np.linalg.norm(b)
        iterations, norms = {}, {}
        for method in ("cg", "prcg", "pipecg"):
            result = solve(
                A, b, rtol=rtol, method=method, pc="none", maxiter=12_000, pes=1, blocks=1
            )
            iterations[method], norms[method] = result.iterations, residual_norm(A, b, result.x)
        # 200: what it takes to see that recurrences get nowhere.
        delays.append(iterations["pipecg"] / (iterations["prcg"] + 200))
        losses.append(norms["pipecg"] / max(norms["cg"], rtol))
    assert median(delays) <= 3
    assert median(losses) <= 10


def test_recurrences_that_get_nowhere_hand_over_and_the_result_says_so() -> None:
    A = SYSTEMS["graded over 12 decades"]()
    b = A @ np.random.default_rng(5).standard_normal(A.shape[0])
    result = solve(A, b, rtol=1e-8, method="pipecg", pc="none", pes=1, blocks=1)
    at = result.counts["handed_over_at"]
    assert result.converged
    assert 0 < at < result.iterations
    assert any(f"got no further, by iteration {at}, where prcg" in note for note in result.warnings)


def beam(n: int) -> sp.csr_array:
    """Return the fourth difference: a clamped beam, whose condition number grows as n⁴."""
    ones = np.ones(n)
    bands = [ones[2:], -4 * ones[1:], 6 * ones, -4 * ones[1:], ones[2:]]
    return sp.csr_array(sp.diags_array(bands, offsets=[-2, -1, 0, 1, 2]))


@pytest.mark.parametrize(
    ("make", "bound"),
    [
        (partial(rotated, 64, 4.0), 1.6),
        (partial(rotated, 64, 6.0), 1.6),
        (partial(rotated, 64, 8.0), 1.6),
        (partial(rotated, 200, 6.0), 1.5),
        (partial(beam, 60), 1.9),
        (partial(beam, 200), 1.5),
    ],
    ids=["64 rows, 1e4", "64 rows, 1e6", "64 rows, 1e8", "200 rows, 1e6", "beam 60", "beam 200"],
)
def test_pipecg_falls_behind_cg_by_a_part_no_multiple_where_more_iterations_than_rows_are_needed(
    make: Callable[[], sp.csr_array], bound: float
) -> None:
    A = make()
    ratios = []
    for seed in range(RIGHT_HAND_SIDES):
        b = A @ np.random.default_rng(seed).standard_normal(A.shape[0])
        cg, pipecg = (
            solve(A, b, rtol=1e-8, method=method, maxiter=40_000, pes=1, blocks=1)
            for method in ("cg", "pipecg")
        )
        assert cg.converged
        assert pipecg.converged
        ratios.append(pipecg.iterations / cg.iterations)
    assert median(ratios) <= bound


def test_pipecg_does_not_hand_over_where_fewer_iterations_than_rows_are_needed() -> None:
    A = sp.csr_array(generate.poisson2d(50, 50))
    for seed in range(3):
        b = A @ np.random.default_rng(seed).standard_normal(2500)
        result = solve(A, b, rtol=1e-8, method="pipecg", pes=1, blocks=1)
        assert result.converged
        assert result.counts["handed_over_at"] == -1
