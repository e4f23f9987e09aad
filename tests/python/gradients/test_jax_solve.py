"""cpufree.jax.solve: derivatives by JAX's own checks, inside jit and vmap; options, errors."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cpufree
from cpufree.errors import InvalidInputError, MatrixError, VectorError
from cpufree.solvers.solver import Solver

jax = pytest.importorskip("jax", reason="JAX is not installed")
import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402
from jax_systems import (  # noqa: E402
    NNZ,
    TIGHT,
    A,
    N,
    bcsr,
    close,
    dense,
    double,
    random,
    reference,
    values_of,
    vectors,
    x_of,
)

from cpufree.gradients import jax_solve  # noqa: E402
from cpufree.jax import forget, solve  # noqa: E402

__all__ = ["double"]


@vectors
def test_derivatives_by_differences_to_second_order(columns: tuple[int, ...]) -> None:
    given = (random(NNZ), random(N, *columns, seed=1))
    check_grads(jax.jit(x_of), given, order=2, modes=("fwd", "rev"), atol=1e-5, rtol=1e-5)


@vectors
@pytest.mark.parametrize("wrap", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_derivatives_are_those_of_jax(columns: tuple[int, ...], wrap: Callable[[Any], Any]) -> None:
    given = (random(NNZ), random(N, *columns, seed=1))
    toward = random(N, *columns, seed=2)

    def all_of(x: Callable[[Any, Any], Any]) -> Any:
        def scalar(p: Any, b: Any) -> Any:
            return (x(p, b) * toward).sum() + (x(p, b) ** 3).sum()

        first = jax.grad(scalar, (0, 1))
        return wrap(lambda p, b: (x(p, b), first(p, b), jax.jvp(first, (p, b), (p, b))[1]))

    close(all_of(x_of)(*given), all_of(reference)(*given))


def test_matrix_may_be_an_argument_of_a_traced_function() -> None:
    data, b = values_of(random(NNZ)), random(N)
    loss = jax.jit(jax.grad(lambda d, i, p, b: (solve((d, i, p), b, **TIGHT) ** 2).sum()))
    given = jax.jit(lambda matrix, b: solve(matrix, b, **TIGHT))
    close(given(bcsr(data), b), jnp.linalg.solve(dense(data), b))
    close(
        loss(data, jnp.asarray(A.indices), jnp.asarray(A.indptr), b),
        jax.grad(lambda d: (jnp.linalg.solve(dense(d), b) ** 2).sum())(data),
    )


def test_gradient_with_respect_to_each_entry_by_itself() -> None:
    b, data = random(N), jnp.asarray(A.data)
    ours = jax.hessian(lambda d: (solve((d, A.indices, A.indptr), b, **TIGHT) ** 2).sum())(data)
    close(ours, jax.hessian(lambda d: (jnp.linalg.solve(dense(d), b) ** 2).sum())(data))


def test_vmap_over_right_hand_sides_and_over_matrices() -> None:
    p, b = random(2, NNZ), random(3, N, seed=1)
    close(jax.vmap(x_of, (None, 0))(p[0], b), jax.vmap(reference, (None, 0))(p[0], b))
    close(jax.vmap(x_of, (0, None))(p, b[0]), jax.vmap(reference, (0, None))(p, b[0]))
    nested = [jax.jit(jax.vmap(jax.vmap(f, (None, 0)), (0, None))) for f in (x_of, reference)]
    close(nested[0](p, b), nested[1](p, b))
    wide = random(3, N, 2, seed=1)
    close(jax.vmap(x_of, (None, 0))(p[0], wide), jax.vmap(reference, (None, 0))(p[0], wide))


def test_right_hand_sides_of_vmap_are_columns_of_one_solve(monkeypatch: Any) -> None:
    shapes: list[Any] = []
    first = Solver.solve

    def seen(self: Solver, b: Any, *given: Any, **options: Any) -> Any:
        shapes.append(b.shape)
        return first(self, b, *given, **options)

    monkeypatch.setattr(Solver, "solve", seen)
    jax.vmap(x_of, (None, 0))(random(NNZ), random(3, N))
    assert shapes == [(N, 3)]


def test_float32() -> None:
    def gradients(x: Callable[[Any, Any], Any]) -> Any:
        loss = jax.grad(lambda d, r: (x(d, r) ** 2).sum(), (0, 1))
        return loss(jnp.asarray(A.data, jnp.float32), random(N).astype(jnp.float32))

    ours = gradients(lambda d, r: solve(bcsr(d), r, rtol=1e-6))
    theirs = gradients(lambda d, r: jnp.linalg.solve(dense(d), r))
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.dtype == jnp.float32
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("pc", ["amg", "fsai", "none"])
def test_one_set_up_for_all_values_and_derivatives(pc: str, monkeypatch: Any) -> None:
    made: list[Solver] = []
    first = Solver.__init__

    def counted(self: Solver, *given: Any, **options: Any) -> None:
        made.append(self)
        first(self, *given, **options)

    monkeypatch.setattr(Solver, "__init__", counted)
    b = random(N)
    step = jax.jit(jax.grad(lambda p: solve(bcsr(values_of(p)), b, rtol=1e-12, pc=pc).sum()))
    for k in range(3):
        close(step(random(NNZ, seed=k)),
              jax.grad(lambda p: reference(p, b).sum())(random(NNZ, seed=k)))  # fmt: skip
    assert len(made) == 1
    assert made[0].updates == 2


def test_at_most_four_solvers_are_kept() -> None:
    for n in range(4, 12):
        B = cpufree.generate.poisson1d(n)
        x = solve((B.data, B.indices, B.indptr), jnp.ones(n), **TIGHT)
        close(x, np.linalg.solve(B.toarray(), np.ones(n)))
    assert len(jax_solve._KEPT) == 4
    forget()
    assert not jax_solve._KEPT


def test_given_solver_is_used_and_gets_values() -> None:
    b, p = random(N), random(NNZ)
    with Solver(A, pc="amg") as solver:
        ours = jax.jit(
            jax.grad(lambda p: solve(bcsr(values_of(p)), b, solver=solver, **TIGHT).sum())
        )
        close(ours(p), jax.grad(lambda p: reference(p, b).sum())(p))
        assert solver.updates == 1
        solver.update(3 * A)
        close(ours(p), jax.grad(lambda p: reference(p, b).sum())(p))


# Errors


def test_arrays_that_jax_rounds_on_their_way_are_refused() -> None:
    from cpufree.gradients.jax_solve import _Batch, _Call

    call = _Call(None, None, "the solve", np.dtype(np.float64))  # type: ignore[arg-type]
    arrays = (A.data.astype(np.float32), A.indices, A.indptr, np.ones(N, np.float32))
    with pytest.raises(InvalidInputError, match="JAX has rounded arrays from float64 to float32"):
        _Batch(call, 1, (None, None, None)).on_host(*arrays)


def test_what_is_no_argument_crosses_to_the_host_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    on_host = jax_solve._Batch.on_host

    def counted(batch: Any, *given: Any) -> Any:
        seen.append(len(given))
        return on_host(batch, *given)

    monkeypatch.setattr(jax_solve._Batch, "on_host", counted)
    data, b, pattern = jnp.asarray(A.data), random(N), (A.indices, jnp.asarray(A.indptr))
    jax.jit(lambda b: solve((data, *pattern), b))(b).block_until_ready()
    jax.jit(lambda data, b: solve((data, *pattern), b))(data, b).block_until_ready()
    assert seen == [1, 2]


def test_a_right_hand_side_that_jax_rounds_is_refused_where_the_matrix_is_known() -> None:
    from cpufree.gradients.jax_solve import _Batch, _Call, _Known

    call = _Call(None, None, "the solve", np.dtype(np.float64))  # type: ignore[arg-type]
    known = tuple(_Known.of(v) for v in (A.data, A.indices, A.indptr))
    with pytest.raises(InvalidInputError, match="JAX has rounded arrays from float64 to float32"):
        _Batch(call, 1, known).on_host(np.ones(N, np.float32))


def test_calls_outside_jit_leave_no_arrays_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(array: Any) -> Any:
        raise AssertionError("JAX would keep it")

    monkeypatch.setattr(jax_solve._Known, "of", refuse)
    data, pattern = jnp.asarray(A.data), (A.indices, A.indptr)
    solve((data, *pattern), random(N)).block_until_ready()
    jax.grad(lambda b: solve((data, *pattern), b).sum())(random(N)).block_until_ready()


def test_numpy_arrays_that_are_changed_later_leave_a_traced_function_as_it_is() -> None:
    data, b = A.data.copy(), jnp.asarray(random(N))
    call = jax.jit(lambda b: solve((data, A.indices, A.indptr), b, rtol=1e-12))
    before = np.asarray(call(b))
    data *= 2.0
    assert np.array_equal(np.asarray(call(b)), before)


def test_solve_that_does_not_converge_raises_where_jax_waits() -> None:
    call = jax.jit(lambda b: solve(bcsr(jnp.asarray(A.data)), b, rtol=1e-12, maxiter=2))
    with pytest.raises(jax.errors.JaxRuntimeError, match="the solve: NOT converged after 2 iter"):
        call(random(N)).block_until_ready()


def test_gradient_that_does_not_converge_raises() -> None:
    vector, weights = jnp.asarray(np.linalg.eigh(A.toarray())[1][:, 0]), random(N)

    def loss(b: Any) -> Any:
        x = solve(bcsr(jnp.asarray(A.data)), b, maxiter=2, rtol=1e-9, pc="none")
        return (x * weights).sum()

    with pytest.raises(jax.errors.JaxRuntimeError, match=r"the solve for a gradient.*: NOT conv"):
        jax.grad(loss)(vector).block_until_ready()


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (A, "A is a csr_array: pass"),
        ((A.data, A.indices), "A is a tuple: pass"),
        ((A.data, A.indices[1:], A.indptr), "they must be"),
        ((A.data[:0], A.indices[:0], A.indptr[:1]), "empty"),
    ],
)
def test_matrices_that_are_none_are_refused(matrix: Any, message: str) -> None:
    with pytest.raises(MatrixError, match=message):
        solve(matrix, jnp.ones(N))


def test_right_hand_sides_that_do_not_fit_are_refused() -> None:
    with pytest.raises(VectorError, match=r"b has shape \(13,\), but the matrix has 12 rows"):
        solve(bcsr(jnp.asarray(A.data)), jnp.ones(N + 1))
    with pytest.raises(VectorError, match="b is float32, but the values of A are float64"):
        solve(bcsr(jnp.asarray(A.data)), jnp.ones(N, jnp.float32))
    with Solver(A.astype(np.float32)) as solver, pytest.raises(InvalidInputError, match="float32"):
        solve(bcsr(jnp.asarray(A.data)), jnp.ones(N), solver=solver)


def test_values_that_cannot_be_solved_raise_where_jax_waits() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match="not symmetric"):
        solve((jnp.arange(NNZ) + 1.0, A.indices, A.indptr), jnp.ones(N)).block_until_ready()


def test_solves_that_jax_cannot_trace_say_which_one_it_can() -> None:
    for transformed in (jax.jit, jax.grad):
        with pytest.raises(VectorError, match=r"JAX traces it.*call cpufree.jax.solve"):
            transformed(lambda b: cpufree.solve(A, b).x.sum())(jnp.ones(N))


def test_docstrings_name_all_options_and_their_examples_run() -> None:
    text = inspect.cleandoc(solve.__doc__ or "")
    for name in inspect.signature(solve).parameters:
        assert re.search(rf"^{name} : ", text, re.MULTILINE), name
    assert "{" not in text.replace('{"', "")  # names in braces that stayed
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for function in (
        solve,
        forget,
    ):
        test = doctest.DocTestParser().get_doctest(function.__doc__ or "", {}, "", None, None)
        assert test.examples
        assert doctest.DocTestRunner(optionflags=flags).run(test).failed == 0
