"""Algebraic multigrid as preconditioner, pc="amg", on GPUs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_systems import solve as solve_system
from gpus_here import NUMBERS, needs_gpu, on_all_counts, solve, true_residual

import cpufree
from cpufree import Solver, UnsupportedError, env
from cpufree.extension import load_for
from cpufree.generate import generate
from cpufree.matrix.load import as_csr
from cpufree.partition.methods import contiguous

env.preset_shared_gpus()
pytestmark = needs_gpu

FIRST = NUMBERS[:1] or [0]
WAIT = 10.0
"""Seconds after which a wait is given up."""


def rhs(A: Any) -> Any:
    return np.random.default_rng(3).standard_normal(A.shape[0])


def lognormal(n: int) -> sp.csr_array:
    """Return a diffusion of seven points, sigma of its coefficient 2.5, correlated over 3 cells."""
    noise = np.fft.fftn(np.random.default_rng(5).standard_normal((n, n, n)))
    waves = np.meshgrid(*[np.fft.fftfreq(n)] * 3, indexing="ij")
    smooth = np.fft.ifftn(noise * np.exp(-9 * np.pi**2 * sum(w**2 for w in waves))).real
    k = np.exp(2.5 * smooth / smooth.std())
    places = np.arange(n**3).reshape(n, n, n)
    rows, columns, values = [], [], []
    for axis in range(3):
        first, second = (np.take(places, range(s, n - 1 + s), axis).ravel() for s in (0, 1))
        between = 2.0 / (1.0 / k.ravel()[first] + 1.0 / k.ravel()[second])
        for a, b, value in ((first, second, -between), (second, first, -between)):
            rows.append(a), columns.append(b), values.append(value)
        for a in (first, second):
            rows.append(a), columns.append(a), values.append(between)
    rows.append(places.ravel()), columns.append(places.ravel()), values.append(1e-3 * k.ravel())
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sp.csr_array(sp.coo_array(entries, shape=(n**3, n**3)))


SYSTEMS = {
    "poisson2d, three levels": lambda: generate("poisson2d", nx=170, ny=161),
    "poisson3d, four levels": lambda: generate("poisson3d", nx=64, ny=64, nz=64),
    "one level below": lambda: generate("poisson2d", nx=40, ny=31),
    "lognormal": lambda: lognormal(40),
}


@pytest.fixture(scope="module", params=list(SYSTEMS))
def system(request: pytest.FixtureRequest) -> Any:
    return SYSTEMS[request.param]()


def check(A: Any, gpus: list[int], **options: Any) -> Any:
    """Check a solve against that of the CPU, and against itself; return it."""
    b, pes = rhs(A), len(gpus)
    part = contiguous(A, pes) if pes > 1 else "auto"
    how: dict[str, Any] = {"pc": "amg", "rtol": 1e-8, "wait_limit": WAIT, **options}
    with Solver(A, engine="cuda_p2p", gpus=gpus, partition=part, pc="amg") as solver:
        found, again = solver.solve(b, **how), solver.solve(b, **how)
    expected = cpufree.solve(A, b, engine="cpu_threads", pes=pes, partition=part, **how)
    assert found.converged
    assert true_residual(A, found.x, b) <= 1.01e-8
    assert abs(found.iterations - expected.iterations) <= 1
    assert [level["rows"] for level in found.levels][:2] == [
        level["rows"] for level in expected.levels
    ][:2]
    assert found.x.tobytes() == again.x.tobytes()
    return found


def test_one_gpu_needs_the_iterations_of_the_cpu(system: Any) -> None:
    check(system, FIRST)


@pytest.mark.parametrize("pes", [2, 3, 4])
def test_pes_that_share_a_gpu_need_the_iterations_of_the_cpu(system: Any, pes: int) -> None:
    check(system, FIRST * pes)


@on_all_counts
def test_gpus_need_the_iterations_of_the_cpu(pes: int) -> None:
    check(SYSTEMS["poisson3d, four levels"](), NUMBERS[:pes])


def levels_system(A: Any, layout: int, pes: int = 1) -> Any:
    """Return a System with multigrid, whose levels the host (0) or a GPU (1) makes."""
    A = as_csr(A)
    part = None if pes == 1 else contiguous(A, pes)
    where: tuple[Any, ...] = (pes, 0, "cuda_p2p", FIRST * pes, {"pc": "amg", "layout": layout})
    return load_for("cuda_p2p").System(A.indptr, A.indices, A.data, part, None, *where)


@pytest.mark.parametrize("pes", [1, 2])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_gpus_make_the_levels_of_the_host(system: Any, kind: Any, pes: int) -> None:
    A = system.astype(kind)
    b = rhs(A).astype(kind)
    by_host, by_gpu = (levels_system(A, layout, pes) for layout in (0, 1))
    host, gpu = ([dict(level) for level in made.plan()["levels"]] for made in (by_host, by_gpu))
    # Sizes, nonzeros, bytes; GPUs of several PEs sort the rows of levels in other windows.
    apart = 0.0 if pes == 1 else 0.05
    assert all(
        abs(one.pop("bytes") - other.pop("bytes")) <= apart * size
        for one, other, size in zip(host, gpu, [level["bytes"] for level in host], strict=True)
    )
    assert host == gpu
    one, other = (
        solve_system(made, b, "cg", "amg", rtol=1e-30, maxiter=3)["x"] for made in (by_host, by_gpu)
    )
    assert np.linalg.norm(one - other) <= 1e-5 * np.linalg.norm(one)


def test_two_set_ups_by_a_gpu_of_a_large_system_have_the_same_bits() -> None:
    A = generate("poisson3d", nx=128, ny=127, nz=126)
    b = rhs(A)
    first, second = (
        solve_system(levels_system(A, 1), b, "cg", "amg", rtol=1e-8)["x"] for _ in range(2)
    )
    assert first.tobytes() == second.tobytes()


def test_rows_that_are_coupled_to_very_many_others() -> None:
    n, hubs = 30_000, 3
    rows = np.arange(n)
    ring = sp.coo_array((np.ones(n), (rows, (rows + 1) % n)), shape=(n, n))
    spokes = sp.coo_array((np.ones(n), (rows, rows % hubs)), shape=(n, n))
    graph = sp.csr_array(ring + ring.T + spokes + spokes.T)
    graph.data[:] = 1.0
    graph.setdiag(0.0)
    A = sp.csr_array(sp.diags_array(graph.sum(axis=1) + 0.01) - graph)
    b = rhs(A)
    iterations = []
    for layout in (0, 1):
        outcome = solve_system(levels_system(A, layout), b, "cg", "amg", rtol=1e-8)
        assert true_residual(A, outcome["x"], b) <= 1.01e-8
        iterations.append(outcome["iterations"])
    assert abs(iterations[0] - iterations[1]) <= 1


def test_set_ups_leave_the_same_bits() -> None:
    A = SYSTEMS["poisson2d, three levels"]()
    first, second = (solve(A, rhs(A), pc="amg", rtol=1e-8, wait_limit=WAIT) for _ in range(2))
    assert first.x.tobytes() == second.x.tobytes()


def test_poisson_takes_few_iterations() -> None:
    A = generate("poisson3d", nx=128, ny=128, nz=128)
    result = solve(A, rhs(A), pc="amg", rtol=1e-8)
    assert result.iterations <= 13
    assert result.method == "cg"


def test_solves_reach_the_accuracy_of_double_precision() -> None:
    A = SYSTEMS["one level below"]()
    b = rhs(A)
    result = solve(A, b, pc="amg", rtol=1e-12)
    assert result.converged and true_residual(A, result.x, b) <= 1.1e-12


def test_single_precision() -> None:
    A = SYSTEMS["one level below"]().astype(np.float32)
    b = rhs(A).astype(np.float32)
    result = solve(A, b, pc="amg", rtol=1e-4)
    assert result.converged and true_residual(A, result.x, b) <= 2e-4


@pytest.mark.parametrize("pes", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_small_systems(n: int, pes: int) -> None:
    A = sp.diags_array([-np.ones(n - 1), np.full(n, 2.5), -np.ones(n - 1)], offsets=[-1, 0, 1])
    A, b = sp.csr_array(A), rhs(A)
    result = cpufree.solve(A, b, pc="amg", engine="cuda_p2p", gpus=FIRST * pes, wait_limit=WAIT)
    assert result.converged and true_residual(A, result.x, b) <= 1e-5


def test_a_diagonal_matrix_and_isolated_rows() -> None:
    diagonal = sp.csr_array(sp.diags_array(np.linspace(1.0, 9.0, 900)))
    assert solve(diagonal, np.ones(900), pc="amg", rtol=1e-8).converged
    both = sp.csr_array(sp.block_diag([diagonal, SYSTEMS["one level below"]()]))
    alone = solve(SYSTEMS["one level below"](), rhs(both)[900:], pc="amg", rtol=1e-8)
    assert solve(both, rhs(both), pc="amg", rtol=1e-8).iterations <= alone.iterations + 2


@pytest.mark.parametrize("penalty", [1e10, 1e20, 1e30])
def test_penalties_cost_no_iterations(penalty: float) -> None:
    A = SYSTEMS["poisson2d, three levels"]().tolil()
    b = rhs(A)
    plain = solve(sp.csr_array(A), b, pc="amg", rtol=1e-8).iterations
    for row in range(0, A.shape[0], 97):
        A[row, row], b[row] = penalty, 0.0
    assert solve(sp.csr_array(A), b, pc="amg", rtol=1e-8).iterations <= plain + 1


@pytest.mark.parametrize("unit", [1e-290, 1e-30, 1e30, 1e290])
def test_units_do_not_matter(unit: float) -> None:
    A = SYSTEMS["one level below"]()
    plain = solve(A, rhs(A), pc="amg", rtol=1e-8).iterations
    assert abs(solve(A * unit, rhs(A), pc="amg", rtol=1e-8).iterations - plain) <= 1


def test_an_indefinite_matrix_ends_with_its_name() -> None:
    A = SYSTEMS["one level below"]() - 3.0 * sp.eye_array(1240)
    result = solve(sp.csr_array(A), rhs(A), pc="amg", rtol=1e-8)
    assert result.reason.value in ("DIVERGED_INDEFINITE_MAT", "DIVERGED_INDEFINITE_PC")


def test_other_solves_and_updates_of_the_system() -> None:
    A = SYSTEMS["one level below"]()
    b = rhs(A)
    with Solver(A, engine="cuda_p2p", gpus=FIRST, pc="amg") as solver:
        assert solver.solve(b, pc="jacobi", rtol=1e-8).converged
        solver.update(2.0 * A)
        assert true_residual(2.0 * A, solver.solve(b, rtol=1e-8).x, b) <= 1.01e-8


def test_several_right_hand_sides_together_are_refused() -> None:
    A = SYSTEMS["one level below"]()
    refused = pytest.raises(UnsupportedError, match="the preconditioner amg takes one at a time")
    with Solver(A, engine="cuda_p2p", gpus=FIRST, pc="amg") as solver, refused:
        solver.solve(np.ones((A.shape[0], 2)), columns="together")
