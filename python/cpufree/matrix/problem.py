"""Matrices as the solvers take them: canonical CSR of real numbers.

A complex Hermitian matrix is held as the real symmetric one of twice the size that it is, see
`real_form`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cpufree.device_arrays import library_of
from cpufree.dtypes import number_type, vector_type
from cpufree.errors import DiagonalError, MatrixError
from cpufree.matrix.entries import (
    MAX_ROWS,
    EntryStatistics,
    are_rows,
    check_bounds,
    columns_increase,
    in_64_bits,
)
from cpufree.matrix.from_gpu import to_host
from cpufree.matrix.from_pandas import entries_of, is_table
from cpufree.matrix.real_form import complex_rows, pairs_of, real_rows
from cpufree.matrix.sparse import issparse

if TYPE_CHECKING:
    import scipy.sparse as sp

# From this size on, a matrix with fewer entries than rows is refused before anything of the
# length of its rows is allocated; below, `check_spd_input` names the rows.
_MANY_ROWS = 1_000_000


MatrixLike: TypeAlias = Any
"""SciPy sparse, NumPy 2-D, a list of rows, CsrMatrix, or a path or `gen:` string for `load_matrix`;
also matrices of CuPy and PyTorch, and pandas DataFrames."""
_DTYPES: dict[str, tuple[type, ...]] = {
    "indptr": (np.int64,),
    "indices": (np.int32,),
    "data": (np.float64, np.float32),
}


@dataclass(frozen=True, eq=False)
class CsrMatrix:
    """A square matrix of real numbers in compressed rows. One that exists is well formed.

    Row i holds columns `indices[indptr[i]:indptr[i+1]]`, strictly increasing, and the values
    `data[...]` at the same places. The arrays are read-only views: they may share memory with
    what the matrix was made from, or with a file.

    Raises:
        MatrixError: dtypes, lengths, order or range of the arrays are not as said here.
    """

    indptr: NDArray[np.int64]
    """Where rows begin, (n+1,)."""
    indices: NDArray[np.int32]
    """Column numbers, (nnz,)."""
    data: NDArray[Any]
    """Values, (nnz,), float64 or float32."""
    of_complex: bool = False
    """Whether unknowns 2 k and 2 k + 1 are real and imaginary part of a complex one."""
    # Made when the entries were last inspected; None: they were not.
    _statistics: EntryStatistics | None = field(init=False, default=None, repr=False)
    # Whether no other code can write the arrays, so that the statistics stay true.
    _private: bool = field(init=False, default=False, repr=False)

    def __post_init__(self) -> None:
        self._keep_views()
        if self.indices.shape == self.data.shape and are_rows(self.indptr, self.indices):
            return
        check_bounds(self.indptr, self.indices, self.data)
        if not self.indices.size == self.data.size == int(self.indptr[-1]):
            raise MatrixError(
                "indices and data must have indptr[-1] elements each, "
                f"{self.indptr[-1]}; they have {self.indices.size}, {self.data.size}"
            )
        if not columns_increase(self.indptr, self.indices):
            raise MatrixError(
                "the columns of each row must increase strictly. as_csr sorts them "
                "and sums entries that are given twice."
            )

    @classmethod
    def well_formed(
        cls, indptr: Any, indices: Any, data: Any, of_complex: bool = False
    ) -> CsrMatrix:
        """Return a matrix of arrays that are known to be well formed: their order is not checked.

        Raises:
            MatrixError: wrong dtypes.
        """
        matrix = object.__new__(cls)
        for name, array in (("indptr", indptr), ("indices", indices), ("data", data)):
            object.__setattr__(matrix, name, array)
        object.__setattr__(matrix, "of_complex", of_complex)
        matrix._keep_views()
        return matrix

    def with_values(self, data: Any) -> CsrMatrix:
        """Return the matrix with other values at the same places."""
        return CsrMatrix.well_formed(self.indptr, self.indices, data, self.of_complex)

    def _keep_views(self) -> None:
        """Keep read-only views of the arrays, contiguous ones, once their dtypes are right."""
        for name, dtypes in _DTYPES.items():
            array = np.ascontiguousarray(getattr(self, name))
            if array.dtype not in dtypes:
                raise MatrixError(
                    f"{name} has dtype {array.dtype}; CsrMatrix takes int64 indptr, "
                    "int32 indices, float64 or float32 data. as_csr converts."
                )
            view = array.view(np.ndarray)
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    def inspect(self) -> EntryStatistics:
        """Return statistics of all entries as they are now, and keep them."""
        statistics = EntryStatistics.of(self.indptr, self.indices, self.data)
        object.__setattr__(self, "_statistics", statistics)
        return statistics

    @property
    def statistics(self) -> EntryStatistics:
        """Statistics of the entries; made when first asked for."""
        return self._statistics or self.inspect()

    def entries_known(self) -> bool:
        """Return whether there are statistics that no write can have made untrue."""
        return self._private and self._statistics is not None

    def private(self) -> CsrMatrix:
        """Return this matrix, noting that no other code can write its arrays."""
        object.__setattr__(self, "_private", True)
        return self

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return (self.indptr.size - 1, self.indptr.size - 1)

    @property
    def given_shape(self) -> tuple[int, int]:
        """(n, n) of the matrix as users know it."""
        n = self.shape[0] // (2 if self.of_complex else 1)
        return (n, n)

    @property
    def given_nnz(self) -> int:
        """Number of stored entries of the matrix as users know it."""
        return self.nnz // (4 if self.of_complex else 1)

    @property
    def given_dtype(self) -> np.dtype[Any]:
        """Type of the entries as users know them: complex128 and complex64, too."""
        return vector_type(self.dtype, self.of_complex)

    @property
    def nnz(self) -> int:
        """Number of stored entries, explicit zeros included."""
        return self.indices.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64 or float32."""
        return self.data.dtype

    def to_scipy(self) -> sp.csr_array:
        """Return a `scipy.sparse.csr_array`; values and columns are shared where SciPy allows.

        Its arrays are read-only, and `convert` of it, as it is, returns this matrix.
        """
        import scipy.sparse as sp  # a heavy import

        matrix = sp.csr_array((self.data, self.indices, self.indptr), shape=self.shape)
        matrix.has_canonical_format = True
        matrix._cpufree_origin = _Origin(self, matrix)
        return matrix

    def given(self) -> sp.csr_array:
        """Return the matrix as users know it, which may be complex, as a SciPy matrix."""
        if not self.of_complex:
            return self.to_scipy()
        import scipy.sparse as sp  # a heavy import

        arrays = complex_rows(self.indptr, self.indices, self.data)
        return sp.csr_array((arrays[2], arrays[1], arrays[0]), shape=self.given_shape)

    def in_pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
        """Return the rows of a complex matrix with each part of an entry stored once.

        Real parts are at (2 i, 2 j), imaginary parts at (2 i + 1, 2 j + 1).
        """
        return pairs_of(self.indptr, self.indices, self.data)

    def as_complex(self) -> CsrMatrix:
        """Return the matrix as one of complex numbers: itself, where it is one."""
        return self if self.of_complex else of_complex_rows(self.indptr, self.indices, self.data)


