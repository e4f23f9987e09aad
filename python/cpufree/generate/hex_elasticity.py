"""Elastic structures of hexahedra: ground, flange, plate, bone, nested spheres."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from cpufree.generate import checks
from cpufree.generate.graph import BoolArray, FloatArray
from cpufree.generate.voxels import held_piece, voxel_elasticity


def _no_support(young: FloatArray) -> BoolArray:
    return np.zeros(tuple(s + 1 for s in young.shape), dtype=np.bool_)


def _penalty(penalty: float | None) -> float | None:
    return None if penalty is None else checks.real("penalty", penalty, above=0.0)


def _jitter(jitter: float) -> float:
    """The jitter; below 1/6 every brick stays valid (`jittered_nodes` says why)."""
    return checks.real("jitter", jitter, least=0.0, below=1 / 6)


def geomodel_hex(
    ex: int = 24,
    ey: int = 24,
    ez: int = 24,
    contrast: float = 1e3,
    seed: int = 0,
    penalty: float | None = None,
    free_top: bool = True,
    jitter: float = 0.0,
) -> sp.csr_array:
    """Block of ex x ey x ez bricks in layers of random stiffness, bottom and sides held.

    Layer moduli are contrast^(u - 1/2), u uniform, times lognormal noise (sigma 1/2) per brick.
    Imitates Janna/Queen_4147 (3-D structural problem, bricks): same nonzeros per row, but a
    regular grid where Queen is a real geometry. penalty keeps held nodes as decoupled rows, as
    Queen has some; jitter moves the nodes by up to that many spacings along each axis, so that no
    two bricks are alike. Rows 3 (ex-1)(ey-1) ez and nonzeros 9 (3ex-5)(3ey-5)(3ez-2) with the
    defaults free_top and no penalty; at most 81 per row.
    """
    ex = checks.whole("ex", ex, least=2)
    ey = checks.whole("ey", ey, least=2)
    ez = checks.whole("ez", ez, least=2)
    contrast = checks.real("contrast", contrast, above=0.0)
    seed = checks.whole("seed", seed, least=0)
    penalty, free_top = _penalty(penalty), checks.truth("free_top", free_top)
    jitter = _jitter(jitter)
    checks.check_size("geomodel_hex", 3.0 * ex * ey * ez, 81)
    rng = np.random.default_rng(seed)
    layers = np.exp(np.log(contrast) * (rng.random(ez) - 0.5))[:, None, None]
    young = layers * np.exp(0.5 * rng.standard_normal((ez, ey, ex)))
    fixed = _no_support(young)
    fixed[0] = True
    fixed[:, [0, -1]] = True
    fixed[:, :, [0, -1]] = True
    if not free_top:
        fixed[-1] = True
    return voxel_elasticity(young, fixed, penalty=penalty, jitter=jitter, seed=seed)


def flange_voxels(r_out: int, t: int, pipe: int, wall: int | None = None) -> FloatArray:
    """Young's modulus (t+pipe, 2 r_out, 2 r_out) of a bolted flange on a pipe: 1 or 0."""
    centre = np.mgrid[0 : 2 * r_out, 0 : 2 * r_out] + 0.5 - r_out
    y, x = centre
    radius = np.hypot(x, y)
    inner = 0.45 * r_out
    outer = inner + (max(4, 0.05 * r_out) if wall is None else wall)
    disc = (radius <= r_out) & (radius >= inner)
    for bolt in range(12):
        angle = 2 * np.pi * bolt / 12
        hole = np.hypot(x - 0.8 * r_out * np.cos(angle), y - 0.8 * r_out * np.sin(angle))
        disc &= hole > 0.07 * r_out
    young = np.zeros((t + pipe, 2 * r_out, 2 * r_out))
    young[:t] = disc
    young[t:] = (radius >= inner) & (radius <= outer)
    return young


def flange_hex(
    r_out: int = 40,
    t: int = 5,
    pipe: int = 24,
    wall: int | None = None,
    jitter: float = 0.0,
    seed: int = 0,
) -> sp.csr_array:
    """Steel flange with twelve bolt holes on a pipe, in voxels, the far end of the pipe held.

    r_out is the outer radius of the flange, t its thickness, pipe the length of the pipe and
    wall the thickness of the pipe's wall (None: a twentieth of r_out, at least 4), all in
    voxels; the bore has radius 0.45 r_out. Imitates Janna/Flan_1565 (steel flange, bricks):
    same element, same kind of body; its mesh follows the curved surface, this one is stepped.
    jitter moves the nodes at random (seed) by up to that many spacings along each axis; at 0 all
    voxels are equal, and nothing is random. Rows about
    3 (2.3 (t+1) r_out^2 + pi pipe (wall+1) (0.9 r_out + wall)), 65 to 77 nonzeros per row, of which
    without jitter over a fifth are stored zeros of full 3 x 3 blocks.
    """
    r_out = checks.whole("r_out", r_out, least=6)
    t = checks.whole("t", t)
    pipe = checks.whole("pipe", pipe)
    jitter, seed = _jitter(jitter), checks.whole("seed", seed, least=0)
    ring = max(4, 0.05 * r_out)
    if wall is not None:
        wall = checks.whole("wall", wall, most=int(0.55 * r_out))
        ring = wall
    section = np.pi * (ring + 1) * (0.9 * r_out + ring)
    checks.check_size("flange_hex", 3 * (2.3 * (t + 1) * float(r_out) ** 2 + pipe * section), 75)
    young = held_piece(flange_voxels(r_out, t, pipe, wall), (-1,))
    fixed = _no_support(young)
    fixed[-1] = True
    return voxel_elasticity(young, fixed, jitter=jitter, seed=seed)


