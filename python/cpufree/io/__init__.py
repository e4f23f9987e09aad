"""Matrices and vectors from and to files. What each format may hold: docs/input.md.

No file can make this module run code, crash, or allocate more than the file could hold.
"""

from __future__ import annotations

import contextlib
import gzip
import math
import os
import warnings
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from cpufree.cache import CachedRows, atomic_write, read_cache, write_cache
from cpufree.errors import FileFormatError, InvalidInputError, VectorError
from cpufree.io.files import PathLike, check_file, reading, suffix_of
from cpufree.io.matrix_market import read_matrix_market
from cpufree.io.partition_file import load_partition, save_partition
from cpufree.problem import MatrixLike, as_csr, as_vector, canonical_csr, float_type
from cpufree.rows import RowSource

__all__ = [
    "load_matrix",
    "load_partition",
    "load_rows_of_vector",
    "load_vector",
    "open_rows",
    "read_matrix",
    "save_matrix",
    "save_partition",
    "save_vector",
]

MATRIX_SUFFIXES = (".mtx", ".mtx.gz", ".mtx.bz2", ".npz", ".npy", ".cpufree")
VECTOR_SUFFIXES = (".npy", ".mtx", ".mtx.gz", ".mtx.bz2", ".txt")
MATRIX_SAVE_SUFFIXES = (".mtx", ".mtx.gz", ".npz", ".cpufree")
VECTOR_SAVE_SUFFIXES = (".npy", ".mtx", ".mtx.gz", ".txt")
GENERATOR_PREFIX = "gen:"

# Deflate yields at most this many bytes for one.
_DEFLATE_LIMIT = 1032


def load_matrix(source: PathLike) -> sp.csr_array:
    """Return the matrix in a file, or the one that a generator makes.

    Columns are sorted, duplicates summed, values float64 or float32; the pattern is as stored.

    Args:
        source: a file by suffix: Matrix Market (.mtx, .mtx.gz, .mtx.bz2), `scipy.sparse.save_npz`
            (.npz), a dense 2-D array (.npy), our cache (.cpufree); or `gen:NAME?key=value,...`.

    Raises:
        FileFormatError: missing, unreadable, damaged, or of a format not known here.
        MatrixError: not a square real matrix, or too large.
        OutOfMemoryError: it does not fit.
    """
    return canonical_csr(source).to_scipy()


def read_matrix(source: PathLike) -> Any:
    """Return what a matrix file holds, as its reader gives it: SciPy sparse, ndarray, CsrMatrix."""
    name = os.fspath(source)
    if isinstance(name, str) and name.startswith(GENERATOR_PREFIX):
        from cpufree import generate  # large, and often not needed

        return generate.from_spec(name.removeprefix(GENERATOR_PREFIX))
    path, suffix = check_file(source, MATRIX_SUFFIXES)
    with reading(path, suffix):
        if suffix == ".cpufree":
            return read_cache(path)
        if suffix == ".npz":
            return _read_npz(path)
        if suffix == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
        return read_matrix_market(path)


def open_rows(source: PathLike) -> RowSource:
    """Return a matrix whose rows are read, or made, where they are wanted.

    Args:
        source: a cache file (.cpufree; where its rows lie by parts, each rank takes one, and
            `Solver.rows` tells which rows of the matrix these are), or `gen:NAME?key=value,...` of
            a generator whose rows are made apart from one another: poisson1d, poisson2d, poisson3d,
            stencil27.

    Raises:
        FileFormatError: missing, damaged, or a format that is not read by rows.
        InvalidInputError: a generator that makes no rows, or parameters that it does not take.
    """
    name = os.fspath(source)
    if isinstance(name, str) and name.startswith(GENERATOR_PREFIX):
        from cpufree import generate  # large, and often not needed

        rows = generate.row_source(name.removeprefix(GENERATOR_PREFIX))
        if rows is None:
            raise InvalidInputError(
                f"{name}: this generator makes whole matrices alone; save it as a .cpufree file "
                "('cpufree convert gen:... --parts N'), of which ranks read their own rows"
            )
        return rows
    path, suffix = check_file(source, MATRIX_SUFFIXES)
    if suffix != ".cpufree":
        raise FileFormatError(
            f"{path}: rows by themselves are read from .cpufree files only; make one once: "
            f"cpufree convert {path} --parts N --out A.cpufree",
            path,
        )
    with reading(path, suffix):
        return CachedRows(path)


