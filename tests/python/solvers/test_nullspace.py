"""Singular systems are solved on what is orthogonal to their null space, and named without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from singular import graph_laplacian, neumann, trusses

import cpufree
from cpufree.errors import InvalidInputError, MatrixError, VectorError

METHODS = ("cg", "prcg", "pipecg")
PRECONDITIONERS = ("none", "jacobi", "chebyshev", "fsai")
SYSTEMS = {
    "neumann, 2-D": lambda: neumann(23, 18),
    "neumann, 3-D": lambda: neumann(9, 8, 7),
    "graph": lambda: graph_laplacian(600),
    "five points": lambda: neumann(5),
    "two points": lambda: neumann(2),
}


def _right(A: Any, x: Any, b: Any, basis: Any, rtol: float) -> bool:
    """Whether x solves the system for b's part in the range, and has none in the null space."""
    basis, _ = np.linalg.qr(basis)
    rest = b - basis @ (basis.T @ b)
    small = 1e-12 if x.dtype == np.float64 else 1e-5
    return bool(
        np.linalg.norm(rest - A @ x) <= 1.01 * rtol * np.linalg.norm(rest)
        and np.abs(basis.T @ x).max() <= small * np.linalg.norm(x)
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_every_method_and_preconditioner_solves_singular_systems(name: str, method: str) -> None:
    A = SYSTEMS[name]()
    n = A.shape[0]
    b = np.random.default_rng(1).standard_normal(n) + 0.3
    for pc in PRECONDITIONERS:
        for pes in {1, min(n, 3)}:
            result = cpufree.solve(
                A, b, rtol=1e-10, method=method, pc=pc, pes=pes, nullspace="constant"
            )
            assert result.converged, (pc, pes, result.reason)
            assert _right(A, result.x, b, np.ones((n, 1)), 1e-10), (pc, pes)


@pytest.mark.parametrize("name", ["neumann, 2-D", "neumann, 3-D", "graph"])
def test_iterations_are_those_of_the_grounded_system_or_fewer(name: str) -> None:
    A = SYSTEMS[name]()
    b = np.random.default_rng(2).standard_normal(A.shape[0])
    b -= b.mean()
    singular = cpufree.solve(A, b, rtol=1e-8, nullspace="constant")
    grounded = cpufree.solve(sp.csr_array(A[1:, 1:]), b[1:], rtol=1e-8)
    assert singular.iterations <= grounded.iterations + 3


@pytest.mark.parametrize("pes", [1, 2, 4])
def test_free_body_is_solved_with_its_rigid_body_modes(pes: int) -> None:
    A, modes = trusses(5, 4, 4)
    b = np.random.default_rng(3).standard_normal(A.shape[0])
    result = cpufree.solve(A, b, rtol=1e-10, pes=pes, nullspace=modes)
    assert result.converged
    assert _right(A, result.x, b, modes, 1e-10)


def test_single_precision_is_as_good_as_its_digits() -> None:
    A = neumann(20, 20).astype(np.float32)
    b = np.random.default_rng(4).standard_normal(400).astype(np.float32)
    result = cpufree.solve(A, b, rtol=1e-4, nullspace="constant")
    assert result.converged and result.x.dtype == np.float32
    assert _right(A.astype(float), result.x, b.astype(float), np.ones((400, 1)), 2e-4)


def test_columns_are_projected_each() -> None:
    A = neumann(15, 12)
    b = np.random.default_rng(5).standard_normal((180, 3))
    for columns in ("together", "one by one"):
        result = cpufree.solve(A, b, rtol=1e-10, columns=columns, nullspace="constant")
        for k in range(3):
            assert _right(A, result.x[:, k], b[:, k], np.ones((180, 1)), 1e-10)
        assert result.outside == max(one.outside for one in result.columns) > 0


def test_part_of_b_in_the_null_space_is_told() -> None:
    A = neumann(12)
    b = np.sin(np.arange(12.0))
    b -= b.mean()
    assert cpufree.solve(A, b, nullspace="constant").outside < 1e-15
    result = cpufree.solve(A, b + 1.0, nullspace="constant")
    assert result.outside == pytest.approx(np.sqrt(12.0) / np.linalg.norm(b + 1.0))
    assert any("lies in the null space" in note for note in result.warnings)


def test_right_hand_side_in_the_null_space_has_the_solution_zero() -> None:
    result = cpufree.solve(neumann(30, 30), np.full(900, 0.1), nullspace="constant")
    assert result.converged and np.array_equal(result.x, np.zeros(900))
    assert result.outside == pytest.approx(1.0)


def test_first_guess_is_projected_and_helps() -> None:
    A = neumann(25, 25)
    b = np.random.default_rng(6).standard_normal(625)
    with cpufree.Solver(A, nullspace="constant") as solver:
        x = solver.solve(b, rtol=1e-10).x
        again = solver.solve(b, x + 7.0, rtol=1e-9)
    assert again.iterations <= 1 and abs(again.x.sum()) < 1e-9


def test_update_keeps_the_null_space_and_checks_it() -> None:
    A = neumann(10, 10)
    b = np.random.default_rng(7).standard_normal(100)
    with cpufree.Solver(A, nullspace="constant") as solver:
        before = solver.solve(b, rtol=1e-12).x
        solver.update(2.0 * A)
        assert np.allclose(solver.solve(b, rtol=1e-12).x, before / 2.0)
        with pytest.raises(MatrixError, match="not in the null space"):
            solver.update(sp.csr_array(A + sp.eye_array(100)))
        assert np.allclose(solver.solve(b, rtol=1e-12).x, before / 2.0)  # the old values stay


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("constants", "give 'constant', or a file"),
        (np.ones(9), r"shape \(9,\), and the matrix has 10 rows"),
        (np.ones((10, 2)), "vector 1 is a combination"),
        (np.zeros(10), "vector 0 is 0"),
        (np.full(10, np.nan), "NaN"),
        (np.ones((10, 13)), "k from 1 to 12"),
        (object(), "give 'constant', or vectors"),
    ],
)
def test_wrong_null_spaces_are_refused_with_reason(given: Any, words: str) -> None:
    with pytest.raises(VectorError, match=words):
        cpufree.Solver(neumann(10), nullspace=given)


