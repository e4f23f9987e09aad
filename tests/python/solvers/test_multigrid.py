"""Algebraic multigrid as preconditioner, pc="amg"."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from cli_runner import Run, runner

import cpufree
from cpufree import InvalidInputError, Solver, UnsupportedError
from cpufree.errors import OutOfMemoryError
from cpufree.generate import generate
from cpufree.solvers import factors

A = generate("poisson2d", nx=70, ny=60)
B = np.random.default_rng(3).standard_normal(4200)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)


@pytest.mark.parametrize("pes", [1, 2, 3, 4])
def test_few_iterations_on_any_number_of_pes(pes: int) -> None:
    result = cpufree.solve(A, B, pc="amg", pes=pes, rtol=1e-8)
    assert result.converged
    assert result.iterations <= 13
    assert np.linalg.norm(B - A @ result.x) <= 1.01e-8 * np.linalg.norm(B)


def test_auto_takes_the_method_cg_and_says_why() -> None:
    result = cpufree.solve(A, B, pc="amg")
    assert result.method == "cg"
    assert "cg: with amg the recurrences of the others are too inaccurate" in result.why


@pytest.mark.parametrize("method", ["prcg", "pipecg"])
def test_other_methods_are_refused_with_the_reason(method: str) -> None:
    with pytest.raises(InvalidInputError, match=f"amg is for the method cg, not {method}"):
        cpufree.solve(A, B, pc="amg", method=method)


def test_the_function_cg_takes_it() -> None:
    x, info = cpufree.cg(A, B, rtol=1e-12, pc="amg")
    assert info == 0
    assert np.linalg.norm(B - A @ x) <= 1.1e-12 * np.linalg.norm(B)


def test_levels_are_reported() -> None:
    with Solver(A, pc="amg", pes=2) as solver:
        result = solver.solve(B)
        plan = solver.plan
        jacobi = solver.solve(B, pc="jacobi")
    assert list(result.levels) == plan["levels"]
    assert result.levels[0]["rows"] == 4200
    assert result.levels[0]["nnz"] == A.nnz
    rows = [level["rows"] for level in result.levels]
    assert rows == sorted(rows, reverse=True)
    assert result.levels[-1]["inverted"]
    assert all(level["bytes"] > 0 for level in result.levels)
    assert f"amg: {len(rows)} levels of 4 200, " in result.why
    assert result.to_dict()["levels"] == plan["levels"]
    assert jacobi.levels == ()


def test_an_update_makes_the_hierarchy_of_the_new_values() -> None:
    other = A.copy()
    other.data *= 3.0
    with Solver(A, pc="amg") as solver, Solver(other, pc="amg") as fresh:
        solver.update(other)
        assert np.array_equal(solver.solve(B).x, fresh.solve(B).x)


def test_several_right_hand_sides_are_solved_one_by_one_with_one_hierarchy() -> None:
    both = np.column_stack([B, B[::-1]])
    with Solver(A, pc="amg") as solver:
        result = solver.solve(both, rtol=1e-8)
        alone = solver.solve(B[::-1].copy(), rtol=1e-8)
        assert result.converged
        assert np.array_equal(result.x[:, 1], alone.x)
        with pytest.raises(UnsupportedError, match="the preconditioner amg takes one at a time"):
            solver.solve(both, columns="together")


def test_a_system_that_does_not_coarsen_is_solved_and_warned_of() -> None:
    diagonal = sp.diags(np.linspace(1.0, 9.0, 900)).tocsr()
    result = cpufree.solve(diagonal, np.ones(900), pc="amg", rtol=1e-10)
    assert result.converged
    assert len(result.levels) == 1
    assert any("is smoothed and not solved, for no row" in w for w in result.warnings)


def test_what_does_not_fit_into_memory_is_refused_before_it_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(factors, "memory_limits", lambda *_: (10**9, 10**6))
    with pytest.raises(OutOfMemoryError, match=r"0.001 GB are free: use another preconditioner"):
        Solver(A, pc="amg")


def test_a_solver_without_it_refuses_a_solve_with_it() -> None:
    with Solver(A) as solver, pytest.raises(InvalidInputError, match=r"Solver\(A, pc='amg'\)"):
        solver.solve(B, pc="amg")


def test_the_command_line_solves_with_it_and_shows_its_levels(run: Run, tmp_path: Path) -> None:
    report, system = tmp_path / "report.json", "gen:poisson2d?nx=70,ny=60"
    done = run("solve", system, "--pc", "amg", "--rtol", "1e-8", "--json", str(report))
    assert done.code == 0, done.err
    assert "preconditioner amg" in done.out
    levels = json.loads(report.read_text())["levels"]
    done = run("info", system, "--pc", "amg", "--json", str(report))
    assert done.code == 0, done.err
    assert "complexity" in done.out
    shown = json.loads(report.read_text())["multigrid"]
    assert shown["levels"] == levels
    assert 1.0 < shown["complexity"] < 1.6
