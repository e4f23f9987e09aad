"""What a partition costs in every product with the matrix, and what a better one may save."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cpufree.extension import load_core

if TYPE_CHECKING:
    from cpufree.matrix.problem import CsrMatrix

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

# Consecutive rows whose halo is this share of the rows leave nothing to gain.
GOOD_HALO_SHARE = 0.01
# Rows that are looked at to guess how many of them follow one with the same columns.
_SAMPLE = 512


@dataclass(frozen=True)
class PartitionReport:
    """What a partition costs.

    Per PE: `rows`, `nnz` (nonzeros), `ghosts` (distinct values received per exchange),
    `boundary_rows` (rows with a column of another PE), `neighbours` (PEs it exchanges with). In
    all: `edge_cut` (pairs of coupled rows on different PEs), `halo_values` (the sum of ghosts),
    `imbalance` (largest over mean nonzeros; 1 is perfect).
    """

    pes: int
    rows: tuple[int, ...]
    nnz: tuple[int, ...]
    ghosts: tuple[int, ...]
    boundary_rows: tuple[int, ...]
    neighbours: tuple[tuple[int, ...], ...]
    edge_cut: int
    halo_values: int
    imbalance: float


def report(A: CsrMatrix, part: Int32s, pes: int) -> PartitionReport:
    """Count what a partition costs, on all cores."""
    core = load_core()
    cost = core.partition_cost(A.indptr, A.indices, np.ascontiguousarray(part, np.int32), pes)
    traffic = np.array(cost["traffic"], np.int64).reshape(pes, pes)
    ghosts = traffic.sum(axis=1)
    most = max(cost["nnz"])
    return PartitionReport(
        pes=pes,
        rows=tuple(cost["rows"]),
        nnz=tuple(cost["nnz"]),
        ghosts=tuple(ghosts.tolist()),
        boundary_rows=tuple(cost["boundary_rows"]),
        neighbours=tuple(tuple(np.flatnonzero(row).tolist()) for row in traffic),
        edge_cut=int(cost["cut"]) // 2,
        halo_values=int(ghosts.sum()),
        imbalance=most * pes / A.nnz if A.nnz else 1.0,
    )


@dataclass(frozen=True)
class Gain:
    """What decides whether a search for a better partition pays: costs on the engine in use."""

    ghost_seconds: float
    """Of a PE in an iteration, for each value that it receives."""
    cut_seconds: float
    """Of a PE in an iteration, for each entry that reads such a value."""
    search_seconds: float
    """Of METIS, for each entry of the graph."""
    least_iterations: float
    """Iterations that are expected at least, however small the system is."""
    solves: int = 1
    expected: float | None = None
    """Iterations of one of them, where something is known of it."""
    order_seconds: float = 0.0
    """Of reverse Cuthill-McKee, for each entry."""
    far_seconds: float = math.inf
    """Of an iteration, at most, for each entry far from the diagonal."""

    def iterations(self, rows: int) -> float:
        """Return how many iterations are expected.

        As `expected`, times `solves`. Where nothing is known: conjugate gradients on second-order
        problems in two dimensions take some 2 sqrt(n) to reduce the residual by 1e-8, in three
        dimensions fewer; how hard this problem is, is not looked at.
        """
        guess = max(self.least_iterations, 2.0 * math.sqrt(rows))
        return self.solves * (guess if self.expected is None else self.expected)

    def order_pays(self, rows: int) -> bool:
        """Return whether bringing entries near the diagonal may save more time than it takes."""
        return self.far_seconds * self.iterations(rows) > self.order_seconds

    def most(self, plain: PartitionReport) -> float:
        """Return the seconds that no partition saves more than, by iterations as expected.

        The best one has no halo, and the PE with the largest one is waited for.
        """
        halo = self.of_halo(max(plain.ghosts), 2 * plain.edge_cut / plain.pes)
        return halo * self.iterations(sum(plain.rows))

    def of_halo(self, ghosts: float, cut: float) -> float:
        """Return the seconds of an iteration of a PE that the halo takes.

        Args:
            ghosts: values that the PE receives. cut: its entries that read them.
        """
        return ghosts * self.ghost_seconds + cut * self.cut_seconds

    def search(self, A: CsrMatrix) -> float:
        """Return the seconds that METIS is expected to take."""
        return graph_entries(A) * self.search_seconds


def graph_entries(A: CsrMatrix) -> float:
    """Return about how many entries the graph of A has once rows with the same columns are one.

    By a sample of rows: where a share of them follow one with the same columns, as many vertices
    are left out, and columns likewise.
    """
    n = A.shape[0]
    if n < 2:
        return float(A.nnz)
    rows = np.unique(np.linspace(1, n - 1, _SAMPLE).astype(np.int64))
    lengths = A.indptr[rows + 1] - A.indptr[rows]
    alike = rows[(lengths == A.indptr[rows] - A.indptr[rows - 1]) & (lengths > 0)]
    if not alike.size:
        return float(A.nnz)
    (before, starts), (own, _) = _columns_of(A, alike - 1), _columns_of(A, alike)
    twins = int(np.count_nonzero(np.logical_and.reduceat(before == own, starts)))
    return float(A.nnz) * (1.0 - twins / rows.size) ** 2


def _columns_of(A: CsrMatrix, rows: Int64s) -> tuple[Any, Int64s]:
    """Return the columns of some rows, row after row, and where each of them begins there."""
    lengths = A.indptr[rows + 1] - A.indptr[rows]
    starts = np.cumsum(lengths) - lengths
    skipped = np.repeat(A.indptr[rows] - starts, lengths)
    return A.indices[np.arange(skipped.size) + skipped], starts


@dataclass(frozen=True)
class Spread:
    """How far entries are from the diagonal, by a sample of rows: what a partition will cost."""

    rows: int
    reach: float
    """Rows between a row and its last column, on average."""
    crossings: float
    """Entries above the diagonal that a cut between two rows separates from it, on average."""
    graph_entries: float
    """As `graph_entries` returns it."""

    @classmethod
    def of(cls, A: CsrMatrix) -> Spread:
        """Return that of A, with sorted columns and a symmetric pattern."""
        n = A.shape[0]
        sample = (
            np.unique(np.linspace(0, n - 1, _SAMPLE).astype(np.int64))
            if n
            else np.empty(0, np.int64)
        )
        columns, starts = _columns_of(A, sample)
        own = np.repeat(sample, np.diff(starts, append=columns.size))
        above = np.maximum(columns - own, 0)
        last = starts + np.diff(starts, append=columns.size) - 1  # columns of a row increase
        reach = above[last[last >= starts]].sum()
        count = max(1, sample.size)
        return cls(n, float(reach) / count, float(above.sum()) / count, graph_entries(A))

    def ghosts(self, pes: int) -> float:
        """Return about how many values a PE receives that has PEs on both sides.

        Row i is read across a cut behind row k where i <= k < i + reach: by as many rows as the
        reach is on average, of all that there are on the side.
        """
        sides = min(2, pes - 1)
        return sides * min(self.reach, self.rows / pes)

    def cut(self, pes: int) -> float:
        """Return about how many entries of such a PE read values that it receives."""
        return min(2, pes - 1) * min(self.crossings, self.graph_entries / 2)
