"""Matrices before they are laid out: checked, and in the type of the solve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.dtypes import dtype_name, parts_type
from cpufree.engines.choices import floating_or_complex
from cpufree.engines.digests import Pattern
from cpufree.errors import InvalidInputError, MatrixError
from cpufree.extension import load_core
from cpufree.matrix.io.vectors import is_path
from cpufree.matrix.load import as_csr, canonical_csr
from cpufree.matrix.problem import CsrMatrix
from cpufree.matrix.validate import check_input


@dataclass(frozen=True)
class Prepared:
    """A matrix that is ready to be laid out: checked, in the type of the solve."""

    matrix: CsrMatrix
    pattern: Pattern
    warnings: list[str]
    """What the user should know of it."""
    exponent: int = 0
    """The matrix is the caller's divided by 2 to this: see `scaled`."""

    def copy(self) -> Prepared:
        """Return the same with arrays of its own."""
        A = self.matrix
        arrays = A.indptr.copy(), A.indices.copy(), A.data.copy()
        own = CsrMatrix.well_formed(*arrays, A.of_complex)
        return replace(self, matrix=own)

    def scaled(self) -> Prepared:
        """Return A divided by a power of two where its largest entry is far from 1.

        That is exact, but for entries that become too small to have all their digits, and keeps
        squares of A p in the range of float64, and A p in that of the type.
        """
        A = self.matrix
        exponent = load_core().range_exponent(A.data)
        if exponent == 0:
            return self
        matrix = A.with_values(np.ldexp(A.data, -exponent))
        return replace(self, matrix=matrix, exponent=exponent)


def prepare(A: CsrMatrix, method: str | None, dtype: npt.DTypeLike | None) -> Prepared:
    """Return A ready to be laid out.

    Args:
        A: the matrix, with a symmetric pattern.
        method: for which its entries are checked, too; None: they are not.
        dtype: of the solve; None: that of A.

    Raises:
        InvalidInputError: A cannot be solved, or not in dtype.
    """
    warnings = check_matrix(A, method) if method else []
    return Prepared(with_dtype(A, dtype), Pattern.of(A), warnings).scaled()


def prepare_values(
    A: Any,
    method: str | None,
    dtype: npt.DTypeLike,
    like: Pattern,
    of_complex: bool = False,
) -> Prepared:
    """Return new values, ready to be laid out as those of another matrix.

    Args:
        A: as Solver takes it.
        method: for which its entries are checked, too; None: they are not.
        dtype: of the solve.
        like: the pattern of the other matrix, which A must have.
        of_complex: the other matrix is complex.

    Raises:
        InvalidInputError: A cannot be solved, not in dtype, or its pattern is another one.
    """
    matrix = canonical_csr(A)
    if matrix.of_complex and not of_complex:
        raise MatrixError(
            "A is complex, but this Solver's matrix is real: pass the real part, or make the "
            "Solver with dtype=complex"
        )
    matrix = matrix.as_complex() if of_complex else matrix
    if Pattern.of(matrix).as_far_as(like) != like:  # zeros may be too many, or missing
        matrix = as_csr(matrix)
        like.require(Pattern.of(matrix).as_far_as(like))
    elif method:
        matrix.inspect()  # again: the caller may have changed what is in the arrays
    warnings = check_matrix(matrix, method) if method else []
    return Prepared(with_dtype(matrix, dtype), like, warnings).scaled()


def check_matrix(A: CsrMatrix, method: str) -> list[str]:
    """Raise MatrixError where a method cannot have A; return warnings."""
    return symmetry_warnings(check_input(A, method), A.of_complex)


def symmetry_warnings(asymmetry: float, of_complex: bool = False) -> list[str]:
    """Return a warning of a matrix that is this far from symmetric, none where it is symmetric."""
    if asymmetry == 0.0:
        return []
    kind = "Hermitian" if of_complex else "symmetric"
    return [
        f"A is {kind} only to within {asymmetry:.1e} of its diagonal, which is rounding: it is "
        f"treated as {kind}"
    ]


def with_dtype(A: CsrMatrix, dtype: npt.DTypeLike | None) -> CsrMatrix:
    """Return A with values of dtype, or of its parts where it is complex; None: as they are."""
    kind = A.dtype if dtype is None else parts_type(floating_or_complex(dtype))
    if kind == A.dtype:
        return A
    matrix = A.with_values(converted(A.data, kind))
    if ((matrix.to_scipy().diagonal() == 0) & (A.to_scipy().diagonal() != 0)).any():
        raise InvalidInputError(f"diagonal entries of A are too small for {kind}: use float64")
    return matrix


def converted(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return entries of A as float32 or float64; the same array where they are.

    Raises InvalidInputError where finite ones are too large for dtype.
    """
    if values.dtype == dtype:
        return values
    with np.errstate(over="ignore"):
        data = values.astype(dtype)
    if not np.isfinite(data).all() and np.isfinite(values).all():
        raise InvalidInputError(f"entries of A are too large for {dtype}: use float64")
    return data


def solve_dtype(A: Any, b: Any) -> type[np.float32] | type[np.float64]:
    """Return the common type of A and b, or of their parts: float32 only where both are no wider.

    That of A where b names a file: text has no type, and is read as float64.
    """
    if is_path(b):
        return np.float32 if A.dtype == np.float32 else np.float64
    narrow = A.dtype == np.float32 and dtype_name(b) in ("float32", "float16", "complex64")
    return np.float32 if narrow else np.float64