def load_rows_of_vector(
    path: PathLike, n: int, first: int, last: int, numbers: NDArray[np.intp] | None = None
) -> NDArray[Any]:
    """Return entries [first, last) of the n numbers of a .npy file, reading no others.

    `numbers`: the entries to return instead, in this order.

    Raises:
        FileFormatError: missing, damaged, or of another format.
        VectorError: not n real numbers, or some of these entries are not finite.
    """
    file, suffix = check_file(path, VECTOR_SUFFIXES)
    if suffix != ".npy":
        raise FileFormatError(
            f"{path}: ranks that have own rows alone read vectors from .npy files", path
        )
    with reading(file, suffix):
        vector = np.load(file, mmap_mode="r", allow_pickle=False)
        if vector.shape not in ((n,), (n, 1)):
            raise VectorError(
                f"{path}: has shape {vector.shape}, but the matrix has {n} rows; ({n},) is needed"
            )
        dtype = np.float32 if vector.dtype.name == "float32" else np.float64
        if numbers is None:
            own = vector.reshape(n)[first:last]
            return np.array(as_vector(own, last - first, dtype, str(path), first))
        own = np.empty(numbers.size, vector.dtype)
        rising = np.argsort(numbers)  # each page of the file is read once
        own[rising] = vector.reshape(n)[numbers[rising]]
        return as_numbered(own, numbers, dtype, str(path))


def as_numbered(
    own: NDArray[Any], numbers: NDArray[np.intp], dtype: Any, name: str
) -> NDArray[Any]:
    """Return `as_vector` of entries that have these numbers in the vector of this name."""
    try:
        return as_vector(own, numbers.size, dtype, name)
    except VectorError:
        if own.dtype.kind in "fiub":
            with np.errstate(over="ignore"):
                k = int(np.argmin(np.isfinite(own.astype(dtype))))
            as_vector(own[k : k + 1], 1, dtype, name, int(numbers[k]))
        raise


def load_vector(path: PathLike, n: int) -> NDArray[Any]:
    """Return the n numbers of a file: .npy, Matrix Market with one column, or .txt.

    Returns:
        (n,), float32 if the file is a .npy of float32, else float64.

    Raises:
        FileFormatError: missing, unreadable, damaged, or of a format not known here.
        VectorError: not n finite real numbers.
    """
    file, suffix = check_file(path, VECTOR_SUFFIXES)
    with reading(file, suffix):
        if suffix == ".npy":
            vector = np.load(file, mmap_mode="r", allow_pickle=False)
        elif suffix == ".txt":
            vector = _read_text(file)
        else:
            vector = read_matrix_market(file, square=False)
            if vector.shape != (n, 1):
                raise VectorError(
                    f"{path}: holds {vector.shape[0]} x {vector.shape[1]} numbers; "
                    f"the matrix has {n} rows, so {n} x 1 are needed"
                )
            vector = vector.toarray() if sp.issparse(vector) else vector
        dtype = np.float32 if vector.dtype.name == "float32" else np.float64
        # Never the map of the file: the caller may write the file anew while x is in use.
        return np.array(as_vector(vector, n, dtype, name=str(path)))


def save_matrix(path: PathLike, A: MatrixLike) -> None:
    """Write a matrix, format by suffix: .mtx, .mtx.gz, .npz or .cpufree.

    The file appears when it is complete. Text holds enough digits for the same values; a matrix
    that is symmetric to the bit is stored as its lower triangle.

    Raises:
        FileFormatError: unknown suffix, or the file cannot be written.
        MatrixError: A is not a square real matrix.
    """
    import scipy.io  # a heavy import

    suffix = suffix_of(path, MATRIX_SAVE_SUFFIXES)
    matrix = canonical_csr(A)
    if suffix == ".cpufree":
        write_cache(path, matrix)
    elif suffix == ".npz":
        with atomic_write(path) as file:
            sp.save_npz(file, matrix.to_scipy())
    else:
        symmetry = "symmetric" if as_csr(matrix).seen.symmetric else "general"
        with atomic_write(path) as file, _compressed(file, suffix) as stream:
            scipy.io.mmwrite(stream, matrix.to_scipy(), symmetry=symmetry)