def test_vectors_that_a_does_not_map_to_zero_are_refused() -> None:
    with pytest.raises(MatrixError, match="vector 1, made orthonormal"):
        cpufree.Solver(neumann(10), nullspace=np.stack([np.ones(10), np.arange(10.0)], axis=1))


def test_vectors_come_from_files(tmp_path: Path) -> None:
    A, modes = trusses(3, 3, 3)
    np.save(tmp_path / "modes.npy", modes)
    b = np.random.default_rng(8).standard_normal(81)
    result = cpufree.solve(A, b, rtol=1e-10, nullspace=tmp_path / "modes.npy")
    assert _right(A, result.x, b, modes, 1e-10)


@pytest.mark.parametrize("size", [2, 7, 300])
def test_singular_systems_without_a_null_space_are_named(size: int) -> None:
    b = np.random.default_rng(9).standard_normal(size)
    result = cpufree.solve(neumann(size), b)
    assert any("nullspace='constant'" in note for note in result.warnings)


def test_free_bodies_are_named() -> None:
    A, _ = trusses(4, 3, 3)
    result = cpufree.solve(A, np.ones(A.shape[0]))
    assert any("rigid body modes" in note for note in result.warnings)


def test_regular_systems_are_not_named() -> None:
    for A in (
        cpufree.generate.poisson2d(12, 12),
        sp.csr_array(neumann(40) + 1e-6 * sp.eye_array(40)),
    ):
        result = cpufree.solve(A, np.ones(A.shape[0]), maxiter=5)
        assert not any("singular" in note for note in result.warnings)


def test_cg_takes_the_null_space() -> None:
    A = neumann(14, 14)
    b = np.random.default_rng(10).standard_normal(196)
    b -= b.mean()
    x, info = cpufree.cg(A, b, rtol=1e-10, nullspace="constant")
    assert info == 0 and _right(A, x, b, np.ones((196, 1)), 1e-10)
    with pytest.raises(InvalidInputError, match="nullspace cannot be used here"):
        cpufree.cg(A, b, nullspace="constant", callback=lambda x: None)