def plate_hex(
    ex: int = 120,
    ey: int = 80,
    layers: int = 1,
    holes: int = 40,
    seed: int = 0,
    thickness: float = 0.2,
    jitter: float = 0.0,
) -> sp.csr_array:
    """Thin plate of ex x ey bricks in one or two layers, with round holes, one edge held.

    thickness is the height of a brick over its width. Imitates the sheet metal of
    GHS_psdef/hood, GHS_psdef/ldoor and the Schenk_AFE/af_shell family: thin-walled, badly
    conditioned, 51 to 54 nonzeros per row with one layer; they are shells and solids of curved
    parts, this is one flat plate of solids. jitter moves the nodes by up to that many spacings
    along each axis: a plate of uneven thickness. Rows about 3 (layers+1) ex ey less the holes.
    """
    ex, ey = checks.whole("ex", ex, least=2), checks.whole("ey", ey, least=2)
    layers, holes = checks.whole("layers", layers), checks.whole("holes", holes, least=0)
    seed = checks.whole("seed", seed, least=0)
    thickness = checks.real("thickness", thickness, above=0.0)
    jitter = _jitter(jitter)
    checks.check_size("plate_hex", 3.0 * (layers + 1) * ex * ey, 27 * (3 - 2 / (layers + 1)))
    rng = np.random.default_rng(seed)
    young = np.ones((layers, ey, ex))
    y, x = np.mgrid[0:ey, 0:ex]
    for _ in range(holes):
        cx, cy = rng.random() * ex, rng.random() * ey
        radius = (0.01 + 0.03 * rng.random()) * min(ex, ey)
        young[:, (x - cx) ** 2 + (y - cy) ** 2 < radius * radius] = 0
    young[:, :, 0] = 1
    young = held_piece(young, (slice(None), slice(None), 0))
    fixed = _no_support(young)
    fixed[:, :, 0] = True
    spacing = (1.0, 1.0, thickness)
    return voxel_elasticity(young, fixed, spacing=spacing, jitter=jitter, seed=seed)


def porous_hex(
    m: int = 32, seed: int = 0, fraction: float = 0.45, jitter: float = 0.0
) -> sp.csr_array:
    """Spongy bone in an m^3 box of voxels, held at the bottom.

    Solid where smoothed noise lies nearest to zero, `fraction` of the volume, which makes
    plates and struts; only the largest connected piece that reaches the bottom is kept.
    Imitates Oberwolfach/bone010 and boneS10 (scanned trabecular bone); the structure here is
    statistical, not scanned. jitter moves the nodes by up to that many spacings along each axis.
    Rows 2 to 2.6 m^3, 49 to 61 nonzeros per row, 12 to 81 in a row.
    """
    from scipy.ndimage import gaussian_filter  # a heavy import

    m = checks.whole("m", m, least=4)
    seed = checks.whole("seed", seed, least=0)
    fraction = checks.real("fraction", fraction, above=0.0, most=1.0)
    jitter = _jitter(jitter)
    checks.check_size("porous_hex", 3.0 * m**3 * fraction * 1.5, 55)
    noise = np.random.default_rng(seed).standard_normal((m, m, m))
    distance = np.abs(gaussian_filter(noise, m / 40 + 1, mode="wrap"))
    young = held_piece((distance < np.quantile(distance, fraction)) * 1.0, (0,))
    fixed = _no_support(young)
    fixed[0] = True
    return voxel_elasticity(young, fixed, jitter=jitter, seed=seed)


def spheres_hex(
    m: int = 36,
    shells: int = 4,
    contrast: float = 100.0,
    penalty: float | None = None,
    jitter: float = 0.0,
    seed: int = 0,
) -> sp.csr_array:
    """Nested spherical shells, alternately stiff and soft, around a held core, in voxels.

    The ball has diameter m; moduli alternate between 1 and 1/contrast; the core has 0.35 of the
    radius, and penalty keeps its nodes as decoupled rows. Imitates Williams/consph (finite
    elements on concentric spheres): same nonzeros per row and a similar share of decoupled
    rows; what the shells are made of there is not known. jitter moves the nodes at random (seed)
    by up to that many spacings along each axis; at 0 nothing is random. Rows about 1.6 (m+1)^3, a
    little over 70 nonzeros per row, at most 81.
    """
    m, shells = checks.whole("m", m, least=6), checks.whole("shells", shells)
    contrast = checks.real("contrast", contrast, above=0.0)
    penalty, jitter = _penalty(penalty), _jitter(jitter)
    seed = checks.whole("seed", seed, least=0)
    checks.check_size("spheres_hex", 1.6 * float(m) ** 3, 75)
    voxel = np.arange(m) + 0.5 - m / 2
    radius = np.sqrt(sum(np.square(np.meshgrid(voxel, voxel, voxel)))) / (m / 2)
    shell = np.floor(radius * shells).astype(int)
    young = np.where(shell % 2 == 0, 1.0, 1.0 / contrast) * (radius < 1)
    node = np.arange(m + 1) - m / 2
    fixed = np.sqrt(sum(np.square(np.meshgrid(node, node, node)))) < 0.35 * m / 2
    return voxel_elasticity(young, fixed, penalty=penalty, jitter=jitter, seed=seed)
