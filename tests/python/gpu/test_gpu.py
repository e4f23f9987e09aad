"""The engine for GPUs on real ones. Skipped where there is none that can be used."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from gpus_here import COUNTS, HERE, NUMBERS, needs_gpu, on_all_counts, several, solve, true_residual
from reference_cg import SYSTEMS, all_but_one_row, chain, first_unit_vector, rhs

import cpufree
from cpufree import Reason, Solver, VectorError, WaitTimeoutError
from cpufree.extension import load_core
from cpufree.matrix.load import as_csr
from cpufree.partition.methods import contiguous
from cpufree.solvers.setup import layout

METHODS = ["cg", "prcg", "pipecg"]
PCS = ["none", "jacobi", "chebyshev"]


pytestmark = needs_gpu


@pytest.fixture(scope="module")
def poisson() -> sp.csr_array:
    return cpufree.generate.poisson3d(20, 19, 18)


# Accuracy


@on_all_counts
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pc", PCS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_all_methods_and_preconditioners_meet_the_tolerance(
    name: str, method: str, pc: str, pes: int
) -> None:
    A = SYSTEMS[name]()
    b = rhs(A)
    result = solve(A, b, rtol=1e-9, maxiter=20_000, method=method, pc=pc, pes=pes)
    assert result.converged
    assert result.engine == "cuda_p2p"
    assert len(result.gpus) == pes
    assert true_residual(A, result.x, b) <= 1.001e-9
    assert result.relative_residual == pytest.approx(true_residual(A, result.x, b), rel=1e-2)


@several
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pes", COUNTS[1:] or [2])
def test_several_gpus_find_the_solution_of_one(
    poisson: sp.csr_array, method: str, pes: int
) -> None:
    b = rhs(poisson)
    one = solve(poisson, b, rtol=1e-10, method=method, pes=1)
    many = solve(poisson, b, rtol=1e-10, method=method, pes=pes)
    assert abs(many.iterations - one.iterations) <= 3
    assert np.linalg.norm(many.x - one.x) <= 1e-8 * np.linalg.norm(one.x)


@pytest.mark.parametrize("method", METHODS)
def test_gpu_takes_the_iterations_of_the_cpu(poisson: sp.csr_array, method: str) -> None:
    b = rhs(poisson)
    cpu = cpufree.solve(poisson, b, rtol=1e-8, method=method, engine="cpu_threads", pes=1)
    gpu = solve(poisson, b, rtol=1e-8, method=method, pes=1)
    assert abs(gpu.iterations - cpu.iterations) <= 3
    assert np.linalg.norm(gpu.x - cpu.x) <= 1e-6 * np.linalg.norm(cpu.x)


@on_all_counts
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("residency", [-1, 0], ids=["on chip", "in memory"])
@pytest.mark.parametrize("halo", [0, 1, 2], ids=["stores", "packets", "packets among blocks"])
def test_rows_may_travel_in_every_way(
    poisson: sp.csr_array, halo: int, residency: int, method: str, pes: int
) -> None:
    A, b = as_csr(poisson), rhs(poisson)
    part = contiguous(A, pes) if pes > 1 else None
    tuning = {"halo": halo, "residency": residency}
    system = load_core().System(
        A.indptr, A.indices, A.data, part, None, pes, 0, "cuda_p2p", NUMBERS[:pes], tuning
    )
    assert system.plan()["block_halo"] == ("packets" if halo == 2 else "flags")
    for pc in PCS:
        options = {"method": method, "pc": pc, "rtol": 1e-9, "maxiter": 2000}
        assert (
            true_residual(poisson, system.solve(b, None, None, options, None)["x"], b) <= 1.001e-9
        )


@on_all_counts
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pc", ["jacobi", "chebyshev"])
def test_repeated_solves_are_bitwise_the_same(
    poisson: sp.csr_array, method: str, pc: str, pes: int
) -> None:
    b = rhs(poisson)
    with Solver(poisson, engine="cuda_p2p", pes=pes) as solver:
        first = solver.solve(b, rtol=1e-10, method=method, pc=pc)
        for _ in range(20):
            again = solver.solve(b, rtol=1e-10, method=method, pc=pc)
            assert again.x.tobytes() == first.x.tobytes()
            assert again.history.tobytes() == first.history.tobytes()


@on_all_counts
def test_solver_is_good_for_several_right_hand_sides(poisson: sp.csr_array, pes: int) -> None:
    with Solver(poisson, engine="cuda_p2p", pes=pes) as solver:
        for seed in range(3):
            b = rhs(poisson, seed)
            assert true_residual(poisson, solver.solve(b, rtol=1e-8).x, b) <= 1.001e-8


@on_all_counts
def test_float32_is_solved_in_float32(poisson: sp.csr_array, pes: int) -> None:
    A, b = poisson.astype(np.float32), rhs(poisson).astype(np.float32)
    result = solve(A, b, rtol=1e-4, pes=pes)
    assert result.converged
    assert result.x.dtype == np.float32
    assert true_residual(A, result.x, b) <= 1.05e-4


# Shapes of matrices


def arrow(n: int) -> sp.csr_array:
    """Return a diagonal matrix with a full first row and column, diagonally dominant."""
    A = sp.lil_array((n, n))
    A.setdiag(2.0)
    A[0, :] = -1.0 / n
    A[:, 0] = -1.0 / n
    A[0, 0] = 2.0
    return sp.csr_array(A)


def dense(n: int) -> np.ndarray:
    """Return a full matrix, well conditioned."""
    G = np.random.default_rng(5).standard_normal((n, n))
    return np.asarray(G @ G.T / n + np.eye(n))


AWKWARD = {
    "one row": lambda: sp.csr_array(np.array([[4.0]])),
    "fewer rows than blocks": lambda: chain(50),
    "diagonal": lambda: sp.csr_array(sp.diags_array(np.linspace(1.0, 1e6, 5000))),
    "arrow": lambda: arrow(3000),
    "dense": lambda: sp.csr_array(dense(200)),
}


@on_all_counts
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_matrices_are_solved(name: str, method: str, pes: int) -> None:
    A = AWKWARD[name]()
    b = rhs(A)
    result = solve(A, b, rtol=1e-10, method=method, pes=pes)
    assert result.converged
    assert true_residual(A, result.x, b) <= 1.001e-10


@on_all_counts
def test_diagonal_matrix_takes_one_iteration(pes: int) -> None:
    d = np.linspace(1.0, 1e6, 5000)
    result = solve(sp.diags_array(d, format="csr"), np.ones(5000), rtol=1e-12, pes=pes)
    assert result.iterations == 1
    assert result.x == pytest.approx(1.0 / d, rel=1e-13)


# Guesses and endings


@on_all_counts
def test_exact_x0_takes_no_iteration(poisson: sp.csr_array, pes: int) -> None:
    x = np.arange(poisson.shape[0], dtype=float)
    result = solve(poisson, poisson @ x, x0=x, pes=pes)
    assert (result.converged, result.iterations) == (True, 0)
    assert np.array_equal(result.x, x)


@on_all_counts
def test_zero_b_gives_zero_whatever_x0(poisson: sp.csr_array, pes: int) -> None:
    n = poisson.shape[0]
    result = solve(poisson, np.zeros(n), x0=np.ones(n), pes=pes)
    assert result.reason is Reason.CONVERGED_ATOL
    assert not result.x.any()


@on_all_counts
@pytest.mark.parametrize("method", METHODS)
def test_indefinite_matrix_is_named(poisson: sp.csr_array, method: str, pes: int) -> None:
    A = sp.csr_array(poisson - sp.eye_array(poisson.shape[0]) * 5.9)
    b = np.random.default_rng(1).standard_normal(A.shape[0])
    result = solve(A, b, method=method, pc="none", pes=pes)
    assert result.reason is Reason.DIVERGED_INDEFINITE_MAT


def test_nan_in_b_on_the_host_is_refused_with_its_place(poisson: sp.csr_array) -> None:
    b = rhs(poisson)
    b[7] = np.nan
    with pytest.raises(VectorError, match=r"b\[7\] = nan"):
        solve(poisson, b)


# A solve of seconds: CG needs as many iterations as this chain has links.
LONG = 2_000_000


@pytest.fixture(scope="module")
def long_solver() -> Solver:
    return Solver(chain(LONG), engine="cuda_p2p", pes=1, check=False)


@pytest.fixture(scope="module")
def long_b() -> np.ndarray:
    return first_unit_vector(LONG)


def test_threads_may_solve_and_free_systems_on_one_gpu_at_once(
    poisson: sp.csr_array, long_solver: Solver, long_b: np.ndarray
) -> None:
    def solve_and_free() -> None:
        for _ in range(20):
            solve(poisson, rhs(poisson), rtol=1e-6, pes=1)

    other = threading.Thread(target=solve_and_free, daemon=True)
    other.start()
    for _ in range(5):  # long enough for progress to be told, which needs Python's lock
        long_solver.solve(long_b, rtol=1e-12, time_limit=0.1, progress=lambda *_: True)
    other.join(timeout=120)
    assert not other.is_alive()


@pytest.mark.parametrize("limit", [0.1, 0.5])
def test_time_limit_is_kept_to_50_ms(long_solver: Solver, long_b: np.ndarray, limit: float) -> None:
    result = long_solver.solve(long_b, rtol=1e-12, time_limit=limit)
    assert result.reason is Reason.TIME_LIMIT
    assert limit <= result.timings["kernel"] < limit + 0.05


def test_progress_is_called_about_every_20_ms_and_moves_on(
    long_solver: Solver, long_b: np.ndarray
) -> None:
    seen: list[int] = []
    long_solver.solve(
        long_b, rtol=1e-12, time_limit=0.5, progress=lambda iteration, _: seen.append(iteration)
    )
    assert seen == sorted(seen)
    assert len(set(seen)) >= 5
    assert 10 <= len(seen) <= 50


def test_progress_that_returns_false_ends_the_solve(
    long_solver: Solver, long_b: np.ndarray
) -> None:
    result = long_solver.solve(long_b, rtol=1e-12, progress=lambda *_: False)
    assert result.reason is Reason.INTERRUPTED
    assert result.iterations > 0


class CtrlC:
    """Presses Ctrl-C 20 ms after the first call of progress; `pressed` is when."""

    def __init__(self) -> None:
        self.running = threading.Event()
        self.pressed = 0.0
        self.thread = threading.Thread(target=self._press)
        self.thread.start()

    def progress(self, iteration: int, residual: float) -> None:
        self.running.set()

    def _press(self) -> None:
        if self.running.wait(60.0):
            time.sleep(0.02)
            self.pressed = time.perf_counter()
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.slow
@on_all_counts
def test_ctrl_c_ends_a_large_solve_within_100_ms(pes: int) -> None:
    # Conduction that differs by direction takes thousands of iterations.
    A = cpufree.generate.poisson3d(200, 200, 200, weights=(1.0, 1e-2, 1e-4))
    b = rhs(A)
    with Solver(A, engine="cuda_p2p", pes=pes, check=False) as solver:
        solver.solve(b, maxiter=1)  # what the first solve sets up does not count
        key = CtrlC()
        result = solver.solve(b, rtol=0.0, maxiter=10**9, method="cg", progress=key.progress)
        taken = time.perf_counter() - key.pressed
        key.thread.join()
    assert result.reason is Reason.INTERRUPTED
    assert taken < 0.1


def test_ctrl_c_ends_a_long_solve_within_100_ms(long_solver: Solver, long_b: np.ndarray) -> None:
    key = CtrlC()
    result = long_solver.solve(long_b, rtol=1e-12, progress=key.progress)
    taken = time.perf_counter() - key.pressed
    key.thread.join()
    assert result.reason is Reason.INTERRUPTED
    assert result.x.any()
    assert taken < 0.1


def test_solver_is_as_good_as_before_after_an_interruption(
    long_solver: Solver, long_b: np.ndarray
) -> None:
    long_solver.solve(long_b, rtol=1e-12, progress=lambda *_: False)
    assert long_solver.solve(long_b, rtol=1e-12, maxiter=5).iterations == 5


@several
def test_wait_beyond_its_limit_says_who_waited_for_whom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "partition", all_but_one_row)
    b = first_unit_vector(400_000)
    with Solver(chain(400_000), engine="cuda_p2p", pes=2) as solver:
        with pytest.raises(
            WaitTimeoutError, match=r"PE \d waited .* for block \d+ of PE \d"
        ) as caught:
            solver.solve(b, rtol=1e-12, wait_limit=1e-9)
        assert "raise wait_limit" in str(caught.value)
        assert all(wait["seen"] < wait["epoch"] for wait in caught.value.waits)
        assert solver.solve(b, rtol=1e-12, maxiter=5).iterations == 5


# Which GPUs


@pytest.mark.parametrize("number", NUMBERS)
def test_each_gpu_can_be_asked_for_by_number(poisson: sp.csr_array, number: int) -> None:
    result = cpufree.solve(poisson, rhs(poisson), gpus=[number])
    assert (result.engine, result.gpus) == ("cuda_p2p", (number,))
    assert result.converged


@several
def test_plan_of_several_gpus_tells_how_halos_travel(poisson: sp.csr_array) -> None:
    assert Solver(poisson, engine="cuda_p2p", pes=2).plan["halo"] in ("packets", "stores")


@several
def test_gpus_are_used_in_the_order_given(poisson: sp.csr_array) -> None:
    chosen = NUMBERS[1::-1]
    result = cpufree.solve(poisson, rhs(poisson), gpus=chosen)
    assert result.gpus == tuple(chosen)
    assert result.converged


def test_plan_tells_threads_halo_and_what_stays_on_chip(poisson: sp.csr_array) -> None:
    plan = Solver(poisson, engine="cuda_p2p", pes=1).plan
    assert plan["engine"] == "cuda_p2p"
    assert plan["threads"] >= 32
    assert plan["halo"] == "none"  # one GPU has no neighbours
    assert plan["block_halo"] in ("packets", "flags")
    assert plan["resident_vectors"] >= 0
    assert plan["resident_matrix"] in (True, False)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [("poisson2d?nx=64,ny=64", "packets"), ("poisson3d?nx=70,ny=70,nz=70", "flags")],
)
def test_blocks_fetch_rows_where_they_need_few(spec: str, expected: str) -> None:
    A = cpufree.generate.from_spec(spec)
    assert Solver(A, engine="cuda_p2p", pes=1).plan["block_halo"] == expected


def test_blocks_asked_for_are_those_in_use(poisson: sp.csr_array) -> None:
    result = solve(poisson, rhs(poisson), pes=1, blocks=3)
    assert result.blocks == 3
    assert result.converged


def test_extension_lists_gpus_as_declared() -> None:
    assert load_core().gpu_vendor() == "NVIDIA"
    assert load_core().gpu_note() == ""
    assert all(gpu.name and 0 < gpu.free_bytes() <= gpu.memory_bytes for gpu in HERE)
