"""Weighted graphs and the row operations that all generators share."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cpufree.errors import InvalidInputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]


def canonical(matrix: sp.sparray) -> sp.csr_array:
    """csr_array with float64 values and sorted int32 indices, without duplicate entries.

    Entries that happen to be zero stay: they belong to the stored pattern.
    """
    csr = sp.csr_array(matrix, dtype=np.float64)
    csr.sum_duplicates()
    csr.indptr = csr.indptr.astype(np.int32, copy=False)
    csr.indices = csr.indices.astype(np.int32, copy=False)
    return csr


def laplacian(
    nodes: int,
    tails: IntArray,
    heads: IntArray,
    conductance: FloatArray,
    grounding: FloatArray | None = None,
) -> sp.csr_array:
    """Weighted graph Laplacian, sum over edges of g (e_i - e_j)(e_i - e_j)^T, plus a diagonal.

    Args:
        tails, heads, conductance: one entry per edge, (edges,); each edge is listed once.
        grounding: (nodes,) conductances to ground, added to the diagonal; some entry of every
            connected component must be positive for the matrix to be positive definite.
    """
    diagonal = np.zeros(nodes) if grounding is None else grounding
    diagonal = diagonal + (
        np.bincount(tails, conductance, nodes) + np.bincount(heads, conductance, nodes)
    )
    everyone = np.arange(nodes, dtype=np.int32)
    rows = np.concatenate([tails, heads, everyone])
    columns = np.concatenate([heads, tails, everyone])
    values = np.concatenate([-conductance, -conductance, diagonal])
    return canonical(sp.coo_array((values, (rows, columns)), shape=(nodes, nodes)))


def grid_edges(shape: tuple[int, ...]) -> list[tuple[IntArray, IntArray]]:
    """Edges (tails, heads) between neighbours of a C-ordered grid, one pair per axis."""
    index = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    edges = []
    for axis in range(len(shape)):
        along = np.moveaxis(index, axis, 0)
        edges.append((along[:-1].ravel(), along[1:].ravel()))
    return edges


def permute(matrix: sp.csr_array, order: IntArray) -> sp.csr_array:
    """Symmetric permutation: row k of the result is row order[k] of `matrix`."""
    position = np.empty_like(order)
    position[order] = np.arange(len(order), dtype=order.dtype)
    rows = matrix[order]
    moved = sp.csr_array((rows.data, position[rows.indices], rows.indptr), shape=matrix.shape)
    moved.sort_indices()
    return canonical(moved)


def shuffled_blocks(rows: int, blocks: int, seed: int, *, within: bool = False) -> IntArray:
    """Permutation that shuffles `blocks` contiguous chunks, as a mesh generator numbers nodes.

    within=True also shuffles the rows inside each chunk.
    """
    rng = np.random.default_rng(seed)
    chunks = np.array_split(np.arange(rows, dtype=np.int32), blocks)
    sequence = rng.permutation(blocks)
    if within:
        return np.concatenate([rng.permutation(chunks[k]) for k in sequence])
    return np.concatenate([chunks[k] for k in sequence])


def submatrix(matrix: sp.csr_array, keep: BoolArray) -> sp.csr_array:
    """Rows and columns of `matrix` where keep, (rows,), is true; the others are removed."""
    kept = np.flatnonzero(keep)
    return canonical(matrix[kept][:, kept])


def largest_component(matrix: sp.csr_array) -> sp.csr_array:
    """Principal submatrix of the largest connected component.

    Pieces that a random geometry cut off from every support would be singular.
    """
    from scipy.sparse.csgraph import connected_components  # a heavy import

    count, label = connected_components(matrix, directed=False)
    if count == 1:
        return matrix
    return submatrix(matrix, label == np.bincount(label).argmax())


def clamp(matrix: sp.csr_array, fixed: BoolArray, penalty: float | None = None) -> sp.csr_array:
    """Hold the rows where fixed, (rows,), is true.

    penalty=None removes them; a number keeps each as a decoupled row with that diagonal, and
    overwrites values of `matrix` on the way (these matrices can fill half the memory).
    """
    if not fixed.any() or fixed.all():
        raise InvalidInputError(
            "these parameters hold no row or leave none free; choose larger sizes"
        )
    if penalty is None:
        return submatrix(matrix, ~fixed)
    row = np.repeat(np.arange(matrix.shape[0], dtype=np.int32), np.diff(matrix.indptr))
    on_diagonal = row == matrix.indices
    matrix.data[on_diagonal & fixed[row]] = penalty
    keep = on_diagonal | ~(fixed[row] | fixed[matrix.indices])
    entries = (matrix.data[keep], (row[keep], matrix.indices[keep]))
    return canonical(sp.coo_array(entries, shape=matrix.shape))
