"""Vectors of a solve: what users give as kernels take it, and what kernels leave as users get it.

Between the two lie the null space of a singular A, which b and x are kept out of, and the power of
two by which a matrix at an end of the range is divided.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cpufree.device_arrays import cuda_device
from cpufree.dtypes import dtype_name, is_complex
from cpufree.errors import InvalidInputError
from cpufree.matrix import vector
from cpufree.matrix.io.vectors import is_path, load_vector
from cpufree.matrix.vector import as_vector
from cpufree.solvers import on_gpu
from cpufree.solvers.matrix_on_pes import MatrixOnPes
from cpufree.solvers.result import Reason

Vectors = tuple[Any, Any, Any]
"""Right-hand side, first guess or None, and the array for x on a GPU or None."""


def from_file(matrix: MatrixOnPes, v: Any) -> Any:
    """Return the vector in the file that v names; what is no name as it is.

    Files hold all rows: where a process has its own rows alone, a name stays, and is refused.
    """
    return load_vector(v, matrix.given_shape[0]) if is_path(v) and not matrix.own else v


def prepare_vectors(
    matrix: MatrixOnPes, b: Any, x0: Any, name: str = "", finite: bool = True
) -> Vectors:
    """Return the vectors of a solve, once they can be used.

    Args:
        name: of the column, such as "[:, 2]"; "": b is a vector.
        finite: look whether b on the host is; else who solves with it does, once the solve has
            not converged.
    """
    n = matrix.length
    dtype = matrix.vector_dtype
    if cuda_device(b) is not None:
        right, guess, out = on_gpu.prepare(b, x0, n, dtype)
    else:
        right = as_vector(b, n, dtype, f"b{name}", finite=finite)
        guess = None if x0 is None else as_vector(x0, n, dtype, f"x0{name}")
        out = None
    right, guess, out = (as_parts(v) for v in (right, guess, out))
    if (space := matrix.nullspace) is not None:
        right = space.projected(right)
        guess = None if guess is None else space.projected(guess)
    return right, scaled(guess, matrix.exponent), out


def as_parts(v: Any) -> Any:
    """Return a complex vector as that of its real and imaginary parts in turn, which it is.

    It shares memory. What is real, or None, stays.
    """
    if not is_complex(v):
        return v
    return vector.as_parts(v) if cuda_device(v) is None else on_gpu.as_parts(v)


def as_given(matrix: MatrixOnPes, v: Any) -> Any:
    """Return a vector of the core as the caller knows it: complex, where the matrix is."""
    if not matrix.of_complex:
        return v
    return v.view(matrix.vector_dtype) if cuda_device(v) is None else on_gpu.as_complex(v)


def scaled(x: Any, exponent: int) -> Any:
    """Return x times 2 to the exponent, which itself may be out of range; None for None."""
    if x is None or exponent == 0:
        return x
    half = exponent // 2
    with np.errstate(over="ignore", under="ignore"):
        return x * 2.0**half * 2.0 ** (exponent - half)


def solution(matrix: MatrixOnPes, b: Any, vectors: Vectors, outcome: Any) -> Any:
    """Return x of the matrix that the caller gave, whose shape is that of b.

    Where it leaves the range of its type, the outcome says so.
    """
    out = vectors[2]
    x = found = outcome["x"] if out is None else out
    if matrix.nullspace is not None:
        x = matrix.nullspace.solution(x, None if matrix.own else matrix.team)
    if matrix.exponent != 0:
        there = float(abs(x).max())
        x = scaled(x, -matrix.exponent)
        most, least = float(abs(x).max()), float(np.finfo(dtype_name(x)).tiny)
        if there > 0.0 and not least <= most < math.inf:
            outcome["reason"] = Reason.DIVERGED_NANORINF.value
    if out is None:
        return as_given(matrix, x).reshape(np.shape(b))
    if x is not found:
        out[...] = x
        on_gpu.finish_pending_work(out)
    return as_given(matrix, out)


def require_whole(matrix: MatrixOnPes, gather: bool) -> None:
    """Raise InvalidInputError where no process has all of an x that is to be projected."""
    if matrix.nullspace is not None and not matrix.own and not gather:
        raise InvalidInputError(
            "nullspace and gather=False: x is projected where it is whole; leave gather out, or "
            "give each process its own rows"
        )
