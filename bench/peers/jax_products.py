"""Ways to multiply a CSR matrix with a vector in JAX, of which the fastest here is taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import sparse
from problem_folder import Problem

from cpufree.errors import UnsupportedError

Product = Callable[[Any, Any], Any]
"""product(matrix, x) -> A x, to be traced; matrix is a pytree of arrays."""
# Padded rows may hold this many times the entries.
MOST_PADDING = 3


def candidates(given: Problem) -> dict[str, tuple[Product, Any]]:
    """Return the ways, with the matrix in the format of each, by name."""
    shape, rows = (given.rows, given.rows), given.rows
    data, columns = jnp.asarray(given.data), jnp.asarray(given.indices)
    row = jnp.asarray(np.repeat(np.arange(rows, dtype=np.int32), np.diff(given.indptr)))
    pairs = jnp.stack([row, columns], axis=1)
    coo = sparse.BCOO((data, pairs), shape=shape, indices_sorted=True, unique_indices=True)
    csr = sparse.BCSR(
        (data, columns, jnp.asarray(given.indptr.astype(np.int32))),
        shape=shape,
        indices_sorted=True,
        unique_indices=True,
    )

    def summed(matrix: Any, x: Any) -> Any:
        values, column, segment = matrix
        return jax.ops.segment_sum(values * x[column], segment, rows, indices_are_sorted=True)

    found: dict[str, tuple[Product, Any]] = {
        "BCOO": (lambda matrix, x: matrix @ x, coo),
        "BCSR": (lambda matrix, x: matrix @ x, csr),
        "segment_sum": (summed, (data, columns, row)),
    }
    padded = _padded(given)
    if padded is not None:
        values, column = map(jnp.asarray, padded)
        # Unused entries are zeros in column 0.
        found["padded rows"] = (lambda m, x: (m[0] * x[m[1]]).sum(axis=1), (values, column))
    return found


def _padded(given: Problem) -> tuple[np.ndarray, np.ndarray] | None:
    """Return values and columns (rows, longest row), None where that is mostly padding."""
    counts = np.diff(given.indptr)
    longest = int(counts.max())
    if given.rows * longest > MOST_PADDING * len(given.data):
        return None
    used = np.arange(longest) < counts[:, None]
    values = np.zeros(used.shape, given.data.dtype)
    columns = np.zeros(used.shape, np.int32)
    values[used], columns[used] = given.data, given.indices
    return values, columns


def fastest(
    found: dict[str, tuple[Product, Any]], x: Any
) -> tuple[str, dict[str, float], dict[str, str]]:
    """Return the name of the fastest way to A x, the seconds of each, and why others failed.

    One product warms up, five are timed; the median counts.

    Raises:
        UnsupportedError: none works on this device.
    """
    seconds, failed = {}, {}
    for name, (product, matrix) in found.items():
        try:
            seconds[name] = _median_seconds(jax.jit(product), matrix, x)
        except (NotImplementedError, RuntimeError) as error:  # not on this device, or no memory
            failed[name] = str(error)
    if not seconds:
        raise UnsupportedError(f"none of JAX's products works here: {failed}")
    return min(seconds, key=lambda name: seconds[name]), seconds, failed


def _median_seconds(compiled: Any, matrix: Any, x: Any) -> float:
    compiled(matrix, x).block_until_ready()
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        compiled(matrix, x).block_until_ready()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))
