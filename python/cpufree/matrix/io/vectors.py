"""Vectors from and to files."""

from __future__ import annotations

import os
import re
import warnings
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cpufree.dtypes import float_type, vector_type
from cpufree.errors import CpufreeError, FileFormatError, VectorError
from cpufree.matrix.io.files import (
    PathLike,
    check_file,
    compressed,
    reading,
    split_part,
    suffix_of,
    text_lines,
)
from cpufree.matrix.io.fortran import with_exponents_of_c
from cpufree.matrix.io.npy import map_npy
from cpufree.matrix.sparse import issparse
from cpufree.matrix.vector import as_vector
from cpufree.output_file import write_file

VECTOR_SUFFIXES = (".npy", ".mtx", ".mtx.gz", ".mtx.bz2", ".txt", ".csv", ".tar.gz", ".tgz")


VECTOR_SAVE_SUFFIXES = (".npy", ".mtx", ".mtx.gz", ".txt")


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
        vector = map_npy(file)
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
    """Return the n numbers of a file: .npy, Matrix Market with one column, .txt, .csv, .tar.gz.

    Of an archive of the SuiteSparse collection it is NAME_b.mtx, or the file F of A.tar.gz#F.

    Returns:
        (n,), float32 if the file is a .npy of float32, else float64; complex where the file is.

    Raises:
        FileFormatError: missing, unreadable, damaged, or of a format not known here.
        VectorError: not n finite numbers.
    """
    whole, part = split_part(path)
    file, suffix = check_file(whole, VECTOR_SUFFIXES)
    with reading(file, suffix):
        if suffix == ".npy":
            vector = map_npy(file)
        elif suffix == ".txt":
            vector = _read_text(file, n)
        elif suffix == ".csv":
            vector = _read_csv(file, n)
        else:
            if suffix in (".tar.gz", ".tgz"):
                from cpufree.matrix.io.archive import read_archive

                vector = read_archive(file, part, vector=True)
            else:
                from cpufree.matrix.io.matrix_market import read_matrix_market

                vector = read_matrix_market(file, square=False)
            if vector.shape != (n, 1):
                raise VectorError(
                    f"{path}: holds {vector.shape[0]} x {vector.shape[1]} numbers; "
                    f"the matrix has {n} rows, so {n} x 1 are needed"
                )
            vector = vector.toarray() if issparse(vector) else vector
        dtype = _type_of_file(vector.dtype)
        # Never the map of the file: the caller may write the file again while x is in use.
        return np.array(as_vector(vector, n, dtype, name=str(path)))


def _type_of_file(dtype: np.dtype[Any]) -> np.dtype[Any]:
    single = dtype.name in ("float32", "complex64")
    return vector_type(np.float32 if single else np.float64, dtype.kind == "c")


def save_vector(path: PathLike, v: ArrayLike) -> None:
    """Write a vector, format by suffix: .npy, .mtx, .mtx.gz or .txt (one per line).

    Raises:
        FileFormatError: unknown suffix, or the file cannot be written.
        VectorError: v is not a vector of numbers, or complex, which .txt does not hold.
    """
    suffix = suffix_of(path, VECTOR_SAVE_SUFFIXES)
    if isinstance(v, np.ma.MaskedArray):
        raise VectorError("a vector of numbers is needed, without a mask; pass v.filled(value)")
    try:
        vector = np.asarray(v)
    except (ValueError, TypeError) as error:
        raise VectorError(f"a vector of numbers is needed: {error}") from None
    if vector.shape[1:] not in ((), (1,)) or vector.ndim == 0 or vector.dtype.kind not in "fiubc":
        raise VectorError(
            f"a vector of numbers is needed, (n,) or (n, 1); this has shape "
            f"{vector.shape} and dtype {vector.dtype}"
        )
    if vector.dtype.kind == "c" and suffix == ".txt":
        raise VectorError(".txt has one real number a line: write complex ones as .npy or .mtx")
    vector = vector.ravel()
    if vector.dtype.kind in "fb":
        # Text of float16, long doubles and bools would be that of NumPy, or a few digits.
        with np.errstate(over="ignore"):
            vector = vector.astype(float_type(vector.dtype), copy=False)
    with write_file(path) as file:
        if suffix == ".npy":
            np.save(file, vector, allow_pickle=False)
        elif suffix == ".txt":
            # repr gives the shortest digits that read back as the same number.
            file.writelines(f"{value!r}\n".encode() for value in vector.tolist())
        else:
            import scipy.io  # a heavy import

            with compressed(file, suffix) as stream:
                if vector.dtype.kind == "f":  # the digits of a float32 are those of another float64
                    vector = vector.astype(np.float64)
                scipy.io.mmwrite(stream, vector[:, np.newaxis], symmetry="general")


_MAY_BE_OF_FORTRAN = re.compile("[Dd]|[0-9.][+-]")


def _number_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text, with Fortran's exponents spelled as in C."""
    for line in text_lines(path):
        if _MAY_BE_OF_FORTRAN.search(line):
            line = with_exponents_of_c(line.encode("latin-1")).decode("latin-1")
        yield line


def _read_text(path: Path, n: int) -> NDArray[np.float64]:
    """Read the numbers of a text file, not many more than n; name the line of what is none."""
    try:
        with warnings.catch_warnings():
            # Of a file without data: the caller reports the wrong length.
            warnings.simplefilter("ignore", UserWarning)
            vector = np.loadtxt(_number_lines(path), dtype=np.float64, ndmin=1, max_rows=n + 1)
    except CpufreeError:
        raise
    except ValueError:
        _refuse_text(path)
        raise
    if vector.size > n:
        raise VectorError(f"{path}: holds more numbers than the matrix has rows, {n}")
    return vector


def _read_csv(path: Path, n: int) -> NDArray[np.float64]:
    """Read one column of numbers, or one row with commas between; a first line may name them."""
    values = array("d")
    for number, line in enumerate(_number_lines(path), 1):
        words = [word.strip() for word in line.split(",")]
        if not any(words):
            continue
        try:
            values.extend([float(word.replace("_", "?")) for word in words])
        except ValueError:
            if number > 1:
                what = f"line {number}: {line.strip()[:60]!r}: numbers expected"
                raise FileFormatError(f"{path}: {what}", path) from None
            continue  # the name of the column
        if len(words) > 1 and n > 1 and len(words) != n:
            raise FileFormatError(
                f"{path}: line {number}: {len(words)} columns, but a vector has one (or one row of "
                f"{n} numbers): save that column alone",
                path,
            )
        if len(values) > n:
            raise VectorError(f"{path}: holds more numbers than the matrix has rows, {n}")
    return np.array(values)


def given_vector(v: Any, n: int, dtype: Any, name: str) -> NDArray[Any]:
    """Return `as_vector` of an array, or of the vector in the file that v names."""
    return as_vector(load_vector(v, n) if is_path(v) else v, n, dtype, name)


def is_path(v: Any) -> bool:
    """Whether v names a file."""
    return isinstance(v, (str, os.PathLike))


def _refuse_text(path: Path) -> None:
    """Raise FileFormatError with the first line that is not one number."""
    for number, line in enumerate(_number_lines(path), 1):
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
