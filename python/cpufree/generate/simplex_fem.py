"""Finite elements on simplices: element matrices and one assembly for all of them.

Every assembled matrix is symmetric to the bit: element matrices are computed symmetrically and
entry (i, j) adds the same elements in the same order as entry (j, i).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cpufree.generate.graph import FloatArray, IntArray, canonical

# A coefficient is a function of centroids (cells, d); it returns one value per cell.
Field = Callable[[FloatArray], FloatArray]
# Blocks (block, block, cells, nodes per cell, same) of the element matrices of some cells.
ElementMatrix = Callable[[IntArray], FloatArray]

# Edges of a tetrahedron as pairs of its vertices: the order of the midside nodes 4..9.
TET_EDGES = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))


def node_graph(
    nodes: int, cells: IntArray, *, chunk: int = 1_000_000
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Sorted CSR pattern (indptr, indices) of nodes that share a cell, diagonal included."""
    per_cell = cells.shape[1]
    graph = sp.csr_array((nodes, nodes), dtype=np.int8)
    for start in range(0, len(cells), chunk):
        some = cells[start : start + chunk]
        rows = np.repeat(some, per_cell, axis=1).ravel()
        columns = np.tile(some, (1, per_cell)).ravel()
        ones = np.ones(len(rows), dtype=np.bool_)
        part = sp.coo_array((ones, (rows, columns)), shape=(nodes, nodes)).tocsr()
        part = sp.csr_array(
            (np.ones(part.nnz, dtype=np.int8), part.indices, part.indptr), shape=part.shape
        )
        graph = graph + part
        graph.data[:] = 1
    graph.sort_indices()
    return graph.indptr, graph.indices


def assemble(
    nodes: int, cells: IntArray, element: ElementMatrix, *, block: int, chunk: int
) -> sp.csr_array:
    """Sum of the element matrices, (block * nodes) square, node-major.

    Args:
        cells: (cells, nodes per cell) node numbers.
        element: returns the element matrices of the cells it is given.
        chunk: cells handled at a time; bounds the memory for element matrices.
    """
    indptr, indices = node_graph(nodes, cells)
    entry_key = np.repeat(np.arange(nodes, dtype=np.int64) * nodes, np.diff(indptr)) + indices
    # Neighbouring cells together, so that a chunk touches a short stretch of the matrix.
    cells = cells[np.argsort(cells.min(axis=1), kind="stable")]
    blocks = np.zeros((len(indices), block, block))
    for start in range(0, len(cells), chunk):
        some = cells[start : start + chunk]
        wide = some.astype(np.int64)
        entry = np.searchsorted(entry_key, (wide[:, :, None] * nodes + wide[:, None]).ravel())
        first, last = int(entry.min()), int(entry.max()) + 1
        entry -= first
        matrices = element(some)
        for r in range(block):
            for c in range(block):
                summed = np.bincount(entry, matrices[r, c].ravel(), last - first)
                blocks[first:last, r, c] += summed
    del entry_key
    if block == 1:
        return canonical(sp.csr_array((blocks.ravel(), indices, indptr), shape=(nodes, nodes)))
    size = block * nodes
    return canonical(sp.bsr_array((blocks, indices, indptr), shape=(size, size)))


def p1_geometry(points: FloatArray, simplices: IntArray) -> tuple[FloatArray, FloatArray]:
    """Gradients (cells, d+1, d) of the linear shape functions and volumes (cells,)."""
    edges = points[simplices[:, 1:]] - points[simplices[:, :1]]
    dimension = points.shape[1]
    gradient = np.empty((len(simplices), dimension + 1, dimension))
    gradient[:, 1:] = np.swapaxes(np.linalg.inv(edges), 1, 2)
    gradient[:, 0] = -gradient[:, 1:].sum(axis=1)
    return gradient, np.abs(np.linalg.det(edges)) / (2 if dimension == 2 else 6)


def p1_scalar(
    points: FloatArray,
    simplices: IntArray,
    coefficient: Field | None = None,
    *,
    tensor: Field | None = None,
    stiffness: float = 1.0,
    mass: float = 0.0,
) -> sp.csr_array:
    """Linear elements for  stiffness int k grad u . grad v + mass int u v.

    k is `coefficient` (cells,) or `tensor` (cells, d, d), symmetric; 1 without either.
    """
    per_cell = simplices.shape[1]
    reference_mass = (np.ones((per_cell, per_cell)) + np.eye(per_cell)) / (
        per_cell * (per_cell + 1)
    )

    def element(cells: IntArray) -> FloatArray:
        gradient, volume = p1_geometry(points, cells)
        centroid = points[cells].mean(axis=1)
        flux = gradient
        if tensor is not None:
            flux = np.einsum("eij,eaj->eai", tensor(centroid), gradient)
        weight = volume * stiffness
        if coefficient is not None:
            weight = weight * coefficient(centroid)
        matrices = np.einsum("eai,ebi->eab", flux, gradient) * weight[:, None, None]
        if tensor is not None:
            matrices = (matrices + matrices.swapaxes(1, 2)) / 2
        matrices = matrices + mass * volume[:, None, None] * reference_mass
        return np.asarray(matrices[None, None])

    return assemble(len(points), simplices, element, block=1, chunk=500_000)