def save_vector(path: PathLike, v: ArrayLike) -> None:
    """Write a vector, format by suffix: .npy, .mtx, .mtx.gz or .txt (one per line).

    Raises:
        FileFormatError: unknown suffix, or the file cannot be written.
        VectorError: v is not a vector of real numbers.
    """
    import scipy.io  # a heavy import

    suffix = suffix_of(path, VECTOR_SAVE_SUFFIXES)
    if isinstance(v, np.ma.MaskedArray):
        raise VectorError(
            "a vector of real numbers is needed, without a mask; pass v.filled(value)"
        )
    try:
        vector = np.asarray(v)
    except (ValueError, TypeError) as error:
        raise VectorError(f"a vector of real numbers is needed: {error}") from None
    if vector.shape[1:] not in ((), (1,)) or vector.ndim == 0 or vector.dtype.kind not in "fiub":
        raise VectorError(
            f"a vector of real numbers is needed, (n,) or (n, 1); this has shape "
            f"{vector.shape} and dtype {vector.dtype}"
        )
    vector = vector.ravel()
    if vector.dtype.kind in "fb":
        # Text of float16, long doubles and bools would be that of NumPy, or a few digits.
        with np.errstate(over="ignore"):
            vector = vector.astype(float_type(vector.dtype), copy=False)
    with atomic_write(path) as file:
        if suffix == ".npy":
            np.save(file, vector, allow_pickle=False)
        elif suffix == ".txt":
            # repr gives the shortest digits that read back as the same number.
            file.writelines(f"{value!r}\n".encode() for value in vector.tolist())
        else:
            with _compressed(file, suffix) as stream:
                scipy.io.mmwrite(stream, vector[:, np.newaxis], symmetry="general")


def _read_npz(path: Path) -> Any:
    """Read what scipy.sparse.save_npz wrote, after a look at the sizes that it declares."""
    with zipfile.ZipFile(path) as archive:
        names = {member.filename for member in archive.infolist()}
        if "format.npy" not in names:
            raise FileFormatError(
                f"{path}: holds {', '.join(sorted(names)) or 'nothing'}, but no "
                "sparse matrix: write it with scipy.sparse.save_npz",
                path,
            )
        for member in archive.infolist():
            with archive.open(member) as stream:
                declared = _declared_bytes(stream)
            # What deflate cannot yield is not there, whatever the directory says.
            available = min(member.file_size, _DEFLATE_LIMIT * member.compress_size)
            if declared > available:
                raise FileFormatError(
                    f"{path}: damaged: {member.filename} declares {declared} "
                    f"bytes but holds at most {available}",
                    path,
                )
    return sp.load_npz(path)


def _read_text(path: Path) -> NDArray[np.float64]:
    """Read the numbers of a text file; name the line of what is none."""
    try:
        with warnings.catch_warnings():
            # Of a file without data: the caller reports the wrong length.
            warnings.simplefilter("ignore", UserWarning)
            return np.loadtxt(path, dtype=np.float64, ndmin=1)
    except ValueError:
        with open(path, encoding="latin-1") as file:
            for number, line in enumerate(file, 1):
                words = line.partition("#")[0].split()
                for word in words:
                    try:
                        float(word.replace("_", "?"))  # 1_0 is a number in Python alone
                    except ValueError:
                        what = f"line {number}: {word[:40]!r} is not a number"
                        raise FileFormatError(f"{path}: {what}", path) from None
                if len(words) > 1:
                    what = f"line {number}: {len(words)} numbers, but each needs its own line"
                    raise FileFormatError(f"{path}: {what}", path) from None
        raise


def _declared_bytes(stream: IO[bytes]) -> int:
    """Return the number of bytes that the header of a .npy stream announces."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    return math.prod(shape) * int(dtype.itemsize)


def _compressed(file: IO[bytes], suffix: str) -> contextlib.AbstractContextManager[Any]:
    """Return a stream into `file` that compresses if the suffix says so."""
    if suffix.endswith(".gz"):
        # Neither name nor time in the header: the same matrix gives the same file.
        return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6)
    return contextlib.nullcontext(file)
