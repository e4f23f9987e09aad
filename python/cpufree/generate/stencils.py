"""Finite-difference and structured finite-element matrices on regular grids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import scipy.sparse as sp

from cpufree.generate import checks
from cpufree.generate.graph import FloatArray, canonical, grid_edges, laplacian, permute, submatrix
from cpufree.generate.grid_rows import GridRows, box_rows, laplacian_rows


def _grid_laplacian(
    shape: tuple[int, ...], weights: Sequence[float], grounding: FloatArray
) -> sp.csr_array:
    """Laplacian of a grid: weights[a] per edge along axis a, plus grounding, (shape)."""
    edges = grid_edges(shape)
    tails = np.concatenate([tail for tail, _ in edges])
    heads = np.concatenate([head for _, head in edges])
    per_edge = [np.full(len(tail), w) for (tail, _), w in zip(edges, weights, strict=True)]
    return laplacian(int(np.prod(shape)), tails, heads, np.concatenate(per_edge), grounding.ravel())


def _shape_of_rows(name: str, most: int, sizes: Mapping[str, int]) -> tuple[int, ...]:
    shape = tuple(checks.whole(key, size, most=most) for key, size in sizes.items())
    checks.check_rows(name, prod(shape))
    return shape


def _poisson_rows(
    name: str, weights: Sequence[float], most: int = checks.MOST_ROWS, **sizes: int
) -> GridRows:
    shape = _shape_of_rows(name, most, sizes)
    return laplacian_rows(shape, checks.positive_weights("weights", weights, axes=len(shape)))


def _poisson(name: str, weights: Sequence[float], **sizes: int) -> sp.csr_array:
    rows = _poisson_rows(name, weights, checks.INT32_MAX, **sizes)
    checks.check_size(name, float(rows.shape[0]), 2 * len(sizes) + 1)
    return rows.whole()


def poisson1d_rows(n: int = 1000) -> GridRows:
    """Rows of poisson1d."""
    return _poisson_rows("poisson1d", (1.0,), n=n)


def poisson1d(n: int = 1000) -> sp.csr_array:
    """Second difference (-1, 2, -1) on n points with zero walls.

    Rows n, nonzeros 3n - 2. Eigenvalues 4 sin^2(k pi / (2(n+1))), k = 1..n.
    """
    return _poisson("poisson1d", (1.0,), n=n)


def poisson2d_rows(nx: int = 100, ny: int = 100, weights: Sequence[float] = (1.0, 1.0)) -> GridRows:
    """Rows of poisson2d."""
    return _poisson_rows("poisson2d", weights, ny=ny, nx=nx)


def poisson2d(nx: int = 100, ny: int = 100, weights: Sequence[float] = (1.0, 1.0)) -> sp.csr_array:
    """Five-point Laplacian on an ny x nx grid with zero walls, x running fastest.

    weights = (along y, along x); unequal ones make an anisotropic problem. Rows nx ny, nonzeros
    5 nx ny - 2 nx - 2 ny. Eigenvalues are sums of 4 w sin^2(k pi / (2(m+1))) over the axes.
    """
    return _poisson("poisson2d", weights, ny=ny, nx=nx)


def poisson3d_rows(
    nx: int = 24, ny: int = 24, nz: int = 24, weights: Sequence[float] = (1.0, 1.0, 1.0)
) -> GridRows:
    """Rows of poisson3d."""
    return _poisson_rows("poisson3d", weights, nz=nz, ny=ny, nx=nx)


def poisson3d(
    nx: int = 24, ny: int = 24, nz: int = 24, weights: Sequence[float] = (1.0, 1.0, 1.0)
) -> sp.csr_array:
    """Seven-point Laplacian on an nz x ny x nx grid with zero walls, x running fastest.

    weights = (along z, along y, along x). Rows nx ny nz, nonzeros
    7 nx ny nz - 2 (nx ny + ny nz + nx nz). Eigenvalues as for poisson2d.
    """
    return _poisson("poisson3d", weights, nz=nz, ny=ny, nx=nx)


def _stencil27_rows(most: int, **sizes: int) -> GridRows:
    return box_rows(_shape_of_rows("stencil27", most, sizes), 26.0, -1.0)


def stencil27_rows(nx: int = 24, ny: int = 24, nz: int = 24) -> GridRows:
    """Rows of stencil27."""
    return _stencil27_rows(checks.MOST_ROWS, nz=nz, ny=ny, nx=nx)


def stencil27(nx: int = 24, ny: int = 24, nz: int = 24) -> sp.csr_array:
    """27-point operator of the HPCG benchmark: 26 on the diagonal, -1 to each neighbour.

    Rows nx ny nz, nonzeros (3nx - 2)(3ny - 2)(3nz - 2). Strictly diagonally dominant at the
    boundary. Source: Dongarra, Heroux, Luszczek 2016, "High-performance conjugate-gradient
    benchmark".
    """
    rows = _stencil27_rows(checks.INT32_MAX, nz=nz, ny=ny, nx=nx)
    checks.check_size("stencil27", float(rows.shape[0]), 27)
    return rows.whole()


def ecology2(m: int = 1000, removed: int | None = None) -> sp.csr_array:
    """m x m grid of conductances 10 with one node removed, which grounds its neighbours.

    Imitates McRae/ecology2 (landscape circuit model). m = 1000 has its 999,999 rows, 4,995,991
    nonzeros, -10 off the diagonal and 40 at most on it; which node is missing there is not
    known, here it is `removed`, by default the middle one. Rows m^2 - 1, nonzeros
    5 m^2 - 4 m - 9 for an interior node (m >= 3).
    """
    m = checks.whole("m", m, least=2)
    checks.check_size("ecology2", float(m) * m, 5)
    middle = m // 2 * m + m // 2
    node = middle if removed is None else checks.whole("removed", removed, least=0, most=m * m - 1)
    matrix = _grid_laplacian((m, m), (10.0, 10.0), np.zeros((m, m)))
    keep = np.ones(m * m, dtype=np.bool_)
    keep[node] = False
    return submatrix(matrix, keep)


def parabolic_fem(level: int = 9, diffusion: float = 0.1, seed: int | None = None) -> sp.csr_array:
    """One implicit time step of diffusion, diffusion*K + M, with linear triangles.

    Domain [0,1] x [0,2], mesh width 2^-level, each square cut by the same diagonal; `diffusion`
    is time step times diffusivity. Imitates Wissgott/parabolic_fem: level 9 has its 525,825
    rows, 3,674,625 nonzeros and value range; the numbering there is not known, `seed` permutes
    the natural one at random. Rows (N+1)(2N+1), nonzeros 14 N^2 + 9 N + 1, N = 2^level.
    """
    level = checks.whole("level", level)
    diffusion = checks.real("diffusion", diffusion, above=0.0)
    if seed is not None:
        seed = checks.whole("seed", seed, least=0)
    checks.check_size("parabolic_fem", 2 * 4.0 ** min(level, 500), 7)
    nx, ny = 2**level + 1, 2 ** (level + 1) + 1
    index = np.arange(nx * ny, dtype=np.int32).reshape(ny, nx)
    a, b = index[:-1, :-1].ravel(), index[:-1, 1:].ravel()
    c, d = index[1:, :-1].ravel(), index[1:, 1:].ravel()
    # The right angle lies at the middle vertex of each triple.
    triangles = np.concatenate([np.stack([a, b, d], 1), np.stack([a, c, d], 1)])
    stiffness = np.array([[0.5, -0.5, 0.0], [-0.5, 1.0, -0.5], [0.0, -0.5, 0.5]])
    mass = 4.0**-level / 24 * (np.ones((3, 3)) + np.eye(3))
    element = diffusion * stiffness + mass
    rows = np.repeat(triangles, 3, axis=1).ravel()
    columns = np.tile(triangles, (1, 3)).ravel()
    values = np.tile(element.ravel(), len(triangles))
    matrix = canonical(sp.coo_array((values, (rows, columns)), shape=(nx * ny, nx * ny)))
    if seed is None:
        return matrix
    return permute(matrix, np.random.default_rng(seed).permutation(nx * ny).astype(np.int32))


def apache2(
    shape: Sequence[int] = (8, 297, 301), weights: Sequence[float] = (30000.0, 12.0, 12.0)
) -> sp.csr_array:
    """Seven-point grid, strongly coupled across its few layers, grounded at two ends.

    Imitates GHS_psdef/apache2 (3-D structural problem): the default has its 715,176 rows,
    4,817,870 nonzeros and the value range -30000 to 60048; shape (8, 100, 101) has the rows and
    nonzeros of apache1. Which walls are grounded there is not known: here the ends of the last
    axis. Rows a b c, nonzeros 7abc - 2(ab + bc + ac).
    """
    sizes = checks.whole_shape("shape", shape, axes=3)
    weights = checks.positive_weights("weights", weights, axes=3)
    checks.check_size("apache2", float(np.prod([float(s) for s in sizes])), 7)
    grounding = np.zeros(sizes)
    grounding[..., 0] += weights[2]
    grounding[..., -1] += weights[2]
    return _grid_laplacian(sizes, weights, grounding)
