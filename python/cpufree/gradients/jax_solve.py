"""Solves that JAX differentiates, forward and backward, as often as is asked.

JAX knows how a linear solve is differentiated (jax.lax.custom_linear_solve): by the product with A,
which is written in JAX, and by more solves, which call back to the host.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cpufree.arguments import Count, Engine, Gpus, Method, Preconditioner
from cpufree.calls import public
from cpufree.docstrings import with_parameters
from cpufree.engines.digests import digest
from cpufree.env import Env
from cpufree.errors import InvalidInputError, MatrixError, UnsupportedError
from cpufree.gradients.shared import Asked, require_shape, require_type, solve_with
from cpufree.solvers.solver import Solver

try:
    import jax
    import jax.numpy as jnp

    from cpufree.gradients.jax_buffers import (
        PLATFORM,
        arrays_stay,
        buffer_callback,
        computing_in,
        content,
        matrix_of,
    )
except ImportError as error:
    raise UnsupportedError(
        f"cpufree.jax needs JAX, which does not load ({error}): pip install 'cpufree[jax]'"
    ) from None

MOST_KEPT = 4
"""Solvers that are kept: those used last."""


@public
@with_parameters
def solve(
    A: Any,
    b: Any,
    *,
    solver: Solver | None = None,
    rtol: float = 1e-5,
    maxiter: int | None = None,
    method: Method = "auto",
    pc: Preconditioner | None = None,
    engine: Engine = "auto",
    pes: Count = "auto",
    gpus: Gpus = "auto",
    check: bool = True,
    time_limit: float | None = None,
    wait_limit: float | None = None,
) -> Any:
    """Solve A x = b, differentiable with respect to b and to the values of A, also inside jit.

    A derivative is one more solve with the same set-up, to the same rtol. Solves run where `engine`
    says. Arrays on a GPU stay there where it works on GPUs and CuPy is installed. Else vectors come
    to the host and go back, and so do arrays of A in each call, except under jit those that are no
    arguments of the function.

    Parameters
    ----------
    A : jax.experimental.sparse.BCSR, shape (n, n), or tuple of arrays
        Symmetric positive definite, float64 or float32. A tuple is (data, indices, indptr), as BCSR
        takes them.
    b : array, shape (n,) or (n, k)
        Right-hand sides, of the type of A. Those that vmap adds are solved together, too.
    solver : cpufree.Solver, optional
        Is used, and given the values of A where it has others. It has the pattern of A, and all
        options of set-up. Without one, Solvers are kept: see `forget`.
    rtol : float, default 1e-05
        The solve ends where ‖b - A x‖₂ ≤ rtol ‖b‖₂, and that of a derivative likewise.
    {maxiter, method}
    pc : {"auto", "jacobi", "chebyshev", "fsai", "amg", "none"}, optional
        Preconditioner; default that of `solver`, without one "auto".
    {engine, pes, gpus, check, time_limit, wait_limit}

    Returns
    -------
    array
        x, of the shape and type of b.

    Raises
    ------
    jax.errors.JaxRuntimeError
        Where the tolerance is not met in the solve or in that of a derivative, and for entries that
        cannot be solved. It is raised where JAX waits for x, and has our message.
    MatrixError, VectorError, InvalidInputError
        For shapes, types and options that do not fit.

    Examples
    --------
    >>> import cpufree.jax, jax, jax.numpy as jnp
    >>> data, indices = jnp.array([2.0, 1.0, 1.0, 2.0]), jnp.array([0, 1, 0, 1])
    >>> indptr, b = jnp.array([0, 2, 4]), jnp.array([3.0, 0.0])
    >>> print(jax.grad(lambda data: cpufree.jax.solve((data, indices, indptr), b).sum())(data))
    [-0.666...  0.333... -0.666...  0.333...]
    """
    asked = Asked(rtol, maxiter, method, pc, engine, pes, gpus, check, time_limit, wait_limit)
    parts = _parts(A)
    data, indices, indptr = jnp.asarray(parts[0]), *parts[1:]
    b = jnp.asarray(b)
    n = int(indptr.shape[0]) - 1
    require_type(data.dtype.name, b.dtype.name, "b")
    require_shape(n, tuple(b.shape), "b")
    asked.require_fits(solver, data.dtype.name)
    known = tuple(_Known.of(part) for part in parts) if _is_staged() else (None, None, None)
    rows = _rows(indptr, indices.shape[0])

    def product(x: Any) -> Any:
        entries = data if x.ndim == 1 else data[:, None]
        return jax.ops.segment_sum(entries * x[indices], rows, num_segments=n)

    def solve_on_host(what: str, _: Any, right: Any) -> Any:
        found = jax.ShapeDtypeStruct(right.shape, right.dtype)
        call = _Batch(_Call(solver, asked, what, right.dtype), right.ndim, known)
        unknown = [v for v, kept in zip((data, indices, indptr), known, strict=True) if not kept]
        return _called(call, found, *unknown, right)

    return jax.lax.custom_linear_solve(
        product,
        b,
        partial(solve_on_host, "the solve"),
        transpose_solve=partial(
            solve_on_host, "the solve for a gradient, whose b is the gradient with respect to x"
        ),
    )


def forget() -> None:
    """Free the Solvers that calls without `solver` have made: the four used last are kept.

    A Solver serves all calls whose A has its pattern and type, with the same options of set-up.

    Examples
    --------
    >>> import cpufree.jax
    >>> cpufree.jax.forget()
    """
    with _KEPT_LOCK:
        _KEPT.clear()


_KEPT: OrderedDict[Any, Solver] = OrderedDict()
_KEPT_LOCK = threading.Lock()


@dataclass(frozen=True)
class _Known:
    """An array whose content is known, by a digest."""

    array: Any
    digest: int

    @classmethod
    def of(cls, array: Any) -> _Known | None:
        """Return one that JAX does not trace, which crosses to the host once; else None."""
        if isinstance(array, jax.core.Tracer):
            return None
        own = np.asarray(array)
        if not isinstance(array, jax.Array):
            own = own.copy()  # the caller may change it later, which JAX does not see, either
            if own.dtype.kind in "fiu":
                own = own.astype(jax.dtypes.canonicalize_dtype(own.dtype), copy=False)
        return cls(own, digest(own))


def _is_staged() -> bool:
    """Return whether jit, or what is like it, traces.

    It keeps the callback as long as the function, so that the callback may keep arrays. Of calls
    outside JAX keeps callbacks, too, a new one each time, and for much longer than their arrays.
    """
    return isinstance(jnp.zeros(()), jax.core.Tracer)


class _Values:
    """A matrix on the host that knows its content again, by digests."""

    def __init__(self, data: _Known, indices: _Known, indptr: _Known) -> None:
        self._arrays: tuple[Any, ...] = (data.array, indices.array, indptr.array)
        self.pattern = (indptr.digest, indices.digest, data.array.dtype.name)
        self._content = (self.pattern, data.digest)

    def matrix(self) -> Any:
        """Return the matrix as Solver takes it; its arrays are shared."""
        n = self._arrays[2].size - 1
        if all(isinstance(array, np.ndarray) for array in self._arrays):
            return sp.csr_array(self._arrays, shape=(n, n))
        return matrix_of(self._arrays, n)

    def kept(self) -> _Values:
        """Return the same without its arrays: JAX's memory is ours during the call alone."""
        alone = copy(self)
        alone._arrays = ()
        return alone

    def same_as(self, other: Any) -> bool:
        """Return whether another one has the same pattern and values."""
        return isinstance(other, _Values) and self._content == other._content


