"""cpufree.cg where SciPy's loop runs on the host: what is called converged, and bad endings."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from fake_gpu_arrays import CupyArray, install
from reference_cg import rhs
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from scipy.sparse.linalg import cg as scipy_cg

import cpufree
from cpufree import CpufreeWarning, cg


@pytest.fixture(scope="module")
def A() -> sp.csr_array:
    return cpufree.generate.poisson2d(25, 20)


@pytest.fixture(scope="module")
def b(A: sp.csr_array) -> np.ndarray:
    return rhs(A)


def ill_conditioned(n: int = 60) -> sp.csr_array:
    """A matrix whose recurrence of residuals drifts far from b - A x."""
    line = sp.diags_array([-np.ones(n - 1), 2.0 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
    scale = sp.diags_array(np.sqrt(np.logspace(0, 8, n)))
    return sp.csr_array(scale @ line @ scale)


def residual(A: sp.csr_array, b: np.ndarray, x: np.ndarray) -> float:
    """Return the norm of b - A x relative to b, in extended precision."""
    products = A.toarray().astype(np.longdouble) @ x.astype(np.longdouble)
    return float(np.linalg.norm(b - products) / np.linalg.norm(b))


@pytest.mark.parametrize("kind", ["callback", "operator", "M"])
@pytest.mark.parametrize("rtol", [1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-14])
def test_host_driven_solves_are_called_converged_by_the_true_residual_alone(
    kind: str, rtol: float
) -> None:
    A = ill_conditioned()
    b = np.ones(A.shape[0])
    how: dict[str, Any] = {
        "callback": {"A": A, "callback": lambda x: None, "pc": "none"},
        "operator": {"A": aslinearoperator(A)},
        "M": {"A": A, "M": aslinearoperator(sp.eye_array(A.shape[0]))},
    }[kind]
    theirs, their_info = scipy_cg(A, b, rtol=rtol, maxiter=100_000)
    assert their_info == 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x, info = cg(b=b, rtol=rtol, maxiter=100_000, **how)
    told = [str(one.message) for one in caught if "not converged: STAGNATED" in str(one.message)]
    # Of an operator the products are rounded as they come.
    assert info > 0 or residual(A, b, x) <= rtol * (1.01 if kind == "operator" else 1.0)
    assert (info > 0) == bool(told)
    assert residual(A, b, x) <= 1.01 * max(rtol, residual(A, b, theirs))


@pytest.mark.parametrize(
    ("M", "reason"),
    [
        (sp.csr_array((500, 500)), "DIVERGED_INDEFINITE_PC"),
        (np.full((500, 500), np.nan), "DIVERGED_NANORINF"),
        (LinearOperator((500, 500), matvec=lambda r: 0.0 * r), "DIVERGED_INDEFINITE_PC"),
        (
            LinearOperator((500, 500), matvec=lambda r: np.full(r.shape, np.inf)),
            "DIVERGED_NANORINF",
        ),
    ],
    ids=["zero matrix", "nan matrix", "zero", "infinite"],
)
def test_an_m_that_is_zero_or_no_number_ends_with_a_name(
    A: sp.csr_array, b: np.ndarray, M: Any, reason: str
) -> None:
    with pytest.warns(CpufreeWarning) as caught:
        x, info = cg(A, b, M=M)
    assert f"not converged: {reason}" in str(caught[-1].message)
    assert (info, caught[-1].filename) == (1, __file__)
    assert not x.any()


def test_an_operator_that_fails_on_the_way_leaves_the_last_iterate(
    A: sp.csr_array, b: np.ndarray
) -> None:
    calls: list[np.ndarray] = []

    def apply(v: np.ndarray) -> np.ndarray:
        return A @ v * (np.nan if len(calls) == 3 else 1.0)

    with pytest.warns(CpufreeWarning, match="DIVERGED_NANORINF"):
        x, info = cg(
            LinearOperator(A.shape, matvec=apply, dtype=A.dtype),
            b,
            callback=lambda x: calls.append(x.copy()),
        )
    assert info == 3
    assert np.array_equal(x, calls[-1])


def test_a_direction_without_curvature_is_named() -> None:
    A = LinearOperator((2, 2), matvec=lambda v: v[::-1], dtype=float)
    with pytest.warns(CpufreeWarning, match="DIVERGED_INDEFINITE_MAT"):
        x, info = cg(A, np.array([1.0, 0.0]))
    assert (info, x.tolist()) == (1, [0.0, 0.0])


def test_a_guess_that_is_exact_needs_no_iteration(A: sp.csr_array) -> None:
    x = np.arange(500.0)
    with pytest.warns(CpufreeWarning, match="LinearOperator"):
        found, info = cg(aslinearoperator(A), A @ x, x, rtol=0.0)
    assert (info, found.tolist()) == (0, x.tolist())


@pytest.mark.parametrize("kind", ["numpy", "cupy"])
def test_a_function_is_applied_where_b_lies_and_what_that_costs_is_said(
    A: sp.csr_array, b: np.ndarray, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inverse = 1.0 / A.diagonal()
    seen = []

    def apply(r: Any) -> Any:
        seen.append(type(r))
        return CupyArray(inverse * r.values) if kind == "cupy" else inverse * r

    given = b if kind == "numpy" else CupyArray(b)
    if kind == "cupy":
        install(monkeypatch, [])
    with pytest.warns(CpufreeWarning, match="every iteration waits on the host") as caught:
        x, info = cg(A, given, M=apply, rtol=1e-10)
    assert ("MB between host and GPU" in str(caught[0].message)) == (kind == "cupy")
    assert set(seen) == {type(given)}
    assert type(x) is type(given)
    assert info == 0
    values = x.values if kind == "cupy" else x
    assert residual(A, b, values) <= 1e-10
    assert np.allclose(values, scipy_cg(A, b, M=sp.diags_array(inverse), rtol=1e-10)[0])


def test_a_function_that_returns_something_else_is_named(A: sp.csr_array, b: np.ndarray) -> None:
    with (
        pytest.warns(CpufreeWarning),
        pytest.raises(cpufree.InvalidInputError, match=r"M returns float64 of shape \(3,\)"),
    ):
        cg(A, b, M=lambda r: r[:3])
    with pytest.raises(cpufree.InvalidInputError, match="M is 3: give a matrix"):
        cg(A, b, M=3)
    with pytest.warns(CpufreeWarning, match="DIVERGED_INDEFINITE_PC"):
        assert cg(A, b, M=lambda r: 0.0 * r)[1] > 0
