"""Conductance networks that are not grids: power delivery, a social graph, random points."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from cpufree.generate import checks
from cpufree.generate.graph import (
    FloatArray,
    IntArray,
    grid_edges,
    laplacian,
    permute,
    submatrix,
)

Edges = tuple[IntArray, IntArray, FloatArray]

# Conductances (siemens) and their shares, read off the value histogram of AMD/G2_circuit.
_PLANE = (58.8235, 29.41, 90.498, 168.067, 235.294), (0.76, 0.12, 0.06, 0.03, 0.03)
_CHAIN = (
    (5.34188, 0.548426, 1.011736, 0.427991, 0.632031, 1.047449, 0.326872),
    (0.24, 0.19, 0.13, 0.1, 0.1, 0.1, 0.14),
)
_VIA = (2.5, 2.0, 2.6667)
_VIA_TO_PLANE, _VIA_TO_CHAIN = 0.41, 0.82
_PAD = 21724.962


def _plane_edges(rng: np.random.Generator, width: int, height: int, first: int) -> list[Edges]:
    """Package plane: a grid whose rows and columns (stripes) draw one conductance each."""
    values, shares = _PLANE
    down, right = grid_edges((height, width))
    row_value = rng.choice(values, height - 1, p=shares)
    column_value = rng.choice(values, width - 1, p=shares)
    return [
        (down[0] + first, down[1] + first, row_value[down[0] // width]),
        (right[0] + first, right[1] + first, column_value[right[0] % width]),
    ]


def _chain_edges(
    rng: np.random.Generator, width: int, height: int, chains: int, length: int
) -> list[Edges]:
    """On-chip metal: straight chains, vias down to the plane and up to other chains."""
    values, shares = _CHAIN
    nodes = chains * length
    index = np.arange(nodes, dtype=np.int32).reshape(chains, length)
    metal = np.repeat(rng.choice(values, chains, p=shares), length - 1)
    plane_rows = np.sort(rng.integers(int(0.15 * height), int(0.85 * height), chains))
    plane_columns = np.arange(length) + (width - length) // 2
    below = (plane_rows[:, None] * width + plane_columns[None]).ravel().astype(np.int32)

    has_via = rng.random(nodes) < _VIA_TO_PLANE
    has_via.reshape(chains, length)[:, 0] = True  # no chain hangs loose
    via = np.flatnonzero(has_via).astype(np.int32)
    # The layer above: the node at the same place of a chain half the list further on.
    half = chains // 2 * length
    stacked = np.flatnonzero(rng.random(half) < _VIA_TO_CHAIN).astype(np.int32)
    via_values = rng.choice(_VIA, len(via) + len(stacked))
    return [
        (index[:, :-1].ravel(), index[:, 1:].ravel(), metal),
        (via, nodes + below[via], via_values[: len(via)]),
        (stacked, stacked + np.int32(half), via_values[len(via) :]),
    ]


def powergrid(
    width: int = 198,
    height: int = 478,
    chains: float = 0.586,
    pad_rows: float = 0.025,
    pad_width: float = 0.64,
    seed: int = 0,
) -> sp.csr_array:
    """Power delivery network: a stiff package plane under thin on-chip metal chains.

    The plane is a width x height grid near 59 S with stiffer stripes; chains of 0.3 to 5.3 S are
    tied to it and to one another by vias of 2 to 2.7 S; supply pads (21.7 kS to ground) cover
    pad_rows of the height in two blocks at its short ends, pad_width of the width. `chains` is
    chain nodes per plane node. Chains are numbered first, the plane last.

    Imitates AMD/G2_circuit (default: 150,002 rows, there 150,102) and, with 643 x 1555,
    AMD/G3_circuit; layers, value histogram and pad placement were read off G2_circuit. It
    differs in that chains are all straight, of one length and parallel. Rows about
    (1 + chains) width height, about 4.85 nonzeros per row, at least 2 and rarely above 9.
    """
    width = checks.whole("width", width, least=10)
    height = checks.whole("height", height, least=20)
    chains = checks.real("chains", chains, above=0.0, most=10.0)
    pad_rows = checks.real("pad_rows", pad_rows, above=0.0, most=0.5)
    pad_width = checks.real("pad_width", pad_width, above=0.0, most=1.0)
    seed = checks.whole("seed", seed, least=0)
    checks.check_size("powergrid", (1 + chains) * float(width) * height, 5)

    rng = np.random.default_rng(seed)
    length = max(8, int(0.9 * width))
    chain_count = int(chains * width * height) // length
    chain_nodes = chain_count * length
    plane = _plane_edges(rng, width, height, chain_nodes)
    edges = _chain_edges(rng, width, height, chain_count, length) + plane

    pads = np.zeros((height, width))
    rows = max(2, int(pad_rows * height / 2))
    margin = min(int((1 - pad_width) / 2 * width), (width - 1) // 2)
    pads[1 : 1 + rows, margin : width - margin] = _PAD
    pads[-1 - rows : -1, margin : width - margin] = _PAD
    tails, heads, values = (np.concatenate(part) for part in zip(*edges, strict=True))
    grounding = np.concatenate([np.zeros(chain_nodes), pads.ravel()])
    return laplacian(chain_nodes + width * height, tails, heads, values, grounding)


def social(
    n: int = 20000, degree: int = 8, exponent: float = 2.2, shift: float = 1e-3, seed: int = 0
) -> sp.csr_array:
    """Laplacian of a random power-law graph plus `shift` on the diagonal.

    n degree / 2 edges join a node drawn with probability proportional to
    rank^(-1/(exponent - 1)) to one drawn evenly; repeated edges and loops are dropped, and the
    numbering is random. Imitates no matrix of the collection: it is the hard case for load
    balance and communication volume (a row has up to thousands of nonzeros, no partition has
    a small cut). Rows n, nonzeros a little under (1 + degree) n.
    """
    n = checks.whole("n", n, least=2)
    degree = checks.whole("degree", degree)
    exponent = checks.real("exponent", exponent, above=1.0)
    shift = checks.real("shift", shift, above=0.0)
    seed = checks.whole("seed", seed, least=0)
    checks.check_size("social", float(n), 1.0 + degree)
    rng = np.random.default_rng(seed)
    popularity = np.arange(1, n + 1) ** (-1 / (exponent - 1))
    popularity /= popularity.sum()
    edges = n * degree // 2
    drawn = np.searchsorted(np.cumsum(popularity), rng.random(edges))
    hub = np.minimum(drawn, n - 1).astype(np.int64)  # the last cumulative sum may fall below 1
    other = rng.integers(0, n, edges)
    proper = hub != other
    low, high = np.minimum(hub, other)[proper], np.maximum(hub, other)[proper]
    key = np.unique(low * n + high)
    tails, heads = (key // n).astype(np.int32), (key % n).astype(np.int32)
    matrix = laplacian(n, tails, heads, np.ones(len(key)), np.full(n, shift))
    return permute(matrix, rng.permutation(n).astype(np.int32))


def delaunay3d(
    m: int = 24, jitter: float = 1.0, shuffle: bool = True, seed: int = 0
) -> sp.csr_array:
    """Conductances between Delaunay neighbours of random points in a cube, the outer layer held.

    A lattice of m^3 cells has a point in each, up to jitter / 2 of a spacing from the cell's
    centre along each axis: 1 puts it anywhere in the cell. The conductance of an edge of their
    Delaunay tetrahedra is 1 over its length, in spacings. Points of the outermost cells are held.
    shuffle numbers the rest at random, else they are numbered cell by cell.

    Imitates no matrix of the collection: it is the hard case for formats and locality (no two
    edges have the same value, rows of all lengths, no order). Rows (m - 2)^3, about 16
    nonzeros per row, 2 to 40. Takes a time that grows faster than its size (qhull): 500,000 rows
    some 30 s.
    """
    from scipy.spatial import Delaunay  # a heavy import

    m = checks.whole("m", m, least=4)
    jitter = checks.real("jitter", jitter, above=0.0, most=1.0)
    shuffle = checks.truth("shuffle", shuffle)
    seed = checks.whole("seed", seed, least=0)
    checks.check_size("delaunay3d", float(m) ** 3, 17)
    rng = np.random.default_rng(seed)
    cells = np.indices((m, m, m)).reshape(3, -1).T
    points = cells + 0.5 + jitter * (rng.random(cells.shape) - 0.5)
    starts, near = Delaunay(points).vertex_neighbor_vertices
    tails = np.repeat(np.arange(m**3, dtype=np.int32), np.diff(starts))
    once = tails < near
    tails, heads = tails[once], near[once].astype(np.int32)
    length = np.sqrt(np.square(points[tails] - points[heads]).sum(axis=1))
    free = np.all((cells > 0) & (cells < m - 1), axis=1)
    matrix = submatrix(laplacian(m**3, tails, heads, 1.0 / length), free)
    if not shuffle:
        return matrix
    return permute(matrix, rng.permutation(matrix.shape[0]).astype(np.int32))
