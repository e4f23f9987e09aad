"""The halos of a matrix, as patterns of messages that `cpufree model measure` exchanges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def halos_of(matrix: str) -> Callable[[int], tuple[int, ...]]:
    """Return what gives the bytes from PE p to PE q, at [p * PEs + q], for a number of PEs.

    Rows are partitioned as for a solve, and an entry of a vector takes 8 bytes.
    """
    from cpufree.matrix.load import as_csr, load_matrix
    from cpufree.partition.methods import partition

    A = as_csr(load_matrix(matrix))

    def table(pes: int) -> tuple[int, ...]:
        part = partition(A, pes, "auto").part
        rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
        mine, others = np.asarray(part)[rows], np.asarray(part)[A.indices]
        far = mine != others
        # Each PE gets a value once, however many of its rows read it.
        wanted = np.unique(np.stack([mine[far], A.indices[far]]), axis=1)
        edges = np.asarray(part)[wanted[1]] * pes + wanted[0]
        return tuple(8 * int(n) for n in np.bincount(edges, minlength=pes * pes))

    return table
