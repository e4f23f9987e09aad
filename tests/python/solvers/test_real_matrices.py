"""Real matrices of the SuiteSparse collection (Davis and Hu 2011) and of other projects."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from reference_cg import as_many, hestenes_stiefel, iteration_range, rhs
from scipy.sparse.linalg import spsolve

import cpufree

METHODS = ["cg", "prcg", "pipecg"]
NAMES = [
    "494_bus",
    "662_bus",
    "1138_bus",
    "bar",
    "bcsstk09",
    "Chem97ZtZ",
    "local_disc_galerkin_diffusion",
    "mesh1e1",
    "Trefethen_2000",
    "ani4",
    "ani5_crop",
    "bcsstk18",
    "gyro_m",
    "wathen100",
    "Trefethen_20000",
    "shallow_water1",
]
SMALL = NAMES[:10]


@cache
def read(path: Path) -> sp.csr_array:
    return sp.csr_array(cpufree.load_matrix(path))


@cache
def textbook(path: Path) -> tuple[int, int]:
    A = read(path)
    return iteration_range(A, noise(A), rtol=1e-6, orders=2)


def noise(A: sp.csr_array) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(A.shape[0])


@pytest.fixture(params=SMALL)
def small_matrix(request: pytest.FixtureRequest, data_dir: Path) -> sp.csr_array:
    return read(file_of(request.param, data_dir))


def file_of(name: str, data_dir: Path) -> Path:
    path = data_dir / f"{name}.mtx.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not among the real matrices")
    return path


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", METHODS)
def test_iterations_are_those_of_hestenes_and_stiefel(
    name: str, method: str, data_dir: Path
) -> None:
    path = file_of(name, data_dir)
    A, b = read(path), noise(read(path))
    result = cpufree.solve(A, b, rtol=1e-6, method=method, pc="jacobi", pes=2, blocks=1)
    assert result.converged
    assert np.linalg.norm(b - A @ result.x) <= 1.001e-6 * np.linalg.norm(b)
    assert as_many(result.iterations, textbook(path), method)


@pytest.mark.parametrize("method", METHODS)
def test_agrees_with_a_direct_solver(small_matrix: sp.csr_array, method: str) -> None:
    A = small_matrix
    b = rhs(A)
    exact = spsolve(A.tocsc(), b)
    result = cpufree.solve(A, b, rtol=1e-11, method=method, pes=3)
    assert result.converged
    # ‖error‖ ≤ ‖A⁻¹‖ ‖residual‖; the worst of these matrices has a condition number near 10⁷.
    assert np.linalg.norm(result.x - exact) <= 1e-4 * np.linalg.norm(exact)


@pytest.mark.parametrize("method", METHODS)
def test_attainable_residual_is_within_10_times_that_of_hestenes_and_stiefel(
    small_matrix: sp.csr_array, method: str
) -> None:
    A = small_matrix
    b = rhs(A)
    goal = hestenes_stiefel(A, b, rtol=1e-8, maxiter=20_000).iterations
    reference = hestenes_stiefel(A, b, rtol=0.0, maxiter=3 * goal + 20, keep_true=True)
    result = cpufree.solve(A, b, rtol=0.0, method=method)
    assert result.reason is cpufree.Reason.STAGNATED
    assert np.linalg.norm(b - A @ result.x) <= 10 * min(reference.true_residuals)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_circuit_of_150_000_nodes_takes_the_textbook_iterations(
    data_dir: Path, method: str
) -> None:
    path = file_of("G2_circuit", data_dir)
    A, b = read(path), noise(read(path))
    result = cpufree.solve(A, b, rtol=1e-6, method=method, pes=2)
    assert result.converged
    assert as_many(result.iterations, textbook(path), method)
