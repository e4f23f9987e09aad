"""The graph of a matrix in which rows of one pattern are one vertex.

The unknowns of a node of a finite-element mesh have the same columns: as one vertex they make a
graph with a third of the vertices and a ninth of the edges where there are three of them (Ashcraft
1995, "Compressed graphs and the minimum degree algorithm").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cpufree.matrix.problem import CsrMatrix

Int64s = npt.NDArray[np.int64]

_AT_ONCE = 1 << 24  # entries that are worked on together: what is needed for them stays small


@dataclass(frozen=True)
class CompressedGraph:
    """An undirected graph without loops.

    `vertex[i]` is the vertex of row i, non-decreasing. The neighbours of vertex v are
    `neighbours[starts[v]:starts[v + 1]]`. `weights[v]` are the entries of its rows, at least 1.
    """

    vertex: Int64s
    starts: Int64s
    neighbours: Int64s
    weights: Int64s


def compress_graph(A: CsrMatrix, merge: bool = True) -> CompressedGraph:
    """Return the graph of A, n rows with sorted columns and a symmetric pattern.

    `merge` False: every row is a vertex.
    """
    n = A.shape[0]
    lengths = np.diff(A.indptr)
    twin = _as_the_row_before(A, lengths) if merge else np.zeros(n, np.bool_)
    vertex = np.cumsum(~twin) - 1
    first = np.flatnonzero(~twin)
    counts = np.zeros(first.size, np.int64)
    pieces = []
    for begin, end in _pieces(lengths[first]):
        rows = first[begin:end]
        of = lengths[rows]
        owner = np.repeat(np.arange(begin, end), of)
        # Entry k of the piece lies that far behind its place in A.
        skipped = np.repeat(A.indptr[rows] - (np.cumsum(of) - of), of)
        column = vertex[A.indices[np.arange(owner.size) + skipped]]
        new = np.ones(owner.size, np.bool_)
        new[1:] = (column[1:] != column[:-1]) | (owner[1:] != owner[:-1])
        new &= column != owner
        pieces.append(column[new])
        counts[begin:end] = np.bincount(owner[new] - begin, minlength=end - begin)
    # The sums are exact: nonzeros are far fewer than 2^53.
    weights = np.bincount(vertex, weights=lengths, minlength=first.size).astype(np.int64)
    return CompressedGraph(
        vertex=vertex if n else np.empty(0, np.int64),
        starts=np.concatenate(([0], np.cumsum(counts))),
        neighbours=np.concatenate(pieces) if pieces else np.empty(0, np.int64),
        weights=np.maximum(weights, 1),
    )


def _as_the_row_before(A: CsrMatrix, lengths: Int64s) -> npt.NDArray[np.bool_]:
    """Return whether each row has the columns of the one before it; by hashes of 64 bits."""
    n = A.shape[0]
    of_column = _scrambled(np.arange(1, n + 1, dtype=np.uint64))
    hashes = np.zeros(n, np.uint64)
    for begin, end in _pieces(lengths):
        rows = begin + np.flatnonzero(lengths[begin:end])
        if not rows.size:
            continue
        entries = of_column[A.indices[A.indptr[begin] : A.indptr[end]]]
        hashes[rows] = np.add.reduceat(entries, A.indptr[rows] - A.indptr[begin])
    same = np.zeros(n, np.bool_)
    same[1:] = (lengths[1:] == lengths[:-1]) & (hashes[1:] == hashes[:-1]) & (lengths[1:] > 0)
    return same


def _scrambled(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return 64 bits for each number that look random (SplitMix64, Steele et al. 2014)."""
    z = numbers * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _pieces(lengths: Int64s) -> list[tuple[int, int]]:
    """Cut a sequence of rows into runs of about _AT_ONCE entries."""
    before = np.concatenate(([0], np.cumsum(lengths)))
    goals = np.arange(_AT_ONCE, before[-1], _AT_ONCE)
    cuts = np.unique(np.concatenate(([0], np.searchsorted(before, goals), [lengths.size])))
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
