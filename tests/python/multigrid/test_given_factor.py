"""Preconditioners M = GᵀG whose G is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from cli_runner import Run, runner
from scipy.sparse.linalg import LinearOperator
from scipy.sparse.linalg import cg as scipy_cg

import cpufree
from cpufree.errors import InvalidInputError, MatrixError

A = cpufree.generate.poisson2d(30, 20)
N = A.shape[0]
b = np.cos(np.arange(N))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line with given words."""
    return runner(capsys, monkeypatch)


def factor(A: Any) -> sp.csr_matrix:
    """Return a step towards the inverse of the Cholesky factor of A."""
    d = A.diagonal()
    step = sp.identity(A.shape[0]) - sp.tril(A, -1) @ sp.diags(1 / d)
    return sp.csr_matrix(sp.diags(1 / np.sqrt(d)) @ step)


def iterations(A: Any, G: Any, rtol: float = 1e-8) -> int:
    """Return those of SciPy with M = GᵀG."""
    count = 0

    def note(_: Any) -> None:
        nonlocal count
        count += 1

    M = LinearOperator(A.shape, matvec=lambda r: G.T @ (G @ r), dtype=float)
    assert scipy_cg(A, b, M=M, rtol=rtol, callback=note)[1] == 0
    return count


@pytest.mark.parametrize("method", ["cg", "prcg", "pipecg"])
def test_a_given_factor_takes_the_iterations_of_m(method: str) -> None:
    G = factor(A)
    result = cpufree.solve(A, b, pc=cpufree.factors.given(G), rtol=1e-8, method=method, pes=1)
    assert result.converged
    assert result.pc == "fsai"
    assert np.linalg.norm(b - A @ result.x) <= 1e-8 * np.linalg.norm(b)
    assert abs(result.iterations - iterations(A, G)) <= 2
    assert result.iterations < cpufree.solve(A, b, pc="jacobi", rtol=1e-8).iterations
    assert "the factor that is given" in str(result.why)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_g_of_any_pattern_and_size_is_taken(scale: float) -> None:
    order = np.random.default_rng(1).permutation(N)
    G = sp.csr_matrix(factor(A)[order] * scale)  # M is the same, but for its size
    result = cpufree.solve(A, b, pc=cpufree.factors.given(G), rtol=1e-8, pes=1)
    assert result.converged
    assert abs(result.iterations - iterations(A, factor(A))) <= 2


def test_several_pes_leave_out_what_couples_them_and_say_so() -> None:
    result = cpufree.solve(A, b, pc=cpufree.factors.given(factor(A)), rtol=1e-8, pes=3)
    assert result.converged
    assert any("couple rows of different PEs" in told for told in result.warnings)
    part = (np.arange(N) * 3) // N
    G = factor(A).tocoo()
    same = part[G.row] == part[G.col]
    split = sp.csr_matrix((G.data[same], (G.row[same], G.col[same])), shape=(N, N))
    alone = cpufree.solve(
        A, b, pc=cpufree.factors.given(factor(A)), rtol=1e-8, pes=3, partition=part
    )
    assert abs(alone.iterations - iterations(A, split)) <= 2


def test_update_keeps_the_factor() -> None:
    with cpufree.Solver(A, pc=cpufree.factors.given(factor(A)), pes=1) as solver:
        before = solver.solve(b, rtol=1e-8)
        solver.update(1000.0 * A)
        after = solver.solve(1000.0 * b, rtol=1e-8)
    assert before.converged
    assert after.converged
    assert abs(before.iterations - after.iterations) <= 1


def test_single_precision_and_columns() -> None:
    chosen = cpufree.factors.given(factor(A))
    rhs = np.column_stack([b, b[::-1]])
    result = cpufree.solve(A, rhs, pc=chosen, rtol=1e-8, pes=1)
    assert all(column.converged for column in result.columns)
    single = cpufree.solve(A.astype(np.float32), b.astype(np.float32), pc=chosen, rtol=1e-4)
    assert single.converged


def without(row: int) -> sp.csr_matrix:
    G = factor(A).tolil()
    G[row, row] = 0.0
    return sp.csr_matrix(G)


@pytest.mark.parametrize(
    ("G", "told"),
    [
        (factor(A)[:-1], "has shape (599, 600): it must be square"),
        (sp.diags(np.r_[np.ones(N - 1), np.nan]), "row 599 of G has a NaN"),
        (sp.diags(np.r_[np.ones(N - 1), 0.0]), "G is singular: row 599 has no entries"),
        (without(7), "triangular, and entry 7 of its diagonal is 0"),
        ("G.mtx", "G is no matrix"),
    ],
)
def test_what_cannot_be_a_factor_is_named(G: Any, told: str) -> None:
    with pytest.raises(MatrixError) as caught:
        cpufree.factors.given(G)
    assert told in str(caught.value)


def test_a_factor_of_another_matrix_and_of_a_solve_are_refused() -> None:
    chosen = cpufree.factors.given(sp.identity(5))
    with pytest.raises(MatrixError, match="the factor has 5 rows, and A has 600"):
        cpufree.solve(A, b, pc=chosen)
    with (
        cpufree.Solver(A) as solver,
        pytest.raises(InvalidInputError, match="are set up along with the matrix"),
    ):
        solver.solve(b, pc=chosen)


def test_a_singular_g_whose_pattern_is_not_never_converges_without_a_word() -> None:
    G = sp.block_diag([sp.csr_matrix(np.ones((2, 2)))] * (N // 2), format="csr")
    result = cpufree.solve(A, b, pc=cpufree.factors.given(G), rtol=1e-8, pes=1, maxiter=2000)
    assert not result.converged
    assert np.linalg.norm(b - A @ result.x) > 1e-8 * np.linalg.norm(b)


def test_the_command_takes_a_file(run: Run, tmp_path: Path) -> None:
    scipy.io.mmwrite(tmp_path / "A.mtx", sp.csr_matrix(A))
    scipy.io.mmwrite(tmp_path / "G.mtx", factor(A))
    call = ["solve", tmp_path / "A.mtx", "--factor", tmp_path / "G.mtx", "--pes", 1]
    told = run(*call, "--rtol", "1e-8")
    assert told.code == 0
    assert "preconditioner fsai" in told.out
    assert "--pc jacobi another one" in run(*call, "--pc", "jacobi").err


def test_a_complex_factor_is_for_a_complex_matrix() -> None:
    with pytest.raises(MatrixError, match="the factor is complex, and A is real"):
        cpufree.solve(A, np.ones(N), pc=cpufree.factors.given(factor(A).astype(complex)))
    phases = sp.diags(np.exp(1j * np.arange(N)))
    H = sp.csr_array(phases @ A @ phases.conj())  # Hermitian, with the eigenvalues of A
    G = sp.csr_array(
        sp.csr_matrix(factor(A)) @ phases.conj()
    )  # G* G = phases (factor* factor) phases*
    b = phases @ np.ones(N)
    alike = cpufree.solve(A, np.ones(N), rtol=1e-8, pc=cpufree.factors.given(factor(A)))
    result = cpufree.solve(H, b, rtol=1e-8, pc=cpufree.factors.given(G))
    assert result.converged and abs(result.iterations - alike.iterations) <= 1
    assert np.linalg.norm(b - H @ result.x) <= 2e-8 * np.linalg.norm(b)
    real = cpufree.solve(H, b, rtol=1e-8, pc=cpufree.factors.given(sp.identity(N)))
    assert real.converged
