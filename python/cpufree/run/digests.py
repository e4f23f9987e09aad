"""Digests: numbers by which arrays, and patterns of matrices, are told apart without a copy."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..problem import CsrMatrix


def digest(array: Any) -> int:
    """Return a number that arrays of other content are unlikely to have."""
    return 0 if array is None else zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data)


@dataclass(frozen=True)
class Pattern:
    """Where a matrix has entries."""

    rows: int
    nnz: int
    digests: tuple[int, int]
    """Of indptr and indices."""

    @classmethod
    def of(cls, A: CsrMatrix) -> Pattern:
        """Return that of A."""
        return cls(A.shape[0], A.nnz, (digest(A.indptr), digest(A.indices)))
