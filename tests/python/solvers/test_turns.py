"""A Solver in several threads, and called from within its own solve."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import cpufree
from cpufree import Solver
from cpufree.errors import InvalidInputError
from cpufree.solvers import solver as module

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
            solver.solve(b, pc="none", rtol=1e-12, time_limit=20.0, progress=call)
        assert solver.solve(b, pc="none", maxiter=3).iterations == 3  # its turn has ended


def test_a_solver_closed_during_an_update_stays_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    relaid = module.relaid

    def slow(*arguments: Any) -> Any:
        begun.set()
        assert go_on.wait(20)
        return relaid(*arguments)

    solver = Solver(A, engine="cpu_threads")
    monkeypatch.setattr(module, "relaid", slow)
    thread = threading.Thread(target=solver.update, args=(2 * A,), daemon=True)
    thread.start()
    assert begun.wait(20)
    solver.close()
    go_on.set()
    thread.join(20)
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
