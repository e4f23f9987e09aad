"""check_spd_input: what cannot be solved is named, with its place."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from cpufree.errors import DiagonalError, MatrixError, NonFiniteError, NotSymmetricError
from cpufree.matrix.load import as_csr
from cpufree.matrix.validate import check_spd_input, symmetry_tolerance


def matrix() -> np.ndarray:
    """A symmetric positive definite matrix, 5 x 5, with 4 on the diagonal."""
    return 4 * np.eye(5) - np.eye(5, k=1) - np.eye(5, k=-1)


def error_of(A: object) -> MatrixError:
    """Return the error that the checks raise."""
    with pytest.raises(MatrixError) as caught:
        check_spd_input(as_csr(A))
    return caught.value


def test_symmetric_matrix_has_no_asymmetry() -> None:
    assert check_spd_input(as_csr(matrix())) == 0.0


def test_one_by_one_passes() -> None:
    assert check_spd_input(as_csr(np.array([[2.0]]))) == 0.0


def test_indefinite_matrix_passes_the_solver_will_say() -> None:
    assert check_spd_input(as_csr(np.array([[1.0, 2.0], [2.0, 1.0]]))) == 0.0


def test_values_that_have_changed_since_are_looked_at_anew() -> None:
    A = sp.csr_array(matrix())
    C = as_csr(A)
    assert check_spd_input(C) == 0.0
    A.data[0] = np.nan  # which C shares
    assert isinstance(error_of(C), NonFiniteError)


# NaN and infinity


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_names_the_first_non_finite_entry(value: float) -> None:
    A = matrix()
    A[3, 2] = A[2, 3] = A[4, 4] = value
    error = error_of(A)
    assert isinstance(error, NonFiniteError)
    assert (error.row, error.column) == (2, 3)
    assert f"entry (row 2, column 3) is {value} (the first of 3 such entries)" in str(error)


def test_long_double_beyond_float64_is_reported_as_infinite() -> None:
    if np.finfo(np.longdouble).max <= np.finfo(np.float64).max:
        pytest.skip("long double is float64 here")
    A = matrix().astype(np.longdouble)
    A[1, 1] = np.longdouble("1e400")
    assert isinstance(error_of(A), NonFiniteError)


# Symmetry


def test_names_the_first_pair_that_differs_with_both_values() -> None:
    A = matrix()
    A[1, 2], A[3, 4] = -1.5, -7.0
    error = error_of(A)
    assert isinstance(error, NotSymmetricError)
    assert (error.row, error.column) == (1, 2)
    assert "entry (row 1, column 2) is -1.5, but entry (row 2, column 1) is -1;" in str(error)
    assert "2 pairs differ" in str(error)


def test_one_pair_is_told_in_the_singular() -> None:
    A = matrix()
    A[1, 2] = -1.5
    assert "; 1 pair differs by more than" in str(error_of(A))


def test_values_are_told_with_all_digits() -> None:
    A = matrix()
    A[0, 1] = -1.00000000001
    assert "is -1.00000000001" in str(error_of(A))


def test_missing_mirror_image_counts_as_zero() -> None:
    A = matrix()
    A[0, 4] = 0.5
    error = error_of(sp.csr_array(A))
    assert "entry (row 0, column 4) is 0.5, but entry (row 4, column 0) is 0;" in str(error)


@pytest.mark.parametrize(
    ("triangle", "stored", "advice"),
    [(np.tril, "lower", "tril(A, -1).T"), (np.triu, "upper", "triu(A, 1).T")],
)
def test_recognises_a_single_triangle(triangle: object, stored: str, advice: str) -> None:
    message = str(error_of(triangle(matrix())))  # type: ignore[operator]
    assert f"Only the {stored} triangle is there" in message
    assert advice in message


def test_advice_for_a_single_triangle_works() -> None:
    A = sp.csr_array(np.tril(matrix()))
    whole = A + sp.tril(A, -1).T
    assert check_spd_input(as_csr(whole)) == 0.0
    assert np.array_equal(whole.toarray(), matrix())


def test_recognises_a_skew_symmetric_matrix() -> None:
    A = np.triu(matrix(), 1)
    error = error_of(A - A.T)
    assert isinstance(error, NotSymmetricError)
    assert "skew-symmetric" in str(error)


def test_rounding_passes_and_is_returned() -> None:
    A = matrix()
    A[0, 1] *= 1 + 1e-14
    asymmetry = check_spd_input(as_csr(A))
    # |a_01 - a_10| / sqrt(a_00 a_11) = 1e-14 / 4
    assert asymmetry == pytest.approx(0.25e-14, rel=0.05)


def test_leftover_of_cancellation_passes_as_rounding() -> None:
    A = matrix()
    A[0, 4] = 1e-17
    assert 0 < check_spd_input(as_csr(sp.csr_array(A))) < 1e-16


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_tolerance_is_relative_to_the_diagonal(dtype: str, factor: float) -> None:
    # Badly scaled: 1e8 and 1e-8 on the diagonal, 1 is the geometric mean.
    A = np.diag([1e8, 1e-8]).astype(dtype)
    A[0, 1] = factor * symmetry_tolerance(dtype)
    if factor < 1:
        assert check_spd_input(as_csr(A)) == pytest.approx(A[0, 1], rel=1e-6)
    else:
        assert isinstance(error_of(A), NotSymmetricError)


def test_huge_diagonal_does_not_overflow_the_tolerance() -> None:
    A = 1e300 * matrix()
    A[0, 1] *= 2
    assert isinstance(error_of(A), NotSymmetricError)


# Diagonal


def test_names_an_empty_row() -> None:
    A = matrix()
    A[2, :] = A[:, 2] = 0.0
    error = error_of(sp.csr_array(A))
    assert isinstance(error, DiagonalError)
    assert (error.row, error.column) == (2, 2)
    assert str(error).startswith("row 2 is empty; ")


def test_names_a_missing_diagonal_entry() -> None:
    A = sp.csr_array(matrix() - np.diag([0.0, 0.0, 0.0, 4.0, 4.0]))
    error = error_of(A)
    assert isinstance(error, DiagonalError)
    assert error.row == 3
    assert "row 3 has no diagonal entry (the first of 2 such rows)" in str(error)


def test_names_an_explicit_zero_on_the_diagonal() -> None:
    A = sp.csr_array(matrix())
    A[1, 1] = 0.0
    error = error_of(A)
    assert isinstance(error, DiagonalError)
    assert str(error).startswith("the diagonal entry of row 1 is 0; ")


def test_names_a_negative_diagonal_entry_with_its_value() -> None:
    A = matrix()
    A[4, 4] = -0.125
    error = error_of(A)
    assert isinstance(error, DiagonalError)
    assert error.row == 4
    assert "the diagonal entry of row 4 is -0.125" in str(error)


def test_suggests_the_negative_of_a_negative_definite_matrix() -> None:
    assert "solve (-A) x = -b" in str(error_of(-matrix()))


def test_zero_matrix_is_refused() -> None:
    assert "row 0 is empty" in str(error_of(np.zeros((3, 3))))


# Speed


def test_rejects_blocks_without_rows_or_columns() -> None:
    A = sp.bsr_array(np.eye(4), blocksize=(2, 2))
    A.data = np.zeros((2, 0, 0))
    with pytest.raises(MatrixError, match="BSR arrays are inconsistent"):
        as_csr(A)
