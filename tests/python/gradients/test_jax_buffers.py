"""Arrays of JAX that stay where they are in solves: here those of the CPU, as those of a GPU do."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed")
import jax
import jax.numpy as jnp
from jax_systems import (
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
    vectors,
    x_of,
)

from cpufree.gradients import jax_buffers, jax_solve
from cpufree.jax import solve
from cpufree.solvers.solver import Solver

__all__ = ["double"]


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
