"""Checks that a matrix can be solved by a method, as far as its entries show it.

That a matrix is positive definite cannot be seen from its entries at an acceptable price; the
solver reports an indefinite one when it meets a direction of negative curvature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cpufree.errors import DiagonalError, NonFiniteError, NotSymmetricError
from cpufree.matrix.entries import symmetry_tolerance
from cpufree.matrix.problem import CsrMatrix

if TYPE_CHECKING:
    import scipy.sparse as sp


def check_spd_input(A: CsrMatrix) -> float:
    """Check that A is finite and symmetric with a positive diagonal, in O(nnz).

    Returns:
        The asymmetry: max over i, j of |a_ij - a_ji| / sqrt(|a_ii a_jj|). 0.0 if A is symmetric to
        the bit; never above symmetry_tolerance, by which assembled matrices may miss symmetry.

    Raises:
        NonFiniteError: an entry is NaN or infinite.
        NotSymmetricError: A misses symmetry by more than rounding, or is skew-symmetric.
        DiagonalError: an empty row, or a missing, zero or negative diagonal entry.
    """
    statistics = A.statistics
    if not statistics.finite:
        _refuse_non_finite(A)
    asymmetry = statistics.asymmetry
    # What follows is slow, and knows more to tell.
    if not (statistics.mirrored and asymmetry <= symmetry_tolerance(A.dtype.name)):
        asymmetry = _checked_asymmetry(A)
    if not statistics.positive_diagonal:
        _refuse_diagonal(A)
    return asymmetry


def check_input(A: CsrMatrix, method: str) -> float:
    """Check that A is a matrix that a method takes, in O(nnz).

    Args:
        method: "minres": A is finite and symmetric; "bicgstab": finite; another one: what
            `check_spd_input` says.

    Returns:
        The asymmetry, as `check_spd_input` does, of methods that ask for symmetry; but where an
        entry of the diagonal is missing or small, relative to the largest entries of both rows.

    Raises:
        NonFiniteError: an entry is NaN or infinite.
        NotSymmetricError, DiagonalError: as the method asks for.
    """
    if method not in ("minres", "bicgstab"):
        return check_spd_input(A)
    if not A.statistics.finite:
        _refuse_non_finite(A)
    if method == "bicgstab" or A.statistics.symmetric:
        return 0.0
    return _checked_asymmetry(A, _largest_entries(A))


def _row_of(A: CsrMatrix, entry: int) -> int:
    return int(np.searchsorted(A.indptr, entry, side="right")) - 1


def _more(count: int, what: str) -> str:
    """Return " (one of COUNT such WHAT)" for more than one."""
    return f" (the first of {count} such {what})" if count > 1 else ""


def _pairs(count: int) -> str:
    return "1 pair differs" if count == 1 else f"{count} pairs differ"


def _refuse_non_finite(A: CsrMatrix) -> None:
    bad = ~np.isfinite(A.data)
    entry = int(np.argmax(bad))
    row, column = _row_of(A, entry), int(A.indices[entry])
    raise NonFiniteError(
        f"entry (row {row}, column {column}) is {A.data[entry]}"
        f"{_more(int(np.count_nonzero(bad)), 'entries')}; all entries must be finite. Look for "
        "divisions by zero or overflow where the matrix is made.",
        row,
        column,
    )


def _transpose(A: CsrMatrix) -> sp.csr_array:
    """Return the transpose of A, columns sorted."""
    import scipy.sparse as sp  # a heavy import

    return sp.csc_array((A.data, A.indices, A.indptr), shape=A.shape).tocsr()


def _largest_entries(A: CsrMatrix) -> NDArray[Any]:
    """Return the size of the largest entry of each row."""
    sizes = abs(A.to_scipy()).max(axis=1).toarray()
    return np.asarray(sizes, np.float64).ravel()


def _checked_asymmetry(A: CsrMatrix, sizes: NDArray[Any] | None = None) -> float:
    """Return the asymmetry of A if it is within the tolerance; raise otherwise.

    `sizes`: of rows, to which it is relative; None: those of the diagonal.
    """
    matrix = A.to_scipy()
    mirror = _transpose(A)
    # Entries beyond the common pattern count with 0 on the other side.
    difference = (matrix - mirror).tocoo()
    # Roots first: the product of two diagonal entries may overflow.
    sizes = np.abs(matrix.diagonal().astype(np.float64)) if sizes is None else sizes
    root = np.sqrt(sizes)
    scale = root[difference.row] * root[difference.col]
    size = np.abs(difference.data.astype(np.float64))
    tolerance = symmetry_tolerance(A.dtype.name)
    bad = size > tolerance * scale
    if bad.any():
        _refuse_asymmetric(A, difference.row[bad], difference.col[bad], tolerance)
    present = size > 0
    return float(np.max(size[present] / scale[present], initial=0.0))


def _refuse_asymmetric(
    A: CsrMatrix, rows: NDArray[Any], columns: NDArray[Any], tolerance: float
) -> None:
    matrix = A.to_scipy()
    first = int(np.argmin(rows.astype(np.int64) * A.shape[0] + columns))
    row, column = int(rows[first]), int(columns[first])
    here, there = matrix[row, column], matrix[column, row]
    below = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)) > A.indices
    off_diagonal = np.count_nonzero(A.data) - np.count_nonzero(matrix.diagonal())
    lower = np.count_nonzero(A.data[below])
    if lower in (0, off_diagonal):
        stored, other = ("upper", "lower") if lower == 0 else ("lower", "upper")
        k = 1 if lower == 0 else -1
        function = "triu" if lower == 0 else "tril"
        advice = (
            f"Only the {stored} triangle is there: if the {other} one is its mirror image, "
            f"pass A + scipy.sparse.{function}(A, {k}).T (in a Matrix Market file, write "
            "'symmetric' for 'general')."
        )
    elif (A.to_scipy() + _transpose(A)).count_nonzero() == 0:
        advice = "The matrix is skew-symmetric, A = -A.T: conjugate gradients cannot solve it."
    else:
        advice = (
            "Conjugate gradients need A = A.T. Boundary conditions set in rows but not in "
            "columns are a frequent cause; if only rounding is meant, pass (A + A.T) / 2. For a "
            "matrix that is meant so there is method 'bicgstab'."
        )
    raise NotSymmetricError(
        f"the matrix is not symmetric: entry (row {row}, column {column}) is {here:.17g}, but "
        f"entry (row {column}, column {row}) is {there:.17g}; {_pairs(rows.size // 2)} "
        f"by more than {tolerance:g} * sqrt(|a_ii a_jj|). {advice}",
        row,
        column,
    )


def _refuse_diagonal(A: CsrMatrix) -> None:
    diagonal = A.to_scipy().diagonal()
    bad = ~(diagonal > 0)
    row = int(np.argmax(bad))
    more = _more(int(np.count_nonzero(bad)), "rows")
    entries = A.indices[A.indptr[row] : A.indptr[row + 1]]
    advice = "a positive definite matrix has a positive diagonal"
    if entries.size == 0:
        what = f"row {row} is empty"
        advice += ". Take unused rows and columns out, or put 1 on their diagonal."
    elif row not in entries:
        what = f"row {row} has no diagonal entry"
    else:
        what = f"the diagonal entry of row {row} is {diagonal[row]:.17g}"
    if (diagonal < 0).all():
        advice += ". As all are negative, -A may be positive definite: solve (-A) x = -b."
    else:
        advice += ". For a symmetric matrix that is indefinite there is method 'minres'."
    raise DiagonalError(f"{what}{more}; {advice}", row, row)
