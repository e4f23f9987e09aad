"""What is put in: matrices that are not positive definite, types, shapes, wrong options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from reference_cg import rhs

import cpufree
from cpufree import Reason, Solver, solve
from cpufree.errors import InvalidInputError, MatrixError, UnsupportedError, VectorError

METHODS = ["cg", "prcg", "pipecg"]
PCS = ["none", "jacobi", "chebyshev"]


@pytest.fixture(scope="module")
def poisson() -> sp.csr_array:
    return cpufree.generate.poisson2d(30, 20)


# Matrices that are not positive definite, unchecked


def with_nan(A: sp.csr_array) -> sp.csr_array:
    """Return A with one entry and its mirror image NaN."""
    A = A.copy()
    A[5, 6] = A[6, 5] = np.nan
    return A


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pc", PCS)
@pytest.mark.parametrize("pes", [1, 3])
def test_a_nan_in_the_matrix_is_named_within_3_iterations(
    poisson: sp.csr_array, method: str, pc: str, pes: int
) -> None:
    result = solve(with_nan(poisson), rhs(poisson), method=method, pc=pc, pes=pes, check=False)
    assert result.reason is Reason.DIVERGED_NANORINF
    assert result.iterations <= 3


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pc", ["none", "jacobi"])
@pytest.mark.parametrize("pes", [1, 3])
def test_a_negative_definite_matrix_is_named_within_3_iterations(
    poisson: sp.csr_array, method: str, pc: str, pes: int
) -> None:
    result = solve(-poisson, rhs(poisson), method=method, pc=pc, pes=pes, check=False)
    assert result.reason is Reason.DIVERGED_INDEFINITE_MAT
    assert result.iterations <= 3


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pes", [1, 3])
def test_an_indefinite_matrix_is_named_within_a_few_iterations(
    poisson: sp.csr_array, method: str, pes: int
) -> None:
    # Shifted into the middle of its spectrum: as many negative as positive eigenvalues.
    A = sp.csr_array(poisson - sp.eye_array(poisson.shape[0]) * 3.9)
    b = np.random.default_rng(1).standard_normal(A.shape[0])
    result = solve(A, b, method=method, pc="none", pes=pes)
    assert result.reason is Reason.DIVERGED_INDEFINITE_MAT
    assert result.iterations <= 10


@pytest.mark.parametrize("method", METHODS)
def test_a_singular_direction_is_named(method: str) -> None:
    A = sp.csr_array(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    result = solve(A, np.array([1.0, 1.0]), method=method, rtol=1e-10)  # b in the null space
    assert result.reason in (Reason.DIVERGED_INDEFINITE_MAT, Reason.DIVERGED_BREAKDOWN)


def test_checks_refuse_what_the_solver_would_stumble_over(poisson: sp.csr_array) -> None:
    for A in (-poisson, with_nan(poisson), sp.csr_array(np.array([[1.0, 2.0], [0.0, 1.0]]))):
        with pytest.raises(MatrixError):
            solve(A, np.ones(A.shape[0]))


# Types and shapes


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pes", [1, 2])
def test_float32_matrix_and_b_are_solved_in_float32(
    poisson: sp.csr_array, method: str, pes: int
) -> None:
    A, b = poisson.astype(np.float32), rhs(poisson).astype(np.float32)
    result = solve(A, b, rtol=1e-4, method=method, pes=pes)
    assert result.converged
    assert result.x.dtype == np.float32
    exact = A.astype(np.float64) @ result.x.astype(np.float64)
    assert np.linalg.norm(b - exact) <= 1.05e-4 * np.linalg.norm(b)


def test_entries_at_the_upper_end_of_the_range_are_not_called_too_small() -> None:
    A = sp.diags_array([-1e307, 2.5e307, -1e307], offsets=[-1, 0, 1], shape=(50, 50))
    b = np.ones(50)
    for method in ("cg", "prcg", "pipecg"):
        assert solve(A, b, method=method, engine="cpu_threads").converged


def test_float32_in_another_order_of_bytes_is_float32(poisson: sp.csr_array) -> None:
    b = rhs(poisson).astype(">f4")
    assert solve(poisson.astype(np.float32), b).x.dtype == np.float32


def test_float32_below_its_reach_stagnates_and_advises_float64(poisson: sp.csr_array) -> None:
    A, b = poisson.astype(np.float32), rhs(poisson).astype(np.float32)
    result = solve(A, b, rtol=1e-9)
    assert result.reason is Reason.STAGNATED
    assert result.relative_residual < 1e-5
    assert any("float64" in note for note in result.warnings)


@pytest.mark.parametrize("wide", ["A", "b", "list"])
def test_anything_wider_than_float32_is_solved_in_float64(poisson: sp.csr_array, wide: str) -> None:
    A = poisson if wide == "A" else poisson.astype(np.float32)
    b = rhs(poisson).astype(np.float64 if wide == "b" else np.float32)
    result = solve(A, b.tolist() if wide == "list" else b, rtol=1e-9)
    assert result.x.dtype == np.float64
    assert result.converged


def test_integers_are_solved_in_float64() -> None:
    result = solve(np.array([[4, 1], [1, 3]]), [1, 2], rtol=1e-13)
    assert result.x.dtype == np.float64
    assert result.x == pytest.approx([1 / 11, 7 / 11])


def test_a_float32_solver_says_when_it_rounds_b(poisson: sp.csr_array) -> None:
    with Solver(poisson.astype(np.float32)) as solver:
        result = solver.solve(rhs(poisson), rtol=1e-3)
    assert result.x.dtype == np.float32
    assert any("rounded" in note for note in result.warnings)


def test_solver_dtype_widens_the_matrix(poisson: sp.csr_array) -> None:
    with Solver(poisson.astype(np.float32), dtype=np.float64) as solver:
        assert solver.solve(rhs(poisson), rtol=1e-10).x.dtype == np.float64


def test_narrowing_that_overflows_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="too large for float32"):
        Solver(np.array([[1e300]]), dtype=np.float32)


def test_narrowing_that_leaves_no_diagonal_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="too small for float32"):
        Solver(np.array([[1e-300]]), dtype=np.float32)


@pytest.mark.parametrize("dtype", [np.int64, "double precision", 3])
def test_solver_dtype_must_be_a_float(dtype: Any) -> None:
    with pytest.raises(InvalidInputError, match="float32, float64, complex64 or complex128"):
        Solver(np.array([[1.0]]), dtype=dtype)


def test_x_has_the_shape_of_b(poisson: sp.csr_array) -> None:
    b = rhs(poisson)
    column = solve(poisson, b[:, None])
    assert column.x.shape == (len(b), 1)
    assert np.array_equal(column.x[:, 0], solve(poisson, b).x)


@pytest.mark.parametrize("convert", [sp.csc_array, sp.coo_matrix, lambda A: A.toarray()])
def test_every_format_gives_the_same_answer(poisson: sp.csr_array, convert: Any) -> None:
    b = rhs(poisson)
    assert np.array_equal(solve(convert(poisson), b).x, solve(poisson, b).x)


def test_neither_a_nor_b_nor_x0_is_changed(poisson: sp.csr_array) -> None:
    A, b, x0 = poisson.copy(), rhs(poisson), np.ones(poisson.shape[0])
    before = [array.copy() for array in (A.data, A.indices, A.indptr, b, x0)]
    solve(A, b, x0=x0, pes=2)
    after = (A.data, A.indices, A.indptr, b, x0)
    assert all(np.array_equal(u, v) for u, v in zip(before, after, strict=True))


def test_noise_in_the_symmetry_is_told() -> None:
    A = cpufree.generate.poisson2d(5, 5).toarray()
    A[0, 1] *= 1 + 4e-15
    result = solve(A, np.ones(25))
    assert result.converged
    assert any("symmetric only to within" in note for note in result.warnings)


# Wrong input


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"b": np.ones(599)}, VectorError, "600 rows"),
        ({"b": np.ones((2, 300))}, VectorError, "b has shape"),
        ({"b": np.full(600, np.nan)}, VectorError, r"b\[0\]"),
        ({"x0": np.ones(600) * 1j}, VectorError, "x0 is complex"),
        ({"x0": np.ones(3)}, VectorError, "x0 has shape"),
        ({"rtol": -1.0}, InvalidInputError, "rtol is -1.0"),
        ({"atol": float("nan")}, InvalidInputError, "atol is nan"),
        ({"maxiter": 1.5}, InvalidInputError, "maxiter is 1.5"),
        ({"method": "bicg"}, InvalidInputError, "unknown method 'bicg'"),
        ({"pc": "ilu"}, InvalidInputError, "unknown preconditioner pc 'ilu'.*jacobi"),
        ({"pes": 0}, InvalidInputError, "pes is 0"),
        ({"blocks": "all"}, InvalidInputError, "blocks is 'all'"),
        ({"engine": "nvshmem"}, UnsupportedError, "nvshmem"),
        ({"gpus": 1}, InvalidInputError, "gpus is 1, which is ambiguous"),
        ({"engine": "cpu_threads", "gpus": "0"}, InvalidInputError, "which uses none"),
        ({"reorder": "amd"}, InvalidInputError, "unknown reorder"),
        ({"partition": "scotch", "pes": 2}, InvalidInputError, "unknown partition"),
        ({"partition": "scotch"}, InvalidInputError, "unknown partition"),
        ({"time_limit": 0}, InvalidInputError, "time_limit is 0"),
        ({"wait_limit": -1}, InvalidInputError, "wait_limit is -1"),
        ({"replace_every": -1}, InvalidInputError, "replace_every is -1"),
        ({"chebyshev_degree": 0}, InvalidInputError, "chebyshev_degree is 0"),
        ({"chebyshev_degree": 10**6}, InvalidInputError, "chebyshev_degree"),
    ],
)
def test_refuses_wrong_input_with_a_reason(
    poisson: sp.csr_array, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    arguments: dict[str, Any] = {"b": np.ones(600), **change}
    with pytest.raises(error, match=message):
        solve(poisson, **arguments)


def test_progress_that_is_no_function_is_refused(poisson: sp.csr_array) -> None:
    with pytest.raises(InvalidInputError, match="progress is 3: give True, a function, or None"):
        solve(poisson, rhs(poisson), progress=3)  # type: ignore[arg-type]


# Right-hand sides in files


@pytest.mark.parametrize("suffix", [".npy", ".mtx", ".txt"])
def test_b_and_x0_may_be_paths(poisson: sp.csr_array, tmp_path: Path, suffix: str) -> None:
    b, guess = rhs(poisson), np.linspace(0.0, 1.0, 600)
    cpufree.save_vector(tmp_path / f"b{suffix}", b)
    cpufree.save_vector(tmp_path / f"x0{suffix}", guess)
    found = solve(poisson, str(tmp_path / f"b{suffix}"), x0=tmp_path / f"x0{suffix}")
    assert np.array_equal(found.x, solve(poisson, b, x0=guess).x)


def test_solver_and_cg_take_a_path_as_b(poisson: sp.csr_array, tmp_path: Path) -> None:
    b, file = rhs(poisson), tmp_path / "b.npy"
    np.save(file, b)
    expected = solve(poisson, b).x
    with Solver(poisson) as solver:
        assert np.array_equal(solver.solve(file).x, expected)
    assert np.array_equal(cpufree.cg(poisson, file)[0], expected)
    assert np.array_equal(cpufree.cg(poisson, file, str(file))[0], solve(poisson, b, x0=b).x)
    with pytest.warns(cpufree.CpufreeWarning, match="SciPy's cg"):
        x, info = cpufree.cg(poisson, file, callback=lambda _: None, rtol=1e-8)
    assert info == 0
    assert np.linalg.norm(b - poisson @ x) <= 1e-8 * np.linalg.norm(b)


def test_path_of_x0_is_refused_for_several_right_hand_sides(
    poisson: sp.csr_array, tmp_path: Path
) -> None:
    np.save(tmp_path / "x0.npy", np.ones(600))
    with pytest.raises(VectorError, match=r"x0 has shape \(600,\), but b has \(600, 2\)"):
        solve(poisson, np.ones((600, 2)), x0=tmp_path / "x0.npy")


def test_file_of_b_takes_the_type_of_the_matrix(poisson: sp.csr_array, tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", np.ones(600))
    assert solve(poisson.astype(np.float32), tmp_path / "b.npy").x.dtype == np.float32


def test_file_of_b_that_does_not_fit_is_named(poisson: sp.csr_array, tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", np.ones(599))
    with pytest.raises(
        VectorError, match=r"b\.npy has shape \(599,\), but the matrix has 600 rows"
    ):
        solve(poisson, tmp_path / "b.npy")
    with pytest.raises(InvalidInputError, match=r"no\.npy: no such file"):
        solve(poisson, tmp_path / "no.npy")
