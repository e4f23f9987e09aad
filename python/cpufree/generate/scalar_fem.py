"""Scalar problems on unstructured meshes: heat in a plate, flow in a random aquifer."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from cpufree.generate import checks
from cpufree.generate.graph import BoolArray, FloatArray, clamp, permute, shuffled_blocks
from cpufree.generate.simplex_fem import p1_scalar
from cpufree.generate.simplices import body_centred_mesh, delaunay, jittered_lattice


def thermal2d(
    m: int = 100,
    seed: int = 0,
    holes: int = 12,
    contrast: float = 30.0,
    shuffle: bool = True,
    kind: str = "conductivity",
) -> sp.csr_array:
    """Heat conduction in a plate with round holes, irregular linear triangles.

    kind="conductivity": int k grad u . grad v with a smooth k between 1/contrast and contrast,
    one edge held. kind="mass": the mass matrix of the same mesh (all entries positive, well
    conditioned). shuffle=True numbers 2000 chunks of nodes in random order.

    Imitates Schmid/thermal2 and CEMW/tmt_sym (conductivity) and Botonakis/thermomech_dM
    (mass): same nonzeros per row, 3 to about 11 in a row. Those meshes are of real parts, and
    tmt_sym is an electromagnetic problem. Rows about 0.9 m^2.
    """
    m = checks.whole("m", m, least=8)
    seed, holes = checks.whole("seed", seed, least=0), checks.whole("holes", holes, least=0)
    contrast = checks.real("contrast", contrast, above=0.0)
    shuffle = checks.truth("shuffle", shuffle)
    kind = checks.choice("kind", kind, ("conductivity", "mass"))
    checks.check_size("thermal2d", float(m) * m, 7)
    rng = np.random.default_rng(seed)
    centres, radii = rng.random((holes, 2)), 0.02 + 0.05 * rng.random(holes)

    def inside(points: FloatArray) -> BoolArray:
        keep = np.ones(len(points), dtype=np.bool_)
        for centre, radius in zip(centres, radii, strict=True):
            keep &= np.square(points - centre).sum(axis=1) > radius**2
        return keep

    def conductivity(centroid: FloatArray) -> FloatArray:
        smooth = np.sin(5 * centroid[:, 0]) * np.cos(4 * centroid[:, 1])
        return np.asarray(contrast**smooth)

    lattice = jittered_lattice((m, m), 0.38, seed, inside)
    warped = lattice + 0.02 * np.sin(7 * lattice[:, ::-1])
    points, triangles = delaunay(warped, 3.2 / m)
    if kind == "mass":
        matrix = p1_scalar(points, triangles, stiffness=0.0, mass=1.0)
    else:
        matrix = p1_scalar(points, triangles, conductivity)
        matrix = clamp(matrix, points[:, 0] < points[:, 0].min() + 1.0 / m)
    if not shuffle:
        return matrix
    return permute(matrix, shuffled_blocks(matrix.shape[0], 2000, seed))


def stochflow3d(
    m: int = 24, sigma: float = 2.0, seed: int = 0, mesh: str = "delaunay"
) -> sp.csr_array:
    """Ground water flow through a lognormal conductivity, linear tetrahedra of the unit cube.

    k = exp(sigma z) with z a smooth Gaussian field of unit variance, on 64^3 points; two
    opposite sides are held. mesh "delaunay" is irregular, "bcc" is a regular lattice whose time
    is proportional to its size. Imitates Janna/StocF-1465 (flow with stochastic permeability):
    same nonzeros per row, but without its 29,104 decoupled rows, and in other units. Rows about
    0.95 m^3 (delaunay, 15 to 16 per row, 5 to about 30) or 2 m^3 (bcc, 14 to 15, at most 15).
    """
    from scipy.ndimage import gaussian_filter  # a heavy import

    m = checks.whole("m", m, least=4)
    sigma = checks.real("sigma", sigma, above=0.0, most=20.0)
    seed = checks.whole("seed", seed, least=0)
    mesh = checks.choice("mesh", mesh, ("delaunay", "bcc"))
    checks.check_size("stochflow3d", float(m) ** 3 * (1 if mesh == "delaunay" else 2), 16)
    if mesh == "delaunay":
        points, tetrahedra = delaunay(jittered_lattice((m, m, m), 0.35, seed), 4.5 / m)
    else:
        points, tetrahedra = body_centred_mesh((m, m, m), seed)
    noise = np.random.default_rng(seed + 1).standard_normal((64, 64, 64))
    field = gaussian_filter(noise, 2, mode="wrap")
    field /= field.std()

    def conductivity(centroid: FloatArray) -> FloatArray:
        i, j, k = np.clip((centroid * 64).astype(int), 0, 63).T
        return np.asarray(np.exp(sigma * field[i, j, k]))

    held = (points[:, 0] < 0.7 / m) | (points[:, 0] > 1 - 0.7 / m)
    return clamp(p1_scalar(points, tetrahedra, conductivity), held)
