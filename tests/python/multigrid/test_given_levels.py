"""Levels of multigrid from outside, pc=cpufree.amg.from_levels([...])."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import cpufree
from cpufree import InvalidInputError, MatrixError, Solver, UnsupportedError
from cpufree.generate import generate

A = generate("poisson2d", nx=60, ny=60)
B = np.random.default_rng(2).standard_normal(3600)


def squares(n: int) -> Any:
    """Piecewise constants on 3 × 3 nodes of a grid of n × n, smoothed once."""
    line = sp.kron(sp.identity(n // 3), np.ones((3, 1)))
    return sp.kron(line, line).tocsr()


def smoothed(matrix: Any, tentative: Any) -> Any:
    return (tentative - 0.66 * sp.diags(1.0 / matrix.diagonal()) @ matrix @ tentative).tocsr()


def levels_of(matrix: Any) -> list[Any]:
    first = smoothed(matrix, squares(60))
    coarse = (first.T @ matrix @ first).tocsr()
    return [matrix, first, coarse]


def test_levels_from_outside_make_few_iterations() -> None:
    levels = cpufree.amg.from_levels(levels_of(A))
    result = cpufree.solve(A, B, pc=levels, pes=1, rtol=1e-8)
    assert result.converged
    assert result.iterations <= 13
    assert result.pc == "amg"
    assert [level["rows"] for level in result.levels] == list(levels.rows) == [3600, 400]
    assert result.levels[-1]["inverted"]
    assert "amg has the prolongators that are given" in result.why
    assert np.linalg.norm(B - A @ result.x) <= 1.01e-8 * np.linalg.norm(B)


def test_the_function_cg_takes_them() -> None:
    x, info = cpufree.cg(A, B, rtol=1e-8, pc=cpufree.amg.from_levels(levels_of(A)), pes=1)
    assert info == 0
    assert np.linalg.norm(B - A @ x) <= 1.01e-8 * np.linalg.norm(B)


def test_updates_keep_the_prolongators() -> None:
    other = A.copy()
    other.data *= 4.0  # to the bit the same in all that is scaled
    levels = cpufree.amg.from_levels(levels_of(A))
    with Solver(A, pc=levels, pes=1) as solver, Solver(other, pc=levels, pes=1) as fresh:
        solver.update(other)
        assert np.array_equal(solver.solve(B).x, fresh.solve(B).x)


def test_several_pes_are_refused_with_the_reason() -> None:
    with pytest.raises(UnsupportedError, match="levels from outside are for one PE"):
        Solver(A, pc=cpufree.amg.from_levels(levels_of(A)), pes=2)


def test_levels_of_another_matrix_are_refused() -> None:
    levels = cpufree.amg.from_levels(levels_of(A))
    with pytest.raises(MatrixError, match="the first of the levels has 3600 rows, and A has 100"):
        cpufree.solve(sp.identity(100, format="csr"), np.ones(100), pc=levels)


def test_levels_and_a_near_null_space_are_refused() -> None:
    levels = cpufree.amg.from_levels(levels_of(A))
    with pytest.raises(InvalidInputError, match="leave them out"):
        Solver(A, pc=levels, near_nullspace=np.ones((3600, 1)))


def test_levels_of_a_solve_are_refused_where_the_matrix_was_set_up_without() -> None:
    levels = cpufree.amg.from_levels(levels_of(A))
    with Solver(A) as solver, pytest.raises(InvalidInputError, match=r"Solver\(A, pc=levels\)"):
        solver.solve(B, pc=levels)


def change(position: int, made: Any) -> list[Any]:
    found = levels_of(A)
    found[position] = made(found[position])
    return found


def without_a_column(p: Any) -> Any:
    p = p.tolil()
    p[:, 7] = 0.0
    return p


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (levels_of(A)[:2], r"give \[A0, P0, A1, ..., Ak\]"),
        (change(1, lambda p: p.T), "is it the restriction"),
        (change(1, without_a_column), "column 7 of P0 has no entries"),
        (change(2, lambda a: 2.0 * a), r"A1 is not P0\^T A0 P0"),
        (change(0, lambda a: a[:, :-1]), "A0 has shape"),
        (change(2, lambda a: np.nan * a), "A1 has a NaN"),
        (change(1, lambda p: "P"), "P0 is no matrix"),
    ],
)
def test_what_is_no_hierarchy_is_refused_with_the_reason(given: list[Any], reason: str) -> None:
    with pytest.raises(MatrixError, match=reason):
        cpufree.amg.from_levels(given)


def test_levels_of_pyamg_are_taken() -> None:
    pyamg = pytest.importorskip("pyamg")
    ml = pyamg.smoothed_aggregation_solver(sp.csr_matrix(A))
    given = [m for level in ml.levels[:-1] for m in (level.A, level.P)] + [ml.levels[-1].A]
    result = cpufree.solve(A, B, pc=cpufree.amg.from_levels(given), pes=1, rtol=1e-8)
    assert result.converged
    assert result.iterations <= 20
