"""Elastic structures of tetrahedra: layered ground, and a machine part of quadratic elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from cpufree.generate import checks
from cpufree.generate.graph import BoolArray, FloatArray, clamp
from cpufree.generate.simplex_fem import p1_elasticity, p2_elasticity, with_midsides
from cpufree.generate.simplices import Inside, body_centred_mesh, delaunay, jittered_lattice


def geomech_tet(
    shape: Sequence[int] | int = (20, 20, 20),
    contrast: float = 100.0,
    seed: int = 0,
    penalty: float | None = None,
    mesh: str = "delaunay",
) -> sp.csr_array:
    """Ground in twenty layers of random stiffness, linear tetrahedra, bottom and two sides held.

    Moduli are contrast^(u - 1/2), u uniform per layer. mesh "delaunay" is irregular (shape =
    points per axis), "bcc" a lattice in linear time (shape = cubes per axis). penalty keeps the
    held nodes as decoupled rows with that diagonal.

    Imitates the tetrahedral models of the Janna group (reservoirs Bump_2911, Serena, Geo_1438
    and the steel hook Hook_1498), which also contain decoupled rows; their geometry is real
    and their meshes graded, this is a box.
    Rows about 3 abc (delaunay, 45 to 49 nonzeros per row, up to about 100) or 6 abc (bcc,
    41 to 44 per row, at most 45); held rows, about 3 abc (1/c + 2/a) of them, are removed
    without penalty.
    """
    sizes = checks.whole_shape("shape", shape, axes=3, least=3)
    contrast = checks.real("contrast", contrast, above=0.0)
    seed = checks.whole("seed", seed, least=0)
    if penalty is not None:
        penalty = checks.real("penalty", penalty, above=0.0)
    mesh = checks.choice("mesh", mesh, ("delaunay", "bcc"))
    nodes = float(np.prod([float(s) for s in sizes])) * (1 if mesh == "delaunay" else 2)
    checks.check_size("geomech_tet", 3 * nodes, 49)
    if mesh == "delaunay":
        lattice = jittered_lattice(sizes, 0.33, seed)
        points, tetrahedra = delaunay(lattice, 4.5 / min(sizes))
    else:
        points, tetrahedra = body_centred_mesh(sizes, seed)
        points = points * max(sizes) / np.array(sizes)
    layer = np.random.default_rng(seed + 1).random(20)

    def young(centroid: FloatArray) -> FloatArray:
        depth = np.clip((centroid[:, 2] * 20).astype(int), 0, 19)
        return np.asarray(contrast ** (layer[depth] - 0.5))

    near_x, near_z = 0.3 / sizes[0], 0.3 / sizes[2]
    x, z = points[:, 0], points[:, 2]
    held = np.repeat((z < near_z) | (x < near_x) | (x > 1 - near_x), 3)
    return clamp(p1_elasticity(points, tetrahedra, young), held, penalty)


def drilled_bar(seed: int) -> Inside:
    """Inside test of a bar of unit cross-section with ten drilled holes, (points, d) -> bool."""
    centres = np.random.default_rng(seed).random((10, 2))

    def inside(points: FloatArray) -> BoolArray:
        keep = np.ones(len(points), dtype=np.bool_)
        for centre in centres:
            keep &= np.square(points[:, :2] - centre).sum(axis=1) > 0.05**2
        return keep

    return inside


def crank_p2(shape: Sequence[int] | int = (30, 18, 10), seed: int = 0) -> sp.csr_array:
    """Bar with drilled holes, quadratic (ten-node) tetrahedra, irregular, one end held.

    shape is vertices per axis. Imitates GHS_psdef/audikw_1 and bmwcra_1 (crankshafts of cars):
    a heavy and very irregular matrix, since a vertex has several times the neighbours of a
    midside. Their geometry and grading are real, this is a bar. Rows about 23 abc, 82 to 87
    nonzeros per row, from about 12 to about 570 in a row.
    """
    sizes = checks.whole_shape("shape", shape, axes=3, least=4)
    seed = checks.whole("seed", seed, least=0)
    nodes = float(np.prod([float(s) for s in sizes]))
    checks.check_size("crank_p2", 23 * nodes, 87)
    inside = drilled_bar(seed)
    lattice = jittered_lattice(sizes, 0.36, seed, inside)
    points, tetrahedra = delaunay(lattice, 4.5 / min(sizes), inside)
    points = points * np.array(sizes) / sizes[0]
    points, cells = with_midsides(points, tetrahedra)
    held = np.repeat(points[:, 0] < 0.6 / sizes[0], 3)
    return clamp(p2_elasticity(points, cells), held)
