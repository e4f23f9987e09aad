"""Matrices that stay on chip, and lanes that share their rows, on real GPUs. Skipped without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_systems import hex_beam, solve, three_unknowns
from gpus_here import NUMBERS, needs_gpu, on_all_counts, true_residual
from reference_cg import rhs

import cpufree
from cpufree.extension import load_core
from cpufree.matrix.load import as_csr
from cpufree.partition.methods import contiguous

pytestmark = needs_gpu
METHODS = ["cg", "prcg", "pipecg"]
MATRICES = {"columns": hex_beam, "runs": lambda: three_unknowns(False)}


def system_of(A: sp.csr_array, pes: int, **tuning: int) -> Any:
    """Return a System of contiguous parts whose blocks exchange packets."""
    matrix = as_csr(A)
    part = contiguous(matrix, pes) if pes > 1 else None
    arrays = matrix.indptr, matrix.indices, matrix.data, part, None
    return load_core().System(*arrays, pes, 0, "cuda_p2p", NUMBERS[:pes], {"halo": 2, **tuning})


def few_long_rows(n: int = 4000) -> sp.csr_array:
    """Return a matrix of few rows, of some 180 entries each, whose values differ."""
    rows, columns = np.divmod(np.random.default_rng(4).integers(0, n * n, 14 * n), n)
    B = sp.coo_array((np.sin(1.0 + np.arange(14 * n)), (rows, columns)), shape=(n, n)).tocsr()
    return sp.csr_array(B @ B.T + 1e3 * sp.eye_array(n))


@on_all_counts
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pc", ["none", "jacobi", "chebyshev"])
@pytest.mark.parametrize("lanes_log2", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("kind", MATRICES)
def test_rows_shared_on_chip_have_the_iterates_of_rows_in_memory(
    kind: str, lanes_log2: int, pc: str, method: str, pes: int
) -> None:
    A = MATRICES[kind]()
    b = rhs(A)
    options = {"rtol": 0.0, "maxiter": 20}
    expected = solve(system_of(A, pes, residency=0, lanes_log2=0), b, method, pc, **options)["x"]
    system = system_of(A, pes, lanes_log2=lanes_log2)
    plan = system.plan()
    assert plan["lanes_per_row"] == 2**lanes_log2
    assert plan["resident_matrix"]
    assert plan["ring_slots"] == 0
    found = solve(system, b, method, pc, **options)["x"]
    assert np.linalg.norm(found - expected) <= 1e-12 * np.linalg.norm(expected)
    again = solve(system, b, method, pc, **options)["x"]
    assert found.tobytes() == again.tobytes()


@on_all_counts
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_few_long_rows_are_shared_on_chip(dtype: Any, method: str, pes: int) -> None:
    A = few_long_rows().astype(dtype)
    b = rhs(A).astype(dtype)
    system = system_of(A, pes)
    assert system.plan()["lanes_per_row"] > 1
    assert system.plan()["resident_matrix"]
    for pc in ("none", "jacobi", "chebyshev"):
        rtol = 1e-9 if dtype == np.float64 else 1e-5
        x = solve(system, b, method, pc, rtol=rtol)["x"]
        assert true_residual(A.astype(np.float64), x, b) <= 1.1 * rtol


@on_all_counts
def test_new_values_of_rows_shared_on_chip_give_the_bits_of_a_new_system(pes: int) -> None:
    A = few_long_rows()
    other = as_csr(sp.csr_array(A * 1.7))
    b = rhs(A)
    system = system_of(A, pes)
    assert system.update(other.indptr, other.indices, other.data)
    assert system.plan()["lanes_per_row"] > 1
    fresh = system_of(other.to_scipy(), pes)
    for method in METHODS:
        expected = solve(fresh, b, method, "jacobi")["x"]
        assert solve(system, b, method, "jacobi")["x"].tobytes() == expected.tobytes()


@on_all_counts
def test_short_rows_on_chip_are_not_shared(pes: int) -> None:
    system = system_of(cpufree.generate.poisson3d(30, 20, 20), pes)
    assert system.plan()["lanes_per_row"] == 1
    assert system.plan()["resident_matrix"]


def test_shared_rows_of_a_matrix_that_does_not_fit_come_through_rings() -> None:
    grid = cpufree.generate.poisson3d(60, 60, 60)
    system = system_of(sp.csr_array(grid @ grid), 1, lanes_log2=1, halo=-1)
    plan = system.plan()
    assert plan["lanes_per_row"] == 2
    assert not plan["resident_matrix"]
    assert plan["ring_slots"] >= 2
