"""cpufree.jax.solve: derivatives by JAX's own checks, inside jit and vmap; options, errors."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Callable
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cpufree
from cpufree.errors import InvalidInputError, MatrixError, VectorError
from cpufree.solvers.solver import Solver

jax = pytest.importorskip("jax", reason="JAX is not installed")
import jax.numpy as jnp  # noqa: E402
from jax.experimental import sparse  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

from cpufree.gradients import jax_buffers, jax_solve  # noqa: E402
from cpufree.jax import forget, solve  # noqa: E402

A = cpufree.generate.poisson2d(4, 3)
N, NNZ = A.shape[0], len(A.data)
ROW = np.repeat(np.arange(N), np.diff(A.indptr))
MIRROR = np.array(  # where a_ji is, of each a_ij
    [
        int(np.flatnonzero((A.indices == i) & (j == ROW))[0])
        for i, j in zip(ROW, A.indices, strict=True)
    ]
)
TIGHT: dict[str, Any] = {"rtol": 1e-13}
vectors = pytest.mark.parametrize("columns", [(), (1,), (3,)], ids=["vector", "1", "3"])


@pytest.fixture(autouse=True)
def double() -> Any:
    """Compute in float64, with no Solver of another test."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)  # in the threads of callbacks, too
    forget()
    yield
    forget()
    jax.config.update("jax_enable_x64", before)


def random(*shape: int, seed: int = 0) -> Any:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape))


def values_of(parameters: Any) -> Any:
    """Return values of a symmetric matrix that depend on a parameter for each entry."""
    changes = 0.1 * jnp.sin(parameters)
    return jnp.asarray(A.data) + (changes + changes[MIRROR]) + 0.5 * (A.indices == ROW)


def bcsr(data: Any) -> Any:
    return sparse.BCSR((data, jnp.asarray(A.indices), jnp.asarray(A.indptr)), shape=A.shape)


def dense(data: Any) -> Any:
    return jnp.zeros((N, N), data.dtype).at[ROW, A.indices].set(data)


def x_of(parameters: Any, b: Any) -> Any:
    return solve(bcsr(values_of(parameters)), b, **TIGHT)


def reference(parameters: Any, b: Any) -> Any:
    return jnp.linalg.solve(dense(values_of(parameters)), b)


def close(ours: Any, theirs: Any) -> None:
    for mine, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-8, atol=1e-9)


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


@pytest.fixture
def staying(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Have arrays of the CPU stay where they are, as those of a GPU do; return shapes of x."""
    if jax_buffers.buffer_callback is None:
        pytest.skip("this JAX has no buffer_callback")
    shapes: list[Any] = []

    @contextmanager
    def computing(context: Any, buffer: Any) -> Any:
        shapes.append(buffer.shape)
        yield SimpleNamespace(**{**vars(np), "asnumpy": np.asarray}), np.asarray

    monkeypatch.setattr(jax_solve, "arrays_stay", lambda: True)
    monkeypatch.setattr(jax_solve._Call, "on_gpus", lambda call: True)
    monkeypatch.setattr(jax_solve, "computing_in", computing)
    monkeypatch.setattr(jax_solve, "PLATFORM", "cpu")
    return shapes


@pytest.mark.parametrize(
    ("engine", "named", "stays"),
    [
        *(("auto", "auto", True), ("cuda_p2p", "auto", True)),
        *(("auto", "cpu_threads", False), ("cpu_threads", "auto", False)),
    ],
)
def test_arrays_come_to_the_host_for_an_engine_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch, engine: str, named: str, stays: bool
) -> None:
    monkeypatch.setenv("CPUFREE_ENGINE", named)
    seen: list[bool] = []

    def called(batch: Any, found: Any, *given: Any) -> Any:
        seen.append(batch.call.on_gpus())
        return given[-1]

    monkeypatch.setattr(jax_solve, "_called", called)
    solve((A.data, A.indices, A.indptr), random(N), engine=engine)  # type: ignore[arg-type]
    assert set(seen) == {stays}  # the solve, and that of a gradient
    with Solver(A, engine="cpu_threads") as solver:
        solve((A.data, A.indices, A.indptr), random(N), solver=solver)
    assert seen[-1] is False


@vectors
def test_arrays_that_stay_give_the_same_derivatives(
    staying: list[Any], columns: tuple[int, ...]
) -> None:
    given = random(NNZ), random(N, *columns, seed=1)
    loss = jax.jit(jax.grad(lambda p, b: (x_of(p, b) ** 3).sum(), argnums=(0, 1)))
    other = jax.grad(lambda p, b: (reference(p, b) ** 3).sum(), argnums=(0, 1))
    close(loss(*given), other(*given))
    assert len(staying) == 2  # forward and backward


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
def test_arrays_that_stay_are_stacked_by_vmap(staying: list[Any], axes: tuple[Any, ...]) -> None:
    given = [
        random(3, n, seed=n) if axis == 0 else random(n)
        for axis, n in zip(axes, (NNZ, N), strict=True)
    ]
    close(jax.vmap(x_of, axes)(*given), jax.vmap(reference, axes)(*given))
    assert staying == [(3, N)]


def test_a_solver_is_given_values_that_stay_where_they_are_others(
    staying: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    updates: list[Any] = []
    update = Solver.update
    monkeypatch.setattr(Solver, "update", lambda *of: (updates.append(of), update(*of)))
    loss = jax.jit(lambda data, b: solve((data, A.indices, A.indptr), b, **TIGHT))
    data, b = jnp.asarray(A.data), random(N)
    with Solver(A) as solver:
        asked = jax.jit(lambda data, b: solve(bcsr(data), b, solver=solver, **TIGHT))
        for factor, count in ((1.0, 1), (1.0, 1), (2.0, 2), (2.0, 2)):
            close(asked(factor * data, b), jnp.linalg.solve(dense(factor * data), b))
            assert len(updates) == count
    close(loss(data, b), jnp.linalg.solve(dense(data), b))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64"])
def test_digests_of_arrays_tell_values_and_places_apart(dtype: str) -> None:
    array = np.arange(1000).astype(dtype)
    swapped, other = array.copy(), array.copy()
    swapped[[3, 500]] = swapped[[500, 3]]
    other[999] = np.nextafter(other[999], 0) if other.dtype.kind == "f" else 0
    digests = {
        np.asarray(jax_buffers.content(jnp.asarray(v))).tobytes() for v in (array, swapped, other)
    }
    assert len(digests) == 3
    again = jax.jit(jax_buffers.content)(jnp.asarray(array))
    assert np.array_equal(again, jax_buffers.content(jnp.asarray(array)))
    assert len(set(np.asarray(again).tolist())) == 4


def test_an_error_beside_arrays_that_stay_has_our_message(staying: list[Any]) -> None:
    with pytest.raises(Exception, match=r"the solve: .*rtol"):
        jax.jit(lambda b: solve((A.data, A.indices, A.indptr), b, maxiter=1, rtol=1e-12))(random(N))
    assert staying