def of_complex_rows(indptr: Any, indices: Any, data: Any) -> CsrMatrix:
    """Return a matrix of well-formed rows of complex or real numbers as a complex one.

    Raises:
        MatrixError: it has more rows than can be numbered then.
    """
    n = len(indptr) - 1
    if 2 * n > MAX_ROWS:
        raise MatrixError(
            f"index overflow: the complex matrix has {n} rows, and at most {MAX_ROWS // 2} can be "
            "numbered, as real and imaginary parts are rows of their own"
        )
    return CsrMatrix.well_formed(*real_rows(indptr, indices, data), of_complex=True)


class _Origin:
    """The CsrMatrix of which a SciPy matrix was made, for as long as its arrays are the same."""

    def __init__(self, source: CsrMatrix, copy: sp.csr_array) -> None:
        self._source = source
        self._arrays = (copy.indptr, copy.indices, copy.data)
        for array in self._arrays:
            array.flags.writeable = False

    def source_of(self, A: Any) -> CsrMatrix | None:
        """Return the CsrMatrix if A still has its arrays, which cannot have been written."""
        own = zip((A.indptr, A.indices, A.data), self._arrays, strict=True)
        same = all(mine is known and not known.flags.writeable for mine, known in own)
        return self._source if same and A.shape == self._source.shape else None

    def __reduce__(self) -> tuple[Any, ...]:
        return (_no_origin, ())  # a matrix in another process has arrays of its own


def _no_origin() -> None:
    """Return what a pickled matrix has as its origin."""


def convert(A: Any) -> CsrMatrix:
    """Return a matrix in memory as a CsrMatrix, with its pattern as it is.

    Args:
        A: SciPy sparse, NumPy 2-D, a list of rows, CsrMatrix, a matrix of CuPy or PyTorch, or a
            DataFrame.

    Raises:
        MatrixError: not numbers, not square, empty, too large, not a matrix.
    """
    if isinstance(A, CsrMatrix):
        return A
    if issparse(A):
        origin = getattr(A, "_cpufree_origin", None)
        known = origin.source_of(A) if origin is not None and A.format == "csr" else None
        return known or _from_sparse(A)
    if isinstance(A, (list, tuple)):
        A = _as_array(A)
    if isinstance(A, np.ndarray):
        return _from_dense(A)
    if library_of(A):
        return convert(to_host(A))
    if is_table(A):
        return convert(entries_of(A))
    kind = f"{type(A).__module__}.{type(A).__qualname__}"
    raise MatrixError(
        f"cannot take a matrix from {kind}: pass a SciPy sparse matrix, a NumPy 2-D "
        "array, one of CuPy or PyTorch, a pandas DataFrame, or the path of a file. The "
        "entries are needed, so that operators given as functions cannot be used."
    )


