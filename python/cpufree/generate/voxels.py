"""Linear elasticity on a grid of hexahedra (voxels), some of which may be void."""

from __future__ import annotations

from itertools import product

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cpufree.errors import InvalidInputError
from cpufree.generate.graph import BoolArray, FloatArray, canonical
from cpufree.generate.hexahedra import CORNERS, hex8_stiffness, hexahedra_stiffness, jittered_nodes
from cpufree.generate.positions import keep

IntArray64 = NDArray[np.int64]

# Neighbours of a node as (z, y, x) offsets; number 13 is the node itself.
OFFSETS = list(product((-1, 0, 1), repeat=3))
_SELF = OFFSETS.index((0, 0, 0))
_CELLS = 4096  # voxels whose element matrices are made at a time: they stay in caches


class VoxelNodes:
    """The kept nodes of a voxel grid and who is coupled to whom.

    Attributes:
        number: of each node of the grid among the kept ones, -1 where it is not kept.
        modulus: (kept, 8) Young's modulus of the voxel of which the node is corner 0..7.
        free: (kept,) whether the node moves.
        coupled: (kept, 27) whether the neighbour at OFFSETS[o] shares a solid voxel, both free.
        neighbour: (kept, 27) its number among the kept nodes where coupled.
    """

    def __init__(self, young: FloatArray, fixed: BoolArray, *, keep_fixed: bool) -> None:
        shape = fixed.shape
        padded = np.pad(young, 1)
        around = [
            padded[tuple(slice(1 - c, 1 - c + n) for c, n in zip(corner, shape, strict=True))]
            for corner in CORNERS
        ]  # 8 views of the shape of the nodes
        used = np.logical_or.reduce([voxel > 0 for voxel in around])
        if not (used & ~fixed).any():
            raise InvalidInputError("these parameters leave no free node; choose larger sizes")
        kept = used if keep_fixed else used & ~fixed
        self.modulus = np.stack([voxel[kept] for voxel in around], axis=1)
        self.free = ~fixed[kept]
        self._couple(kept)

    def _couple(self, kept: BoolArray) -> None:
        count = int(kept.sum())
        number = np.full(np.array(kept.shape) + 2, -1, dtype=np.int32)
        number[1:-1, 1:-1, 1:-1][kept] = np.arange(count, dtype=np.int32)
        self.number = number[1:-1, 1:-1, 1:-1]
        place = np.argwhere(kept) + 1
        self.coupled = np.zeros((count, 27), dtype=np.bool_)
        self.neighbour = np.zeros((count, 27), dtype=np.int32)
        for o, offset in enumerate(OFFSETS):
            there = number[tuple((place + offset).T)]
            solid = [self.modulus[:, a] > 0 for a, _ in corner_pairs(offset)]
            both_free = self.free & self.free[there]
            self.coupled[:, o] = (there >= 0) & both_free & np.logical_or.reduce(solid)
            self.neighbour[:, o] = there
        self.coupled[:, _SELF] = True

    @property
    def rows(self) -> int:
        return 3 * len(self.free)

    @property
    def nnz(self) -> int:
        """Stored entries: every coupled pair of nodes holds a full 3 x 3 block."""
        return 9 * int(self.coupled.sum())


def held_piece(young: FloatArray, support: tuple[int | slice, ...]) -> FloatArray:
    """The largest piece of solid voxels, joined face to face, with a voxel in young[support].

    A voxel that touches the rest in an edge or a corner only could turn freely, and a piece
    away from the support could move: either would make the matrix singular.
    """
    from scipy.ndimage import label  # a heavy import

    piece, _ = label(young > 0)
    held = np.unique(piece[support])
    held = held[held > 0]
    if len(held) == 0:
        raise InvalidInputError("these parameters leave nothing solid where the body is held")
    size = np.bincount(piece.ravel())
    return np.where(piece == held[np.argmax(size[held])], young, 0.0)


def corner_pairs(offset: tuple[int, ...]) -> list[tuple[int, int]]:
    """Pairs (a, b) of corner numbers with CORNERS[b] - CORNERS[a] == offset."""
    pairs = []
    for a, corner in enumerate(CORNERS):
        other = tuple(c + d for c, d in zip(corner, offset, strict=True))
        if other in CORNERS:
            pairs.append((a, CORNERS.index(other)))
    return pairs


