"""Solver.update on real GPUs. Skipped where there are none."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from gpus_here import needs_gpu, on_all_counts, true_residual
from reference_cg import rhs

import cpufree
from cpufree import MatrixError, Solver

pytestmark = needs_gpu


@pytest.fixture(scope="module")
def poisson() -> sp.csr_array:
    return cpufree.generate.poisson3d(20, 19, 18)


@on_all_counts
def test_new_values_give_the_bits_of_a_new_solver(poisson: sp.csr_array, pes: int) -> None:
    scale = sp.diags_array(1.0 + np.random.default_rng(5).random(poisson.shape[0]))
    other, b = sp.csr_array(scale @ poisson @ scale), rhs(poisson)
    with Solver(poisson, engine="cuda_p2p", pes=pes) as solver:
        solver.solve(b)
        solver.update(other)
        found = solver.solve(b, rtol=1e-9)
    with Solver(other, engine="cuda_p2p", pes=pes) as fresh:
        assert np.array_equal(found.x, fresh.solve(b, rtol=1e-9).x)
    assert true_residual(other, found.x, b) <= 1.001e-9


@on_all_counts
def test_a_refused_update_leaves_the_old_values(poisson: sp.csr_array, pes: int) -> None:
    b = rhs(poisson)
    with Solver(poisson, engine="cuda_p2p", pes=pes) as solver:
        before = solver.solve(b)
        with pytest.raises(MatrixError, match="same pattern"):
            solver.update(poisson @ poisson)
        assert np.array_equal(solver.solve(b).x, before.x)
