"""Arrays of JAX that stay on a GPU while a function under jit calls back: as arrays of CuPy.

JAX lends their memory for the time of the call, on the stream that computes them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

try:  # JAX calls it experimental
    from jax.experimental.buffer_callback import buffer_callback
except ImportError:
    buffer_callback = None

__all__ = ["PLATFORM", "arrays_stay", "buffer_callback", "computing_in", "content", "matrix_of"]

PLATFORM = "cuda"
"""Of XLA: where arrays stay."""
SALTS = (0x9E3779B9, 0x7F4A7C15, 0xF39CC060, 0x5CEDC834)
"""One for each word of a digest."""


@cache
def arrays_stay() -> bool:
    """Return whether callbacks can have arrays where they are."""
    there = buffer_callback is not None and importlib.util.find_spec("cupy") is not None
    return there and jax.default_backend() == "gpu"


def content(array: Any) -> Any:
    """Return a digest of an array: 4 words of 32 bits, computed by JAX where the array is.

    Each is a sum over words mixed with their places, so that equal content in equal places has
    equal digests in any order of summation.

    Args:
        array: of numbers.
    """
    if array.dtype.itemsize < 4:
        array = array.astype(jnp.uint32)
    words = jax.lax.bitcast_convert_type(array, jnp.uint32).reshape(-1)
    places = jax.lax.iota(jnp.uint32, words.shape[0])
    mixed = [_mixed(words ^ _mixed(places + jnp.uint32(salt))) for salt in SALTS]
    return jnp.stack([jnp.sum(one, dtype=jnp.uint32) for one in mixed])


def _mixed(words: Any) -> Any:
    """Return words in which each bit of the given ones changes half of the bits."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        words = (words ^ (words >> shift)) * jnp.uint32(factor)
    return words ^ (words >> 16)


@contextmanager
def computing_in(context: Any, buffer: Any) -> Iterator[tuple[Any, Callable[[Any], Any]]]:
    """Yield CuPy, in the stream and on the GPU of a callback, and how it sees buffers."""
    import cupy

    with cupy.asarray(buffer).device, cupy.cuda.ExternalStream(context.stream):
        yield cupy, cupy.asarray


def matrix_of(arrays: tuple[Any, ...], n: int) -> Any:
    """Return a matrix on the GPU of its arrays there; it outlives the memory that JAX lends."""
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    with next(array.device for array in arrays if isinstance(array, cupy.ndarray)):
        return csr_matrix(tuple(cupy.array(v) for v in arrays), shape=(n, n))
