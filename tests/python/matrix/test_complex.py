"""Complex Hermitian matrices: solved as what they are, by all methods and preconditioners."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from cli_runner import Run, runner
from scipy.sparse.linalg import cg as scipy_cg
from scipy.sparse.linalg import spsolve

import cpufree
from cpufree import InvalidInputError, Solver
from cpufree.errors import (
    DiagonalError,
    FileFormatError,
    MatrixError,
    NonFiniteError,
    NotSymmetricError,
)
from cpufree.text import counted

N = 240
RTOL = 1e-9


def lattice(nx: int, ny: int, mass: float = 0.1, spread: float = 1.0) -> sp.csr_array:
    """Return the covariant Laplacian of a periodic lattice with a phase on each link, plus mass."""
    rng = np.random.default_rng(nx * ny)
    site = np.arange(nx * ny).reshape(nx, ny)
    parts = [(site.ravel(), site.ravel(), np.full(site.size, 4.0 + mass + 0j))]
    for axis in (0, 1):
        to = np.roll(site, -1, axis).ravel()
        link = np.exp(1j * spread * rng.standard_normal(site.size))
        parts += [(site.ravel(), to, -link), (to, site.ravel(), -link.conj())]
    rows, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sp.csr_array(sp.coo_array((values, (rows, columns)), shape=(site.size, site.size)))


A = lattice(16, 15)
B = np.random.default_rng(1).standard_normal((N, 2)) @ np.array([1, 1j])


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)


def residual(matrix: Any, x: Any, b: Any) -> float:
    return float(np.linalg.norm(b - matrix @ x) / np.linalg.norm(b))


def with_entry(row: int, column: int, value: complex) -> sp.csr_array:
    changed = A.tolil()
    changed[row, column] = value
    return sp.csr_array(changed)


# What is solved


@pytest.mark.parametrize("pes", [1, 3])
@pytest.mark.parametrize("method", ["cg", "prcg", "pipecg"])
@pytest.mark.parametrize("pc", ["none", "jacobi", "chebyshev", "fsai", "amg"])
def test_methods_and_preconditioners(pc: str, method: str, pes: int) -> None:
    if pc == "amg" and method != "cg":
        pytest.skip("amg is for cg")
    result = cpufree.solve(A, B, rtol=RTOL, pc=pc, method=method, pes=pes, blocks=2)
    assert result.converged
    assert result.x.dtype == np.complex128
    assert residual(A, result.x, B) <= 1.01 * RTOL
    assert result.true_residual == pytest.approx(np.linalg.norm(B - A @ result.x), rel=1e-3)
    assert np.allclose(result.x, spsolve(A.tocsc(), B), atol=1e-7)


def test_iterations_are_those_of_the_complex_recurrence() -> None:
    count: list[Any] = []
    scipy_cg(A, B, rtol=RTOL, atol=0.0, callback=lambda x: count.append(x.copy()))
    result = cpufree.solve(A, B, rtol=RTOL, pc="none", method="cg")
    assert result.iterations == len(count)
    norms = [np.linalg.norm(B), *(np.linalg.norm(B - A @ x) for x in count)]
    shown = len(norms) - 2
    assert np.allclose(result.history[:shown], norms[:shown], rtol=1e-5)
    # Where all phases are 0, it is the real matrix, and its iterations.
    real = lattice(16, 15, spread=0.0)
    one, two = (cpufree.solve(M, B.real, rtol=RTOL, method="cg") for M in (real, real.real))
    assert one.iterations == two.iterations
    assert np.allclose(one.x, two.x, atol=1e-12)


@pytest.mark.parametrize("given", ["csr", "coo", "dense", "list", "csc"])
def test_kinds_of_matrices(given: str) -> None:
    small = lattice(4, 5)
    b = B[:20]
    made = {"dense": small.toarray(), "list": small.toarray().tolist()}.get(given)
    result = cpufree.solve(small.asformat(given) if made is None else made, b, rtol=RTOL)
    assert residual(small, result.x, b) <= 1.01 * RTOL


def test_single_precision() -> None:
    single, b = A.astype(np.complex64), B.astype(np.complex64)
    result = cpufree.solve(single, b)
    assert result.converged
    assert result.x.dtype == np.complex64
    rounded = Solver(single).solve(B)
    assert "b was rounded from complex128 to complex64" in rounded.warnings[-1]
    assert cpufree.solve(single, B).x.dtype == np.complex128
    assert Solver(A, dtype=np.float32).dtype == np.complex64


def test_complex_right_hand_side_of_a_real_matrix() -> None:
    real = sp.csr_array(lattice(16, 15, spread=0.0).real)
    result = cpufree.solve(real, B, rtol=RTOL)
    assert residual(real, result.x, B) <= 1.01 * RTOL
    with Solver(real, dtype=complex) as solver:
        assert np.array_equal(solver.solve(B, rtol=RTOL).x, result.x)
    with (
        Solver(real) as solver,
        pytest.raises(InvalidInputError, match=r"Solver\(A, dtype=complex"),
    ):
        solver.solve(B)


def test_real_right_hand_side_and_first_guess() -> None:
    result = cpufree.solve(A, B.real, rtol=RTOL)
    assert residual(A, result.x, B.real) <= 1.01 * RTOL
    again = cpufree.solve(A, B.real, x0=result.x, rtol=2 * RTOL)
    assert again.iterations == 0


@pytest.mark.parametrize("pes", [1, 2])
def test_update_takes_new_values(pes: int) -> None:
    with Solver(A, pes=pes) as solver:
        before = solver.solve(B, rtol=RTOL).x
        solver.update(2 * A)
        assert np.allclose(2 * solver.solve(B, rtol=RTOL).x, before, atol=1e-12)
        with pytest.raises(NotSymmetricError, match="not Hermitian"):
            solver.update(with_entry(0, 1, 2j))
        with pytest.raises(InvalidInputError, match=r"other places|nonzeros"):
            solver.update(lattice(15, 16))
        with Solver(A.real) as real, pytest.raises(InvalidInputError, match="A is complex"):
            real.update(A)


@pytest.mark.parametrize("pc", ["jacobi", "none", "fsai"])
def test_columns(pc: str) -> None:
    b = np.column_stack([B, B.conj(), 1j * B])
    result = cpufree.solve(A, b, rtol=RTOL, pc=pc)
    assert result.converged
    assert result.x.shape == (N, 3)
    assert max(residual(A, result.x[:, k], b[:, k]) for k in range(3)) <= 1.01 * RTOL
    assert np.allclose(result.x[:, 2], 1j * result.x[:, 0], atol=1e-9)


def test_many_systems() -> None:
    systems = [(A, B), (2 * A, B.real), (A, B)]
    found = cpufree.solve_many(systems, rtol=RTOL)
    assert found.x.shape == (3, N)
    assert max(residual(M, x, b) for x, (M, b) in zip(found.x, systems, strict=True)) <= 1.01 * RTOL
    real = sp.csr_array(lattice(3, 4, spread=0.0).real)
    found = cpufree.solve_many([(A, B), (real, np.ones(12)), (with_entry(3, 4, 2), B)], rtol=RTOL)
    assert [x.dtype for x in found.x] == [np.complex128, np.float64, np.complex128]
    assert "system 2" in str(found.errors[2])
    assert "not Hermitian" in str(found.errors[2])
    assert np.isnan(found.x[2]).all()


def test_solver_tells_of_the_matrix_that_was_given() -> None:
    part = np.arange(N) * 3 // N
    with Solver(A, pes=3, partition=part) as solver:
        assert solver.shape == (N, N)
        assert solver.dtype == np.complex128
        assert np.array_equal(solver.rows, np.arange(N))
        assert f"{N} rows, {counted(A.nnz, 'nonzero')}" in repr(solver)
        assert solver.plan["rows"] == [2 * N // 3] * 3
    with pytest.raises(InvalidInputError, match=f"the matrix has {N} rows"):
        Solver(A, pes=2, partition=np.zeros(2 * N, int))
    with Solver(lattice(150, 150), pes=4, reorder="rcm") as solver:
        assert solver.plan["rows"] == [int(k) // 2 * 2 for k in solver.plan["rows"]]
        b = np.ones(22500) + 0j
        assert residual(lattice(150, 150), solver.solve(b, rtol=RTOL).x, b) <= 1.01 * RTOL


def test_values_at_the_ends_of_the_range() -> None:
    for scale in (1e-290, 1e290):
        result = cpufree.solve(scale * A, B, rtol=RTOL)
        assert result.converged
        assert np.allclose(result.x * scale, spsolve(A.tocsc(), B), atol=1e-7)


def test_null_space() -> None:
    gauge = np.exp(1j * np.random.default_rng(2).uniform(0, 6, N))
    flat = sp.csr_array(lattice(16, 15, mass=0.0, spread=0.0))
    turned = sp.csr_array(sp.diags_array(gauge) @ flat @ sp.diags_array(gauge.conj()))
    for matrix, given, vector in (
        (flat, "constant", np.ones(N)),
        (turned, gauge, gauge),
    ):
        with Solver(matrix, nullspace=given) as solver:
            result = solver.solve(B, rtol=RTOL)
            within = solver.within_range(B)
        assert result.converged
        outside = abs(np.vdot(vector, B)) / np.linalg.norm(B) / np.sqrt(N)
        assert result.outside == pytest.approx(outside)
        assert abs(np.vdot(vector, result.x)) <= 1e-9 * np.linalg.norm(result.x)
        assert abs(np.vdot(vector, within)) <= 1e-9
        assert residual(matrix, result.x, within) <= 1.01 * RTOL
    with pytest.raises(InvalidInputError, match="A maps vector 0"):
        Solver(turned, nullspace="constant")
    with pytest.raises(InvalidInputError, match="nullspace is complex"):
        Solver(flat.real, nullspace=gauge)
    assert any("A maps constants to 0" in note for note in Solver(flat).warnings)


def test_multigrid_represents_what_it_is_told() -> None:
    gauge = np.exp(1j * np.random.default_rng(2).uniform(0, 6, 3600))
    flat = lattice(60, 60, mass=0.001, spread=0.0)
    turned = sp.csr_array(sp.diags_array(gauge) @ flat @ sp.diags_array(gauge.conj()))
    b = np.exp(1j * np.arange(3600.0))
    known = cpufree.solve(turned, b, rtol=RTOL, pc="amg", near_nullspace=gauge, pes=2)
    unknown = cpufree.solve(turned, b, rtol=RTOL, pc="amg", pes=2)
    jacobi = cpufree.solve(turned, b, rtol=RTOL, pes=2)
    assert residual(turned, known.x, b) <= 1.01 * RTOL
    assert 2 * known.iterations < unknown.iterations < jacobi.iterations
    with pytest.raises(InvalidInputError, match="coordinates and unknowns are for real systems"):
        Solver(A, pc="amg", coordinates=np.zeros((N, 2)))


def test_levels_from_outside() -> None:
    aggregates = np.arange(N) // 4
    gauge = np.exp(1j * np.arange(N))
    P = sp.csr_array((gauge, (np.arange(N), aggregates)), shape=(N, N // 4))
    levels = cpufree.amg.from_levels([A, P, P.conj().T @ A @ P])
    result = cpufree.solve(A, B, rtol=RTOL, pc=levels, pes=1)
    assert result.converged
    assert residual(A, result.x, B) <= 1.01 * RTOL
    with pytest.raises(MatrixError, match="the levels are complex, and A is real"):
        cpufree.solve(sp.csr_array(A.real), B.real, pc=levels, pes=1)


# What is refused


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        (
            with_entry(3, 4, 2 + 1j),
            NotSymmetricError,
            r"not Hermitian: entry \(row 3, column 4\) is 2\+1j, but entry \(row 4, column 3\) is",
        ),
        (with_entry(5, 5, 4 + 1e-3j), NotSymmetricError, r"row 5 is 4\+0\.001j, which is not real"),
        (sp.csr_array(sp.triu(A)), NotSymmetricError, r"triu\(A, 1\)\.conj\(\)\.T.*'hermitian'"),
        (with_entry(5, 5, -1), DiagonalError, "the diagonal entry of row 5 is -1"),
        (with_entry(5, 6, np.nan), NonFiniteError, r"entry \(row 5, column 6\)"),
        (1j * (A - 4.1 * sp.eye_array(N)), NotSymmetricError, "skew-Hermitian.*-1j"),
        (
            sp.csr_array(A.real + 1j * (A.real - 4.1 * sp.eye_array(N))),
            NotSymmetricError,
            r"complex symmetric, A = A\.T",
        ),
    ],
)
def test_what_is_not_hermitian_is_refused_with_the_entry(
    matrix: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        cpufree.solve(matrix, B)


def test_not_positive_definite_is_a_result() -> None:
    result = cpufree.solve(A - 3 * sp.eye_array(N), B)
    assert result.reason == "DIVERGED_INDEFINITE_MAT"


# cg, files and commands


def test_cg_as_scipy_has_it() -> None:
    x, info = cpufree.cg(A, B, rtol=RTOL)
    assert info == 0
    assert residual(A, x, B) <= 1.01 * RTOL
    inverse = sp.csr_array(sp.diags_array(1.0 / A.diagonal()))
    same, _ = cpufree.cg(A, B, rtol=RTOL, M=inverse)
    assert np.array_equal(same, x)
    seen: list[Any] = []
    with pytest.warns(cpufree.CpufreeWarning, match="callback"):
        host, info = cpufree.cg(A, B, rtol=RTOL, callback=seen.append)
    assert info == 0
    assert np.iscomplexobj(seen[0])
    assert residual(A, host, B) <= 1.01 * RTOL


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz", ".npz", ".cpufree"])
def test_files(tmp_path: Path, suffix: str) -> None:
    cpufree.save_matrix(tmp_path / f"a{suffix}", A)
    found = cpufree.load_matrix(tmp_path / f"a{suffix}")
    assert found.dtype == np.complex128
    assert abs(found - A).max() == 0.0
    result = cpufree.solve(str(tmp_path / f"a{suffix}"), B, rtol=RTOL)
    assert np.array_equal(result.x, cpufree.solve(A, B, rtol=RTOL).x)


def test_a_damaged_cache_of_complex_rows_is_refused(tmp_path: Path) -> None:
    from cpufree.matrix import cache
    from cpufree.matrix.load import as_csr

    rows = as_csr(A)
    wrong = rows.with_values(np.arange(rows.nnz, dtype=np.float64))
    cache.write_cache(tmp_path / "a.cpufree", wrong)
    with pytest.raises(FileFormatError, match="not those of a complex matrix"):
        cpufree.load_matrix(tmp_path / "a.cpufree")
    cache.write_cache(tmp_path / "b.cpufree", rows)
    with pytest.raises(FileFormatError, match="real matrices only"):
        cpufree.open_rows(tmp_path / "b.cpufree")


def test_commands(run: Run, tmp_path: Path) -> None:
    scipy.io.mmwrite(tmp_path / "a.mtx", A, symmetry="hermitian")
    np.save(tmp_path / "b.npy", B)
    given = ("--rhs", str(tmp_path / "b.npy"), "--out", str(tmp_path / "x.npy"), "--rtol", RTOL)
    ended = run("solve", str(tmp_path / "a.mtx"), *given, "--pes", 2)
    assert ended.code == 0, ended.err
    assert residual(A, np.load(tmp_path / "x.npy"), B) <= 1.01 * RTOL
    shown = run("info", str(tmp_path / "a.mtx"), "--pes", 2, "--save-partition", tmp_path / "p.txt")
    assert shown.code == 0, shown.err
    assert "finite, Hermitian" in shown.out
    assert counted(A.nnz, "nonzero").replace(" nonzeros", " (complex128") in shown.out
    assert len((tmp_path / "p.txt").read_text().split()) == N
    for more in (("--rhs", "random"), ("--precision", "single"), ("--pc", "fsai")):
        ended = run("solve", str(tmp_path / "a.mtx"), *more, "--partition", tmp_path / "p.txt")
        assert ended.code == 0, ended.err
