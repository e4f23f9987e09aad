"""The systems of `solve_many` as the core takes them: lists of arrays, or stacks of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.device_arrays import copy_beside, copy_to_host, cuda_device
from cpufree.dtypes import dtype_name, vector_type
from cpufree.engines.watch import Watch
from cpufree.errors import CpufreeError, InvalidInputError, MatrixError, VectorError
from cpufree.extension import load_core
from cpufree.matrix.entries import symmetry_tolerance
from cpufree.matrix.load import as_csr
from cpufree.matrix.problem import CsrMatrix
from cpufree.matrix.validate import check_spd_input
from cpufree.matrix.vector import as_parts, as_vector
from cpufree.solvers.columns import shape_of
from cpufree.solvers.setup.preparation import with_dtype

NUMBERS = ("iterations", "residual", "true_residual", "bnorm")
"""What the core tells of each system, besides reasons and errors."""


@dataclass(frozen=True)
class Asked:
    """How all systems are to be solved; gpu: its number, -1 for the cores."""

    options: dict[str, Any]
    gpu: int
    check: bool
    watch: Watch

    def run(self, arrays: list[Any], stack: bool, dtype: Any, check: bool) -> dict[str, Any]:
        """Return what the core says of systems that it has solved."""
        kind = np.dtype(dtype)
        with self.watch:
            found: dict[str, Any] = load_core().solve_many(
                arrays,
                stack,
                kind == np.float32,
                self.options,
                self.gpu,
                check,
                symmetry_tolerance(kind.name),
                self.watch,
            )
        return found


def batch_of(systems: Any, b: Any, x0: Any) -> Stack | Lists:
    """Return the systems of a call, checked as far as one of them does not concern others.

    Raises:
        InvalidInputError: no systems, or vectors that do not belong to them.
    """
    if isinstance(systems, (str, bytes)) or not hasattr(systems, "__iter__"):
        raise InvalidInputError(
            f"systems is {systems!r}: give a list of matrices, or of pairs (A, b), or three arrays "
            "(indptr, indices, data)"
        )
    if b is None:
        systems, b = _pairs(systems)
    if isinstance(systems, tuple) and _are_compressed_rows(systems):
        return Stack.of(systems, b, x0)
    return Lists.of(systems, b, x0)


def _are_compressed_rows(arrays: tuple[Any, ...]) -> bool:
    """Return whether these are indptr, indices and data, and no matrices."""
    return len(arrays) == 3 and all(len(shape_of(array)) == 1 for array in arrays[:2])


def beside(like: Any, x: Any) -> Any:
    """Return solutions where `like` lies: on its GPU, or as they are for None."""
    if like is None:
        return x
    return [copy_beside(like, one) for one in x] if isinstance(x, list) else copy_beside(like, x)


class Batch:
    """What both kinds have: `errors` of systems that cannot be solved, by their numbers."""

    like: Any = None
    """An array on a GPU, beside which solutions are wanted, or None."""
    errors: dict[int, CpufreeError]

    def tried(self, k: int, function: Any, *args: Any) -> Any:
        """Return what function returns of system k, or None with its error kept."""
        try:
            return function(*args)
        except CpufreeError as error:
            error.args = (f"system {k}: {error}",)
            self.errors.setdefault(k, error)
            return None

    def explain(self, k: int, said: str, A: Any) -> None:
        """Keep the error of a system that the core refuses, if there is one."""
        if said:
            self.errors[k] = InvalidInputError(f"system {k}: {said}")
        else:
            self.tried(k, check_spd_input, A)  # says more, or finds no fault


@dataclass
class Stack(Batch):
    """Systems of one pattern: values (k, nnz), vectors (k, n)."""

    pattern: CsrMatrix
    values: npt.NDArray[Any]
    b: npt.NDArray[Any]
    x0: npt.NDArray[Any] | None
    like: Any
    errors: dict[int, CpufreeError] = field(default_factory=dict)

    @classmethod
    def of(cls, arrays: tuple[Any, Any, Any], b: Any, x0: Any) -> Stack:
        """Return the systems of compressed rows of one pattern."""
        indptr, indices, data = (_on_host(a, "systems") for a in map(_as_array, arrays))
        if data.ndim != 2 or data.dtype.kind not in "fiu":
            raise MatrixError(
                f"the values of systems of one pattern have shape {data.shape} and type "
                f"{data.dtype}; they must be real numbers of shape (k, nnz), a row for each system"
            )
        like = b if cuda_device(b) is not None else None
        right = _vectors(b, "b", len(data), len(indptr) - 1)
        guess = None if x0 is None else _vectors(x0, "x0", len(data), len(indptr) - 1)
        narrow = (np.dtype(np.float32), np.dtype(np.float16))
        dtype = np.float32 if {data.dtype, right.dtype} <= {*narrow} else np.float64
        with np.errstate(over="ignore"):
            values, right = (np.ascontiguousarray(a, dtype=dtype) for a in (data, right))
            guess = None if guess is None else np.ascontiguousarray(guess, dtype=dtype)
        first = values[0] if len(values) else np.ones(values.shape[1], dtype=dtype)
        ptr, col = indptr.astype(np.int64, copy=False), indices.astype(np.int32, copy=False)
        pattern = CsrMatrix(ptr, col, first)  # looks at the order
        if pattern.shape[0] == 0:
            raise MatrixError("the systems are empty, 0 x 0: there is nothing to solve")
        batch = cls(pattern, values, right, guess, like)
        batch._refuse_vectors()
        return batch

    def _refuse_vectors(self) -> None:
        n = self.pattern.shape[0]
        for name in ("b", "x0"):
            rows = getattr(self, name)
            for k in () if rows is None else np.flatnonzero(~np.isfinite(rows).all(axis=1)):
                self.tried(int(k), as_vector, rows[k], n, rows.dtype, name)
                rows = rows.copy()
                rows[k] = 0.0
                setattr(self, name, rows)

    def matrix(self, k: int) -> CsrMatrix:
        """Return the matrix of one system."""
        return CsrMatrix.well_formed(self.pattern.indptr, self.pattern.indices, self.values[k])

    def solve(self, asked: Asked) -> dict[str, Any]:
        """Solve all; return what the core says of them."""
        pattern = (self.pattern.indptr, self.pattern.indices)
        self.x = np.zeros_like(self.b)
        arrays = [*pattern, self.values, self.b, self.x0, self.x]
        found = asked.run(arrays, True, self.b.dtype, asked.check)
        for k, said in found["errors"].items():
            self.explain(k, said, self.matrix(k))
        again = [k for k in found["errors"] if k not in self.errors]
        if again:
            guess = None if self.x0 is None else self.x0[again]
            x = np.zeros_like(self.b[again])
            rest = [*pattern, self.values[again], self.b[again], guess, x]
            part = asked.run(rest, True, self.b.dtype, False)
            self.x[again] = x
            _put(found, again, part)
        self.x[sorted(self.errors)] = np.nan
        return found

    def solutions(self) -> Any:
        """Return the solutions (k, n)."""
        return self.x


@dataclass
class Lists(Batch):
    """Systems of any patterns and sizes."""

    matrices: list[CsrMatrix | None]
    right: list[npt.NDArray[Any] | None]
    guesses: list[npt.NDArray[Any] | None]
    like: Any
    dtype: npt.DTypeLike = np.float64
    errors: dict[int, CpufreeError] = field(default_factory=dict)
    out: list[npt.NDArray[Any]] = field(default_factory=list)

    @classmethod
    def of(cls, systems: Any, b: Any, x0: Any) -> Lists:
        """Return the systems of a list of matrices."""
        given = list(systems)
        first = b[0] if isinstance(b, (list, tuple)) and len(b) else b
        like = first if cuda_device(first) is not None else None
        right = [_on_host(v, "b") for v in _rows_of(b, "b")]
        guesses = (
            [None] * len(given)
            if x0 is None
            else [None if v is None else _on_host(v, "x0") for v in _rows_of(x0, "x0")]
        )
        for name, rows in (("b", right), ("x0", guesses)):
            _require_count(name, len(rows), len(given))
        batch = cls([], [], [], like)
        for k, A in enumerate(given):
            batch.matrices.append(batch.tried(k, as_csr, A))
        singles = all(A is None or A.dtype == np.float32 for A in batch.matrices)
        narrow = all(dtype_name(v) in ("float32", "float16", "complex64") for v in right)
        batch.dtype = np.float32 if singles and narrow and given else np.float64
        batch._take(right, guesses)
        return batch

    def _take(self, right: Sequence[Any], guesses: Sequence[Any]) -> None:
        for k, A in enumerate(self.matrices):
            self.out.append(np.zeros(0 if A is None else A.shape[0], dtype=self.dtype))
            self.right.append(None)
            self.guesses.append(None)
            if A is None:
                continue
            self.matrices[k] = self.tried(k, with_dtype, A, self.dtype)
            kind = A.given_shape[0], vector_type(self.dtype, A.of_complex)
            self.right[k] = self.tried(k, _parts_of, right[k], *kind, "b")
            if guesses[k] is not None:
                self.guesses[k] = self.tried(k, _parts_of, guesses[k], *kind, "x0")

    def solve(self, asked: Asked) -> dict[str, Any]:
        """Solve those that can be; return what the core says of all."""
        found: dict[str, Any] = {name: np.zeros(len(self.matrices)) for name in NUMBERS}
        found["reasons"] = [None] * len(self.matrices)
        runs = [k for k in range(len(self.matrices)) if k not in self.errors]
        part = self._run(runs, asked, asked.check)
        for k, said in part["errors"].items():
            self.explain(runs[k], said, self.matrices[runs[k]])
        _put(found, runs, part)
        again = [runs[k] for k in part["errors"] if runs[k] not in self.errors]
        if again:
            _put(found, again, self._run(again, asked, False))
        return found

    def _run(self, numbers: list[int], asked: Asked, check: bool) -> dict[str, Any]:
        matrices = [A for k in numbers if (A := self.matrices[k]) is not None]
        guesses = [self.guesses[k] for k in numbers]
        if all(guess is None for guess in guesses):
            guesses = []
        arrays = [
            [A.indptr for A in matrices],
            [A.indices for A in matrices],
            [A.data for A in matrices],
            [self.right[k] for k in numbers],
            [
                np.zeros_like(self.out[k]) if guess is None else guess
                for k, guess in zip(numbers, guesses, strict=False)
            ],
            [self.out[k] for k in numbers],
        ]
        return asked.run(arrays, False, self.dtype, check)

    def solutions(self) -> Any:
        """Return the solutions: (k, n) where all have one size and type, else a list."""
        for k in self.errors:
            self.out[k][:] = np.nan
        given = [
            x.view(vector_type(self.dtype, A is not None and A.of_complex))
            for x, A in zip(self.out, self.matrices, strict=True)
        ]
        kinds = {(x.size, x.dtype) for x in given if x.size > 0}  # 0: of what is no matrix
        if len(kinds) > 1 or not given:
            return given
        n, dtype = next(iter(kinds), (0, np.dtype(self.dtype)))
        return np.array([x if x.size == n else np.full(n, np.nan, dtype) for x in given], dtype)


def _parts_of(v: Any, n: int, dtype: npt.DTypeLike, name: str) -> npt.NDArray[Any]:
    """Return `as_vector` of v, of real and imaginary parts in turn where it is complex."""
    return as_parts(as_vector(v, n, dtype, name))


def _put(found: dict[str, Any], numbers: list[int], part: dict[str, Any]) -> None:
    """Write what was found of some systems to their places."""
    for name in NUMBERS:
        found[name][numbers] = part[name]
    for k, reason in zip(numbers, part["reasons"], strict=True):
        found["reasons"][k] = reason


def _pairs(systems: Any) -> tuple[list[Any], list[Any]]:
    """Return matrices and right-hand sides of a list of pairs."""
    pairs = list(systems)
    for k, pair in enumerate(pairs):
        if not (isinstance(pair, (list, tuple)) and len(pair) == 2):
            raise InvalidInputError(
                f"system {k} is no pair (A, b): give b as well, of shape (k, n), or pairs"
            )
    return [A for A, _ in pairs], [b for _, b in pairs]


def _as_array(v: Any) -> Any:
    return v if cuda_device(v) is not None else np.asarray(v)


def _on_host(v: Any, name: str) -> Any:
    return copy_to_host(v, name) if cuda_device(v) is not None else v


def _rows_of(v: Any, name: str) -> Any:
    """Return an array (k, n), or a list of vectors, as one that can be asked for each of them."""
    if isinstance(v, (list, tuple)):
        return v
    rows = _on_host(_as_array(v), name)
    if rows.ndim != 2:
        raise VectorError(
            f"{name} has shape {rows.shape}; it must have shape (k, n), a row for each system, "
            "or be a list of vectors"
        )
    return rows


def _vectors(v: Any, name: str, count: int, n: int) -> npt.NDArray[Any]:
    """Return vectors of systems of one size as an array (k, n)."""
    rows = _rows_of(v, name)
    _require_count(name, len(rows), count)
    if isinstance(rows, np.ndarray) and rows.shape == (count, n) and rows.dtype.kind in "fiub":
        return rows
    kinds = {getattr(row, "dtype", np.dtype(np.float64)) for row in rows}
    dtype = np.float32 if kinds <= {np.dtype(np.float32), np.dtype(np.float16)} else np.float64
    made = [
        as_vector(_on_host(row, name), n, dtype, f"{name}[{k}]", finite=False)
        for k, row in enumerate(rows)
    ]
    return np.array(made, dtype=dtype).reshape(count, n)


def _require_count(name: str, vectors: int, systems: int) -> None:
    if vectors != systems:
        raise VectorError(f"{name} has {vectors} vectors, but there are {systems} systems")
