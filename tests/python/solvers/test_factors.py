"""Preconditioners that are set up along with the matrix: FSAI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from cli_runner import Run, runner
from scipy.sparse.linalg import LinearOperator
from scipy.sparse.linalg import cg as scipy_cg

import cpufree
from cpufree import InvalidInputError, Solver
from cpufree.generate import generate

METHODS = ["cg", "prcg", "pipecg"]
FACTORS: list[dict[str, Any]] = [
    {"pc": "fsai"},
    {"pc": "fsai", "pc_level": 2},
]
A = generate("poisson2d", nx=24, ny=25)
B = np.random.default_rng(3).standard_normal(600)


def dense_fsai(matrix: np.ndarray) -> np.ndarray:
    """Return M = S G^T G S of level 1, row by row."""
    scale = 1.0 / np.sqrt(matrix.diagonal())
    scaled = scale[:, None] * matrix * scale
    G = np.zeros_like(scaled)
    for i in range(len(G)):
        J = [j for j in range(i + 1) if scaled[i, j] != 0]
        y = np.linalg.solve(scaled[np.ix_(J, J)], np.eye(len(J))[-1])
        G[i, J] = y / np.sqrt(y[-1])
    return scale[:, None] * (G.T @ G) * scale


def own_parts(part: np.ndarray, inverse: Any) -> np.ndarray:
    """Return M of the rows of each PE, made by inverse(its diagonal block), together."""
    dense = A.toarray()
    M = np.zeros_like(dense)
    for pe in np.unique(part):
        rows = np.ix_(np.flatnonzero(part == pe), np.flatnonzero(part == pe))
        M[rows] = inverse(dense[rows])
    return M


def iterations_of_scipy(M: np.ndarray, rtol: float) -> int:
    """Return the iterations that SciPy's cg needs with M."""
    count = [0]

    def step(_: np.ndarray) -> None:
        count[0] += 1

    operator = LinearOperator(M.shape, matvec=lambda r: M @ r, dtype=np.float64)
    _, info = scipy_cg(A, B, rtol=rtol, M=operator, callback=step)
    assert info == 0
    return count[0]


@pytest.mark.parametrize("pes", [1, 2, 3, 8])
@pytest.mark.parametrize("method", METHODS)
def test_iterations_are_those_of_scipy_with_the_same_preconditioner(method: str, pes: int) -> None:
    part = np.arange(600) * pes // 600
    with Solver(A, pes=pes, blocks=1, partition=part, pc="fsai") as solver:
        found = solver.solve(B, rtol=1e-8, method=method)
    expected = iterations_of_scipy(own_parts(part, dense_fsai), 1e-8)
    assert found.converged
    assert abs(found.iterations - expected) <= 2 + expected // 50


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("factors", FACTORS)
@pytest.mark.parametrize("method", METHODS)
def test_all_methods_and_types_converge(method: str, factors: dict[str, Any], dtype: Any) -> None:
    matrix, b = A.astype(dtype), B.astype(dtype)
    rtol = 1e-9 if dtype == np.float64 else 1e-4
    for pes in (1, 2, 3, 8):
        result = cpufree.solve(matrix, b, rtol=rtol, method=method, pes=pes, blocks=1, **factors)
        assert result.converged
        assert result.x.dtype == dtype
        assert result.pc == factors["pc"]
        assert np.linalg.norm(b - matrix @ result.x) <= 1.01 * rtol * np.linalg.norm(b)


def test_a_solver_solves_with_its_own_preconditioner_unless_another_is_named() -> None:
    with Solver(A, pc="fsai") as solver:
        fsai, jacobi = solver.solve(B, rtol=1e-8), solver.solve(B, rtol=1e-8, pc="jacobi")
    assert (fsai.pc, jacobi.pc) == ("fsai", "jacobi")
    assert 3 * fsai.iterations < 2 * jacobi.iterations


@pytest.mark.parametrize("factors", FACTORS)
@pytest.mark.parametrize("pes", [1, 3])
def test_update_gives_the_bits_of_a_new_solver(factors: dict[str, Any], pes: int) -> None:
    d = 1.0 + np.abs(np.sin(np.arange(600)))
    new = sp.csr_array(A.multiply(d[:, None]).multiply(d[None, :]))
    with Solver(A, pes=pes, **factors) as updated, Solver(new, pes=pes, **factors) as fresh:
        updated.solve(B)
        updated.update(new)
        found, expected = updated.solve(B, rtol=1e-9), fresh.solve(B, rtol=1e-9)
        assert found.x.tobytes() == expected.x.tobytes()
        assert updated.plan == fresh.plan


def test_cg_takes_them_and_a_callable_still_goes_through_scipy() -> None:
    x, info = cpufree.cg(A, B, rtol=1e-8, pc="fsai", pc_level=2)
    assert info == 0
    assert np.linalg.norm(B - A @ x) <= 1.01e-8 * np.linalg.norm(B)
    M = LinearOperator(A.shape, matvec=lambda r: r / 4.0, dtype=np.float64)
    with pytest.warns(cpufree.CpufreeWarning, match="SciPy's cg, driven by the host"):
        cpufree.cg(A, B, M=M)


def test_the_plan_and_the_report_tell_of_the_factors() -> None:
    with Solver(A, pc="fsai") as solver:
        result = solver.solve(B)
        assert solver.plan["factors"] == "fsai"
        # G has the lower triangle of A, and its transpose as many.
        assert solver.plan["factor_entries"] == A.nnz + 600
        assert solver.plan["factor_bytes"] >= 6 * solver.plan["factor_entries"]
        assert result.timings["setup_system_factors"] > 0.0
        assert "fsai: factors have" in result.why
    with Solver(A) as plain:
        assert plain.plan["factors"] == "none"
        assert plain.plan["factor_bytes"] == 0


def test_an_indefinite_matrix_is_named_and_not_the_preconditioner() -> None:
    shifted = sp.csr_array(A - 3.0 * sp.eye_array(600))
    result = cpufree.solve(shifted, B, pc="fsai")
    assert str(result.reason) == "DIVERGED_INDEFINITE_MAT"
    assert any("not positive definite" in warning for warning in result.warnings)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pc": "fsai", "pc_level": 3}, "pc_level is 3: give a whole number from 1 to 2"),
        ({"pc": "ilu"}, "unknown preconditioner pc 'ilu'"),
    ],
)
def test_bad_options_are_refused_with_what_is_possible(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        Solver(A, **options)
    with pytest.raises(InvalidInputError, match=words):
        cpufree.solve(A, B, **options)


def test_a_solve_cannot_name_factors_that_are_not_there() -> None:
    with Solver(A) as solver, pytest.raises(InvalidInputError, match=r"Solver\(A, pc='fsai'\)"):
        solver.solve(B, pc="fsai")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)


def test_the_command_line_has_the_same_options(run: Run, tmp_path: Path) -> None:
    report, system = tmp_path / "report.json", "gen:poisson2d?nx=24,ny=25"
    words = ["--rtol", "1e-8", "--json", str(report)]
    done = run("solve", system, "--pc", "fsai", "--pc-level", "2", *words)
    assert done.code == 0, done.err
    assert "preconditioner fsai" in done.out
    found = json.loads(report.read_text())
    assert found["pc"] == "fsai"
    assert found["options"]["resolved"]["pc_level"] == 2
