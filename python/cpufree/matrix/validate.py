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
        NotSymmetricError: A misses symmetry by more than rounding, or is skew-symmetric; where it
            is complex, it is not Hermitian.
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


def _row_of(A: sp.csr_array, entry: int) -> int:
    return int(np.searchsorted(A.indptr, entry, side="right")) - 1


def _more(count: int, what: str) -> str:
    """Return " (one of COUNT such WHAT)" for more than one."""
    return f" (the first of {count} such {what})" if count > 1 else ""


def _pairs(count: int) -> str:
    return "1 pair differs" if count == 1 else f"{count} pairs differ"


def _refuse_non_finite(A: CsrMatrix) -> None:
    matrix = A.given()
    bad = ~np.isfinite(matrix.data)
    entry = int(np.argmax(bad))
    row, column = _row_of(matrix, entry), int(matrix.indices[entry])
    raise NonFiniteError(
        f"entry (row {row}, column {column}) is {matrix.data[entry]}"
        f"{_more(int(np.count_nonzero(bad)), 'entries')}; all entries must be finite. Look for "
        "divisions by zero or overflow where the matrix is made.",
        row,
        column,
    )


def _mirrored(A: sp.csr_array) -> sp.csr_array:
    """Return the conjugate of the transpose of A, columns sorted."""
    import scipy.sparse as sp  # a heavy import

    return sp.csc_array((A.data.conj(), A.indices, A.indptr), shape=A.shape).tocsr()


def _largest_entries(A: CsrMatrix) -> NDArray[Any]:
    """Return the size of the largest entry of each row."""
    sizes = abs(A.given()).max(axis=1).toarray()
    return np.asarray(sizes, np.float64).ravel()


def _checked_asymmetry(A: CsrMatrix, sizes: NDArray[Any] | None = None) -> float:
    """Return the asymmetry of A if it is within the tolerance; raise otherwise.

    `sizes`: of rows, to which it is relative; None: those of the diagonal.
    """
    matrix = A.given()
    mirror = _mirrored(matrix)
    # Entries beyond the common pattern count with 0 on the other side.
    difference = (matrix - mirror).tocoo()
    # Roots first: the product of two diagonal entries may overflow.
    sizes = np.abs(matrix.diagonal()).astype(np.float64) if sizes is None else sizes
    root = np.sqrt(sizes)
    scale = root[difference.row] * root[difference.col]
    size = np.abs(difference.data).astype(np.float64)
    tolerance = symmetry_tolerance(A.dtype.name)
    bad = size > tolerance * scale
    if bad.any():
        _refuse_asymmetric(matrix, difference.row[bad], difference.col[bad], tolerance)
    present = size > 0
    return float(np.max(size[present] / scale[present], initial=0.0))


def _refuse_asymmetric(
    matrix: sp.csr_array, rows: NDArray[Any], columns: NDArray[Any], tolerance: float
) -> None:
    n = matrix.shape[0]
    first = int(np.argmin(rows.astype(np.int64) * n + columns))
    row, column = int(rows[first]), int(columns[first])
    here, there = matrix[row, column], matrix[column, row]
    of_complex = np.iscomplexobj(matrix)
    what = "Hermitian" if of_complex else "symmetric"
    if row == column:
        raise NotSymmetricError(
            f"the matrix is not Hermitian: the diagonal entry of row {row} is {here:.17g}, which "
            f"is not real{_more(int(np.count_nonzero(rows == columns)), 'rows')}. Conjugate "
            "gradients need A = A.conj().T.",
            row,
            column,
        )
    pairs = int(np.count_nonzero(rows != columns)) // 2
    raise NotSymmetricError(
        f"the matrix is not {what}: entry (row {row}, column {column}) is {here:.17g}, but "
        f"entry (row {column}, column {row}) is {there:.17g}; {_pairs(pairs)} "
        f"by more than {tolerance:g} * sqrt(|a_ii a_jj|). {_advice(matrix, of_complex)}",
        row,
        column,
    )


def _advice(matrix: sp.csr_array, of_complex: bool) -> str:
    """Return what may be wrong with a matrix that is not symmetric."""
    dagger, minus = ("A.conj().T", ".conj().T") if of_complex else ("A.T", ".T")
    below = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)) > matrix.indices
    off_diagonal = np.count_nonzero(matrix.data) - np.count_nonzero(matrix.diagonal())
    lower = np.count_nonzero(matrix.data[below])
    if lower in (0, off_diagonal):
        stored, other = ("upper", "lower") if lower == 0 else ("lower", "upper")
        k = 1 if lower == 0 else -1
        function = "triu" if lower == 0 else "tril"
        header = "hermitian" if of_complex else "symmetric"
        return (
            f"Only the {stored} triangle is there: if the {other} one is its mirror image, "
            f"pass A + scipy.sparse.{function}(A, {k}){minus} (in a Matrix Market file, write "
            f"'{header}' for 'general')."
        )
    if (matrix + _mirrored(matrix)).count_nonzero() == 0:
        kind = "skew-Hermitian" if of_complex else "skew-symmetric"
        more = ", but -1j * A is Hermitian: solve (-1j * A) x = -1j * b" if of_complex else ""
        return f"The matrix is {kind}, A = -{dagger}: conjugate gradients cannot solve it{more}."
    if of_complex and (matrix - _mirrored(matrix).conj()).count_nonzero() == 0:
        return (
            "The matrix is complex symmetric, A = A.T, as of waves with losses: conjugate "
            "gradients need A = A.conj().T."
        )
    return (
        f"Conjugate gradients need A = {dagger}. Boundary conditions set in rows but not in "
        "columns are a frequent cause; if only rounding is meant, pass "
        f"(A + {dagger}) / 2. For a matrix that is meant so there is method 'bicgstab'."
    )


def _refuse_diagonal(A: CsrMatrix) -> None:
    matrix = A.given()
    diagonal = matrix.diagonal().real
    bad = ~(diagonal > 0)
    row = int(np.argmax(bad))
    more = _more(int(np.count_nonzero(bad)), "rows")
    entries = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
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
