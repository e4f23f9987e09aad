"""Trilinear hexahedra: element stiffness of equal bricks, and of those with moved corners."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from cpufree.generate.graph import FloatArray

# Corners of a voxel as (z, y, x) offsets, x fastest: the local node numbering.
CORNERS = list(product((0, 1), repeat=3))


def _lame(poisson_ratio: float) -> tuple[float, float]:
    """Lamé's lambda and mu for Young's modulus 1."""
    nu = poisson_ratio
    return nu / ((1 + nu) * (1 - 2 * nu)), 1 / (2 * (1 + nu))


def _slopes() -> Iterator[FloatArray]:
    """Derivatives (3, 8) of the shape functions, times 8, by x, y and z in [-1, 1]^3.

    At each of the 2 x 2 x 2 Gauss points, whose weights are 1.
    """
    sign = np.array([[i, j, k] for k, j, i in CORNERS]) * 2 - 1.0  # (8, 3), x y z
    for a, b, c in product(np.array([-1.0, 1.0]) / np.sqrt(3), repeat=3):
        fx, fy, fz = 1 + sign[:, 0] * a, 1 + sign[:, 1] * b, 1 + sign[:, 2] * c
        yield np.stack([sign[:, 0] * fy * fz, fx * sign[:, 1] * fz, fx * fy * sign[:, 2]])


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
    lam, mu = _lame(poisson_ratio)
    material = np.diag([mu] * 6)
    material[:3, :3] = lam
    material[range(3), range(3)] = lam + 2 * mu
    scale = np.array(spacing)[:, None]
    stiffness = np.zeros((24, 24))
    for slopes in _slopes():
        strain = _strain_matrix(slopes / 8 * 2 / scale)
        stiffness += strain.T @ material @ strain * np.prod(spacing) / 8
    return (stiffness + stiffness.T) / 2


def jittered_nodes(
    shape: tuple[int, ...], spacing: tuple[float, float, float], jitter: float, seed: int
) -> FloatArray:
    """Coordinates (*shape, 3) of the nodes of a grid, shape (z, y, x), each moved at random.

    By up to `jitter` spacings along each axis, evenly distributed. Below 1/6 every hexahedron stays
    valid: a node's move changes the Jacobian, which is the unit matrix in spacings, by entries of
    at most 2 jitter, so that rows stay diagonally dominant and the determinant positive.
    """
    z, y, x = np.meshgrid(*[np.arange(n) for n in shape], indexing="ij")
    points = np.stack([x, y, z], axis=-1).astype(np.float64)
    points += jitter * (2 * np.random.default_rng([seed, len(shape)]).random(points.shape) - 1)
    return np.asarray(points * np.array(spacing))


def hexahedra_stiffness(corners: FloatArray, poisson_ratio: float = 0.3) -> FloatArray:
    """Element stiffness (3, 3, cells, 8, 8) of trilinear hexahedra with Young's modulus 1.

    corners (cells, 8, 3) are x, y, z of the nodes as in CORNERS. Entry [r, c, e, a, b] couples
    component r of node a with component c of node b, and is that of [c, r, e, b, a] to the bit.
    2 x 2 x 2 Gauss points. Source: Hughes 1987, "The Finite Element Method", chapter 3.
    """
    lam, mu = _lame(poisson_ratio)
    scaled = []  # gradients times the root of the volume at each Gauss point
    for slopes in _slopes():
        jacobian = slopes / 8 @ corners  # (cells, 3, 3): d(x, y, z) by the local coordinates
        gradient = np.linalg.solve(jacobian, np.broadcast_to(slopes / 8, (len(corners), 3, 8)))
        scaled.append(gradient * np.sqrt(np.linalg.det(jacobian))[:, None, None])
    moves = np.stack(scaled, axis=-1)  # (cells, 3, 8, Gauss points)
    products = np.empty((3, 3, len(corners), 8, 8))
    for r in range(3):
        for c in range(r, 3):
            found = moves[:, r] @ moves[:, c].swapaxes(1, 2)
            # The library may round the two halves of a symmetric product differently.
            products[r, c] = found if r != c else (found + found.swapaxes(1, 2)) / 2
            products[c, r] = products[r, c].swapaxes(1, 2)
    stiffness = np.asarray(lam * products + mu * products.swapaxes(0, 1))
    trace = mu * np.einsum("rrcab->cab", products)
    for r in range(3):
        stiffness[r, r] += trace
    return stiffness
