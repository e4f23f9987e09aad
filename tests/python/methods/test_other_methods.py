"""minres and bicgstab: systems that conjugate gradients cannot have."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from random_other_solves import case_of, run

import cpufree
from cpufree import CpufreeWarning, InvalidInputError, Solver, UnsupportedError
from cpufree.errors import DiagonalError, NonFiniteError, NotSymmetricError


def indefinite(n: int = 20) -> sp.csr_array:
    return sp.csr_array(cpufree.generate.poisson2d(n, n) - 0.9 * sp.eye_array(n * n))


def saddle(n: int = 120, m: int = 15) -> sp.csr_array:
    rng = np.random.default_rng(3)
    B = sp.random_array((m, n), density=0.2, rng=rng, data_sampler=rng.standard_normal)
    A = sp.diags_array([-np.ones(n - 1), 2.5 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
    return sp.csr_array(sp.block_array([[A, B.T], [B, None]]))


def unsymmetric(n: int = 300, seed: int = 0) -> sp.csr_array:
    """Return a matrix whose pattern is not symmetric, either."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=3 / n, rng=rng, data_sampler=rng.standard_normal)
    return sp.csr_array(A + 5 * sp.eye_array(n))


def rhs(A: sp.csr_array) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(A.shape[0])


def residual(A: sp.csr_array, b: np.ndarray, x: np.ndarray) -> float:
    return float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))


@pytest.mark.parametrize("pes", [1, 2, 5])
@pytest.mark.parametrize("pc", ["auto", "jacobi", "none"])
@pytest.mark.parametrize("make", [indefinite, saddle])
def test_minres_solves_indefinite_systems(make, pes, pc) -> None:  # type: ignore[no-untyped-def]
    A = make()
    b = rhs(A)
    result = cpufree.solve(A, b, rtol=1e-9, method="minres", pc=pc, pes=pes)
    assert result.converged, result.message
    assert residual(A, b, result.x) <= 1.0001e-9
    assert result.method == "minres"
    assert result.pc == ("jacobi" if pc == "auto" else pc)
    assert len(result.history) == result.iterations + 1
    per_iteration = result.counts["reductions"] / result.iterations
    assert per_iteration < 1.0 + 12 / result.iterations


@pytest.mark.parametrize("pes", [1, 2, 5])
@pytest.mark.parametrize("pc", ["auto", "jacobi", "none"])
def test_bicgstab_solves_unsymmetric_systems_of_any_pattern(pes: int, pc: str) -> None:
    A = unsymmetric()
    b = rhs(A)
    result = cpufree.solve(A, b, rtol=1e-9, method="bicgstab", pc=pc, pes=pes)
    assert result.converged, result.message
    assert residual(A, b, result.x) <= 1.0001e-9
    assert result.counts["reductions"] < 2 * result.iterations + 12


def test_minres_agrees_with_a_dense_solver_and_between_numbers_of_pes() -> None:
    A = saddle()
    b = rhs(A)
    exact = np.linalg.solve(A.toarray(), b)
    for pes in (1, 3):
        x = cpufree.solve(A, b, rtol=1e-12, method="minres", pes=pes).x
        assert np.allclose(x, exact, rtol=1e-7, atol=1e-8)


def test_fsai_is_a_preconditioner_of_minres() -> None:
    A = cpufree.generate.poisson2d(40, 40)
    b = rhs(A)
    plain = cpufree.solve(A, b, rtol=1e-9, method="minres")
    better = cpufree.solve(A, b, rtol=1e-9, method="minres", pc="fsai")
    assert better.converged
    assert better.iterations < plain.iterations


