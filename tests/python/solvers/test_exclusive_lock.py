"""A Solver in several threads, and called from within its own solve."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import cpufree
from cpufree import Solver
from cpufree.errors import InvalidInputError
from cpufree.solvers import matrix_on_pes as module

PATIENCE = 120.0  # seconds until a test takes what it waits for to hang
A = sp.csr_array(cpufree.generate.poisson2d(60, 50))
B = np.sin(np.arange(float(A.shape[0])))


@pytest.mark.parametrize("what", ["update", "solve"])
def test_calls_from_a_progress_function_are_refused(what: str) -> None:
    chain, b = cpufree.generate.poisson1d(100_000), np.ones(100_000)
    given = {"update": chain, "solve": b}[what]
    with Solver(chain, engine="cpu_threads") as solver:

        def call(_iteration: int, _residual: float) -> bool:
            getattr(solver, what)(given)
            return True

        with pytest.raises(InvalidInputError, match="from its progress function: return False"):
            solver.solve(b, pc="none", rtol=1e-12, time_limit=300.0, progress=call)
        assert solver.solve(b, pc="none", maxiter=3).iterations == 3  # its turn has ended


def test_a_solver_closed_during_an_update_stays_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    relaid = module.relaid

    def slow(*arguments: Any) -> Any:
        begun.set()
        assert go_on.wait(120)
        return relaid(*arguments)

    solver = Solver(A, engine="cpu_threads")
    monkeypatch.setattr(module, "relaid", slow)
    thread = threading.Thread(target=solver.update, args=(2 * A,), daemon=True)
    thread.start()
    assert begun.wait(120)
    solver.close()
    go_on.set()
    thread.join(120)
    assert not thread.is_alive()
    with pytest.raises(InvalidInputError, match="closed"):
        solver.solve(B)


def test_an_update_that_is_interrupted_closes_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    solver = Solver(A, engine="cpu_threads")
    monkeypatch.setattr(module, "relaid", interrupted)
    with pytest.raises(KeyboardInterrupt):
        solver.update(2 * A)
    with pytest.raises(InvalidInputError, match="closed"):
        solver.solve(B)


def in_child(call: Any, limit: float = PATIENCE) -> str:
    """Fork; return what `call` returns in the child, "hangs" where it does not in time."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # no return from here: pytest must not go on in two processes
        try:
            os.write(writer, str(call()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0]:
            with os.fdopen(reader) as pipe:
                return pipe.read()
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    return "hangs"


def outcome_of(solver: Solver, b: Any) -> str:
    """Return the reason of a solve, or the message of its error."""
    try:
        return str(solver.solve(b).reason)
    except InvalidInputError as error:
        return str(error)


@pytest.mark.cpu_only
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_forked_while_another_thread_solves_gets_an_error() -> None:
    chain, b = cpufree.generate.poisson1d(100_000), np.ones(100_000)
    inside, go_on = threading.Event(), threading.Event()

    def progress(_iteration: int, _residual: float) -> bool:
        inside.set()
        go_on.wait(3 * PATIENCE)
        return False

    with Solver(chain, engine="cpu_threads") as solver:
        options = {"pc": "none", "rtol": 1e-12, "progress": progress}
        thread = threading.Thread(target=solver.solve, args=(b,), kwargs=options, daemon=True)
        thread.start()
        assert inside.wait(PATIENCE)
        said = in_child(lambda: outcome_of(solver, b))
        fresh = in_child(lambda: outcome_of(Solver(A, engine="cpu_threads", blocks=1), B))
        go_on.set()
        thread.join(PATIENCE)
        assert "at work in another thread when this process was forked" in said
        assert "make a new one" in said
        assert fresh == "CONVERGED_RTOL"
        assert solver.solve(b, maxiter=3).iterations == 3  # the parent goes on


@pytest.mark.cpu_only
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_forked_between_solves_may_use_the_solver() -> None:
    with Solver(A, engine="cpu_threads", blocks=1) as solver:
        solver.solve(B)
        assert in_child(lambda: outcome_of(solver, B)) == "CONVERGED_RTOL"