def check_shape(shape: tuple[int, ...], entries: int | None = None) -> None:
    """Check that a matrix is square, not empty, and addressable; allocates nothing.

    Raises:
        MatrixError: it is not. DiagonalError: it is huge, with fewer entries than rows.
    """
    if len(shape) != 2:
        raise MatrixError(f"a matrix has two dimensions; this has shape {tuple(shape)}")
    rows, columns = (int(size) for size in shape)
    if rows != columns:
        raise MatrixError(
            f"the matrix is rectangular, {rows} x {columns}; it must be square and "
            "symmetric. For least squares, solve A.T @ A x = A.T @ b."
        )
    if rows == 0:
        raise MatrixError("the matrix is empty, 0 x 0: there is nothing to solve")
    if rows > MAX_ROWS:
        raise MatrixError(
            f"index overflow: the matrix has {rows} rows, and at most {MAX_ROWS} "
            "(2**31 - 1) can be numbered"
        )
    if entries is not None and entries < rows and rows > _MANY_ROWS:
        raise DiagonalError(
            f"the matrix has {rows} rows but only {entries} entries: at least "
            f"{rows - entries} diagonal entries are missing, and a positive "
            "definite matrix has them all"
        )


def _from_sparse(A: Any) -> CsrMatrix:
    import scipy.sparse as sp  # a heavy import

    check_shape(A.shape)
    dtype = number_type(A.dtype)
    if A.format != "csr":
        _check_sparse_indices(A)
        check_shape(A.shape, A.nnz)
        with np.errstate(over="ignore"):
            A = A.astype(dtype).tocsr()
    indptr = in_64_bits(A.indptr)
    if indptr.size != A.shape[0] + 1:
        raise MatrixError(
            f"the CSR arrays are inconsistent: {A.shape[0]} rows, but indptr has "
            f"{indptr.size} elements"
        )
    sorted_rows = A.indices.shape == A.data.shape and are_rows(indptr, A.indices)
    if not sorted_rows:
        check_bounds(indptr, A.indices, A.data)
    indices = A.indices[: indptr[-1]]
    with np.errstate(over="ignore"):
        data = A.data[: indptr[-1]].astype(dtype, copy=False)
    if not (sorted_rows or columns_increase(indptr, indices)):
        A = sp.csr_array((data.copy(), indices.copy(), indptr.copy()), shape=A.shape)
        A.sum_duplicates()
        indptr, indices, data = A.indptr.astype(np.int64), A.indices, A.data
    if np.iscomplexobj(data):
        return of_complex_rows(indptr, indices, data)
    make = CsrMatrix.well_formed if sorted_rows else CsrMatrix
    return make(indptr, indices.astype(np.int32, copy=False), data)


def _check_sparse_indices(A: Any) -> None:
    """Refuse indices out of range, with which SciPy's conversions would leave their arrays."""
    if A.format == "coo":
        for what, index, size in (("row", A.row, A.shape[0]), ("column", A.col, A.shape[1])):
            if index.size and (index.min() < 0 or index.max() >= size):
                k = int(np.argmax((index < 0) | (index >= size)))
                raise MatrixError(
                    f"entry {k} of the COO matrix has {what} {index[k]}; {what}s "
                    f"run from 0 to {size - 1}"
                )
        if not A.row.size == A.col.size == A.data.size:
            raise MatrixError("row, col and data of the COO matrix differ in length")
    elif hasattr(A, "check_format"):
        try:
            A.check_format(full_check=True)
        except (ValueError, ZeroDivisionError) as error:  # by a block without rows or columns
            raise MatrixError(f"the {A.format.upper()} arrays are inconsistent: {error}") from None


def _as_array(rows: Any) -> NDArray[Any]:
    """Return a list of rows as an array."""
    try:
        return np.asarray(rows)
    except ValueError as error:
        raise MatrixError(
            f"cannot take a matrix from a {type(rows).__name__}: its rows are not equally long "
            f"lists of numbers ({error})"
        ) from None


def _from_dense(A: NDArray[Any]) -> CsrMatrix:
    import scipy.sparse as sp  # a heavy import

    if isinstance(A, np.ma.MaskedArray):
        raise MatrixError("the matrix is a masked array; pass A.filled(0)")
    check_shape(A.shape)
    with np.errstate(over="ignore"):
        return _from_sparse(sp.csr_array(np.asarray(A, dtype=number_type(A.dtype))))