def voxel_elasticity(
    young: FloatArray,
    fixed: BoolArray,
    *,
    poisson_ratio: float = 0.3,
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0),
    penalty: float | None = None,
    jitter: float = 0.0,
    seed: int = 0,
) -> sp.csr_array:
    """Stiffness matrix of a voxel structure, three displacements per node, node-major.

    Args:
        young: (ez, ey, ex) Young's modulus per voxel, 0 where void.
        fixed: (ez+1, ey+1, ex+1) nodes that are held.
        penalty: None removes held nodes; a number keeps them as decoupled rows with that
            diagonal (and six stored zeros beside it, as every pair of nodes stores 3 x 3).
        jitter: nodes are moved at random, by up to this many spacings along each axis. The
            stored entries are the same; at 0 equal voxels have equal values.
        seed: of the jitter.
    """
    nodes = VoxelNodes(young, fixed, keep_fixed=penalty is not None)
    there = nodes.number >= 0
    keep(lambda: jittered_nodes(fixed.shape, spacing, jitter, seed)[there])
    starts = np.concatenate([[0], np.cumsum(nodes.coupled.sum(axis=1))]).astype(np.int64)
    if jitter == 0:
        blocks = _equal_voxels(nodes, starts, hex8_stiffness(poisson_ratio, spacing))
    else:
        points = jittered_nodes(fixed.shape, spacing, jitter, seed)
        blocks = _jittered_voxels(nodes, starts, young, points, poisson_ratio)
    if penalty is not None:
        diagonal = starts[:-1] + nodes.coupled[:, :_SELF].sum(axis=1)
        blocks[diagonal[~nodes.free]] = np.eye(3) * penalty
    columns: NDArray[np.int32] = nodes.neighbour[nodes.coupled]
    shape = (nodes.rows, nodes.rows)
    del nodes
    return canonical(sp.bsr_array((blocks, columns, starts), shape=shape))


def _equal_voxels(nodes: VoxelNodes, starts: IntArray64, element: FloatArray) -> FloatArray:
    """The 3 x 3 blocks of all coupled pairs of nodes, where all voxels are of one shape."""
    element = element.reshape(8, 3, 8, 3)
    blocks = np.empty((int(starts[-1]), 3, 3))
    place = starts[:-1].copy()
    for o, offset in enumerate(OFFSETS):
        rows = np.flatnonzero(nodes.coupled[:, o])
        # Summed in the order of the corners, so that (i, j) and (j, i) round alike.
        total = np.zeros((len(rows), 3, 3))
        for a, b in corner_pairs(offset):
            total += nodes.modulus[rows, a, None, None] * element[a, :, b, :]
        blocks[place[rows]] = total
        place[rows] += 1
    return blocks


def _jittered_voxels(
    nodes: VoxelNodes,
    starts: IntArray64,
    young: FloatArray,
    points: FloatArray,
    poisson_ratio: float,
) -> FloatArray:
    """The same, where each voxel has a shape of its own: that of its corners, `points`."""
    blocks = np.zeros((int(starts[-1]), 3, 3))
    rank = np.cumsum(nodes.coupled, axis=1, dtype=np.int8) - 1
    solid = np.argwhere(young > 0)
    for begin in range(0, len(solid), _CELLS):
        cells = solid[begin : begin + _CELLS]
        corners = [tuple((cells + corner).T) for corner in CORNERS]
        at = np.stack([points[corner] for corner in corners], axis=1)
        stiffness = hexahedra_stiffness(at, poisson_ratio)
        stiffness *= young[tuple(cells.T)][:, None, None]
        # Backwards over the first corner, each entry adds its voxels in their order: entries
        # (i, j) and (j, i) round alike.
        for a, b in product(range(7, -1, -1), range(8)):
            o = OFFSETS.index(tuple(np.subtract(CORNERS[b], CORNERS[a])))
            row = nodes.number[corners[a]]
            there = (row >= 0) & nodes.coupled[row, o]
            row = row[there]
            blocks[starts[row] + rank[row, o]] += np.moveaxis(stiffness[:, :, there, a, b], 2, 0)
    return blocks