def _rows(indptr: Any, nnz: int) -> Any:
    """Return the number of the row of each entry; XLA takes seconds for that of a known one."""
    n = int(indptr.shape[0]) - 1
    if isinstance(indptr, jax.core.Tracer):
        return jnp.repeat(jnp.arange(n), jnp.diff(indptr), total_repeat_length=nnz)
    return np.repeat(np.arange(n, dtype=np.int32), np.diff(np.asarray(indptr)))


class _Call:
    """A solve, apart from arrays."""

    def __init__(self, solver: Solver | None, asked: Asked, what: str, dtype: Any) -> None:
        self.solver, self.asked, self.what, self.dtype = solver, asked, what, dtype

    def solve(self, values: _Values, b: Any) -> Any:
        """Return x, shape of b."""
        solver = self.solver or self._kept_solver(values, b)
        alone = b.reshape(-1) if b.shape[1:] == (1,) else b
        return solve_with(solver, values, alone, self.asked, self.what).reshape(b.shape)

    def on_gpus(self) -> bool:
        """Return whether its engine takes arrays that lie on a GPU."""
        named = Env.read().engine if self.asked.engine == "auto" else self.asked.engine
        return (self.solver.engine if self.solver else named) in ("auto", "cuda_p2p")

    def require_types(self, *arrays: Any) -> None:
        """Refuse arrays that are not of the type that was traced."""
        other = [array.dtype for array in arrays if array.dtype != self.dtype]
        if other:
            raise InvalidInputError(
                f"JAX has rounded arrays from {self.dtype} to {other[0]} on their way to "
                "the host: jax.enable_x64 holds for one thread, and this is another one; call "
                "jax.config.update('jax_enable_x64', True), which holds for all"
            )

    def _kept_solver(self, values: _Values, b: Any) -> Solver:
        asked = self.asked
        options = (asked.pc, asked.method, *map(str, asked.of_set_up().values()))
        key = (values.pattern, options)
        with _KEPT_LOCK:
            if key not in _KEPT:
                like = b[:0].copy()  # its type and place count, and JAX only lends b
                _KEPT[key] = asked.new_solver(values, like, 2 * b[0].size)
            _KEPT.move_to_end(key)
            while len(_KEPT) > MOST_KEPT:
                _KEPT.popitem(last=False)
            return _KEPT[key]


