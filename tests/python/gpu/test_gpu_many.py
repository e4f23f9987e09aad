"""Many small systems in one kernel of a GPU. Skipped where there is none that can be used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from gpus_here import needs_gpu

import cpufree

pytestmark = needs_gpu


def systems(nx: int, ny: int, count: int) -> tuple[Any, Any, Any]:
    """Return a pattern, values of D A D, and right-hand sides."""
    A = cpufree.generate.generate("poisson2d", nx=nx, ny=ny)
    random = np.random.default_rng(1)
    D = random.uniform(0.5, 2.0, (count, nx * ny))
    row = np.repeat(np.arange(nx * ny), np.diff(A.indptr))
    return A, A.data * D[:, row] * D[:, A.indices], random.standard_normal((count, nx * ny))


def worst(A: Any, values: Any, x: Any, b: Any) -> float:
    """Return the largest relative residual."""
    matrices = (sp.csr_array((row, A.indices, A.indptr)) for row in values)
    return max(
        float(np.linalg.norm(v - M @ y) / np.linalg.norm(v))
        for M, y, v in zip(matrices, x, b, strict=True)
    )


@pytest.mark.parametrize("method", ["prcg", "cg"])
@pytest.mark.parametrize("pc", ["jacobi", "none"])
@pytest.mark.parametrize(("nx", "ny", "count"), [(1, 1, 3), (5, 10, 5000), (32, 32, 600)])
def test_systems_of_one_pattern(method: str, pc: str, nx: int, ny: int, count: int) -> None:
    A, values, b = systems(nx, ny, count)
    given = (A.indptr, A.indices, values)
    how: dict[str, Any] = {"rtol": 1e-9, "method": method, "pc": pc}
    result = cpufree.solve_many(given, b, engine="cuda_p2p", **how)
    assert result and result.engine == "cuda_p2p" and worst(A, values, result.x, b) <= 1e-9
    again = cpufree.solve_many(given, b, engine="cuda_p2p", **how)
    assert np.array_equal(again.x, result.x)
    cores = cpufree.solve_many(given, b, engine="cpu_threads", **how)
    assert np.abs(cores.iterations - result.iterations).max() <= 2


def test_systems_that_do_not_fit_on_chip_and_float32() -> None:
    A, values, b = systems(150, 150, 40)
    result = cpufree.solve_many((A.indptr, A.indices, values), b, rtol=1e-9, engine="cuda_p2p")
    assert result and worst(A, values, result.x, b) <= 1e-9
    A, values, b = systems(10, 10, 40)
    result = cpufree.solve_many(
        (A.indptr, A.indices, values.astype(np.float32)), b.astype(np.float32), rtol=1e-4,
        engine="cuda_p2p",
    )  # fmt: skip
    assert result and result.x.dtype == np.float32 and worst(A, values, result.x, b) <= 1.1e-4


def test_one_that_fails_leaves_the_others_right() -> None:
    A, values, b = systems(9, 9, 300)
    values[17] = -values[17]
    values[40, 0] -= 4.0 * values[40, 0]
    b[50] = 0.0
    given = (A.indptr, A.indices, values)
    result = cpufree.solve_many(given, b, rtol=1e-9, engine="cuda_p2p")
    assert sorted(result.errors) == [17, 40] and result.failed == [17, 40]
    assert str(result.reasons[50]) == "CONVERGED_ATOL"
    unchecked = cpufree.solve_many(given, b, rtol=1e-9, engine="cuda_p2p", check=False)
    assert str(unchecked.reasons[17]) == "DIVERGED_INDEFINITE_MAT"
    good = [k for k in range(300) if k not in (17, 40, 50)]
    assert worst(A, values[good], result.x[good], b[good]) <= 1e-9
    assert np.array_equal(unchecked.x[good], result.x[good])


def test_different_patterns_and_arrays_on_the_gpu() -> None:
    matrices = [cpufree.generate.generate("poisson2d", nx=4 + k % 9, ny=7) for k in range(50)]
    b = [np.sin(np.arange(A.shape[0]) + k) for k, A in enumerate(matrices)]
    result = cpufree.solve_many(list(zip(matrices, b, strict=True)), rtol=1e-9, engine="cuda_p2p")
    assert (
        result
        and max(
            np.linalg.norm(v - A @ x) / np.linalg.norm(v)
            for A, x, v in zip(matrices, result.x, b, strict=True)
        )
        <= 1e-9
    )
    cupy = pytest.importorskip("cupy")
    A, values, right = systems(8, 8, 20)
    given = tuple(cupy.asarray(a) for a in (A.indptr, A.indices, values))
    there = cpufree.solve_many(given, cupy.asarray(right), rtol=1e-9)
    assert there.engine == "cuda_p2p" and isinstance(there.x, cupy.ndarray)
    assert worst(A, values, cupy.asnumpy(there.x), right) <= 1e-9