def add_elastic(
    total: FloatArray, gradient: FloatArray, weight: FloatArray, poisson_ratio: float
) -> None:
    """Add weight * (lambda div u div v + 2 mu eps(u) : eps(v)) for Young's modulus 1.

    total (3, 3, cells, a, a), gradient (cells, a, 3) at one quadrature point, weight (cells,).
    """
    nu = poisson_ratio
    lam, mu = nu / ((1 + nu) * (1 - 2 * nu)), 1 / (2 * (1 + nu))
    scaled = gradient * np.sqrt(weight)[:, None, None]
    row, column = scaled[:, :, None, :], scaled[:, None, :, :]
    dot = np.einsum("eai,ebi->eab", scaled, scaled)
    for r in range(3):
        for c in range(3):
            # Products first: this is what makes (a, r; b, c) equal (b, c; a, r) to the bit.
            total[r, c] += lam * (row[..., r] * column[..., c])
            total[r, c] += mu * (row[..., c] * column[..., r])
        total[r, r] += mu * dot


def p1_elasticity(
    points: FloatArray,
    tetrahedra: IntArray,
    young: Field | None = None,
    *,
    poisson_ratio: float = 0.25,
) -> sp.csr_array:
    """Linear tetrahedra, three displacements per node, node-major. young: per centroid, or 1."""

    def element(cells: IntArray) -> FloatArray:
        gradient, weight = p1_geometry(points, cells)
        if young is not None:
            weight = weight * young(points[cells].mean(axis=1))
        total = np.zeros((3, 3, len(cells), 4, 4))
        add_elastic(total, gradient, weight, poisson_ratio)
        return total

    return assemble(len(points), tetrahedra, element, block=3, chunk=100_000)


def with_midsides(points: FloatArray, tetrahedra: IntArray) -> tuple[FloatArray, IntArray]:
    """Ten-node mesh: the vertices 0..3 of each tetrahedron, then midsides as in TET_EDGES.

    Nodes are numbered slab by slab (40 slabs per unit length along the last, then the first
    axis), which spreads the two kinds of nodes over the whole matrix.
    """
    corners = len(points)
    ends = np.concatenate([np.sort(tetrahedra[:, list(edge)], axis=1) for edge in TET_EDGES])
    keys = ends[:, 0].astype(np.int64) * corners + ends[:, 1]
    edges, of_cell = np.unique(keys, return_inverse=True)
    midsides = (points[edges // corners] + points[edges % corners]) / 2
    middle = (corners + of_cell.reshape(len(TET_EDGES), -1).T).astype(np.int32)
    everything = np.concatenate([points, midsides])
    slab = (everything * 40).astype(int)
    order = np.lexsort((everything[:, 1], slab[:, 2], slab[:, 0]))
    number = np.empty(len(order), dtype=np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    return everything[order], number[np.concatenate([tetrahedra, middle], axis=1)]


def p2_elasticity(
    points: FloatArray, cells: IntArray, *, poisson_ratio: float = 0.3
) -> sp.csr_array:
    """Quadratic straight-sided tetrahedra (cells, 10) from with_midsides, Young's modulus 1.

    Four quadrature points of degree 2, which integrate the stiffness exactly. Source: Keast
    1986, "Moderate-degree tetrahedral quadrature formulas".
    """
    near, far = 0.5854101966249685, 0.1381966011250105

    def element(some: IntArray) -> FloatArray:
        corner_gradient, volume = p1_geometry(points, some[:, :4])
        total = np.zeros((3, 3, len(some), 10, 10))
        for q in range(4):
            bary = np.full(4, far)
            bary[q] = near
            at_corners = (4 * bary - 1)[None, :, None] * corner_gradient
            at_midsides = [
                4 * (bary[i] * corner_gradient[:, j] + bary[j] * corner_gradient[:, i])
                for i, j in TET_EDGES
            ]
            gradient = np.concatenate([at_corners, np.stack(at_midsides, axis=1)], axis=1)
            add_elastic(total, gradient, volume / 4, poisson_ratio)
        return total

    return assemble(len(points), cells, element, block=3, chunk=50_000)
