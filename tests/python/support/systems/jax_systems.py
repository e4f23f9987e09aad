"""A small system whose values and right-hand side JAX differentiates: by cpufree, and by JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse

import cpufree
from cpufree.jax import forget, solve

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
