"""Stopping a running solve from outside: progress, Ctrl-C, exceptions, wait limits."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest
from fake_core import FakeCore
from interrupts import interrupt_after, interrupt_once
from reference_cg import all_but_one_row, chain, first_unit_vector, rhs

import cpufree
from cpufree import Reason, Solver, WaitTimeoutError, solve
from cpufree.solvers.setup import layout

# A solve that would take minutes: CG needs as many iterations as this chain has links.
N = 400_000


@pytest.fixture(scope="module")
def long_solver() -> Solver:
    return Solver(chain(N), pc="jacobi")


@pytest.fixture(scope="module")
def b() -> np.ndarray:
    return first_unit_vector(N)


def test_progress_sees_iterations_and_residuals_and_can_stop(
    long_solver: Solver, b: np.ndarray
) -> None:
    seen: list[tuple[int, float]] = []

    def progress(iteration: int, residual: float) -> bool:
        seen.append((iteration, residual))
        return len(seen) < 4 or iteration == 0  # a busy machine may not have begun

    result = long_solver.solve(b, rtol=1e-12, progress=progress)
    assert result.reason is Reason.INTERRUPTED
    assert len(seen) >= 4
    iterations = [iteration for iteration, _ in seen]
    assert iterations == sorted(iterations)
    assert iterations[-1] > 0
    assert all(np.isfinite(residual) for _, residual in seen)


def test_an_interrupted_solve_returns_its_last_iterate(long_solver: Solver, b: np.ndarray) -> None:
    result = long_solver.solve(b, rtol=1e-12, progress=lambda iteration, _: iteration == 0)
    assert result.reason is Reason.INTERRUPTED
    assert not result.converged
    assert result.iterations > 0
    residual = np.linalg.norm(b - chain(N) @ result.x)
    assert residual == pytest.approx(result.true_residual, rel=1e-6)
    assert any("stopped on request" in note for note in result.warnings)


def test_ctrl_c_ends_a_solve_with_its_last_iterate(long_solver: Solver, b: np.ndarray) -> None:
    timer = interrupt_after(0.3)  # from another thread: the interpreter runs it during the solve
    result = long_solver.solve(b, rtol=1e-12)
    timer.join()
    assert result.reason is Reason.INTERRUPTED
    assert result.x.any()


def test_ctrl_c_works_again_as_usual_after_a_solve(long_solver: Solver, b: np.ndarray) -> None:
    timer = interrupt_after(0.2)
    long_solver.solve(b, rtol=1e-12)
    timer.join()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_in_cg_is_a_keyboard_interrupt(b: np.ndarray) -> None:
    timer = interrupt_after(0.2)
    with pytest.raises(KeyboardInterrupt):
        cpufree.cg(chain(N), b, rtol=1e-12)
    timer.join()


def test_an_exception_in_progress_ends_the_solve_and_is_raised(
    long_solver: Solver, b: np.ndarray
) -> None:
    def fail(iteration: int, residual: float) -> None:
        raise LookupError(f"at {iteration}")

    with pytest.raises(LookupError, match="at "):
        long_solver.solve(b, rtol=1e-12, progress=fail)
    # The solver is as good as before.
    assert long_solver.solve(b, rtol=1e-12, maxiter=5).iterations == 5


def test_a_handler_that_raises_ends_the_solve(long_solver: Solver, b: np.ndarray) -> None:
    def own(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGINT, own)
    runs = threading.Event()
    timer = interrupt_once(runs)
    try:
        with pytest.raises(TimeoutError):
            long_solver.solve(b, rtol=1e-12, progress=lambda *_: runs.set())
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert long_solver.solve(b, rtol=1e-12, maxiter=5).iterations == 5


def test_solves_of_one_solver_from_two_threads_take_turns() -> None:
    A = cpufree.generate.poisson2d(30, 30)
    rights = [rhs(A, seed) for seed in range(8)]
    expected = [solve(A, right, pes=2).x for right in rights]
    found: dict[int, np.ndarray] = {}
    with Solver(A, pes=2) as solver:

        def body(k: int) -> None:
            found[k] = solver.solve(rights[k]).x

        threads = [threading.Thread(target=body, args=(k,)) for k in range(len(rights))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(np.array_equal(found[k], x) for k, x in enumerate(expected))


def test_a_wait_beyond_its_limit_says_who_waited_for_whom(
    monkeypatch: pytest.MonkeyPatch, b: np.ndarray
) -> None:
    monkeypatch.setattr(layout, "partition", all_but_one_row)
    with Solver(chain(N), pes=2, blocks=1) as solver:
        with pytest.raises(WaitTimeoutError, match=r"PE 1 waited .* PE 0") as caught:
            solver.solve(b, rtol=1e-12, wait_limit=1e-9)
        wait = next(wait for wait in caught.value.waits if wait["pe"] == 1)
        assert (wait["block"], wait["waits_for_pe"], wait["waits_for_block"]) == (0, 0, 0)
        assert wait["seen"] < wait["epoch"]
        assert wait["seconds"] > 0.0
        assert wait["channel"]
        # All kernels have ended; the solver is as good as before.
        assert solver.solve(b, rtol=1e-12, maxiter=5).iterations == 5


@pytest.mark.parametrize(("argument", "expected"), [(None, 12.5), (3.0, 3.0)])
def test_the_environment_sets_the_wait_limit_unless_the_call_does(
    monkeypatch: pytest.MonkeyPatch, argument: float | None, expected: float
) -> None:
    fake = FakeCore(1)
    monkeypatch.setattr("cpufree._core", fake)
    monkeypatch.setenv("CPUFREE_WAIT_LIMIT", "12.5")
    solve(chain(5), np.ones(5), wait_limit=argument)
    assert fake.systems[0].options["wait_limit"] == expected
