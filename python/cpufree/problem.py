"""Matrices and vectors as the solvers take them: canonical CSR, contiguous vectors."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from cpufree.entries import MAX_ROWS, Entries, are_rows, check_bounds, columns_increase
from cpufree.errors import DiagonalError, MatrixError, VectorError

# From this size on, a matrix with fewer entries than rows is refused before anything of the
# length of its rows is allocated; below, `check_spd_input` names the rows.
_MANY_ROWS = 1_000_000

# The numbers that DLPack gives to memory of NVIDIA GPUs: kDLCUDA and kDLCUDAManaged.
_DLPACK_CUDA = (2, 13)

MatrixLike: TypeAlias = Any
"""SciPy sparse, NumPy 2-D, CsrMatrix, or a path or `gen:` string for `io.load_matrix`;
also matrices of CuPy and PyTorch."""
_DTYPES: dict[str, tuple[type, ...]] = {
    "indptr": (np.int64,),
    "indices": (np.int32,),
    "data": (np.float64, np.float32),
}
# float16 is exact in float32; whole numbers beyond 2**53 and long doubles are rounded.
_FLOAT_OF: dict[str, type[np.float64] | type[np.float32]] = {
    "f2": np.float32,
    "f4": np.float32,
    "f8": np.float64,
}


@dataclass(frozen=True, eq=False)
class CsrMatrix:
    """A square real matrix in compressed rows. One that exists is well formed.

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
    # What was seen when it was last looked at; None: it was not.
    _seen: Entries | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
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

    def look(self) -> Entries:
        """Look at all entries, and note what is seen there."""
        object.__setattr__(self, "_seen", Entries.of(self.indptr, self.indices, self.data))
        assert self._seen is not None
        return self._seen

    @property
    def seen(self) -> Entries:
        """What is seen of the entries; nobody looks twice."""
        return self._seen or self.look()

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return (self.indptr.size - 1, self.indptr.size - 1)

    @property
    def nnz(self) -> int:
        """Number of stored entries, explicit zeros included."""
        return self.indices.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64 or float32."""
        return self.data.dtype

    def to_scipy(self) -> sp.csr_array:
        """Return a `scipy.sparse.csr_array`; values and columns are shared where SciPy allows."""
        matrix = sp.csr_array((self.data, self.indices, self.indptr), shape=self.shape)
        matrix.has_canonical_format = True
        return matrix


def as_csr(A: MatrixLike) -> CsrMatrix:
    """Return A as a canonical CsrMatrix with a structurally symmetric pattern. A is not changed.

    Duplicates are summed, columns sorted. Explicit zeros stay if the pattern is symmetric with
    them; otherwise they are dropped, and where the mirror image of an entry is still missing, an
    explicit zero is put there. Values are converted: bool and integers to float64, float16 to
    float32, long double to float64; float64 and float32 stay. Memory is shared where possible.

    Args:
        A: SciPy sparse matrix or array of any format, NumPy 2-D array, CsrMatrix, or a path or
            `gen:NAME?key=value` string (see `cpufree.io.load_matrix`); (n, n). Matrices of CuPy
            and PyTorch are copied to the host, where the set-up needs their pattern.

    Raises:
        MatrixError: complex or otherwise not real, not square, empty, too large, not a matrix.
        FileFormatError: the file cannot be read.
    """
    matrix = canonical_csr(A)
    if matrix.look().mirrored:
        return matrix
    if not matrix.data.all():
        matrix = _without_zeros(matrix)
        if matrix.look().mirrored:
            return matrix
    return _with_mirrored_zeros(matrix)


def canonical_csr(A: MatrixLike) -> CsrMatrix:
    """Return A as a CsrMatrix, as `as_csr` does, but with its pattern as it is."""
    if isinstance(A, CsrMatrix):
        return A
    if isinstance(A, (str, os.PathLike)):
        from cpufree.io import read_matrix  # io needs this module

        try:
            return canonical_csr(read_matrix(A))
        except MatrixError as error:
            if not str(error).startswith(f"{A}: "):
                error.args = (f"{A}: {error}",)
            raise
    if sp.issparse(A):
        return _from_sparse(A)
    if isinstance(A, np.ndarray):
        return _from_dense(A)
    if library_of(A):
        from cpufree.io.from_gpu import to_host  # not needed where nobody uses these

        return canonical_csr(to_host(A))
    kind = f"{type(A).__module__}.{type(A).__qualname__}"
    raise MatrixError(
        f"cannot take a matrix from {kind}: pass a SciPy sparse matrix, a NumPy 2-D "
        "array, one of CuPy or PyTorch, or the path of a file. The entries are needed, so "
        "that operators given as functions cannot be used."
    )


def as_vector(
    v: ArrayLike, n: int, dtype: DTypeLike, name: str = "b", first: int = 0
) -> NDArray[Any]:
    """Return v as a contiguous 1-D array of n finite numbers of `dtype`.

    Shares memory with v where nothing has to be converted.

    Args:
        v: n real numbers; (n,) or (n, 1), array or list.
        n: rows of the matrix.
        dtype: float64 or float32.
        name: what the errors call it, and first: the number there of the first entry.

    Raises:
        VectorError: wrong shape, not real, NaN or infinite, or too large for `dtype`.
    """
    if sp.issparse(v):
        raise VectorError(f"{name} is sparse; pass {name}.toarray().ravel()")
    if v is None or isinstance(v, (str, os.PathLike)):
        hint = "" if v is None else "; cpufree.load_vector reads files"
        raise VectorError(f"{name} is {v!r}; it must be {n} real numbers{hint}")
    if isinstance(v, np.ma.MaskedArray):
        raise VectorError(f"{name} is a masked array; pass {name}.filled(value)")
    if cuda_device(v) is not None:
        raise VectorError(
            f"{name} lies on a GPU, but is needed on the host here; pass {name}.get() (CuPy) or "
            f"{name}.cpu() (PyTorch)"
        )
    try:
        vector = np.asarray(v)
    except (ValueError, TypeError):
        raise VectorError(f"{name} is no array; it must be {n} real numbers") from None
    if vector.shape not in ((n,), (n, 1)):
        raise VectorError(
            f"{name} has shape {vector.shape}, but the matrix has {n} rows; "
            f"{name} must have shape ({n},) or ({n}, 1)"
        )
    if vector.dtype.kind == "c":
        raise VectorError(
            f"{name} is complex ({vector.dtype}), but only real systems are solved; "
            f"pass {name}.real, or solve for real and imaginary part in turn"
        )
    if vector.dtype.kind not in "fiub":
        raise VectorError(
            f"{name} has dtype {vector.dtype}; it must hold real numbers, such as float64"
        )
    with np.errstate(over="ignore"):
        result = np.ascontiguousarray(vector.reshape(n), dtype=dtype)
    if not np.isfinite(result).all():
        k = int(np.argmin(np.isfinite(result)))
        value = vector.reshape(n)[k]
        why = f"too large for {result.dtype}" if np.isfinite(value) else "not a finite number"
        raise VectorError(f"{name}[{first + k}] = {value} is {why}")
    return result


def library_of(v: Any) -> str:
    """Return which library of arrays on GPUs v is of, "cupy", "cupyx" or "torch", else ""."""
    homes = (kind.__module__.partition(".")[0] for kind in type(v).__mro__)
    return next((home for home in homes if home in ("cupy", "cupyx", "torch")), "")


def cuda_device(v: Any) -> int | None:
    """Return the number of the GPU on which an array lies: None on the host, -1 if not known."""
    if isinstance(v, np.ndarray):
        return None
    # DLPack first: PyTorch's other interface raises for tensors that require a gradient.
    where = getattr(v, "__dlpack_device__", None)
    if where is not None:
        kind, number = where()
        return int(number) if int(kind) in _DLPACK_CUDA else None
    return -1 if hasattr(type(v), "__cuda_array_interface__") else None


def float_type(dtype: np.dtype[Any]) -> type[np.float64] | type[np.float32]:
    """Return the type in which values of `dtype` are solved.

    Raises:
        MatrixError: complex, or not numbers.
    """
    if dtype.kind == "c":
        raise MatrixError(
            f"the matrix is complex ({dtype}), but only real systems are solved; if "
            "all imaginary parts are zero, pass A.real"
        )
    if dtype.kind not in "fiub":
        raise MatrixError(
            f"the matrix has dtype {dtype}; it must hold real numbers, such as "
            "float64: try A.astype(float)"
        )
    return _FLOAT_OF.get(dtype.str[1:], np.float64)


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
    check_shape(A.shape)
    dtype = float_type(A.dtype)
    if A.format != "csr":
        _check_sparse_indices(A)
        check_shape(A.shape, A.nnz)
        with np.errstate(over="ignore"):
            A = A.astype(dtype).tocsr()
    indptr = np.ascontiguousarray(A.indptr, dtype=np.int64)
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
    return CsrMatrix(indptr, indices.astype(np.int32, copy=False), data)


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
        except ValueError as error:
            raise MatrixError(f"the {A.format.upper()} arrays are inconsistent: {error}") from None


def _from_dense(A: NDArray[Any]) -> CsrMatrix:
    if isinstance(A, np.ma.MaskedArray):
        raise MatrixError("the matrix is a masked array; pass A.filled(0)")
    check_shape(A.shape)
    with np.errstate(over="ignore"):
        return _from_sparse(sp.csr_array(np.asarray(A, dtype=float_type(A.dtype))))


def _without_zeros(A: CsrMatrix) -> CsrMatrix:
    keep = A.data != 0
    kept_before = np.concatenate(([0], np.cumsum(keep, dtype=np.int64)))
    return CsrMatrix(kept_before[A.indptr], A.indices[keep], A.data[keep])


def _with_mirrored_zeros(A: CsrMatrix) -> CsrMatrix:
    """Add an explicit zero wherever only the mirror image is stored."""
    coo = A.to_scipy().tocoo()
    rows = np.concatenate((coo.row, coo.col))
    columns = np.concatenate((coo.col, coo.row))
    values = np.concatenate((coo.data, np.zeros_like(coo.data)))
    return _from_sparse(sp.coo_array((values, (rows, columns)), shape=A.shape))
