"""The number of iterations that parts of a matrix let expect."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import cpufree
from cpufree.engines.expected import by_parts, by_past, part
from cpufree.errors import InvalidInputError
from cpufree.extension import load_core
from cpufree.matrix.load import as_csr

# Iterations to 1e-8 from a right-hand side of ones, and how far off the estimate may be. Right-hand
# sides of ones are smooth for Poisson's equation, which so takes fewer than most.
CASES = {
    "poisson2d?nx=200,ny=200": 3.0,
    "poisson3d?nx=40,ny=40,nz=40": 3.0,
    "thermal2d?m=150": 2.0,
    "thermal2d?m=150,kind=mass": 1.2,
    "heart": 2.0,
}


@pytest.mark.parametrize("spec", CASES)
def test_estimate_is_near_the_iterations_of_the_solve(spec: str) -> None:
    A = as_csr(cpufree.load_matrix(f"gen:{spec}"))
    result = cpufree.solve(A, np.ones(A.shape[0]), rtol=1e-8, method="cg", pc="jacobi")
    assert result.converged
    ratio = by_parts(A, 1e-8, None, 1).iterations / result.iterations
    assert 1.0 / CASES[spec] <= ratio <= CASES[spec]


def test_matrix_that_is_no_larger_than_a_part_is_counted_exactly() -> None:
    A = as_csr(cpufree.generate.poisson2d(40, 40))
    result = cpufree.solve(A, np.ones(1600), rtol=1e-6, method="cg")
    assert by_parts(A, 1e-6, None, 1).iterations == pytest.approx(result.iterations)


def test_tighter_tolerance_takes_more_iterations() -> None:
    A = as_csr(cpufree.generate.poisson2d(100, 100))
    loose, tight = (by_parts(A, rtol, None, 1).iterations for rtol in (1e-2, 1e-10))
    assert loose < tight


def test_most_iterations_are_not_exceeded() -> None:
    A = as_csr(cpufree.generate.poisson2d(100, 100))
    assert by_parts(A, 1e-8, 7, 1).iterations == 7.0
    assert by_parts(A, 1.0, None, 1).iterations == 0.0


def test_part_is_the_principal_submatrix_of_rows_around_one() -> None:
    A = as_csr(cpufree.generate.poisson2d(5, 5))
    indptr, indices, data = part(A, 12, 5)  # the point in the middle and its four neighbours
    rows = [7, 11, 12, 13, 17]
    expected = A.to_scipy()[rows][:, rows].toarray()
    assert (sp.csr_array((data, indices, indptr), shape=(5, 5)).toarray() == expected).all()


@pytest.mark.parametrize(("start", "size"), [(-1, 3), (25, 3), (0, 0)])
def test_part_of_no_row_is_refused(start: int, size: int) -> None:
    with pytest.raises(InvalidInputError, match="a part has a row of the matrix at least"):
        part(as_csr(cpufree.generate.poisson2d(5, 5)), start, size)


@pytest.mark.parametrize(("place", "value"), [("indices", 9), ("indices", -1), ("indptr", 99)])
def test_arrays_that_have_been_changed_since_are_refused(place: str, value: int) -> None:
    arrays = {
        "indptr": np.array([0, 2, 4], np.int64),
        "indices": np.array([0, 1, 0, 1], np.int32),
        "data": np.array([2.0, -1.0, -1.0, 2.0]),
    }
    arrays[place][1] = value
    with pytest.raises(InvalidInputError, match=place):
        load_core().row_part(**arrays, start=0, size=2)


def test_part_has_fewer_rows_where_no_more_are_connected() -> None:
    A = as_csr(sp.block_diag([cpufree.generate.poisson1d(4), cpufree.generate.poisson1d(6)]))
    assert part(A, 1, 100)[0].size == 4 + 1


def test_parts_are_not_taken_around_rows_that_have_no_neighbours() -> None:
    free = cpufree.generate.poisson2d(100, 100).tolil()
    held = [n // 3 + k for n in (10_000, 20_000) for k in range(3)]  # where parts would be taken
    free[held, :] = 0.0
    free[:, held] = 0.0
    free[held, held] = 1.0
    expected = by_parts(as_csr(cpufree.generate.poisson2d(100, 100)), 1e-8, None, 1).iterations
    found = by_parts(as_csr(free.tocsr()), 1e-8, None, 1).iterations
    assert found == pytest.approx(expected, rel=0.3)


def test_past_solves_tell_their_mean_and_count_at_least_as_many_to_come() -> None:
    assert by_past([10, 20, 30], 1).iterations == 20.0
    assert by_past([10, 20, 30], 1).solves == 3
    assert by_past([10], 50).solves == 50
