"""The automatic preconditioner, which is the default: when it is multigrid, and when Jacobi."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from cli_runner import Run, runner
from ranks_here import launched

import cpufree
from cpufree import Solver, VectorError
from cpufree.engines.expected import Workload
from cpufree.engines.gpus import Gpu
from cpufree.engines.placement import Placement
from cpufree.generate import generate
from cpufree.matrix.load import as_csr
from cpufree.matrix.samples import sample
from cpufree.multigrid.gain import MOST_POSITIVE, Cost, MultigridGain, needed, positive_part
from cpufree.solvers import factors
from cpufree.solvers.setup import layout

LARGE = generate("poisson2d", nx=300, ny=300)
B = np.random.default_rng(2).standard_normal(LARGE.shape[0])
CPU = Placement("cpu_threads", 1, 2)
H200 = Gpu(0, "NVIDIA H200", 0, (9, 0))
ON_CPU: dict[str, Any] = {"engine": "cpu_threads", "rtol": 1e-8}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)


def test_it_is_the_default_of_solve_and_solver() -> None:
    assert cpufree.solve(LARGE, B, **ON_CPU).pc == "amg"
    with Solver(LARGE, engine="cpu_threads") as solver:
        assert solver.solve(B, rtol=1e-8).pc == "amg"
        assert solver.solve(B, rtol=1e-8, pc="jacobi").pc == "jacobi"


def test_it_is_the_default_of_the_command(run: Run) -> None:
    done = run("solve", "gen:poisson2d?nx=300,ny=300", "--rtol", "1e-8")
    assert done.code == 0, done.err
    assert "preconditioner amg" in done.out


def test_scipys_signature_stays_with_jacobi() -> None:
    x, info = cpufree.cg(LARGE, B, rtol=1e-8)
    with Solver(LARGE, engine="cpu_threads", pc="jacobi") as solver:
        assert info == 0 and np.array_equal(x, solver.solve(B, rtol=1e-8).x)


@pytest.mark.parametrize("method", ["prcg", "pipecg"])
def test_methods_that_multigrid_is_not_for_have_jacobi(method: Any) -> None:
    assert cpufree.solve(LARGE, B, method=method, **ON_CPU).pc == "jacobi"
    with Solver(LARGE, engine="cpu_threads") as solver:
        assert solver.solve(B, rtol=1e-8).pc == "amg"
        assert solver.solve(B, rtol=1e-8, method=method).pc == "jacobi"


def test_columns_that_are_to_be_solved_together_have_jacobi() -> None:
    both = np.column_stack([B, B])
    assert cpufree.solve(LARGE, both, columns="together", **ON_CPU).pc == "jacobi"
    with Solver(LARGE, engine="cpu_threads") as solver:
        assert solver.solve(both, rtol=1e-8, columns="together").pc == "jacobi"


def test_without_memory_for_levels_it_is_jacobi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors, "memory_limits", lambda *_: (1e9, 1e6))
    result = cpufree.solve(LARGE, B, **ON_CPU)
    assert result.pc == "jacobi" and result.converged
    assert "the levels of multigrid take some" in result.why


def test_modes_that_cannot_be_used_are_refused_even_where_jacobi_is_taken() -> None:
    A = generate("poisson2d", nx=30, ny=30)
    with pytest.raises(VectorError, match="near_nullspace has shape"):
        cpufree.solve(A, np.ones(900), near_nullspace=np.ones((7, 1)), **ON_CPU)


def test_signs_of_entries_tell_where_multigrid_is_slow() -> None:
    mass = generate("poisson2d", nx=90, ny=70)
    mass.data = np.abs(mass.data)  # as a consistent mass matrix has them
    assert positive_part(sample(as_csr(mass))) == 1.0
    assert positive_part(sample(as_csr(LARGE))) == 0.0 < MOST_POSITIVE
    gain = MultigridGain.of(as_csr(mass), Workload(solves=10_000), CPU)
    assert not gain.possible and "both signs" in gain.why


def test_the_entries_of_a_diagonal_matrix_have_no_signs() -> None:
    assert positive_part(sample(as_csr(sp.csr_array(sp.eye_array(5000))))) == 0.0


def test_iterations_are_expected_by_the_speed_of_the_second_half() -> None:
    steady = 10.0 ** -(np.arange(51) / 25.0)  # two digits in 50 iterations
    assert needed(steady, 1e-8) == pytest.approx(200.0)
    assert needed(np.ones(51), 1e-8) == np.inf
    assert needed(steady, 1e-1) == 50.0
    assert needed(np.zeros(1), 1e-8) == 0.0
    assert needed(steady, 0.0) == pytest.approx(400.0)  # as if 1e-16 were asked for


def test_what_parts_leave_no_doubt_of_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "trial", lambda *_: pytest.fail("it was tried"))
    result = cpufree.solve(LARGE, B, **{**ON_CPU, "rtol": 1e-13})
    assert result.pc == "amg" and "amg pays from" in result.why
    gain = MultigridGain(cost=100.0, expected=340.0)
    assert gain.possible and not gain.certain
    assert not MultigridGain(cost=100.0, expected=np.inf).certain


def test_few_iterations_at_most_are_not_worth_multigrid() -> None:
    result = cpufree.solve(LARGE, B, maxiter=20, **ON_CPU)
    assert result.pc == "jacobi" and result.iterations == 20


def test_the_choice_is_the_same_every_time() -> None:
    first, second = (cpufree.solve(LARGE, B, **ON_CPU) for _ in range(2))
    assert first.x.tobytes() == second.x.tobytes() and first.why == second.why


def test_an_indefinite_matrix_has_the_outcome_of_jacobi() -> None:
    A = sp.csr_array(LARGE - 0.5 * sp.eye_array(LARGE.shape[0]))
    reasons = {cpufree.solve(A, B, pc=pc, **ON_CPU).reason for pc in ("auto", "jacobi")}
    assert len(reasons) == 1 and not reasons.pop().converged


def test_an_update_keeps_multigrid() -> None:
    with Solver(LARGE, engine="cpu_threads") as solver:
        solver.update(2.0 * LARGE)
        result = solver.solve(B, rtol=1e-8)
        assert result.converged and result.pc == "amg"


def test_processes_take_multigrid_together() -> None:
    ended = launched("solve", "gen:poisson2d?nx=300,ny=300", "--rtol", "1e-8", ranks=2)
    assert ended.code == 0, ended
    assert "preconditioner amg" in ended.out


def test_costs_on_gpus_are_those_of_the_machine() -> None:
    on_gpu = Placement("cuda_p2p", 1, 0, gpus=[H200])
    small, large = (Cost.on(on_gpu, nonzeros, 1) for nonzeros in (10_000, 10_000_000))
    assert small.cycle > large.cycle > 3.0
    assert large.setup > Cost.on(CPU, 10_000_000, 1).setup
    assert Cost.on(CPU, 10_000, 3).setup < Cost.on(CPU, 10_000, 1).setup


def test_levels_that_the_host_makes_for_gpus_are_not_taken() -> None:
    where = Placement("cuda_p2p", 1, 0, gpus=[H200])
    gain = MultigridGain.of(as_csr(LARGE), Workload(solves=10**6), where, 3)
    assert not gain.possible and "several unknowns a node" in gain.why


def test_on_gpus_some_iterations_tell_unless_there_may_be_few() -> None:
    where = Placement("cuda_p2p", 2, 0, gpus=[H200] * 2)
    assert MultigridGain.of(as_csr(LARGE), Workload(), where).possible
    gain = MultigridGain.of(as_csr(LARGE), Workload(maxiter=200), where)
    assert not gain.possible and "200 iterations at most" in gain.why
