"""Sums, products and extremes: what they go on from, and of no values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

dace = pytest.importorskip("dace", reason="DaCe is not installed: pip install 'cpufree[dace]'")

from dace_check import grid, require_numpys  # noqa: E402

import cpufree.dace  # noqa: E402
from cpufree.errors import ProgramError  # noqa: E402

M, N = (dace.symbol(n, dace.int64) for n in "MN")


@dace.program
def sums_before(A: dace.float64[N, N], x: dace.float64[N]):
    for i in range(N - 1, -1, -1):
        x[i] = np.sum(A[i, :i])


@dace.program
def substituted(L: dace.float64[N, N], b: dace.float64[N], x: dace.float64[N]):
    for i in range(N):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]


@dace.program
def of_nothing(A: dace.float64[N, M], B: dace.float64[N], C: dace.float64[M]):
    B[:] = np.sum(A[:, 2:2], axis=1)
    C[:] = np.sum(A[1:1, :], axis=0)


@dace.program
def largest_of_nothing(A: dace.float64[N, M], B: dace.float64[N]):
    dace.reduce(lambda a, b: max(a, b), A[:, 2:2], B, axis=1, identity=-np.inf)


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        (sums_before, (grid(1, 5, 5), grid(2, 5))),
        (substituted, (grid(1, 5, 5) + 3, grid(2, 5), grid(3, 5))),
        (of_nothing, (grid(1, 5, 4), grid(2, 5), grid(3, 4))),
    ],
)
def test_a_sum_of_no_values_is_0(program: Any, arguments: Any) -> None:
    require_numpys(program, arguments, rounded=True)


def test_the_largest_of_no_values_is_refused() -> None:
    with pytest.raises(ProgramError, match="the max of no values"):
        cpufree.dace.compile(largest_of_nothing)(grid(1, 4, 4), grid(2, 4))


@dace.program
def sums_added(A: dace.float64[N, M], B: dace.float64[M], C: dace.float64[1]):
    dace.reduce(lambda a, b: a + b, A, B, axis=0)
    dace.reduce(lambda a, b: a + b, A, C)


def numpys_sums_added(A: Any, B: Any, C: Any) -> None:
    B += A.sum(0)
    C += A.sum()


@dace.program
def sums_from_numbers(A: dace.float64[N, M], B: dace.float64[M], C: dace.float64[1]):
    dace.reduce(lambda a, b: a + b, A, B, axis=0, identity=5)
    dace.reduce(lambda a, b: a + b, A, C, identity=-4)


def numpys_sums_from_numbers(A: Any, B: Any, C: Any) -> None:
    B[:], C[:] = 5 + A.sum(0), A.sum() - 4


@dace.program
def largest_joined(A: dace.float64[N, M], B: dace.float64[M], C: dace.float64[1]):
    dace.reduce(lambda a, b: max(a, b), A, B, axis=0)
    dace.reduce(lambda a, b: min(a, b), A, C)


def numpys_largest_joined(A: Any, B: Any, C: Any) -> None:
    B[:], C[:] = np.maximum(B, A.max(0)), min(C[0], A.min())


@dace.program
def largest_from_0(A: dace.float64[N, M], B: dace.float64[M], C: dace.float64[1]):
    dace.reduce(lambda a, b: max(a, b), A, B, axis=0, identity=0)
    dace.reduce(lambda a, b: max(a, b), A, C, identity=0)


def numpys_largest_from_0(A: Any, B: Any, C: Any) -> None:
    B[:], C[:] = np.maximum(0, A.max(0)), max(0, A.max())


@pytest.mark.parametrize(
    ("program", "numpys"),
    [
        (sums_added, numpys_sums_added),
        (sums_from_numbers, numpys_sums_from_numbers),
        (largest_joined, numpys_largest_joined),
        (largest_from_0, numpys_largest_from_0),
    ],
)
def test_a_reduction_goes_on_from_its_identity(program: Any, numpys: Any) -> None:
    arguments = (-np.abs(grid(1, 5, 6)), grid(2, 6) - 1, grid(3, 1))
    require_numpys(program, arguments, (1,), numpys, rounded=True)


@dace.program
def joined_otherwise(A: dace.float64[N, M], B: dace.float64[N], b: dace.bool[N], c: dace.bool[N]):
    B[0] = np.prod(A)
    B[1] = np.dot(B, B)
    B[2:] = np.prod(A[2:], axis=1)
    c[0] = np.any(b)
    c[1] = np.all(b)


@pytest.mark.parametrize("limit", [-9.0, 0.0, 9.0])
def test_products_any_and_all_are_numpys(limit: float) -> None:
    b = grid(3, 6) > limit
    arguments = (1.0 + 0.1 * grid(1, 6, 5), grid(2, 6), b, np.zeros(6, bool))
    require_numpys(joined_otherwise, arguments, (1,), rounded=True)


@dace.program
def rolled(A: dace.float64[N], B: dace.float64[N], C: dace.float64[N, M]):
    B[:] = np.roll(A, 2) - np.roll(A, -1)
    C[:] = np.roll(C, 1, axis=0) + np.roll(C, 3, axis=1)


def test_arrays_are_rolled_as_numpy_does() -> None:
    require_numpys(rolled, (grid(1, 9), grid(2, 9), grid(3, 9, 7)), (1, 2))


@dace.program
def spread(A: dace.float64[N], B: dace.float64[N]):
    B[0] = np.std(A)


@dace.program
def length(A: dace.float64[N], B: dace.float64[N]):
    B[0] = np.linalg.norm(A)


@pytest.mark.parametrize(
    ("program", "name"), [(spread, "numpy.std"), (length, "numpy.linalg.norm")]
)
def test_functions_that_dace_would_call_in_python_are_named_at_their_place(
    program: Any, name: str
) -> None:
    with pytest.raises(ProgramError, match=f"{name} is a function of Python's") as caught:
        cpufree.dace.compile(program)(grid(1, 5), grid(2, 5))
    assert "B[0] = np." in str(caught.value) and caught.value.line > 0


@dace.program
def row_for_rows(A: dace.float64[N, M], x: dace.float64[M]):
    A[3:, :] += np.sqrt(np.abs(x[:]))


def test_refusals_have_no_names_of_daces_own() -> None:
    with pytest.raises(ProgramError) as caught:
        cpufree.dace.compile(row_for_rows)(grid(1, 7, 5), grid(2, 5))
    assert "__i" not in str(caught.value)
