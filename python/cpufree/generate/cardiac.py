"""The two ventricles of a heart with fibres, scalar diffusion on tetrahedra."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from cpufree.generate import checks
from cpufree.generate.graph import BoolArray, FloatArray, clamp, permute, shuffled_blocks
from cpufree.generate.simplex_fem import p1_scalar
from cpufree.generate.simplices import body_centred_mesh, delaunay, jittered_lattice

_ACROSS = 0.11  # conductivity across the fibres; along them it is 1


def _ellipsoid(
    points: FloatArray,
    centre: tuple[float, float, float],
    axes: tuple[float, float, float],
    shrink: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> BoolArray:
    x, y, z = ((points[..., d] - centre[d]) / axes[d] / shrink[d] for d in range(3))
    return np.asarray(x * x + y * y + z * z < 1)


def inside_heart(points: FloatArray) -> BoolArray:
    """Whether points (..., 3) of the unit cube lie in the muscle.

    The left ventricle is a thick ellipsoid cut at the top, the right one a thinner crescent
    beside it.
    """
    left, left_axes = (0.42, 0.5, 0.98), (0.34, 0.34, 0.95)
    right, right_axes = (0.62, 0.5, 0.98), (0.36, 0.38, 0.80)
    left_outer = _ellipsoid(points, left, left_axes)
    left_cavity = _ellipsoid(points, left, left_axes, (0.62, 0.62, 0.78))
    right_outer = _ellipsoid(points, right, right_axes)
    right_cavity = _ellipsoid(points, right, right_axes, (0.84, 0.84, 0.90))
    muscle = (left_outer & ~left_cavity) | (right_outer & ~right_cavity & ~left_outer)
    return np.asarray(muscle & (points[..., 2] < 0.98))


def fibre_tensor(points: FloatArray) -> FloatArray:
    """Conductivity tensors (n, 3, 3) at points (n, 3): 1 along the fibre, 0.11 across.

    Fibres run around the axis of the left ventricle at an angle that turns with height.
    """
    around = np.arctan2(points[:, 1] - 0.5, points[:, 0] - 0.42)
    pitch = np.pi / 3 * np.sin(6 * points[:, 2])
    fibre = np.stack(
        [-np.sin(around) * np.cos(pitch), np.cos(around) * np.cos(pitch), np.sin(pitch)], axis=1
    )
    along = (1 - _ACROSS) * fibre[:, :, None] * fibre[:, None, :]
    return np.asarray(np.eye(3)[None] * _ACROSS + along)


def heart(
    m: int = 40,
    seed: int = 0,
    kind: str = "monodomain",
    numbering: str = "shuffle",
    dt: float = 0.1,
    mesh: str = "delaunay",
) -> sp.csr_array:
    """Spread of excitation in a heart of two ventricles with fibres, linear tetrahedra.

    kind "monodomain": M + 0.01 dt K, a time step, well conditioned; "laplace": K alone with a
    patch at the apex held. numbering "shuffle" mixes chunks of 500 rows and the rows within
    them, "random" mixes all, "mesh" keeps the lattice order. mesh "delaunay" is irregular,
    "bcc" a lattice in linear time. m is points (or cubes) per unit length.

    Imitates the irregular tetrahedral heart meshes of the electrophysiology literature (no
    matrix of the collection); an ellipsoid and a crescent stand for the anatomy. Rows about
    0.2 m^3 (delaunay; 15 to 16 nonzeros per row, 5 to about 30) or 0.4 m^3 (bcc; 12 to 15 per
    row, at most 15).
    """
    m = checks.whole("m", m, least=8)
    seed = checks.whole("seed", seed, least=0)
    kind = checks.choice("kind", kind, ("monodomain", "laplace"))
    numbering = checks.choice("numbering", numbering, ("shuffle", "random", "mesh"))
    dt = checks.real("dt", dt, above=0.0)
    mesh = checks.choice("mesh", mesh, ("delaunay", "bcc"))
    checks.check_size("heart", (0.2 if mesh == "delaunay" else 0.4) * float(m) ** 3, 16)
    if mesh == "delaunay":
        lattice = jittered_lattice((m, m, m), 0.33, seed, inside_heart)
        points, tetrahedra = delaunay(lattice, 4.0 / m, inside_heart)
    else:
        points, tetrahedra = body_centred_mesh((m, m, m), seed, inside_heart)
    if kind == "monodomain":
        scale = dt * 1e-2
        matrix = p1_scalar(points, tetrahedra, tensor=fibre_tensor, stiffness=scale, mass=1.0)
    else:
        apex = points[:, 2] < points[:, 2].min() + 1.5 / m
        matrix = clamp(p1_scalar(points, tetrahedra, tensor=fibre_tensor), apex)
    rows = matrix.shape[0]
    if numbering == "shuffle":
        blocks = max(1, rows // 500)
        return permute(matrix, shuffled_blocks(rows, blocks, seed, within=True))
    if numbering == "random":
        return permute(matrix, np.random.default_rng(seed).permutation(rows).astype(np.int32))
    return matrix
