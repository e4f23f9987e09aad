"""A residual that rows of penalties hide is told, with every method and preconditioner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg

import cpufree

HIDES = "outweigh the others"


def _with_penalties(size: int, penalty: float, load: float) -> tuple[Any, Any]:
    """Return a Poisson problem on a square whose first row of points has the value 1."""
    A = cpufree.generate.poisson2d(size, size).tolil()
    b = np.full(size * size, load)
    for i in range(size):
        A[i, i] = penalty
        b[i] = penalty
    return sp.csr_array(A), b


def _told(result: cpufree.Result) -> bool:
    return any(HIDES in note for note in result.warnings)


@pytest.mark.parametrize("method", ["cg", "prcg", "pipecg"])
@pytest.mark.parametrize("penalty", [1e8, 1e14, 1e30])
def test_hidden_rows_are_told_by_every_method(method: str, penalty: float) -> None:
    told = 0
    for load in (0.0, 1e-3):
        A, b = _with_penalties(12, penalty, load)
        exact = scipy.sparse.linalg.spsolve(A.tocsc(), b)
        for pc in ("none", "jacobi", "chebyshev", "fsai", *(["amg"] if method == "cg" else [])):
            for pes in (1, 3):
                result = cpufree.solve(A, b, rtol=1e-5, method=method, pc=pc, pes=pes)
                wrong = np.linalg.norm(result.x - exact) > 0.1 * np.linalg.norm(exact)
                assert not result.converged or not wrong or _told(result), (pc, pes, load)
                told += _told(result)
    assert told > 0


def test_weighted_residual_is_what_it_is_said_to_be() -> None:
    A, b = _with_penalties(10, 1e6, 0.5)
    for pes in (1, 2):
        for dtype, digits in ((np.float64, 1e-6), (np.float32, 1e-2)):
            result = cpufree.solve(A.astype(dtype), b.astype(dtype), rtol=1e-4, pes=pes)
            d, r = A.diagonal(), b - A @ result.x.astype(float)
            expected = np.linalg.norm(r / d) / np.linalg.norm(b / d)
            assert result.weighted_residual == pytest.approx(expected, rel=digits)


def test_several_columns_have_one_each() -> None:
    A, b = _with_penalties(12, 1e12, 0.0)
    plain = np.random.default_rng(0).standard_normal(144)
    result = cpufree.solve(A, np.stack([b, plain], axis=1), rtol=1e-5, columns="together")
    assert _told(result.columns[0])
    assert 0.0 < result.columns[1].weighted_residual < 0.1


@pytest.mark.parametrize("rtol", [1e-2, 1e-5, 1e-8, 1e-10])
@pytest.mark.parametrize("name", ["poisson2d", "heart", "flange_hex", "powergrid", "thermal2d"])
def test_usual_systems_are_not_told(name: str, rtol: float) -> None:
    A = SYSTEMS[name]()
    for b in (np.ones(A.shape[0]), np.eye(1, A.shape[0], A.shape[0] // 2)[0]):
        assert not _told(cpufree.solve(A, b, rtol=rtol))


def test_tight_tolerances_find_what_is_hidden() -> None:
    A, b = _with_penalties(12, 1e6, 1e-3)
    exact = scipy.sparse.linalg.spsolve(A.tocsc(), b)
    result = cpufree.solve(A, b, rtol=1e-12)
    assert not _told(result)
    assert np.allclose(result.x, exact, rtol=1e-4, atol=1e-6)


SYSTEMS: dict[str, Any] = {
    "poisson2d": lambda: cpufree.generate.poisson2d(30, 30),
    "heart": lambda: cpufree.generate.heart(m=10),
    "flange_hex": lambda: cpufree.generate.flange_hex(r_out=12, t=2, pipe=4),
    "powergrid": lambda: cpufree.generate.powergrid(width=20, height=30),
    "thermal2d": lambda: cpufree.generate.thermal2d(m=20),
}
