"""An elastic solid of particles that interact over a finite distance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from cpufree.errors import InvalidInputError
from cpufree.generate import checks
from cpufree.generate.graph import FloatArray, IntArray, canonical, clamp, largest_component
from cpufree.generate.simplices import jittered_lattice
from cpufree.generate.tet_elasticity import drilled_bar


def bond_stiffness(points: FloatArray, pairs: IntArray) -> sp.csr_array:
    """Sum over bonds of (e e^T / |x|) (u_i - u_j), x = p_j - p_i, e = x / |x|; node-major.

    points (nodes, 3), pairs (bonds, 2) listing each bond once. Symmetric to the bit; its null
    space holds the rigid body motions. Source: Silling 2000, "Reformulation of elasticity
    theory for discontinuities and long-range forces", linearised.
    """
    nodes = len(points)
    tails, heads = pairs[:, 0], pairs[:, 1]
    bond = points[heads] - points[tails]
    length = np.sqrt(np.square(bond).sum(axis=1))
    block = bond[:, :, None] * bond[:, None, :] / (length**3)[:, None, None]
    own = np.zeros((nodes, 3, 3))
    for r in range(3):
        for c in range(3):
            own[:, r, c] = np.bincount(tails, block[:, r, c], nodes)
            own[:, r, c] += np.bincount(heads, block[:, r, c], nodes)
    everyone = np.arange(nodes)
    rows = np.concatenate([tails, heads, everyone])
    columns = np.concatenate([heads, tails, everyone])
    values = np.concatenate([-block, -block, own])
    order = np.lexsort((columns, rows))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=nodes))])
    blocks = (values[order], columns[order], indptr)
    return canonical(sp.bsr_array(blocks, shape=(3 * nodes, 3 * nodes)))


def crank_bonds(
    shape: Sequence[int] | int = (40, 24, 14), horizon: float = 2.6, seed: int = 0
) -> sp.csr_array:
    """Bar with drilled holes of particles bonded to all others within `horizon`, one end held.

    horizon is in spacings of the jittered lattice of shape points; a particle has about
    4.2 horizon^3 bonds, fewer near the surface. Imitates the weight of GHS_psdef/crankseg_1 and
    crankseg_2 (crankshaft segments, over 200 nonzeros per row), which no low-order element
    reaches: same rows and nonzeros, but another discretisation. Rows about 2.7 abc, nonzeros
    per row below 3 (1 + 4.2 horizon^3).
    """
    from scipy.spatial import cKDTree  # a heavy import

    sizes = checks.whole_shape("shape", shape, axes=3, least=4)
    horizon = checks.real("horizon", horizon, above=1.8, most=10.0)
    seed = checks.whole("seed", seed, least=0)
    nodes = float(np.prod([float(s) for s in sizes]))
    checks.check_size("crank_bonds", 3 * nodes, 3 * (1 + 4.2 * horizon**3))
    inside = drilled_bar(seed)
    points = jittered_lattice(sizes, 0.36, seed, inside)
    points = points * (np.array(sizes) - 1)  # the spacing is the unit of length
    pairs = cKDTree(points).query_pairs(horizon, output_type="ndarray")
    if len(pairs) == 0:
        raise InvalidInputError("no two particles are bonded; choose larger sizes")
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].astype(np.int32)
    held = np.repeat(points[:, 0] < 0.6, 3)
    return largest_component(clamp(bond_stiffness(points, pairs), held))