@dataclass(frozen=True)
class _Batch:
    """The solves of a call: vmap stacks arrays, whose first axes are of size 1 in those without."""

    call: _Call
    rank: int
    """Of one b."""
    known: tuple[_Known | None, ...]
    """Values, columns and row pointers of A; those that are None are given, and b after them."""

    def on_host(self, *given: Any) -> npt.NDArray[Any]:
        """Return x for arrays that JAX has brought to the host."""
        return np.asarray(self._solve(np, [np.asarray(v) for v in given], None))

    def on_gpu(self, context: Any, x: Any, *given: Any) -> None:
        """Write x for arrays on a GPU; digests of all but b come first, and alone leave it."""
        with computing_in(context, x) as (library, there):
            *more, b = (there(v) for v in given)
            half = len(more) // 2
            digests = [library.asnumpy(v) for v in more[:half]]
            there(x)[...] = library.asarray(self._solve(library, [*more[half:], b], digests))

    def _solve(self, library: Any, given: list[Any], digests: list[Any] | None) -> Any:
        """Return x. `library`: NumPy, or CuPy; `digests`: of arrays, None: not made yet."""
        *unknown, b = given
        rest = iter(zip(unknown, digests or [None] * len(unknown), strict=True))
        arrays = [(part.array, None) if part else next(rest) for part in self.known]
        self.call.require_types(arrays[0][0], b)
        stacked = [v.shape[:-1] for v, _ in arrays]
        one = b.shape[b.ndim - self.rank :]
        batch = np.broadcast_shapes(*stacked, b.shape[: b.ndim - self.rank])

        def values(at: tuple[int, ...]) -> _Values:
            parts = zip(self.known, arrays, strict=True)
            return _Values(*(p or _one_of(v, of, at) for p, (v, of) in parts))

        if all(size == 1 for shape in stacked for size in shape):
            every = values((0,) * len(batch))
            if not batch:
                return self.call.solve(every, b)
            # All are columns of one b.
            columns = library.moveaxis(b.reshape(-1, *one), 0, -1).reshape(one[0], -1)
            x = library.asarray(self.call.solve(every, columns)).reshape(*one, -1)
            return library.ascontiguousarray(library.moveaxis(x, -1, 0)).reshape(b.shape)
        x = library.empty((*batch, *one), b.dtype)
        right = library.broadcast_to(b, x.shape)
        for k in np.ndindex(batch):
            x[k] = library.asarray(self.call.solve(values(k), right[k]))
        return x


def _one_of(array: Any, digests: Any, at: tuple[int, ...]) -> _Known:
    """Return one of stacked arrays. `digests`: theirs, words in the last axis; None: not made."""
    own = at[len(at) - array.ndim + 1 :]
    index = tuple(min(i, size - 1) for i, size in zip(own, array.shape, strict=False))
    return _fresh(array[index], None if digests is None else digests[index])


def _fresh(array: Any, content: Any) -> _Known:
    """Return an array of one call. `content`: its digest, None: not made yet."""
    if content is not None:
        return _Known(array, int.from_bytes(content.tobytes(), "little"))
    flat = np.ascontiguousarray(array).reshape(-1)
    return _Known(flat, digest(flat))


def _called(batch: _Batch, found: Any, *given: Any) -> Any:
    """Return x of a call, as JAX traces it."""
    by_host = partial(jax.pure_callback, batch.on_host, found, vmap_method="expand_dims")
    if not (batch.call.on_gpus() and arrays_stay()):
        return by_host(*given)

    def by_gpu(*given: Any) -> Any:
        call = buffer_callback(batch.on_gpu, found, vmap_method="expand_dims")
        return call(*(content(v) for v in given[:-1]), *given)

    return jax.lax.platform_dependent(*given, default=by_host, **{PLATFORM: by_gpu})


def _parts(A: Any) -> tuple[Any, Any, Any]:
    """Return values, columns and row pointers of A; MatrixError for what has none."""
    if type(A).__name__ == "BCSR":
        parts, shape = (A.data, A.indices, A.indptr), tuple(A.shape)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise MatrixError(f"the matrix has shape {shape}: it must be square")
    elif isinstance(A, (tuple, list)) and len(A) == 3:
        parts = tuple(A)
    else:
        raise MatrixError(
            f"A is a {type(A).__name__}: pass a jax.experimental.sparse.BCSR (of a BCOO: "
            "BCSR.from_bcoo(A)), or the tuple (data, indices, indptr)"
        )
    # What is known while a function is traced stays so.
    data, indices, indptr = (v if isinstance(v, jax.Array) else np.asarray(v) for v in parts)
    if {v.ndim for v in (data, indices, indptr)} != {1} or data.shape != indices.shape:
        shapes = ", ".join(str(v.shape) for v in (data, indices, indptr))
        raise MatrixError(f"A has arrays of shapes {shapes}: they must be (nnz,), (nnz,), (n+1,)")
    if indptr.shape[0] < 2:
        raise MatrixError("the matrix is empty, 0 x 0: there is nothing to solve")
    return data, indices, indptr
