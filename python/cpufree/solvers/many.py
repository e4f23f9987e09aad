"""Many small systems at once: each by one core, or by one block of a GPU, side by side."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree import options as schema
from cpufree.arguments import Engine, Method, Preconditioner, VectorLike
from cpufree.calls import public
from cpufree.device_arrays import copy_beside, copy_to_host, cuda_device
from cpufree.docstrings import with_parameters
from cpufree.engines import choices, gpus
from cpufree.engines.watch import ProgressLike, Watch
from cpufree.errors import (
    CpufreeError,
    InvalidInputError,
    MatrixError,
    NotEnoughGpusError,
    UnsupportedError,
    VectorError,
)
from cpufree.extension import load_core, load_for
from cpufree.matrix.entries import SYMMETRY_TOLERANCE
from cpufree.matrix.load import as_csr
from cpufree.matrix.problem import CsrMatrix
from cpufree.matrix.validate import check_spd_input
from cpufree.matrix.vector import as_vector
from cpufree.solvers.many_result import ManyResult
from cpufree.solvers.preparation import with_dtype
from cpufree.solvers.result import Reason

METHODS = ("prcg", "cg")
PRECONDITIONERS = ("jacobi", "none")


@public
@with_parameters
def solve_many(
    systems: Any,
    b: Any = None,
    *,
    x0: Any = None,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    method: Method = "auto",
    pc: Preconditioner = "auto",
    engine: Engine = "auto",
    gpu: int | None = None,
    check: bool = True,
    time_limit: float | None = None,
    progress: ProgressLike = None,
) -> ManyResult:
    """Solve A_k x_k = b_k for many small systems at once, each with its own stopping test.

    Systems are solved by one core each, as many side by side as there are cores, or by one block
    of a GPU each, thousands in one kernel; there is no communication. Those that follow one with
    the same pattern share its layout, or its arrays. A system that fails, or whose matrix cannot be
    solved, leaves the others right: the result names it.

    Parameters
    ----------
    systems : list of (A, b), list of A, or (indptr, indices, data)
        Matrices as `solve` takes them; or compressed rows of one pattern, columns in order, with
        values `data` of shape (k, nnz). From NumPy, SciPy, CuPy and PyTorch.
    b : array (k, n) or list of k vectors
        Right-hand sides, where `systems` does not have them.
    x0 : array (k, n) or list of k vectors, optional
        First guesses.
    {rtol, atol}
    maxiter : int, optional
        Most iterations of each system, default 10 n.
    method : {"auto", "prcg", "cg"}, default "auto"
        "auto" is prcg, which sums once in an iteration.
    pc : {"auto", "jacobi", "none"}, default "auto"
        "auto" is jacobi.
    engine : {"auto", "cpu_threads", "cuda_p2p"}, default "auto"
        Where they are solved: on all cores, or on one GPU. "auto" is the GPU if b lies on one, else
        the cores.
    gpu : int, optional
        Number of the GPU, default that of b, or 0.
    {check}
    time_limit : float, optional
        Seconds for all systems together. Those that are then not done end with TIME_LIMIT.
    progress : function, optional
        On the cores: called with how many systems have ended, and 0.0; where it returns False, the
        rest ends.

    Returns
    -------
    ManyResult
        Solutions, reasons, iterations and residuals of all systems.

    Raises
    ------
    InvalidInputError
        And its kinds, for options and arrays that are no systems at all. What is wrong with one
        matrix or one b is in `ManyResult.errors`.
    UnsupportedError
        For another engine, method or preconditioner.

    Examples
    --------
    >>> import numpy as np
    >>> A = cpufree.generate.generate("poisson2d", nx=8, ny=8)
    >>> values = np.stack([A.data * scale for scale in (1.0, 2.0, 4.0)])
    >>> result = cpufree.solve_many((A.indptr, A.indices, values), np.ones((3, 64)), rtol=1e-8)
    >>> bool(result), result.x.shape
    (True, (3, 64))
    """
    begin = time.perf_counter()
    options = _options(method, pc, rtol, atol, maxiter, time_limit)
    watch = Watch(None if progress is True else progress)
    batch = _Batch.of(systems, b, x0)
    device = _gpu_of(engine, gpu, batch.like)
    found = batch.solve(options, device, check, watch)
    if watch.error is not None:
        raise watch.error
    kinds = [None if k in batch.errors else Reason(r) for k, r in enumerate(found["reasons"])]
    return ManyResult(
        x=batch.solutions(),
        converged=np.array([kind is not None and kind.converged for kind in kinds], dtype=bool),
        reasons=tuple(kinds),
        iterations=found["iterations"].astype(np.int64),
        residual=found["residual"],
        true_residual=found["true_residual"],
        bnorm=found["bnorm"],
        method=options["method"],
        pc=options["pc"],
        engine="cpu_threads" if device < 0 else "cuda_p2p",
        seconds=time.perf_counter() - begin,
        errors=dict(sorted(batch.errors.items())),
    )


def _options(
    method: str,
    pc: str,
    rtol: float,
    atol: float,
    maxiter: int | None,
    time_limit: float | None,
) -> dict[str, Any]:
    """Return the options as the core takes them, checked."""
    choices.one_of("method", method, schema.METHOD.choices)
    known = {"auto": METHODS[0]} | {name: name for name in METHODS}
    preconditioners = {"auto": PRECONDITIONERS[0]} | {name: name for name in PRECONDITIONERS}
    pc = choices.valid(schema.PC, pc)
    for name, asked, there in (("method", method, known), ("pc", pc, preconditioners)):
        if asked not in there:
            raise UnsupportedError(
                f"solve_many has no {name} {asked!r}: it takes {', '.join(there)}. "
                "cpufree.solve takes it, for one system at a time"
            )
    most = choices.valid(schema.MAXITER, maxiter)
    return {
        "method": known[method],
        "pc": preconditioners[pc],
        "rtol": choices.valid(schema.RTOL, rtol),
        "atol": choices.valid(schema.ATOL, atol),
        "maxiter": -1 if most is None else most,  # 10 n of each system
        "time_limit": choices.seconds("time_limit", time_limit, 0.0),
    }


def _gpu_of(engine: str, gpu: int | None, like: Any) -> int:
    """Return the number of the GPU that solves, -1 for the cores."""
    choices.one_of("engine", engine, schema.ENGINE.choices)
    if engine not in ("auto", "cpu_threads", "cuda_p2p"):
        raise UnsupportedError(
            f"solve_many does not run on the engine {engine}: it takes cpu_threads and cuda_p2p"
        )
    beside = cuda_device(like)
    if engine == "cpu_threads" or (engine == "auto" and gpu is None and beside is None):
        return -1
    load_for("cuda_p2p")  # it knows where kernels come from
    found = gpus.usable(gpus.find())
    number = beside or 0 if gpu is None else gpu
    if number not in [one.index for one in found]:
        raise NotEnoughGpusError(
            f"there is no GPU {number} here that can be used: leave engine and gpu out, and the "
            "cores solve; cpufree doctor says which GPUs there are"
        )
    return number


def _rows_of(v: Any, name: str) -> Sequence[Any]:
    """Return an array (k, n), or a list of vectors, as one that can be asked for each of them."""
    if cuda_device(v) is not None:
        v = copy_to_host(v, name)
    if not isinstance(v, (list, tuple)):
        v = np.asarray(v)
        if v.ndim != 2:
            raise VectorError(
                f"{name} has shape {v.shape}; it must have shape (k, n), a row for each system, "
                "or be a list of vectors"
            )
    rows: Sequence[Any] = v
    return rows


def _stacked(arrays: tuple[Any, Any, Any]) -> list[CsrMatrix]:
    """Return the matrices of compressed rows of one pattern, whose arrays are shared."""
    indptr, indices, data = (
        copy_to_host(a, "systems") if cuda_device(a) is not None else np.asarray(a) for a in arrays
    )
    if data.ndim != 2 or data.dtype.kind not in "fiu":
        raise MatrixError(
            f"the values of systems of one pattern have shape {data.shape} and type {data.dtype}; "
            "they must be real numbers of shape (k, nnz), a row for each system"
        )
    kind = np.float32 if data.dtype in (np.float32, np.float16) else np.float64
    values = np.ascontiguousarray(data, dtype=kind)
    ptr, col = indptr.astype(np.int64, copy=False), indices.astype(np.int32, copy=False)
    if len(values) == 0:
        return []
    first = CsrMatrix(ptr, col, values[0])  # looks at the order
    if first.shape[0] == 0:
        raise MatrixError("the systems are empty, 0 x 0: there is nothing to solve")
    return [CsrMatrix.well_formed(first.indptr, first.indices, row) for row in values]


@dataclass
class _Batch:
    """The systems as the core takes them; those that cannot be taken are in `errors`."""

    matrices: list[CsrMatrix | None]
    right: list[npt.NDArray[Any] | None]
    guesses: list[npt.NDArray[Any] | None]
    dtype: npt.DTypeLike
    like: Any
    """An array on a GPU, beside which solutions are wanted, or None."""
    errors: dict[int, CpufreeError] = field(default_factory=dict)
    out: list[npt.NDArray[Any]] = field(default_factory=list)

    @classmethod
    def of(cls, systems: Any, b: Any, x0: Any) -> _Batch:
        """Return the systems of a call, checked as far as one of them does not concern others."""
        if b is None:
            systems, b = _pairs(systems)
        stacked = isinstance(systems, tuple) and len(systems) == 3
        given: Sequence[Any] = _stacked(systems) if stacked else list(systems)
        first = b[0] if isinstance(b, (list, tuple)) and len(b) else b
        like = first if cuda_device(first) is not None else None
        right = [_on_host(v, "b") for v in _rows_of(b, "b")]
        guesses = [None] * len(given) if x0 is None else [*map(_guess, _rows_of(x0, "x0"))]
        for name, rows in (("b", right), ("x0", guesses)):
            if len(rows) != len(given):
                raise VectorError(
                    f"{name} has {len(rows)} vectors, but there are {len(given)} systems"
                )
        batch = cls([], [], [], np.float64, like)
        for k, A in enumerate(given):
            batch.matrices.append(batch.tried(k, as_csr, A) if not stacked else A)
        singles = all(A is None or A.dtype == np.float32 for A in batch.matrices)
        narrow = all(getattr(v, "dtype", None) in (np.float32, np.float16) for v in right)
        batch.dtype = np.float32 if singles and narrow and len(given) else np.float64
        batch._take(right, guesses)
        return batch

    def tried(self, k: int, function: Any, *args: Any) -> Any:
        """Return what function returns of system k, or None with its error kept."""
        try:
            return function(*args)
        except CpufreeError as error:
            error.args = (f"system {k}: {error}",)
            self.errors.setdefault(k, error)
            return None

    def _take(self, right: Sequence[Any], guesses: Sequence[Any]) -> None:
        for k, A in enumerate(self.matrices):
            n = 0 if A is None else A.shape[0]
            self.out.append(np.zeros(n, dtype=self.dtype))
            self.right.append(None)
            self.guesses.append(None)
            if A is None:
                continue
            self.matrices[k] = self.tried(k, with_dtype, A, self.dtype)
            self.right[k] = self.tried(k, as_vector, right[k], n, self.dtype, "b")
            if guesses[k] is not None:
                self.guesses[k] = self.tried(k, as_vector, guesses[k], n, self.dtype, "x0")
        sizes = {x.size for x in self.out}
        if len(sizes) == 1:  # one array of all
            self.out = list(np.zeros((len(self.out), *sizes), dtype=self.dtype))

    def solve(self, options: dict[str, Any], gpu: int, check: bool, watch: Watch) -> dict[str, Any]:
        """Solve those that can be; return what the core says of all."""
        runs = [k for k in range(len(self.matrices)) if k not in self.errors]
        found = self._run(runs, options, gpu, check, watch)
        doubtful = [k for k, reason in zip(runs, found["reasons"], strict=True) if reason is None]
        for k in doubtful:
            said = found["errors"][runs.index(k)]
            if said:
                self.errors[k] = InvalidInputError(f"system {k}: {said}")
            else:
                self.tried(k, check_spd_input, self.matrices[k])  # says more, or finds no fault
        again = [k for k in doubtful if k not in self.errors]
        second = self._run(again, options, gpu, False, watch)
        return self._spread([(runs, found), (again, second)])

    def _run(
        self, numbers: list[int], options: dict[str, Any], gpu: int, check: bool, watch: Watch
    ) -> dict[str, Any]:
        matrices = [A for k in numbers if (A := self.matrices[k]) is not None]
        guessed = any(self.guesses[k] is not None for k in numbers)
        guess = [
            np.zeros_like(self.out[k]) if self.guesses[k] is None else self.guesses[k]
            for k in numbers
            if guessed
        ]
        lists = [
            [A.indptr for A in matrices],
            [A.indices for A in matrices],
            [A.data for A in matrices],
            [self.right[k] for k in numbers],
            guess,
            [self.out[k] for k in numbers],
        ]
        singles = self.dtype == np.float32
        tolerance = SYMMETRY_TOLERANCE[np.dtype(self.dtype).name]
        with watch:
            found: dict[str, Any] = load_core().solve_many(
                lists, singles, options, gpu, check, tolerance, watch
            )
        return found

    def _spread(self, parts: list[tuple[list[int], dict[str, Any]]]) -> dict[str, Any]:
        """Return what was found of all systems, by their numbers."""
        count = len(self.matrices)
        names = ("iterations", "residual", "true_residual", "bnorm")
        found: dict[str, Any] = {name: np.zeros(count) for name in names}
        found["reasons"] = [None] * count
        for numbers, part in parts:
            for name in names:
                found[name][numbers] = part[name]
            for k, reason in zip(numbers, part["reasons"], strict=True):
                found["reasons"][k] = reason
        return found

    def solutions(self) -> Any:
        """Return the solutions, an array of all where they have one size, beside b."""
        same = len({x.size for x in self.out}) <= 1
        base = self.out[0].base if self.out and same else None
        whole = base if base is not None else np.array(self.out, dtype=self.dtype) if same else None
        if self.like is None:
            return self.out if whole is None else whole
        if whole is not None:
            return copy_beside(self.like, whole)
        return [copy_beside(self.like, x) for x in self.out]


def _on_host(v: VectorLike, name: str) -> Any:
    return copy_to_host(v, name) if cuda_device(v) is not None else v


def _guess(v: VectorLike | None) -> Any:
    return None if v is None else _on_host(v, "x0")


def _pairs(systems: Any) -> tuple[list[Any], list[Any]]:
    """Return matrices and right-hand sides of a list of pairs."""
    pairs = list(systems)
    for k, pair in enumerate(pairs):
        if not (isinstance(pair, (list, tuple)) and len(pair) == 2):
            raise InvalidInputError(
                f"system {k} is no pair (A, b): give b as well, of shape (k, n), or pairs"
            )
    return [A for A, _ in pairs], [b for _, b in pairs]
