"""The check of a solution that is made apart from the solver that found it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cpufree.extension import load_core
from cpufree.matrix.problem import CsrMatrix
from cpufree.matrix.vector import as_parts
from cpufree.solvers.result import Reason, Result

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Norms of residuals are rounded, too: this much more than the tolerance does not contradict it.
ROUNDING = 1.01
# Entries whose products are formed at a time: 16 MiB each in extended precision.
ENTRIES = 1 << 20


@dataclass(frozen=True)
class AnswerCheck:
    """The norm of b - A x, computed without the solver."""

    double: float
    """In double precision, by all cores."""
    extended: float | None = None
    """In extended precision; None where `double` is within the tolerance."""

    @property
    def norm(self) -> float:
        """The better one."""
        return self.double if self.extended is None else self.extended


def check_answer(
    matrix: CsrMatrix, b: NDArray[Any], x: NDArray[Any], tolerance: float
) -> AnswerCheck:
    """Return the norm of b - A x, which may be complex, A in the type of x.

    Plain sums over long rows may round by more than the tolerance. Where this residual is above,
    the sums are taken again in extended precision.
    """
    b, x = as_parts(b), as_parts(x)
    kind = x.dtype
    b, x = (np.ascontiguousarray(vector, dtype=np.float64) for vector in (b, x))
    values = matrix.data.astype(kind, copy=False)
    exact = CsrMatrix.well_formed(matrix.indptr, matrix.indices, values)
    norm = load_core().residual_norm(exact.indptr, exact.indices, exact.data, b, x)
    return AnswerCheck(norm, extended_norm(exact, b, x) if norm > tolerance else None)


def extended_norm(A: CsrMatrix, b: NDArray[np.float64], x: NDArray[np.float64]) -> float:
    """Return the norm of b - A x; products and sums in NumPy's longdouble."""
    rows, begin = len(b), A.indptr.astype(np.int64)
    squares = []
    row = 0
    while row < rows:
        # As many rows as have ENTRIES entries, and one at least.
        end = int(np.searchsorted(begin, begin[row] + ENTRIES, side="right")) - 1
        end = min(rows, max(end, row + 1))
        part = slice(begin[row], begin[end])
        products = A.data[part].astype(np.longdouble) * x[A.indices[part]]
        # Rows without entries have no sum of their own.
        lengths = np.diff(begin[row : end + 1])
        sums = np.zeros(end - row, np.longdouble)
        if products.size:
            starts = (begin[row:end] - begin[row])[lengths > 0]
            sums[lengths > 0] = np.add.reduceat(products, starts)
        rest = b[row:end] - sums
        squares.append(rest @ rest)
        row = end
    return float(np.sqrt(sum(squares, np.longdouble(0))))


def judged(result: Result, check: AnswerCheck | None, tolerance: float) -> Result:
    """Return the result, not converged where the check contradicts it, or finds no number."""
    if check is None or not result.converged or check.norm <= ROUNDING * tolerance:
        return result
    text = (
        f"the solver found {result.true_residual:.3e} for the residual of x, the check of the "
        f"answer {check.norm:.3e}, above the tolerance {tolerance:.3e}"
    )
    return dataclasses.replace(
        result,
        converged=False,
        reason=Reason.UNCONFIRMED,
        warnings=(*result.warnings, text),
    )