@pytest.mark.parametrize(
    ("method", "pc"),
    [("minres", "chebyshev"), ("minres", "amg"), ("bicgstab", "fsai"), ("bicgstab", "amg")],
)
def test_other_preconditioners_are_refused_with_what_suits(method: str, pc: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{pc}.*{method}|{method}.*jacobi"):
        cpufree.solve(indefinite(5), np.ones(25), method=method, pc=pc)


def test_auto_takes_neither_for_a_positive_definite_matrix() -> None:
    A = cpufree.generate.poisson2d(10, 10)
    assert cpufree.solve(A, np.ones(100)).method in ("cg", "prcg")


def test_conjugate_gradients_name_the_others_where_a_is_indefinite() -> None:
    A = indefinite()
    result = cpufree.solve(A, rhs(A), method="cg", pc="none")
    assert str(result.reason) == "DIVERGED_INDEFINITE_MAT"
    assert any("'minres'" in note and "'bicgstab'" in note for note in result.warnings)


def test_refusals_name_the_method_that_takes_the_matrix() -> None:
    with pytest.raises(NotSymmetricError, match="'bicgstab'"):
        cpufree.solve(unsymmetric(), np.ones(300))
    with pytest.raises(DiagonalError, match="'minres'"):
        cpufree.solve(saddle(), np.ones(135))
    with pytest.raises(NotSymmetricError, match="'bicgstab'"):
        cpufree.solve(unsymmetric(), np.ones(300), method="minres")


@pytest.mark.parametrize("method", ["minres", "bicgstab"])
def test_entries_that_are_not_finite_are_refused(method: str) -> None:
    A = indefinite(5)
    A.data[7] = np.nan
    with pytest.raises(NonFiniteError):
        cpufree.solve(A, np.ones(25), method=method)


def test_a_solver_has_a_method_for_which_its_matrix_is_checked() -> None:
    A, B = indefinite(), unsymmetric()
    with Solver(A, method="minres") as solver:
        assert solver.method == "minres"
        assert solver.solve(rhs(A), rtol=1e-8).method == "minres"
        assert solver.solve(rhs(A), rtol=1e-8, method="bicgstab").method == "bicgstab"
        with pytest.raises(InvalidInputError, match=r"checked to be symmetric.*'minres'.*'cg'"):
            solver.solve(rhs(A), method="cg")
        solver.update(sp.csr_array(-A))
        assert solver.solve(rhs(A), rtol=1e-8).converged
    with Solver(B, method="bicgstab") as solver:
        for method in ("cg", "minres", "pipecg"):
            with pytest.raises(InvalidInputError, match="checked to be finite"):
                solver.solve(rhs(B), method=method)
        first = solver.solve(rhs(B), rtol=1e-8)
        assert first.method == "bicgstab"
        solver.update(2.0 * B)
        assert np.allclose(2.0 * solver.solve(rhs(B), rtol=1e-8).x, first.x, rtol=1e-6, atol=1e-9)
    with Solver(A, check=False) as solver:
        assert solver.solve(rhs(A), method="minres", rtol=1e-8).converged


def test_a_positive_definite_solver_takes_both() -> None:
    A = cpufree.generate.poisson2d(15, 15)
    with Solver(A, pc="jacobi") as solver:
        expected = solver.solve(np.ones(225), rtol=1e-10).x
        for method in ("minres", "bicgstab"):
            assert np.allclose(solver.solve(np.ones(225), rtol=1e-10, method=method).x, expected)


def test_a_singular_system_out_of_range_is_named() -> None:
    n = 50
    A = sp.csr_array(cpufree.generate.poisson2d(n, 1))
    A = sp.csr_array(A - sp.diags_array(A @ np.ones(n)))  # constants are its null space
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = cpufree.solve(A, np.arange(n) + 1.0, method="minres", rtol=1e-10)
    assert str(result.reason) == "DIVERGED_BREAKDOWN"
    assert any("out of its range" in note for note in result.warnings)
    within = cpufree.solve(A, np.arange(n) - (n - 1) / 2, method="minres", rtol=1e-10)
    assert within.converged


def test_a_breakdown_of_bicgstab_is_named() -> None:
    A = sp.csr_array(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    result = cpufree.solve(A, np.array([1.0, 0.0]), method="bicgstab", pc="none")
    assert str(result.reason) == "DIVERGED_BREAKDOWN"
    assert any("shadow residual" in note for note in result.warnings)


def test_several_columns_are_solved_one_by_one() -> None:
    A = indefinite()
    b = np.random.default_rng(0).standard_normal((400, 3))
    result = cpufree.solve(A, b, rtol=1e-8, method="minres")
    assert result.converged
    with pytest.raises(UnsupportedError, match="cg"):
        cpufree.solve(A, b, method="minres", columns="together")


def test_a_null_space_is_not_for_matrices_that_are_not_symmetric() -> None:
    with pytest.raises(InvalidInputError, match="nullspace"):
        cpufree.solve(unsymmetric(), np.ones(300), method="bicgstab", nullspace="constant")


@pytest.mark.parametrize("method", ["minres", "bicgstab"])
def test_float32(method: str) -> None:
    A = (indefinite() if method == "minres" else unsymmetric()).astype(np.float32)
    b = rhs(A).astype(np.float32)
    result = cpufree.solve(A, b, rtol=1e-4, method=method)
    assert result.converged
    assert result.x.dtype == np.float32


@pytest.mark.cpu_only
@pytest.mark.parametrize("first", range(0, 160, 40))
def test_no_random_system_is_said_to_be_solved_above_the_tolerance(first: int) -> None:
    found = [run(case_of(seed)) for seed in range(first, first + 40)]
    assert not [one for one in found if one["lied"]]
    assert sum(one["reason"].startswith("CONVERGED") for one in found) > 15
    assert not [one for one in found if one["reason"] == "RUNNING"]


@pytest.mark.cpu_only
@pytest.mark.parametrize("method", ["minres", "bicgstab"])
def test_processes_solve_such_systems(method: str, tmp_path: Path) -> None:
    file = tmp_path / "A.mtx"
    cpufree.save_matrix(file, indefinite(10) if method == "minres" else unsymmetric(100))
    words = ["solve", str(file), "--method", method, "--rtol", "1e-8", "--engine", "cpu_processes"]
    done = subprocess.run(
        [sys.executable, "-m", "cpufree", "run", "-n", "2", *words],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Converged" in done.stdout


def test_scipys_minres_and_bicgstab_signatures() -> None:
    A = indefinite()
    b = rhs(A)
    x, info = cpufree.minres(A, b, rtol=1e-9)
    assert info == 0
    assert residual(A, b, x) <= 1.0001e-9
    shifted, info = cpufree.minres(cpufree.generate.poisson2d(20, 20), b, shift=0.9, rtol=1e-9)
    assert info == 0
    assert np.array_equal(shifted, x)
    B = unsymmetric()
    y, info = cpufree.bicgstab(B, rhs(B), rtol=1e-9)
    assert info == 0
    assert residual(B, rhs(B), y) <= 1.0001e-9
    assert cpufree.minres(A, b, maxiter=3)[1] == cpufree.bicgstab(A, b, maxiter=3)[1] == 3


@pytest.mark.parametrize("function", [cpufree.minres, cpufree.bicgstab])
def test_what_needs_the_host_runs_there_and_is_verified(function) -> None:  # type: ignore[no-untyped-def]
    A = indefinite(10) if function is cpufree.minres else unsymmetric(100)
    b = rhs(A)
    seen: list[float] = []
    with pytest.warns(CpufreeWarning, match="driven by the host"):
        x, info = function(A, b, rtol=1e-8, callback=lambda xk: seen.append(1.0))
    assert info == 0
    assert seen
    assert residual(A, b, x) <= 1e-8
    with pytest.raises(InvalidInputError, match="pes cannot be used"):
        function(A, b, pes=2, callback=lambda xk: None)


def test_complex_systems_are_solved_by_both() -> None:
    phases = sp.diags_array(np.exp(1j * np.arange(400.0)))
    H = sp.csr_array(phases @ indefinite() @ phases.conj())
    b = phases @ rhs(H)
    result = cpufree.solve(H, b, method="minres", rtol=1e-8, maxiter=4000)
    assert result.converged and residual(H, b, result.x) < 2e-8
    U = sp.csr_array(unsymmetric() + 1j * unsymmetric(seed=5))
    b = rhs(U) * (1 - 2j)
    result = cpufree.solve(U, b, method="bicgstab", rtol=1e-8)
    assert result.converged and residual(U, b, result.x) < 2e-8
    with pytest.raises(NotSymmetricError):
        cpufree.solve(U, b, method="minres")


def test_signatures_of_scipy_take_complex_numbers_without_the_host() -> None:
    U = sp.csr_array(unsymmetric() + 1j * unsymmetric(seed=5))
    b = rhs(U) * (1 - 2j)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x, info = cpufree.bicgstab(U, b, rtol=1e-8)
    assert info == 0 and residual(U, b, x) < 2e-8
    with pytest.raises(UnsupportedError, match="SciPy's minres, which it needs, is for real"):
        cpufree.minres(sp.eye_array(3) * (1 + 0j), np.ones(3), callback=print)


def test_minres_shifts_a_complex_matrix() -> None:
    phases = sp.diags_array(np.exp(1j * np.arange(400.0)))
    H = sp.csr_array(phases @ cpufree.generate.poisson2d(20, 20) @ phases.conj())
    b = phases @ rhs(H)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x, info = cpufree.minres(H, b, shift=0.9, rtol=1e-8, maxiter=4000)
    assert info == 0 and residual(H - 0.9 * sp.eye_array(400), b, x) < 1e-6
