"""Algebraic multigrid as preconditioner, pc="amg"."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from cli_runner import Run, runner

import cpufree
from cpufree import InvalidInputError, Solver, UnsupportedError
from cpufree.errors import OutOfMemoryError
from cpufree.generate import generate
from cpufree.machine import files
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


@pytest.mark.parametrize("reuse", ["auto", "pattern", "none"])
@pytest.mark.parametrize("pes", [1, 3])
def test_an_update_makes_the_hierarchy_of_the_new_values(reuse: str, pes: int) -> None:
    other = A.copy()
    other.data *= 4.0  # to the bit the same in all that is scaled
    with Solver(A, pc="amg", pes=pes) as solver, Solver(other, pc="amg", pes=pes) as fresh:
        solver.update(other, reuse=reuse)
        assert np.array_equal(solver.solve(B).x, fresh.solve(B).x)
        assert solver.plan["levels"] == fresh.plan["levels"]


def test_kept_aggregates_take_about_as_many_iterations_as_new_ones() -> None:
    rng = np.random.default_rng(4)
    edges = sp.triu(A, 1).tocoo()
    other = sp.coo_matrix((edges.data * rng.uniform(0.7, 1.4, edges.nnz), edges.coords), A.shape)
    other = (other + other.T).tocsr()
    ground = 4.0 - np.asarray(abs(A).sum(axis=1)).ravel() / 2.0
    other = (other - sp.diags(np.asarray(other.sum(axis=1)).ravel() - 0.01 * ground)).tocsr()
    with Solver(A, pc="amg") as solver, Solver(other, pc="amg") as fresh:
        solver.update(other, reuse="pattern")
        kept, new = solver.solve(B, rtol=1e-8), fresh.solve(B, rtol=1e-8)
    assert kept.converged and new.converged
    assert abs(kept.iterations - new.iterations) <= 2


def test_aggregates_are_made_anew_once_solves_take_many_more_iterations() -> None:
    def layers(along: int) -> Any:
        return generate("poisson2d", nx=60, ny=60, weights=(1.0, 1e3) if along else (1e3, 1.0))

    b = np.random.default_rng(1).standard_normal(3600)
    with Solver(layers(0), pc="amg") as solver:
        first = solver.solve(b, rtol=1e-8).iterations
        solver.update(layers(1))
        turned = solver.solve(b, rtol=1e-8).iterations
        assert turned > 1.5 * first  # aggregates lie across
        solver.update(layers(1))
        assert solver.solve(b, rtol=1e-8).iterations <= first + 1
        with pytest.raises(InvalidInputError, match="reuse"):
            solver.update(layers(1), reuse="maybe")


CHAINS = generate("poisson2d", nx=80, ny=70)


def no_flow(n: int) -> Any:
    """A Laplacian with Neumann conditions on all sides of a square."""
    ends = [-np.ones(n - 1), 2.0 * np.ones(n), -np.ones(n - 1)]
    line = sp.diags(ends, [-1, 0, 1]).tolil()
    line[0, 0] = line[-1, -1] = 1.0
    return (sp.kron(line, sp.identity(n)) + sp.kron(sp.identity(n), line)).tocsr()


@pytest.mark.parametrize("pes", [1, 2, 4])
def test_singular_systems_converge_like_their_definite_neighbours(pes: int) -> None:
    b = np.random.default_rng(6).standard_normal(4900)
    definite = cpufree.solve(generate("poisson2d", nx=70, ny=70), b, pc="amg", pes=pes, rtol=1e-8)
    singular = cpufree.solve(no_flow(70), b, pc="amg", nullspace="constant", pes=pes, rtol=1e-8)
    assert singular.converged
    assert singular.iterations <= definite.iterations + 2
    assert abs(singular.x.mean()) < 1e-10


@pytest.mark.parametrize("penalty", [1.0, 1e10, 1e30])
def test_rows_of_prescribed_values_change_no_iterations(penalty: float) -> None:
    rng = np.random.default_rng(7)
    free = rng.random(CHAINS.shape[0]) < 0.9
    inside = sp.diags(free.astype(float))
    kept = (inside @ CHAINS @ inside + sp.diags((~free) * penalty)).tocsr()
    kept.eliminate_zeros()
    b = rng.standard_normal(len(free)) * free
    with_rows = cpufree.solve(kept, b, pc="amg", rtol=1e-8)
    reduced = cpufree.solve(CHAINS[free][:, free].tocsr(), b[free], pc="amg", rtol=1e-8)
    assert with_rows.converged
    assert abs(with_rows.iterations - reduced.iterations) <= 1


def test_several_components_and_isolated_rows_are_ordinary() -> None:
    apart = sp.block_diag([A, 1e5 * A, sp.identity(7)]).tocsr()
    b = np.random.default_rng(8).standard_normal(apart.shape[0])
    both = cpufree.solve(apart, b, pc="amg", rtol=1e-8)
    alone = cpufree.solve(A, b[:4200], pc="amg", rtol=1e-8)
    assert both.converged
    assert both.iterations <= alone.iterations + 1


@pytest.mark.parametrize("pes", [1, 4])
@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_systems_of_few_rows(rows: int, pes: int) -> None:
    ends = [-np.ones(rows - 1), 2.0 * np.ones(rows), -np.ones(rows - 1)]
    result = cpufree.solve(
        sp.diags(ends, [-1, 0, 1]).tocsr(), np.ones(rows), pc="amg", pes=pes, rtol=1e-10
    )
    assert result.converged


def test_a_pe_without_rows() -> None:
    part = np.repeat([0, 2], 2100)
    result = cpufree.solve(A, B, pc="amg", partition=part, pes=3, rtol=1e-8)
    assert result.converged
    assert result.iterations <= 13


def test_systems_in_single_precision() -> None:
    result = cpufree.solve(A.astype(np.float32), B.astype(np.float32), pc="amg", rtol=1e-5)
    assert result.converged
    assert result.iterations <= 9


def test_an_indefinite_matrix_is_an_outcome_with_a_name() -> None:
    result = cpufree.solve((A - 0.5 * sp.identity(4200)).tocsr(), B, pc="amg", rtol=1e-8)
    assert not result.converged
    assert str(result.reason) in ("DIVERGED_INDEFINITE_MAT", "DIVERGED_INDEFINITE_PC")


@pytest.mark.parametrize("system", ["social?n=3000", "shallow_water"])
def test_systems_that_coarsen_badly_end(system: str) -> None:
    if system == "shallow_water":  # close to the identity, as with short time steps
        matrix = (sp.identity(4200) + 1e-3 * A).tocsr()
    else:
        matrix = cpufree.load_matrix(f"gen:{system}")
    b = np.random.default_rng(9).standard_normal(matrix.shape[0])
    result = cpufree.solve(matrix, b, pc="amg", rtol=1e-8)
    assert result.converged


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


def test_auto_takes_multigrid_where_jacobi_needs_thousands_of_iterations() -> None:
    large = generate("poisson2d", nx=400, ny=400)
    b = np.random.default_rng(2).standard_normal(large.shape[0])
    result = cpufree.solve(large, b, pc="auto", rtol=1e-8, engine="cpu_threads")
    assert result.pc == "amg"
    assert result.converged
    assert "with jacobi are expected" in result.why


def test_auto_takes_jacobi_for_few_iterations_and_says_why() -> None:
    near = (A + 10.0 * sp.identity(4200)).tocsr()
    result = cpufree.solve(near, B, pc="auto", rtol=1e-8, engine="cpu_threads")
    assert result.pc == "jacobi"
    assert "jacobi: " in result.why
    assert np.array_equal(result.x, cpufree.solve(near, B, rtol=1e-8, engine="cpu_threads").x)


def test_auto_weighs_the_set_up_against_all_solves() -> None:
    system = generate("poisson2d", nx=120, ny=120)
    with Solver(system, pc="auto", engine="cpu_threads") as once:
        few = once.solve(np.ones(14400))
    with Solver(system, pc="auto", engine="cpu_threads", solves=1000) as often:
        many = often.solve(np.ones(14400))
        assert often.solve(np.ones(14400), pc="jacobi").pc == "jacobi"
    assert (few.pc, many.pc) == ("jacobi", "amg")


def test_auto_goes_by_the_machine_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = {"amg.cpu_setup": {"value": 1.0, "unit": "1", "provenance": "a test"}}
    path = tmp_path / "m.json"
    files.write(path, {"machine": "M", "gpu": "none", "like": "h200", "choices": quick})
    system = generate("poisson2d", nx=120, ny=120)
    chosen = []
    for named in (None, str(path)):
        if named:
            monkeypatch.setenv("CPUFREE_MACHINE", named)
        with Solver(system, pc="auto", engine="cpu_threads") as solver:
            chosen.append(solver.solve(np.ones(14400)).pc)
    assert chosen == ["jacobi", "amg"]


def test_times_tell_making_the_levels_from_laying_them_out() -> None:
    A = generate("poisson2d", nx=60, ny=50)
    timings = cpufree.solve(A, np.ones(A.shape[0]), pc="amg", engine="cpu_threads").timings
    parts = [timings["setup_system_multigrid"], timings["setup_system_levels"]]
    assert min(parts) > 0.0 and sum(parts) < timings["setup_system"]
