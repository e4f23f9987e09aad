"""cpufree.cg in the place of scipy.sparse.linalg.cg."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from reference_cg import SYSTEMS, chain, first_unit_vector, jumps, rhs
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from scipy.sparse.linalg import cg as scipy_cg

import cpufree
from cpufree import CpufreeWarning, InvalidInputError, cg


@pytest.fixture(scope="module")
def A() -> sp.csr_array:
    return cpufree.generate.poisson2d(25, 20)


@pytest.fixture(scope="module")
def b(A: sp.csr_array) -> np.ndarray:
    return rhs(A)


def inverse_diagonal(A: sp.csr_array) -> sp.csr_array:
    return sp.csr_array(sp.diags_array(1.0 / A.diagonal()))


def test_signature_begins_with_that_of_scipy() -> None:
    def described(function: Any) -> dict[str, Any]:
        return {
            name: (p.kind, p.default) for name, p in inspect.signature(function).parameters.items()
        }

    theirs, ours = described(scipy_cg), described(cg)
    theirs.pop("tol", None)  # deprecated in SciPy 1.12, gone in 1.14
    assert {name: ours[name] for name in theirs} == theirs
    extras = [kind for name, (kind, _) in ours.items() if name not in theirs]
    assert extras
    assert all(kind is inspect.Parameter.KEYWORD_ONLY for kind in extras)


@pytest.mark.parametrize("name", SYSTEMS)
def test_agrees_with_scipy_to_the_tolerance(name: str) -> None:
    A = SYSTEMS[name]()
    b = rhs(A)
    ours, info = cg(A, b, rtol=1e-10)
    theirs, their_info = scipy_cg(A, b, rtol=1e-10, M=inverse_diagonal(A), maxiter=20_000)
    assert info == their_info == 0
    assert np.linalg.norm(ours - theirs) <= 1e-5 * np.linalg.norm(theirs)
    assert np.linalg.norm(b - A @ ours) <= 1.001e-10 * np.linalg.norm(b)


def test_info_is_the_number_of_iterations_where_maxiter_ends_it(
    A: sp.csr_array, b: np.ndarray
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x, info = cg(A, b, maxiter=5)
    theirs, their_info = scipy_cg(A, b, maxiter=5)
    assert info == their_info == 5
    # The diagonal is constant, so that Jacobi changes nothing.
    assert x == pytest.approx(theirs, rel=1e-9, abs=1e-12)


def test_default_maxiter_is_ten_times_the_rows() -> None:
    # Strakos's matrix (1991): in floating point CG needs several times n iterations.
    k = np.arange(1, 25)
    d = 1e-3 + (k - 1) / 23 * (1e3 - 1e-3) * 0.4 ** (24 - k)
    seen: list[int] = []
    A = sp.csr_array(sp.diags_array(d))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scipy_cg(A, np.ones(24), rtol=0.0, callback=lambda _: seen.append(1))
        _, info = cg(A, np.ones(24), rtol=0.0, pc="none", callback=lambda _: None)
    assert info == len(seen) == 240


@pytest.mark.parametrize(
    "make",
    [
        lambda n: np.ones((n, 1)),
        lambda n: [1.0] * n,
        lambda n: np.ones(n, dtype=int),
        lambda n: np.ones(n, dtype=np.float32),
    ],
)
def test_x_has_the_shape_and_type_that_scipy_gives(A: sp.csr_array, make: Any) -> None:
    right = make(A.shape[0])
    ours, theirs = cg(A, right)[0], scipy_cg(A, right)[0]
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype


def test_float32_gives_float32_as_in_scipy(A: sp.csr_array, b: np.ndarray) -> None:
    single = A.astype(np.float32)
    right = b.astype(np.float32)
    x, info = cg(single, right, rtol=1e-4)
    assert info == 0
    assert x.dtype == scipy_cg(single, right, rtol=1e-4)[0].dtype == np.float32


def test_zero_b_gives_zero(A: sp.csr_array) -> None:
    x, info = cg(A, np.zeros(A.shape[0]), x0=np.ones(A.shape[0]))
    assert info == 0
    assert not x.any()


def test_x0_is_used_and_left_alone(A: sp.csr_array, b: np.ndarray) -> None:
    exact = np.random.default_rng(0).standard_normal(A.shape[0])
    kept = exact.copy()
    x, info = cg(A, A @ exact, x0=exact, maxiter=1)
    assert info == 0
    assert np.array_equal(x, kept)
    assert np.array_equal(exact, kept)


def test_x0_mb_begins_at_m_times_b(A: sp.csr_array, b: np.ndarray) -> None:
    M = inverse_diagonal(A)
    ours = cg(A, b, x0="Mb", M=M, maxiter=3)[0]
    theirs = scipy_cg(A, b, x0="Mb", M=M, maxiter=3)[0]
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12)


def test_x0_of_another_name_is_refused(A: sp.csr_array, b: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="'Mb'"):
        cg(A, b, x0="random")


@pytest.mark.parametrize("form", ["csr", "dense", "dia"])
def test_the_inverse_diagonal_as_m_is_jacobi_without_the_host(form: str) -> None:
    A = jumps(12, 100.0)
    b = rhs(A)
    M: Any = inverse_diagonal(A)
    M = {"csr": M, "dense": M.toarray(), "dia": sp.dia_array(M)}[form]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x, info = cg(A, b, M=M, rtol=1e-8, method="cg")
    assert info == 0
    assert np.array_equal(x, cg(A, b, rtol=1e-8, method="cg", pc="jacobi")[0])


def test_the_identity_as_m_is_no_preconditioner() -> None:
    A = jumps(12, 100.0)
    b = rhs(A)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x, _ = cg(A, b, M=sp.eye_array(A.shape[0]), rtol=1e-8)
    assert np.array_equal(x, cg(A, b, rtol=1e-8, pc="none")[0])


@pytest.mark.parametrize("kind", ["operator", "matrix"])
def test_another_m_is_applied_by_scipy_with_a_warning(kind: str) -> None:
    A = jumps(12, 100.0)
    b = rhs(A)
    lower = sp.csr_array(sp.tril(A)) @ inverse_diagonal(A)
    M: Any = sp.csr_array(np.linalg.inv((lower @ sp.csr_array(sp.triu(A))).toarray()))
    M = aslinearoperator(M) if kind == "operator" else M
    with pytest.warns(CpufreeWarning, match=r"SciPy's cg.*M is"):
        x, info = cg(A, b, M=M, rtol=1e-8)
    theirs, their_info = scipy_cg(A, b, M=M, rtol=1e-8)
    assert info == their_info == 0
    assert np.array_equal(x, theirs)


def test_m_of_another_shape_is_refused(A: sp.csr_array, b: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="M has shape"):
        cg(A, b, M=sp.eye_array(3))


def test_both_m_and_pc_are_refused(A: sp.csr_array, b: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="both M and pc"):
        cg(A, b, M=inverse_diagonal(A), pc="none")


def test_callback_sees_every_iterate_and_warns_once_with_the_alternative(
    A: sp.csr_array, b: np.ndarray
) -> None:
    seen: list[float] = []
    with pytest.warns(CpufreeWarning, match="progress") as caught:
        x, info = cg(A, b, callback=lambda xk: seen.append(np.linalg.norm(b - A @ xk)))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert info == 0
    assert seen[-1] == pytest.approx(np.linalg.norm(b - A @ x))
    assert len(seen) == cpufree.solve(A, b, method="cg").iterations


def test_callback_uses_jacobi_as_without_it() -> None:
    A = jumps(12, 1e4)
    b = rhs(A)
    calls: list[int] = []
    with pytest.warns(CpufreeWarning):
        cg(A, b, callback=lambda _: calls.append(1), rtol=1e-8)
    assert abs(len(calls) - cpufree.solve(A, b, rtol=1e-8).iterations) <= 2 + 0.02 * len(calls)


def test_a_linear_operator_is_solved_by_scipy_with_a_warning(
    A: sp.csr_array, b: np.ndarray
) -> None:
    operator = LinearOperator(A.shape, matvec=lambda v: A @ v, dtype=A.dtype)
    with pytest.warns(CpufreeWarning, match="LinearOperator"):
        x, info = cg(operator, b)
    assert info == 0
    assert np.array_equal(x, scipy_cg(operator, b)[0])


@pytest.mark.parametrize(
    "extra",
    [{"method": "cg"}, {"pes": 2}, {"time_limit": 1.0}, {"progress": print}, {"gpus": [0]}],
)
def test_extras_that_the_host_cannot_honour_are_refused_by_name(
    A: sp.csr_array, b: np.ndarray, extra: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(extra))):
        cg(A, b, callback=lambda _: None, **extra)


def test_chebyshev_with_a_callback_is_refused(A: sp.csr_array, b: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="'chebyshev' cannot be used"):
        cg(A, b, callback=lambda _: None, pc="chebyshev")


@pytest.mark.parametrize("M", ["jacobi", 2.0, [1.0, 2.0]])
def test_an_m_that_is_no_matrix_is_refused(A: sp.csr_array, b: np.ndarray, M: Any) -> None:
    with pytest.raises(InvalidInputError, match="name a preconditioner with pc"):
        cg(A, b, M=M)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("x0", np.ones(3), r"x0 has shape \(3,\)"),
        ("x0", np.full(500, np.nan), r"x0\[0\] = nan"),
        ("x0", np.ones(500) + 1j, "x0 is complex"),
        ("b", np.ones(3), r"b has shape \(3,\)"),
        ("b", np.full(500, np.inf), r"b\[0\] = inf"),
        ("M", aslinearoperator(np.eye(3)), r"M has shape \(3, 3\)"),
        ("callback", 3, "callback is 3: give a function"),
    ],
)
@pytest.mark.parametrize("kind", ["matrix", "operator"])
def test_what_scipy_is_given_is_checked_first(
    A: sp.csr_array, kind: str, name: str, value: Any, message: str
) -> None:
    given: dict[str, Any] = {"b": np.ones(500), "callback": lambda x: None, name: value}
    with warnings.catch_warnings(), pytest.raises(InvalidInputError, match=message):
        warnings.simplefilter("error")
        cg(aslinearoperator(A) if kind == "operator" else A, **given)


def test_complex_operators_are_left_to_scipy(A: sp.csr_array, b: np.ndarray) -> None:
    with pytest.warns(CpufreeWarning, match="LinearOperator"):
        x, info = cg(aslinearoperator(A), b * 1j, rtol=1e-10)
    assert info == 0
    np.testing.assert_allclose(A @ x, b * 1j, atol=1e-8 * np.linalg.norm(b))


def test_a_preconditioner_by_name_is_refused_for_an_operator(
    A: sp.csr_array, b: np.ndarray
) -> None:
    with pytest.raises(InvalidInputError, match="pc='jacobi' needs the entries of A"):
        cg(aslinearoperator(A), b, pc="jacobi")


@pytest.mark.parametrize("kind", [complex, object])
def test_an_m_that_is_not_real_is_refused(A: sp.csr_array, b: np.ndarray, kind: type) -> None:
    with pytest.raises(InvalidInputError, match="M has dtype"):
        cg(A, b, M=np.eye(500).astype(kind))


def test_mb_of_another_length_is_refused(A: sp.csr_array) -> None:
    with pytest.raises(InvalidInputError, match="b has shape"):
        cg(A, np.ones(3), "Mb", M=inverse_diagonal(A))


def test_info_tells_that_no_iteration_was_not_enough_with_a_callback_too(
    A: sp.csr_array, b: np.ndarray
) -> None:
    with pytest.warns(CpufreeWarning, match="callback"):
        _, info = cg(A, b, maxiter=0, callback=lambda x: None)
        _, there = cg(A, 0 * b, maxiter=0, callback=lambda x: None)
    assert (info, there) == (cg(A, b, maxiter=0)[1], 0) == (1, 0)


def test_wrong_matrices_are_refused_with_a_callback_too(b: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="not symmetric"):
        cg(np.array([[1.0, 2.0], [0.0, 1.0]]), np.ones(2), callback=lambda _: None)


def test_an_indefinite_matrix_gives_info_above_zero_and_a_warning_with_its_name() -> None:
    A = sp.csr_array(cpufree.generate.poisson2d(20, 20) - 3.9 * sp.eye_array(400))
    right = np.random.default_rng(0).standard_normal(400)
    with pytest.warns(CpufreeWarning, match="DIVERGED_INDEFINITE_MAT.*not positive definite"):
        _, info = cg(A, right, pc="none")
    assert info > 0


def test_progress_stops_cg_without_an_exception() -> None:
    n = 400_000
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, info = cg(chain(n), first_unit_vector(n), rtol=1e-12, progress=lambda *_: False)
    assert info > 0
    assert any("INTERRUPTED" in str(warning.message) for warning in caught)


def test_extras_reach_the_solver(A: sp.csr_array, b: np.ndarray) -> None:
    for method in ("cg", "prcg", "pipecg"):
        x, info = cg(A, b, rtol=1e-9, method=method, pes=2, blocks=1, pc="chebyshev")
        result = cpufree.solve(A, b, rtol=1e-9, method=method, pes=2, blocks=1, pc="chebyshev")
        assert info == 0
        assert np.array_equal(x, result.x)


@pytest.mark.parametrize("where", ["rtol", "atol"])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e-100])
@pytest.mark.parametrize("callback", [None, lambda _: None])
def test_infinite_tolerance_ends_at_the_first_guess(
    A: sp.csr_array, b: np.ndarray, where: str, scale: float, callback: Any
) -> None:
    tolerance: dict[str, Any] = {where: np.inf}
    guess = np.arange(500.0) if scale == 1.0 else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CpufreeWarning)
        x, info = cg(A, scale * b, guess, callback=callback, **tolerance)
    theirs, their_info = scipy_cg(A, scale * b, guess, **tolerance)
    assert np.array_equal(x, theirs)
    assert info == their_info == 0


def cases_of_scipy() -> list[tuple[str, str]]:
    """Return the tests of its iterative solvers that SciPy brings along, and their systems."""
    tests = ("test_maxiter", "test_convergence", "test_precond_dummy", "test_x0_equals_Mb")
    return [(test, name) for test in tests for name in SYSTEMS_OF_SCIPY]


SYSTEMS_OF_SCIPY = (
    *("poisson1d", "poisson1d-F", "poisson2d", "poisson2d-F", "rand-sym-pd", "rand-sym-pd-F"),
    *("rand-cmplx-sym-pd", "rand-cmplx-sym-pd-F"),
)


@pytest.mark.filterwarnings("ignore::cpufree.CpufreeWarning")
@pytest.mark.parametrize(("test", "name"), cases_of_scipy())
def test_the_tests_of_scipy_pass(test: str, name: str) -> None:
    theirs = pytest.importorskip("scipy.sparse.linalg._isolve.tests.test_iterative")
    system = next(case for case in theirs.IterativeParams().cases if case.name == name)
    getattr(theirs, test)(theirs.SingleTest(system.A, system.b, cg, name))
