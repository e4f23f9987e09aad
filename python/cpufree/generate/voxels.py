"""Linear elasticity on a grid of equal hexahedra (voxels), some of which may be void."""

from __future__ import annotations

from itertools import product

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cpufree.errors import InvalidInputError
from cpufree.generate.graph import BoolArray, FloatArray, canonical

# Corners of a voxel as (z, y, x) offsets, x fastest: the local node numbering.
CORNERS = list(product((0, 1), repeat=3))
# Neighbours of a node as (z, y, x) offsets; number 13 is the node itself.
OFFSETS = list(product((-1, 0, 1), repeat=3))
_SELF = OFFSETS.index((0, 0, 0))


def _strain_matrix(gradient: FloatArray) -> FloatArray:
    """Strain from displacements in Voigt order, (6, 24); gradient (3, 8) of shape functions."""
    strain = np.zeros((6, 24))
    dx, dy, dz = gradient
    strain[0, 0::3], strain[1, 1::3], strain[2, 2::3] = dx, dy, dz
    strain[3, 0::3], strain[3, 1::3] = dy, dx
    strain[4, 1::3], strain[4, 2::3] = dz, dy
    strain[5, 0::3], strain[5, 2::3] = dz, dx
    return strain


def hex8_stiffness(
    poisson_ratio: float = 0.3, spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
) -> FloatArray:
    """Element stiffness (24, 24) of a trilinear brick with Young's modulus 1.

    Rows are node-major (node, then x, y, z) with nodes as in CORNERS; 2 x 2 x 2 Gauss points,
    which integrate the bilinear form exactly. spacing = (hx, hy, hz). Its null space is the six
    rigid body motions. Source: Hughes 1987, "The Finite Element Method", chapter 3.
    """
    nu = poisson_ratio
    lam, mu = nu / ((1 + nu) * (1 - 2 * nu)), 1 / (2 * (1 + nu))
    material = np.diag([mu] * 6)
    material[:3, :3] = lam
    material[range(3), range(3)] = lam + 2 * mu
    sign = np.array([[i, j, k] for k, j, i in CORNERS]) * 2 - 1.0  # (8, 3), x y z
    scale = np.array(spacing)[:, None]
    stiffness = np.zeros((24, 24))
    for a, b, c in product(np.array([-1.0, 1.0]) / np.sqrt(3), repeat=3):
        fx, fy, fz = 1 + sign[:, 0] * a, 1 + sign[:, 1] * b, 1 + sign[:, 2] * c
        slopes = np.stack([sign[:, 0] * fy * fz, fx * sign[:, 1] * fz, fx * fy * sign[:, 2]])
        strain = _strain_matrix(slopes / 8 * 2 / scale)
        stiffness += strain.T @ material @ strain * np.prod(spacing) / 8
    return (stiffness + stiffness.T) / 2


class VoxelNodes:
    """The kept nodes of a voxel grid and who is coupled to whom.

    Attributes:
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
) -> sp.csr_array:
    """Stiffness matrix of a voxel structure, three displacements per node, node-major.

    Args:
        young: (ez, ey, ex) Young's modulus per voxel, 0 where void.
        fixed: (ez+1, ey+1, ex+1) nodes that are held.
        penalty: None removes held nodes; a number keeps them as decoupled rows with that
            diagonal (and six stored zeros beside it, as every pair of nodes stores 3 x 3).
    """
    nodes = VoxelNodes(young, fixed, keep_fixed=penalty is not None)
    element = hex8_stiffness(poisson_ratio, spacing).reshape(8, 3, 8, 3)
    starts = np.concatenate([[0], np.cumsum(nodes.coupled.sum(axis=1))]).astype(np.int64)
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
    if penalty is not None:
        diagonal = starts[:-1] + nodes.coupled[:, :_SELF].sum(axis=1)
        blocks[diagonal[~nodes.free]] = np.eye(3) * penalty
    columns: NDArray[np.int32] = nodes.neighbour[nodes.coupled]
    shape = (nodes.rows, nodes.rows)
    del nodes
    return canonical(sp.bsr_array((blocks, columns, starts), shape=shape))
