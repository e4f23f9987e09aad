"""Vectors as the solvers take them: contiguous, finite, of the right length."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from cpufree.device_arrays import cuda_device
from cpufree.dtypes import parts_type
from cpufree.errors import VectorError
from cpufree.matrix.sparse import issparse


def as_parts(v: NDArray[Any]) -> NDArray[Any]:
    """Return a complex vector as that of its real and imaginary parts in turn, which it is.

    It shares memory. A real one stays.
    """
    return v.view(parts_type(v.dtype)) if v.dtype.kind == "c" else v


def as_vector(
    v: ArrayLike, n: int, dtype: DTypeLike, name: str = "b", first: int = 0, finite: bool = True
) -> NDArray[Any]:
    """Return v as a contiguous 1-D array of n finite numbers of `dtype`, which may be complex.

    Shares memory with v where nothing has to be converted.

    Args:
        v: n numbers; (n,) or (n, 1), array or list.
        n: rows of the matrix.
        dtype: float64, float32, complex128 or complex64.
        name: what the errors call it, and first: the number there of the first entry.
        finite: look whether all of it is.

    Raises:
        VectorError: wrong shape, complex for a real dtype, no numbers, NaN or infinite, or too
            large for `dtype`.
    """
    if issparse(v):
        raise VectorError(f"{name} is sparse; pass {name}.toarray().ravel()")
    if v is None or isinstance(v, (str, os.PathLike)):
        hint = "" if v is None else "; cpufree.load_vector reads files of whole vectors"
        raise VectorError(f"{name} is {v!r}; it must be {n} real numbers{hint}")
    if isinstance(v, np.ma.MaskedArray):
        raise VectorError(f"{name} is a masked array; pass {name}.filled(value)")
    if cuda_device(v) is not None:
        raise VectorError(
            f"{name} lies on a GPU, but is needed on the host here; pass {name}.get() (CuPy) or "
            f"{name}.cpu() (PyTorch)"
        )
    try:
        vector = np.asarray(v)  # of pandas' Series and DataFrames, too
    except (ValueError, TypeError):
        raise VectorError(f"{name} is no array; it must be {n} real numbers") from None
    if vector.shape not in ((n,), (n, 1)):
        raise VectorError(
            f"{name} has shape {vector.shape}, but the matrix has {n} rows; "
            f"{name} must have shape ({n},) or ({n}, 1)"
        )
    if vector.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        raise VectorError(
            f"{name} is complex ({vector.dtype}), but the system is solved in {np.dtype(dtype)}; "
            f"pass {name}.real, or have it solved in complex numbers, as Solver(A, dtype=complex) "
            "and a complex A are"
        )
    if vector.dtype.kind not in "fiubc":
        raise VectorError(
            f"{name} has dtype {vector.dtype}; it must hold real numbers, such as float64"
        )
    with np.errstate(over="ignore"):
        result = np.ascontiguousarray(vector.reshape(n), dtype=dtype)
    if finite and not np.isfinite(result).all():
        k = int(np.argmin(np.isfinite(result)))
        value = vector.reshape(n)[k]
        why = f"too large for {result.dtype}" if np.isfinite(value) else "not a finite number"
        raise VectorError(f"{name}[{first + k}] = {value} is {why}")
    return result
