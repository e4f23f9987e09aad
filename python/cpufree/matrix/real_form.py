"""Complex matrices as the real ones that they are, in compressed rows.

The unknowns 2 k and 2 k + 1 are real and imaginary part of unknown k, and an entry a + b i is the
block (a, -b; b, a). That is symmetric where the complex matrix is Hermitian, and conjugate
gradients on it are those on the complex matrix, whose scalars are real.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]
"""indptr, indices and data."""


def real_rows(indptr: Any, indices: Any, data: Any) -> Rows:
    """Return the rows of the real form of a matrix, which may be rectangular, or real."""
    length = np.diff(indptr)
    begin = np.repeat(indptr[:-1], length)
    even = begin + np.arange(begin.size)  # of pairs: those of row 2 k lie before those of 2 k + 1
    odd = even + np.repeat(length, length)
    kind = np.float32 if data.dtype in (np.float32, np.complex64) else np.float64
    values = np.empty((2 * begin.size, 2), kind)
    values[even, 0] = values[odd, 1] = data.real
    values[even, 1], values[odd, 0] = -data.imag, data.imag
    columns = np.empty((2 * begin.size, 2), np.int32)
    columns[even, 0] = columns[odd, 0] = 2 * indices
    columns[even, 1] = columns[odd, 1] = 2 * indices + 1
    begins = np.empty(2 * len(length) + 1, np.int64)
    begins[::2], begins[1::2] = 4 * indptr, 4 * indptr[:-1] + 2 * length
    return begins, columns.ravel(), values.ravel()


def complex_rows(indptr: Any, indices: Any, data: Any) -> Rows:
    """Return the rows of the complex matrix of which this is the real form."""
    even = _of_even_rows(indptr)
    pairs = data.reshape(-1, 2)[even]
    values = np.empty(len(pairs), np.result_type(data.dtype, np.complex64))
    values.real, values.imag = pairs[:, 0], 0.0 - pairs[:, 1]  # no -0 where there is a 0
    return indptr[::2] // 4, indices.reshape(-1, 2)[even, 0] // 2, values


def pairs_of(indptr: Any, indices: Any, data: Any) -> Rows:
    """Return the rows of a real form with each part of an entry stored once.

    Real parts are at (2 i, 2 j), imaginary parts at (2 i + 1, 2 j + 1).
    """
    columns = indices[::2] + (~_of_even_rows(indptr)).astype(np.int32)
    return indptr // 2, columns, np.ascontiguousarray(data[::2])


def is_real_form(indptr: Any, indices: Any, data: Any) -> bool:
    """Return whether rows are the real form of a complex matrix; of arrays from a file."""
    rows = len(indptr) - 1
    if rows % 2 or (indptr % 2).any() or (indptr[::2] % 4).any():
        return False
    lengths = np.diff(indptr)
    pairs = indices.reshape(-1, 2)
    if (pairs[:, 0] % 2).any() or (pairs[:, 1] != pairs[:, 0] + 1).any():
        return False
    even = _of_even_rows(indptr)
    if not np.array_equal(lengths[::2], lengths[1::2]):
        return False
    first, second = (data.reshape(-1, 2)[which] for which in (even, ~even))
    turned = np.stack((second[:, 1], -second[:, 0]), axis=1)
    same = np.array_equal(first, turned, equal_nan=True)
    return same and np.array_equal(pairs[even, 0], pairs[~even, 0])


def _of_even_rows(indptr: Any) -> NDArray[np.bool_]:
    """Return which pairs of entries, of all that a real form has, are of rows 2 k."""
    pairs = np.diff(indptr) // 2
    even: NDArray[np.bool_] = np.repeat(np.arange(pairs.size) % 2 == 0, pairs)
    return even
