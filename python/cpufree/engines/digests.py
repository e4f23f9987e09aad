"""Digests: numbers that identify arrays, and patterns of matrices, without a copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cpufree.errors import MatrixError
from cpufree.extension import load_core
from cpufree.matrix.problem import CsrMatrix
from cpufree.text import counted


def digest(array: Any) -> int:
    """Return a number that arrays of other content are unlikely to have."""
    if array is None:
        return 0
    high, low = load_core().digest(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    return int(high) << 64 | int(low)


@dataclass(frozen=True)
class Pattern:
    """Where a matrix has entries."""

    rows: int
    nnz: int
    # Made at every set-up, for the pattern is not kept.
    digests: tuple[int, int] | None
    """Of indptr and indices; None: the engine knows the pattern, and the host does not."""

    @classmethod
    def of(cls, A: CsrMatrix) -> Pattern:
        """Return that of A."""
        return cls(A.shape[0], A.nnz, (digest(A.indptr), digest(A.indices)))

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers that patterns have in common only where they are the same."""
        return (self.rows, self.nnz, *(self.digests or ()))

    def as_far_as(self, other: Pattern) -> Pattern:
        """Return what another pattern knows, of this one."""
        return self if other.digests is not None else Pattern(self.rows, self.nnz, None)

    def require(self, other: Pattern) -> None:
        """Raise MatrixError unless another pattern is the same."""
        if other == self:
            return
        if other.rows != self.rows:
            found, known = counted(other.rows, "row"), counted(self.rows, "row")
            what = f"A has {found}, but this Solver's matrix has {known}"
        elif other.nnz != self.nnz:
            found, known = counted(other.nnz, "nonzero"), counted(self.nnz, "nonzero")
            what = f"A has {found}, but this Solver's matrix has {known}"
        else:
            what = "A has entries at other places than this Solver's matrix"
        raise MatrixError(
            f"{what}: update takes new values of the same pattern (store 0 where an entry has "
            "become 0); make a new Solver for another one"
        )
