"""Ground that is squeezed and the water in it: displacements and fluid, coupled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from cpufree.generate import checks
from cpufree.generate.graph import FloatArray, IntArray
from cpufree.generate.simplex_fem import add_elastic, assemble, p1_geometry
from cpufree.generate.simplices import body_centred_mesh


def p1_consolidation(
    points: FloatArray,
    tetrahedra: IntArray,
    *,
    coupling: float,
    modulus: float,
    diffusion: float,
    poisson_ratio: float = 0.25,
) -> sp.csr_array:
    """Linear tetrahedra, four unknowns per node: three displacements and the fluid content.

    Twice the energy is int 2 mu e : e + lambda (div u)^2 + modulus (z - coupling div u)^2 +
    diffusion |grad z|^2 for Young's modulus 1: a sum of squares, which is zero for rigid motions
    alone. Source: Biot 1941, "General theory of three-dimensional consolidation", with the fluid
    content z as the second unknown instead of the pressure modulus (z - coupling div u).
    """

    def element(cells: IntArray) -> FloatArray:
        gradient, volume = p1_geometry(points, cells)
        total = np.zeros((4, 4, len(cells), 4, 4))
        add_elastic(total[:3, :3], gradient, volume, poisson_ratio)
        squeezed = gradient * np.sqrt(modulus * coupling**2 * volume)[:, None, None]
        push = -modulus * coupling / 4 * volume[:, None, None] * gradient
        for r in range(3):
            for c in range(3):
                total[r, c] += squeezed[:, :, None, r] * squeezed[:, None, :, c]
            total[r, 3] = push[:, :, None, r]
            total[3, r] = push[:, None, :, r]
        mass = modulus / 20 * (np.ones((4, 4)) + np.eye(4))
        flow = diffusion * np.einsum("eai,ebi->eab", gradient, gradient)
        total[3, 3] = volume[:, None, None] * (mass + flow)
        return total

    return assemble(len(points), tetrahedra, element, block=4, chunk=100_000)


def consolidation_tet(
    shape: Sequence[int] | int = 16,
    coupling: float = 1.0,
    modulus: float = 1.0,
    diffusion: float = 0.1,
    spring: float = 10.0,
    seed: int = 0,
) -> sp.csr_array:
    """Time step of consolidation in a block of ground that stands on springs, linear tetrahedra.

    Four unknowns per node of a jittered body-centred lattice with shape cubes: displacements, for
    Young's modulus 1, and fluid content. coupling is Biot's coefficient, modulus Biot's, diffusion
    the mobility times modulus squared times the time step, in squared spacings; spring holds each
    node at the bottom along each axis.

    Imitates Janna/Cube_Coup_dt6 (coupled consolidation of a cube): four unknowns per node, same
    rows and nonzeros per row. There the second unknown is probably the pressure, which makes the
    matrix indefinite (the collection's index does not call it positive definite); the fluid content
    makes it definite. Rows 4 ((a+1)(b+1)(c+1) + abc - 8), 54 to 59 nonzeros per row, at most 60.
    """
    sizes = checks.whole_shape("shape", shape, axes=3, least=2)
    coupling = checks.real("coupling", coupling)
    modulus = checks.real("modulus", modulus, above=0.0)
    diffusion = checks.real("diffusion", diffusion, least=0.0)
    spring = checks.real("spring", spring, above=0.0)
    seed = checks.whole("seed", seed, least=0)
    checks.check_size("consolidation_tet", 8 * float(np.prod([float(s) for s in sizes])), 59)
    points, tetrahedra = body_centred_mesh(sizes, seed)
    points = points * max(sizes)
    matrix = p1_consolidation(
        points, tetrahedra, coupling=coupling, modulus=modulus, diffusion=diffusion
    )
    held = np.zeros((len(points), 4), dtype=np.bool_)
    held[points[:, 2] < 0.3, :3] = True
    row = np.repeat(np.arange(matrix.shape[0], dtype=np.int32), np.diff(matrix.indptr))
    matrix.data[(row == matrix.indices) & held.ravel()[row]] += spring
    return matrix
