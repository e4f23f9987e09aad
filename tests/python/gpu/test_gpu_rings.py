"""Matrices that come on chip through rings, on real GPUs. Skipped where there are none.

Systems are small here, so that rings have to be asked for: without, they would stay on chip.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_systems import hex_beam, solve, three_unknowns
from gpus_here import NUMBERS, needs_gpu, on_all_counts, true_residual
from reference_cg import SYSTEMS, rhs

import cpufree
from cpufree.extension import load_core
from cpufree.matrix.load import as_csr
from cpufree.partition.methods import contiguous

pytestmark = needs_gpu
METHODS = ["cg", "prcg", "pipecg"]


def system_of(A: sp.csr_array, pes: int, **tuning: int) -> Any:
    """Return a System of contiguous parts whose matrix does not stay on chip."""
    matrix = as_csr(A)
    part = contiguous(matrix, pes) if pes > 1 else None
    arrays = matrix.indptr, matrix.indices, matrix.data, part, None
    chosen = {"residency": 1, **tuning}
    return load_core().System(*arrays, pes, 0, "cuda_p2p", NUMBERS[:pes], chosen)


@on_all_counts
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pc", ["none", "jacobi", "chebyshev"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_solves_through_rings_meet_the_tolerance(name: str, pc: str, method: str, pes: int) -> None:
    A = SYSTEMS[name]()
    b = rhs(A)
    system = system_of(A, pes, ring=2)
    assert system.plan()["ring_slots"] == 2
    assert not system.plan()["resident_matrix"]
    assert true_residual(A, solve(system, b, method, pc)["x"], b) <= 1.001e-9


@on_all_counts
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lanes_log2", [0, 2])
@pytest.mark.parametrize("alike", [True, False], ids=["few values", "all different"])
def test_columns_in_runs_give_the_bits_of_columns_one_by_one(
    alike: bool, lanes_log2: int, method: str, pes: int
) -> None:
    A = three_unknowns(alike)
    b = rhs(A)
    options = {"rtol": 0.0, "maxiter": 60}
    tuning = {"ring": 2, "lanes_log2": lanes_log2, "halo": 1}
    plain, coded = system_of(A, pes, compress=0, **tuning), system_of(A, pes, **tuning)
    # Of 12 bytes an entry 8 2/3 are left, or 1 2/3 and dictionaries; 16-bit columns leave 10 and 3.
    share = coded.plan()["matrix_bytes"] / plain.plan()["matrix_bytes"]
    assert share < (0.24 if alike else 0.78)
    expected = solve(plain, b, method, "jacobi", **options)
    found = solve(coded, b, method, "jacobi", **options)
    assert found["x"].tobytes() == expected["x"].tobytes()
    assert true_residual(A, solve(coded, b, method, "none")["x"], b) <= 1.001e-9


@pytest.mark.parametrize("method", METHODS)
def test_a_block_of_many_rows_has_its_vectors_in_memory_and_the_others_on_chip(method: str) -> None:
    grid = cpufree.generate.poisson3d(81, 81, 81)
    A = sp.csr_array(sp.block_diag([3.0 * sp.eye_array(31000), grid @ grid]))
    matrix, b = as_csr(A), rhs(A)
    arrays = matrix.indptr, matrix.indices, matrix.data, None, None
    options = {"rtol": 0.0, "maxiter": 20}

    def outcome(residency: int) -> tuple[bytes, int]:
        chosen = {"residency": residency, "ring": 0, "halo": 1}
        system = load_core().System(*arrays, 1, 32, "cuda_p2p", NUMBERS[:1], chosen)
        found = solve(system, b, method, "jacobi", **options)
        return found["x"].tobytes(), system.plan()["resident_vectors"]

    kept, vectors = outcome(1)
    # The first block has 1.7 times the rows of the others: too many for a vector on chip.
    assert vectors == 1
    assert kept == outcome(0)[0]


@on_all_counts
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("compress", [-1, 0], ids=["coded", "as they are"])
def test_rings_of_any_size_give_the_bits_of_a_matrix_in_memory(
    compress: int, method: str, pes: int
) -> None:
    A = hex_beam()
    b = rhs(A)
    options = {"rtol": 0.0, "maxiter": 60}
    memory = system_of(A, pes, ring=0, compress=compress)
    assert memory.plan()["ring_slots"] == 0
    expected = solve(memory, b, method, "jacobi", **options)
    for slots in (2, 3, 8):
        system = system_of(A, pes, ring=slots, compress=compress)
        assert system.plan()["ring_slots"] == slots
        for _ in range(3):  # rings begin again with each solve
            found = solve(system, b, method, "jacobi", **options)
            assert found["x"].tobytes() == expected["x"].tobytes()


@on_all_counts
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lanes_log2", [1, 2, 3, 5])
def test_rows_that_threads_share_give_the_iterates_of_rows_that_they_do_not(
    lanes_log2: int, method: str, pes: int
) -> None:
    A = hex_beam()
    b = rhs(A)
    options = {"rtol": 0.0, "maxiter": 20}
    expected = solve(system_of(A, pes, ring=2, lanes_log2=0), b, method, "jacobi", **options)["x"]
    for halo in (0, 1, 2):
        system = system_of(A, pes, lanes_log2=lanes_log2, halo=halo)
        plan = system.plan()
        assert plan["lanes_per_row"] == 2**lanes_log2
        assert plan["ring_slots"] >= 2
        found = solve(system, b, method, "jacobi", **options)["x"]
        assert np.linalg.norm(found - expected) <= 1e-12 * np.linalg.norm(expected)
        again = solve(system, b, method, "jacobi", **options)["x"]
        assert found.tobytes() == again.tobytes()


def test_long_rows_that_stay_in_memory_are_shared() -> None:
    n = 12000
    rows, columns = np.divmod(np.random.default_rng(4).integers(0, n * n, 17 * n), n)
    B = sp.coo_array((np.sin(1.0 + np.arange(17 * n)), (rows, columns)), shape=(n, n)).tocsr()
    A = as_csr(sp.csr_array(B @ B.T + 1e3 * sp.eye_array(n)))
    system = load_core().System(
        A.indptr, A.indices, A.data, None, None, 1, 0, "cuda_p2p", NUMBERS[:1], {}
    )
    assert system.plan()["lanes_per_row"] == 4
    assert system.plan()["ring_slots"] == 2
    b = rhs(A.to_scipy())
    assert true_residual(A.to_scipy(), solve(system, b, "prcg", "jacobi")["x"], b) <= 1.001e-9


def test_sharing_rows_without_rings_is_refused() -> None:
    for tuning in ({"ring": 0}, {"ring": 1}, {"residency": 0}):
        with pytest.raises(cpufree.errors.InvalidInputError, match="leave out lanes_log2"):
            system_of(hex_beam(), 1, **{"lanes_log2": 2, **tuning})


@on_all_counts
def test_rings_stand_blocks_of_few_threads_and_halos_of_every_kind(pes: int) -> None:
    A = cpufree.generate.poisson3d(20, 19, 18)
    b = rhs(A)
    for threads in (32, 64, 256):
        for halo in (0, 1, 2):
            system = system_of(A, pes, ring=2, threads=threads, halo=halo)
            assert true_residual(A, solve(system, b, "prcg", "jacobi")["x"], b) <= 1.001e-9
