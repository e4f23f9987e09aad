"""Many small systems at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import cpufree
from cpufree.errors import (
    DiagonalError,
    InvalidInputError,
    MatrixError,
    NonFiniteError,
    NotSymmetricError,
    UnsupportedError,
    VectorError,
)

METHODS = ("cg", "prcg")


def grid(nx: int, ny: int) -> Any:
    """Return Poisson's matrix on a grid."""
    return cpufree.generate.generate("poisson2d", nx=nx, ny=ny)


def stack(A: Any, count: int, seed: int = 1) -> Any:
    """Return values (count, nnz) of matrices with the pattern of A: D A D, D random."""
    D = np.random.default_rng(seed).uniform(0.5, 2.0, (count, A.shape[0]))
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    return A.data * D[:, row] * D[:, A.indices]


def worst(matrices: Any, x: Any, b: Any) -> float:
    """Return the largest relative residual."""
    return max(
        float(np.linalg.norm(v - A @ y) / np.linalg.norm(v))
        for A, y, v in zip(matrices, x, b, strict=True)
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pc", ["jacobi", "none"])
def test_systems_of_one_pattern_have_the_bits_of_single_solves(method: str, pc: str) -> None:
    A, count = grid(9, 11), 25
    values, b = stack(A, count), np.random.default_rng(2).standard_normal((count, 99))
    result = cpufree.solve_many((A.indptr, A.indices, values), b, rtol=1e-9, method=method, pc=pc)
    matrices = [sp.csr_array((row, A.indices, A.indptr)) for row in values]
    assert result and result.failed == [] and len(result) == count
    assert result.x.shape == (count, 99) and worst(matrices, result.x, b) <= 1e-9
    for k in (0, 1, count - 1):
        alone = cpufree.solve(
            matrices[k], b[k], rtol=1e-9, method=method, pc=pc, engine="cpu_threads", pes=1,
            blocks=1, reorder="natural",
        )  # fmt: skip
        assert np.array_equal(alone.x, result.x[k])
        assert alone.iterations == result.iterations[k] and alone.reason == result.reasons[k]
        assert alone.true_residual == result.true_residual[k]


def test_systems_of_different_patterns_and_sizes() -> None:
    matrices = [grid(3 + k % 4, 5) for k in range(12)]
    b = [np.sin(np.arange(A.shape[0]) + k) for k, A in enumerate(matrices)]
    result = cpufree.solve_many(list(zip(matrices, b, strict=True)), rtol=1e-10)
    assert result.converged.all() and worst(matrices, result.x, b) <= 1e-10
    assert isinstance(result.x, list)
    again = cpufree.solve_many(matrices, b, x0=result.x, rtol=1e-8)
    assert again.iterations.tolist() == [0] * 12


def test_float32_stays_float32() -> None:
    A = grid(6, 6)
    values, b = stack(A, 3).astype(np.float32), np.ones((3, 36), dtype=np.float32)
    result = cpufree.solve_many((A.indptr, A.indices, values), b, rtol=1e-4)
    assert result.converged.all() and result.x.dtype == np.float32
    wide = cpufree.solve_many((A.indptr, A.indices, values), b.astype(np.float64), rtol=1e-9)
    assert wide.converged.all() and wide.x.dtype == np.float64


def test_what_is_wrong_with_one_system_leaves_the_others_right() -> None:
    A, b = grid(5, 5).tocsr(), np.ones((7, 25))
    skew, nan, dense = A.copy(), A.copy(), np.eye(25)
    skew[0, 1] = 5.0
    nan.data[3] = np.nan
    b[6, 2] = np.inf
    indefinite = A - 3.0 * sp.eye_array(25)
    systems = [A, skew, -A, nan, indefinite.tocsr(), dense, A]
    result = cpufree.solve_many(systems, b, rtol=1e-10)
    kinds = {k: type(error) for k, error in result.errors.items()}
    assert kinds == {1: NotSymmetricError, 2: DiagonalError, 3: NonFiniteError, 6: VectorError}
    assert all(str(error).startswith(f"system {k}: ") for k, error in result.errors.items())
    assert str(result.reasons[4]) == "DIVERGED_INDEFINITE_MAT" and result.reasons[1] is None
    assert result.failed == [1, 2, 3, 4, 6] and not result
    assert "systems 1, 2, 3, 4 and 6 of 7" in result.message
    assert np.isnan(result.x[1]).all() and np.isnan(result.true_residual[1])
    assert worst([A, dense], result.x[[0, 5]], b[[0, 5]]) <= 1e-10
    alone = cpufree.solve_many([A], b[:1], rtol=1e-10)
    assert np.array_equal(alone.x[0], result.x[0])


def test_a_matrix_that_misses_mirror_images_of_zeros_is_solved() -> None:
    A = sp.csr_array(
        (np.array([2.0, 0.0, 2.0]), np.array([0, 1, 1], np.int32), np.array([0, 2, 3]))
    )
    result = cpufree.solve_many((A.indptr, A.indices, A.data[None, :]), np.ones((1, 2)))
    assert result.converged.all() and result.x.tolist() == [[0.5, 0.5]]


def test_each_system_has_its_own_stopping_test() -> None:
    A = grid(12, 12)
    b = np.ones((3, 144))
    b[1] = 0.0
    result = cpufree.solve_many([A] * 3, b, rtol=1e-30, atol=1e-6, maxiter=200)
    assert [str(reason) for reason in result.reasons] == ["CONVERGED_ATOL"] * 3
    assert result.iterations[1] == 0 and result.iterations[0] > 0
    few = cpufree.solve_many([A] * 3, b, rtol=1e-12, maxiter=3)
    assert few.failed == [0, 2] and str(few.reasons[0]) == "DIVERGED_ITS"
    assert few.iterations.tolist() == [3, 0, 3]


def test_progress_counts_systems_and_may_end_the_rest() -> None:
    A, told = grid(20, 20), []

    def stop(done: int, _: float) -> bool:
        told.append(done)
        return done < 5

    result = cpufree.solve_many([A] * 200, np.ones((200, 400)), progress=stop)
    assert told == sorted(told) and max(told) >= 5
    reasons = {str(reason) for reason in result.reasons}
    assert "INTERRUPTED" in reasons and 0 < len(result.failed) < 200

    def fail(done: int, _: float) -> bool:
        raise KeyError(done)

    with pytest.raises(KeyError):
        cpufree.solve_many([A] * 20, np.ones((20, 400)), progress=fail)


def test_a_time_limit_is_for_all_together() -> None:
    A = grid(30, 30)
    result = cpufree.solve_many([A] * 500, np.ones((500, 900)), rtol=1e-12, time_limit=0.02)
    late = [str(reason) for reason in result.reasons]
    assert late.count("TIME_LIMIT") > 0 and set(late) <= {"TIME_LIMIT", "CONVERGED_RTOL"}


def test_a_tuple_of_three_matrices_is_a_list_of_them() -> None:
    result = cpufree.solve_many((np.eye(3), 2.0 * np.eye(3), grid(3, 1)), np.ones((3, 3)))
    assert result and result.x[1].tolist() == [0.5] * 3
    refused = cpufree.solve_many([np.eye(3)], np.full((1, 3), 1j))
    assert np.isnan(refused.x).all() and refused.x.shape == (1, 3)
    assert isinstance(refused.errors[0], VectorError)


def test_no_systems_are_no_error() -> None:
    result = cpufree.solve_many([], np.zeros((0, 5)))
    assert len(result) == 0 and result and result.failed == []


@pytest.mark.parametrize(
    ("error", "words", "given"),
    [
        (VectorError, "b has 2 vectors, but there are 3", ([np.eye(4)] * 3, np.ones((2, 4)))),
        (VectorError, "must have shape \\(k, n\\)", ([np.eye(4)], np.ones(4))),
        (InvalidInputError, "system 0 is no pair", ([np.eye(4)],)),
        (InvalidInputError, "systems is None", (None, np.ones((1, 4)))),
        (InvalidInputError, "systems is 'abc'", ("abc", np.ones((3, 4)))),
        (MatrixError, "shape \\(k, nnz\\)", (([0, 1], [0], np.ones(1)), np.ones((1, 1)))),
        (MatrixError, "increase strictly", (([0, 2, 3], [1, 0, 1], np.ones((1, 3))), [[1, 1]])),
    ],
)
def test_calls_that_name_no_systems_are_refused(error: Any, words: str, given: Any) -> None:
    with pytest.raises(error, match=words):
        cpufree.solve_many(*given)


@pytest.mark.parametrize(
    "option", [{"method": "pipecg"}, {"pc": "amg"}, {"engine": "cpu_processes"}]
)
def test_options_of_other_solves_are_refused(option: Any) -> None:
    with pytest.raises(UnsupportedError, match="solve_many"):
        cpufree.solve_many([np.eye(4)], np.ones((1, 4)), **option)
