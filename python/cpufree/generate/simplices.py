"""Meshes of triangles and tetrahedra: jittered lattices, Delaunay, body-centred cubic."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from cpufree.errors import InvalidInputError
from cpufree.generate.graph import BoolArray, FloatArray, IntArray

_NO_CELLS = "the mesh has no cell at this resolution; choose larger sizes"

Inside = Callable[[FloatArray], BoolArray]


def lattice(shape: tuple[int, ...]) -> FloatArray:
    """Integer grid points, (prod(shape), d), in C order."""
    axes = np.meshgrid(*[np.arange(s) for s in shape], indexing="ij")
    return np.stack(axes, axis=-1).reshape(-1, len(shape)).astype(np.float64)


def jittered_lattice(
    shape: tuple[int, ...], jitter: float, seed: int, inside: Inside | None = None
) -> FloatArray:
    """Grid points of about the unit cube, each moved by up to `jitter` spacings per axis.

    Points for which inside(points) is false are dropped.
    """
    points = lattice(shape)
    points += jitter * (2 * np.random.default_rng(seed).random(points.shape) - 1)
    points /= np.array(shape) - 1.0
    return points if inside is None else points[inside(points)]


def compact(points: FloatArray, simplices: IntArray) -> tuple[FloatArray, IntArray]:
    """Drop points that no simplex uses, and renumber."""
    if len(simplices) == 0:
        raise InvalidInputError(_NO_CELLS)
    used = np.unique(simplices)
    number = np.full(len(points), -1, dtype=np.int32)
    number[used] = np.arange(len(used), dtype=np.int32)
    return points[used], number[simplices]


def face_connected(simplices: IntArray) -> IntArray:
    """The largest set of simplices that hang together by whole faces (by edges in the plane).

    In such a body a displacement without strain is one rigid motion of the whole, so holding
    three nodes that are not in line makes an elasticity matrix positive definite. A tetrahedron
    that shared only an edge or a vertex with the rest could turn freely.
    """
    from scipy.sparse.csgraph import connected_components  # a heavy import

    cells, corners = simplices.shape
    ordered = np.sort(simplices, axis=1)
    faces = np.concatenate([np.delete(ordered, k, axis=1) for k in range(corners)])
    order = np.lexsort(faces.T)
    same = (faces[order[1:]] == faces[order[:-1]]).all(axis=1)
    one, other = order[1:][same] % cells, order[:-1][same] % cells
    ones = np.ones(len(one), dtype=np.int8)
    graph = sp.coo_array((ones, (one, other)), shape=(cells, cells))
    count, piece = connected_components(graph.tocsr(), directed=False)
    return simplices if count == 1 else simplices[piece == np.bincount(piece).argmax()]


def delaunay(
    points: FloatArray, longest_edge: float, inside: Inside | None = None
) -> tuple[FloatArray, IntArray]:
    """Delaunay mesh (points, simplices) without the cells that do not belong.

    Dropped are cells with an edge longer than longest_edge (across holes and along the convex
    hull), with their centroid outside, slivers below 1e-4 of the median volume, and whatever
    is then no longer joined to the rest by whole faces.
    """
    from scipy.spatial import Delaunay, QhullError  # a heavy import

    if len(points) < points.shape[1] + 2:
        raise InvalidInputError(
            f"the mesh has only {len(points)} points at this resolution; choose larger sizes"
        )
    try:
        simplices = Delaunay(points, qhull_options="Qbb Qc Qz Q12").simplices.astype(np.int32)
    except QhullError as error:
        raise InvalidInputError(
            "the points of the mesh lie in one plane; choose larger sizes"
        ) from error
    keep = np.ones(len(simplices), dtype=np.bool_)
    if inside is not None:
        keep &= inside(points[simplices].mean(axis=1))
    for a in range(points.shape[1] + 1):
        for b in range(a):
            edge = points[simplices[:, a]] - points[simplices[:, b]]
            keep &= np.square(edge).sum(axis=1) < longest_edge**2
    edges = points[simplices[:, 1:]] - points[simplices[:, :1]]
    volume = np.abs(np.linalg.det(edges))
    keep &= volume > 1e-4 * np.median(volume)
    if not keep.any():
        raise InvalidInputError(_NO_CELLS)
    return compact(points, face_connected(simplices[keep]))


def _octahedra(centres: IntArray, vertices: IntArray) -> IntArray:
    """Four tetrahedra around each line between the centres of two cubes that share a face."""
    cells = []
    for axis in range(3):
        along = np.moveaxis(centres, axis, 0)
        near, far = along[:-1].ravel(), along[1:].ravel()
        face = np.moveaxis(vertices, axis, 0)[1:-1]
        ring = [
            face[:, :-1, :-1].ravel(),
            face[:, 1:, :-1].ravel(),
            face[:, 1:, 1:].ravel(),
            face[:, :-1, 1:].ravel(),
        ]
        for k in range(4):
            cells.append(np.stack([near, far, ring[k], ring[(k + 1) % 4]], axis=1))
    return np.concatenate(cells)


def body_centred_mesh(
    shape: tuple[int, ...], seed: int, inside: Inside | None = None, jitter: float = 0.10
) -> tuple[FloatArray, IntArray]:
    """Tetrahedra of a body-centred cubic lattice with shape = cubes per axis, then jittered.

    Each inner point has 14 neighbours. Coordinates are divided by max(shape). Takes time
    proportional to the size (no Delaunay), so it serves the meshes of millions of points.
    Source: the lattice of Labelle and Shewchuk 2007, "Isosurface stuffing".
    """
    corner_shape = tuple(s + 1 for s in shape)
    vertices = np.arange(int(np.prod(corner_shape)), dtype=np.int32).reshape(corner_shape)
    centres = vertices.size + np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    points = np.concatenate([lattice(corner_shape), lattice(shape) + 0.5])
    scale = float(max(shape))
    kept = None if inside is None else inside(points / scale)
    # Slab by slab, from the places before the jitter.
    order = np.lexsort((points[:, 2], points[:, 1], points[:, 0])).astype(np.int32)
    points += jitter * (2 * np.random.default_rng(seed).random(points.shape) - 1)
    cells = _octahedra(centres, vertices)
    if kept is not None:
        cells = cells[kept[cells].all(axis=1)]
        if len(cells) == 0:
            raise InvalidInputError(_NO_CELLS)
        cells = face_connected(cells)
    position = np.empty_like(order)
    position[order] = np.arange(len(order), dtype=np.int32)
    return compact(points[order] / scale, position[cells])
