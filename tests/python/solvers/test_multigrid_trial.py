"""pc="auto" where the first solve tells: it begins with Jacobi, and may go on with multigrid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cpufree
from cpufree import Solver
from cpufree.errors import OutOfMemoryError
from cpufree.generate import generate
from cpufree.solvers import amg_gain, layout
from cpufree.solvers.amg_gain import Cost, Trial

SLOW = generate("poisson2d", nx=200, ny=200)
B = np.random.default_rng(5).standard_normal(SLOW.shape[0])
CPU: dict[str, Any] = {"engine": "cpu_threads"}
TIGHT = 1e-12
LENGTH = 120


def error(x: np.ndarray, b: np.ndarray = B) -> float:
    return float(np.linalg.norm(b - SLOW @ x) / np.linalg.norm(b))


def test_a_solve_goes_on_with_multigrid_where_its_residual_says_so() -> None:
    result = cpufree.solve(SLOW, B, pc="auto", rtol=TIGHT, **CPU)
    assert (result.converged, result.pc, result.method) == (True, "amg", "cg")
    assert error(result.x) <= 1.01 * TIGHT
    assert LENGTH < result.iterations < LENGTH + 25
    assert len(result.history) == result.iterations + 1
    assert result.history[0] == pytest.approx(np.linalg.norm(B))
    assert "iterations with jacobi only" in result.why
    assert result.timings["setup_system_multigrid"] > 0.0


def test_it_goes_on_with_jacobi_where_little_is_left() -> None:
    result = cpufree.solve(SLOW, B, pc="auto", rtol=1e-5, **CPU)
    assert (result.converged, result.pc) == (True, "jacobi")
    assert result.iterations > LENGTH
    assert len(result.history) == result.iterations + 1
    assert error(result.x) <= 1.01e-5
    assert "iterations, and goes on" in result.why


def test_two_solves_of_the_same_system_have_the_same_bits() -> None:
    one, two = (cpufree.solve(SLOW, B, pc="auto", rtol=TIGHT, **CPU).x for _ in range(2))
    assert np.array_equal(one, two)


def test_later_solves_begin_with_what_the_first_one_has_found() -> None:
    values = SLOW.copy()
    with Solver(values, pc="auto", **CPU) as solver:
        values.data[:] = np.nan  # the Solver has its own until then
        first = solver.solve(B, rtol=TIGHT)
        second = solver.solve(2.0 * B, rtol=TIGHT)
        jacobi = solver.solve(B, rtol=1e-4, pc="jacobi")
        solver.update(SLOW)
        third = solver.solve(B, rtol=TIGHT)
    assert [r.pc for r in (first, second, jacobi, third)] == ["amg", "amg", "jacobi", "amg"]
    assert second.iterations < 25 and third.iterations < 25
    assert error(second.x, 2.0 * B) <= 1.01 * TIGHT


def test_a_solve_that_ends_within_the_trial_leaves_it_open() -> None:
    with Solver(SLOW, pc="auto", **CPU) as solver:
        short = solver.solve(B, rtol=TIGHT, maxiter=20)
        assert (short.iterations, str(short.reason)) == (20, "DIVERGED_ITS")
        assert solver.solve(B, rtol=TIGHT).pc == "amg"


def test_without_room_for_levels_it_goes_on_with_jacobi(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(tuning: dict[str, Any], nonzeros: int) -> None:
        if tuning.get("pc") == "amg":
            raise OutOfMemoryError("no room for levels")

    monkeypatch.setattr(layout, "require_room", full)
    result = cpufree.solve(SLOW, B, pc="auto", rtol=TIGHT, **CPU)
    assert (result.converged, result.pc) == (True, "jacobi")
    assert "no room for levels" in result.why


def test_a_trial_counts_all_solves_that_are_to_come() -> None:
    cost = Cost(setup=450.0, cycle=10.0, iterations=15.0)
    assert not Trial(180, 1, cost).pays(fallen=1e-3, left=1e-5)
    assert Trial(180, 1, cost).pays(fallen=1e-1, left=1e-7)
    assert Trial(180, 1, cost).pays(fallen=1.0, left=1e-7)  # nothing has come of it
    assert Trial(45, 20, cost).pays(fallen=1e-1, left=1e-5)
    assert not Trial(45, 20, cost).pays(fallen=1e-4, left=1e-4)


def test_costs_on_gpus_are_of_the_machine() -> None:
    small, large = (Cost.on("cuda_p2p", generate("poisson2d", nx=n, ny=n), 1) for n in (40, 300))
    assert small.cycle > large.cycle > 5.0
    assert large.setup > 100.0
    assert Cost.on("cpu_threads", SLOW, 3).setup < Cost.on("cpu_threads", SLOW, 1).setup


def test_a_team_decides_at_once() -> None:
    workload = amg_gain.Workload()
    gain = amg_gain.gain_of_amg(SLOW, workload, "cpu_processes", 1, tries=False)
    assert gain.trial is None
