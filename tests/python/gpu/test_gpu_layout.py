"""Matrices that real GPUs lay out give the bits of those by the host; new values of theirs.

Skipped without GPUs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_systems import hex_beam, solve, three_unknowns
from gpus_here import needs_gpu, on_all_counts, true_residual
from reference_cg import rhs

import cpufree
from cpufree import Solver
from cpufree.errors import MatrixError, NotSymmetricError
from cpufree.extension import load_for
from cpufree.matrix.load import as_csr

pytestmark = needs_gpu

SYSTEMS = {
    "poisson": lambda: cpufree.generate.poisson3d(40, 39, 38),
    "long rows": hex_beam,
    "runs": lambda: three_unknowns(True),
    "runs, all different": lambda: three_unknowns(False),
    "irregular": lambda: cpufree.generate.delaunay3d(m=16),
    "single": lambda: cpufree.generate.poisson2d(301, 299).astype(np.float32),
}
TUNINGS: dict[str, dict[str, Any]] = {
    "usual": {"halo": 1},
    "stores": {"halo": 0},
    "plain": {"halo": 1, "compress": 0},
    "four lanes": {"halo": 1, "lanes_log2": 2},
    "packets among blocks": {"halo": 2},
    "packets, four lanes": {"halo": 2, "lanes_log2": 2},
}


def system(A: Any, pes: int, layout: int, **tuning: Any) -> Any:
    """Return a System of consecutive rows, laid out by the host (0), GPUs (1) or either (-1)."""
    A = as_csr(A)
    arrays = (A.indptr, A.indices, A.data, None, None)
    where: tuple[Any, ...] = (pes, 0, "cuda_p2p", [], {**tuning, "layout": layout})
    made = load_for("cuda_p2p").System(*arrays, *where)
    assert layout < 0 or ("send" in made.plan()["seconds"]) == (layout == 1)
    return made


@on_all_counts
@pytest.mark.parametrize("tuning", TUNINGS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_gpus_lay_matrices_out_as_the_host_does(name: str, tuning: str, pes: int) -> None:
    A = SYSTEMS[name]()
    b = rhs(A).astype(A.dtype)
    found = []
    for layout in (0, 1):
        made = system(A, pes, layout, **TUNINGS[tuning])
        plan = {key: value for key, value in made.plan().items() if key != "seconds"}
        found.append((plan, solve(made, b, "prcg", "jacobi", maxiter=60, rtol=1e-30)))
    (plan, one), (other_plan, other) = found
    assert plan == other_plan
    assert np.array_equal(one["x"], other["x"])
    assert np.array_equal(one["history"], other["history"])
    assert one["iterations"] == other["iterations"] == 60


@pytest.mark.parametrize("side", [64, 90])
def test_a_matrix_whose_blocks_exchange_no_packets_is_laid_out_by_the_gpu_unasked(
    side: int,
) -> None:
    A = cpufree.generate.poisson3d(side, side - 1, side - 2)
    made, by_host = (system(A, 1, layout, inspect=layout < 0) for layout in (-1, 0))
    assert "entries" in made.plan()  # the GPU has looked at them
    assert made.plan()["block_halo"] == by_host.plan()["block_halo"] == "flags"
    b = rhs(A)
    one, other = (solve(s, b, "prcg", "jacobi", maxiter=60, rtol=1e-30) for s in (made, by_host))
    assert np.array_equal(one["x"], other["x"])


def test_a_matrix_whose_blocks_exchange_packets_is_laid_out_by_the_gpu_unasked() -> None:
    A = cpufree.generate.poisson2d(910, 900)
    made, by_host = (system(A, 1, layout, inspect=layout < 0) for layout in (-1, 0))
    assert "entries" in made.plan()
    assert made.plan()["block_halo"] == by_host.plan()["block_halo"] == "packets"
    b = rhs(A)
    one, other = (solve(s, b, "prcg", "jacobi", maxiter=60, rtol=1e-30) for s in (made, by_host))
    assert np.array_equal(one["x"], other["x"])


@on_all_counts
def test_new_values_are_laid_out_again(pes: int) -> None:
    A = cpufree.generate.poisson3d(30, 29, 28)
    b, twice = rhs(A), as_csr(2.0 * A)
    one = system(A, pes, 1, halo=1)
    assert one.update(twice.indptr, twice.indices, twice.data)
    other = system(twice, pes, 1, halo=1)
    pair = [solve(made, b, "prcg", "jacobi", maxiter=50, rtol=1e-30) for made in (one, other)]
    assert np.array_equal(pair[0]["x"], pair[1]["x"])


def on_gpu(A: Any, library: str) -> Any:
    """Return a matrix on GPU 0, of CuPy or PyTorch."""
    if library == "cupy":
        pytest.importorskip("cupy")
        from cupyx.scipy.sparse import csr_matrix

        return csr_matrix(sp.csr_matrix(A))
    torch = pytest.importorskip("torch")
    arrays = (torch.from_numpy(a.astype(k)) for a, k in ((A.indptr, "i8"), (A.indices, "i8")))
    return torch.sparse_csr_tensor(*arrays, torch.from_numpy(A.data), A.shape).to("cuda:0")


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_matrix_on_a_gpu_is_solved_there(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    A = cpufree.generate.poisson3d(90, 89, 88)
    matrix, b = on_gpu(A, library), rhs(A)
    if library == "cupy":
        monkeypatch.setattr(type(matrix), "get", lambda self: pytest.fail("copied to the host"))
    with Solver(matrix, engine="cuda_p2p") as solver:
        assert solver.gpus == (0,)
        result = solver.solve(b, rtol=1e-9)
    assert true_residual(A, result.x, b) <= 1.001e-9


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_matrix_on_a_gpu_gets_multigrid_there(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    A = cpufree.generate.poisson2d(700, 690)
    matrix, b = on_gpu(A, library), rhs(A)
    if library == "cupy":
        monkeypatch.setattr(type(matrix), "get", lambda self: pytest.fail("copied to the host"))
    with Solver(A, engine="cuda_p2p", pes=1, pc="amg", reorder="natural") as solver:
        expected = solver.solve(b, rtol=1e-9)
    with Solver(matrix, engine="cuda_p2p", pc="amg") as solver:
        result = solver.solve(b, rtol=1e-9)
    assert np.array_equal(result.x, expected.x)
    with Solver(matrix, engine="cuda_p2p", solves=100) as solver:
        chosen = solver.solve(b, rtol=1e-9)
    assert chosen.pc == "amg" and np.array_equal(chosen.x, expected.x)


def test_matrix_on_a_gpu_that_is_not_symmetric_is_refused_with_the_entry() -> None:
    A = cpufree.generate.poisson3d(90, 89, 88)
    A[3, 4] = 7.0
    with pytest.raises(NotSymmetricError, match="row 3, column 4"):
        Solver(on_gpu(A, "cupy"))


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
