"""Set up once, solve often: from a matrix and options to Results."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..env import Env
from ..errors import InvalidInputError
from ..partition import Int32s, choose_order, partition
from ..problem import CsrMatrix, as_csr, as_vector
from ..result import Reason, Result, counted
from ..validate import check_spd_input
from . import choices
from .core import system_class
from .notes import numerical_notes, rounding_note
from .watch import Progress, Watch

if TYPE_CHECKING:
    from .._core import Outcome, System

# Largest over mean nonzeros per PE from which the user is told.
UNBALANCED = 1.25


class Solver:
    """A matrix partitioned and laid out for its PEs: set up once, solve often.

    Parameters:
        A: n × n, sparse, symmetric positive definite: SciPy sparse, dense NumPy, CsrMatrix, or the
            path of a file. It is copied; later changes have no effect.
        pes: number of PEs, "auto" (one on the CPU engine).
        blocks: threads for each PE, "auto" (the cores shared out; 1 for small systems).
        engine: "auto" or "cpu_threads".
        reorder: "auto", True or "rcm", False or "natural": order of rows inside a PE.
        partition: "auto", "metis", "contiguous": which PE owns which rows.
        check: test that A is symmetric, finite and has a positive diagonal. False spares the time;
            what it would have found shows as DIVERGED_INDEFINITE_MAT, DIVERGED_NANORINF, or not.
        dtype: float32 or float64, in which to solve; default that of A.

    Raises InvalidInputError (and its kinds, see cpufree.errors) for what cannot be solved,
    UnsupportedError for an engine that is not here.
    """

    def __init__(
        self,
        A: Any,
        *,
        pes: int | str = "auto",
        blocks: int | str = "auto",
        engine: str = "auto",
        reorder: str | bool = "auto",
        partition: str = "auto",
        check: bool = True,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        begin = time.perf_counter()
        make_system = system_class()
        env = Env.read()
        self._wait_limit = env.wait_limit or choices.WAIT_LIMIT
        self.engine = choices.choose_engine(engine, env.engine)
        matrix = as_csr(A)
        self.warnings = check_matrix(matrix) if check else []
        matrix = with_dtype(matrix, dtype)
        count, why_pes = choices.choose_pes(pes, env.pes)
        threads, why_blocks = choices.choose_blocks(blocks, env.blocks, count, matrix.nnz)
        part, why_part = self._share(matrix, count, partition)
        ordering = choose_order(matrix, part, reorder)
        self.shape = matrix.shape
        self.dtype = np.dtype(matrix.dtype)
        self._why = [
            f"{counted(count, 'PE')}: {why_pes}",
            f"{counted(threads, 'block')} each: {why_blocks}",
        ]
        self._why += [*why_part, ordering.why]
        self._system: System | None = make_system(
            matrix.indptr,
            matrix.indices,
            matrix.data,
            part,
            ordering.order,
            count,
            threads,
            self.engine,
        )
        self._plan = self._system.plan()
        self._lock = threading.Lock()
        self.setup_seconds = time.perf_counter() - begin
        cores = choices.available_cores()
        if count * threads > cores:
            self.warnings.append(
                f"{counted(count, 'PE')} × {counted(threads, 'block')} are {count * threads} "
                f"threads on {counted(cores, 'core')}: "
                "they take turns, which is slow"
            )

    def _share(self, A: CsrMatrix, pes: int, method: str) -> tuple[Int32s | None, list[str]]:
        """Return the owners of the rows (None: one PE) and why; note what is amiss."""
        if pes == 1 and method == "auto":
            return None, []
        parts = partition(A, pes, method)
        if parts.fallback:
            self.warnings.append(f"rows are shared out in consecutive blocks: {parts.why}")
        if parts.report.imbalance > UNBALANCED:
            self.warnings.append(
                f"the largest PE has {parts.report.imbalance:.2f} times the mean nonzeros; the "
                "others wait for it: fewer PEs may be as fast"
            )
        return parts.part, [f"{parts.method} partition: {parts.why}"]

    @property
    def plan(self) -> dict[str, Any]:
        """How the matrix lies on the PEs.

        Lists per PE: rows, nnz, ghosts (values received per exchange), boundary_rows, neighbours
        (pairs of PE and values sent). In all: pes, blocks, edge_cut (pairs of coupled rows on
        different PEs), halo_values (values moved per exchange), imbalance (largest over mean
        nonzeros), matrix_bytes (of the matrix in the format of the engine, all PEs).
        """
        return {**self._plan}

    def solve(
        self,
        b: Any,
        x0: Any = None,
        *,
        rtol: float = 1e-5,
        atol: float = 0.0,
        maxiter: int | None = None,
        method: str = "auto",
        pc: str = "jacobi",
        time_limit: float | None = None,
        wait_limit: float | None = None,
        progress: Progress | None = None,
        replace_every: int = 50,
        chebyshev_degree: int = 4,
    ) -> Result:
        """Solve A x = b to ‖b - A x‖₂ ≤ max(rtol ‖b‖₂, atol).

        Parameters:
            b: right-hand side, shape (n,) or (n, 1), finite. x0: first guess; default zero.
            maxiter: most iterations; default 10 n.
            method: "cg" (Hestenes and Stiefel 1952), "prcg" (Chen and Carson 2020, one reduction
                per iteration), "pipecg" (Ghysels and Vanroose 2014, one reduction, overlapped);
                "auto" is prcg.
            pc: preconditioner: "jacobi" (the inverse diagonal), "chebyshev" (a polynomial of
                `chebyshev_degree` steps in the Jacobi-scaled matrix), "none".
            time_limit: seconds after which to stop; default none. wait_limit: seconds that a block
                may wait for another before the solve is given up with a diagnosis; default 60.
            progress: called as progress(iteration, residual norm) about every 50 ms in this thread;
                returning False ends the solve (reason INTERRUPTED), as Ctrl-C does.
            replace_every: pipecg: iterations between replacements of the residual by b - A x,
                0 for never. Once b - A x exceeds twice what the recurrence says, prcg takes over.

        Returns a Result; non-convergence is not an exception but a Result with its reason.
        Raises InvalidInputError for options out of range, VectorError for a b or x0 that does not
        fit, WaitTimeoutError when a wait outlasts wait_limit, and what progress raises.
        """
        begin = time.perf_counter()
        if self._system is None:
            raise InvalidInputError("this Solver is closed: make a new one from the matrix")
        n = self.shape[0]
        right = as_vector(b, n, self.dtype, "b")
        guess = None if x0 is None else as_vector(x0, n, self.dtype, "x0")
        if not (progress is None or callable(progress)):
            raise InvalidInputError(f"progress is {progress!r}: give a function, or None")
        chosen, why_method = choices.choose_method(method)
        options = {
            "method": chosen,
            "pc": choices.one_of("preconditioner pc", pc, choices.PRECONDITIONERS),
            "rtol": choices.real("rtol", rtol),
            "atol": choices.real("atol", atol),
            "maxiter": 10 * n if maxiter is None else choices.integer("maxiter", maxiter),
            "time_limit": choices.seconds("time_limit", time_limit, 0.0),
            "wait_limit": choices.seconds("wait_limit", wait_limit, self._wait_limit),
            "replace_every": choices.integer("replace_every", replace_every),
            "chebyshev_degree": choices.integer("chebyshev_degree", chebyshev_degree, 1),
        }
        watch = progress if isinstance(progress, Watch) else Watch(progress)
        with self._lock, watch:
            outcome = self._system.solve(right, guess, options, watch)
        if watch.error is not None:
            raise watch.error
        seconds = time.perf_counter() - begin
        why = [f"{chosen}: {why_method}", *self._why]
        result = self._result(outcome, options, why, seconds, np.shape(b))
        notes = [*self.warnings, *rounding_note(b, self.dtype), *numerical_notes(result, options)]
        return dataclasses.replace(result, warnings=tuple(notes))

    def _result(
        self,
        outcome: Outcome,
        options: Mapping[str, Any],
        why: list[str],
        seconds: float,
        shape: tuple[int, ...],
    ) -> Result:
        reason = Reason(outcome["reason"])
        iterations, kernel = int(outcome["iterations"]), float(outcome["seconds"])
        x: npt.NDArray[Any] = outcome["x"]
        return Result(
            x=x.reshape(shape) if len(shape) == 2 else x,
            converged=reason.converged,
            reason=reason,
            iterations=iterations,
            residual=float(outcome["residual"]),
            true_residual=float(outcome["true_residual"]),
            bnorm=float(outcome["bnorm"]),
            history=outcome["history"],
            history_stride=int(outcome["history_stride"]),
            method=options["method"],
            pc=options["pc"],
            why="; ".join(why),
            engine=self.engine,
            pes=int(outcome["pes"]),
            blocks=int(outcome["blocks"]),
            timings={
                "setup": self.setup_seconds,
                "solve": seconds,
                "kernel": kernel,
                "per_iteration": kernel / max(1, iterations),
            },
            counts={
                "reductions": int(outcome["reductions"]),
                "exchanges": int(outcome["exchanges"]),
                "replacements": int(outcome["replacements"]),
                "handed_over_at": int(outcome["handed_over_at"]),
                "lambda_max": float(outcome["lambda_max"]),
            },
        )

    def close(self) -> None:
        """Free the memory of the matrix; the Solver cannot solve any more."""
        self._system = None

    def __enter__(self) -> Solver:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def check_matrix(A: CsrMatrix) -> list[str]:
    """Raise MatrixError where A cannot be solved; return what is odd about it."""
    asymmetry = check_spd_input(A)
    if asymmetry == 0.0:
        return []
    return [f"A is symmetric only to within {asymmetry:.1e} of its diagonal, which passes as noise"]


def with_dtype(A: CsrMatrix, dtype: npt.DTypeLike | None) -> CsrMatrix:
    """Return A with values of dtype, float32 or float64; None: as they are."""
    if dtype is None or np.dtype(dtype) == A.dtype:
        return A
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise InvalidInputError(f"dtype is {np.dtype(dtype)}: choose float32 or float64")
    with np.errstate(over="ignore"):
        data = A.data.astype(dtype)
    if not np.isfinite(data).all() and np.isfinite(A.data).all():
        raise InvalidInputError(f"entries of A are too large for {np.dtype(dtype)}: use float64")
    return CsrMatrix(A.indptr, A.indices, data)


def solve_dtype(A: CsrMatrix, b: Any) -> type[np.float32] | type[np.float64]:
    """Return the common type of A and b: float32 only where both are no wider."""
    narrow = A.dtype == np.float32 and getattr(b, "dtype", None) in (np.float32, np.float16)
    return np.float32 if narrow else np.float64


def solve(
    A: Any,
    b: Any,
    *,
    x0: Any = None,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    method: str = "auto",
    pc: str = "jacobi",
    pes: int | str = "auto",
    blocks: int | str = "auto",
    engine: str = "auto",
    reorder: str | bool = "auto",
    partition: str = "auto",
    check: bool = True,
    time_limit: float | None = None,
    wait_limit: float | None = None,
    progress: Progress | None = None,
    replace_every: int = 50,
    chebyshev_degree: int = 4,
) -> Result:
    """Solve A x = b, A sparse, symmetric and positive definite, to the accuracy asked for.

    A, pes, blocks, engine, reorder, partition and check are those of Solver; the other parameters
    those of Solver.solve. The solve is in float32 where A and b are, else in float64.

    Returns a Result; raises as Solver and Solver.solve do.
    """
    begin = time.perf_counter()
    matrix = as_csr(A)
    with Solver(
        matrix,
        pes=pes,
        blocks=blocks,
        engine=engine,
        reorder=reorder,
        partition=partition,
        check=check,
        dtype=solve_dtype(matrix, b),
    ) as solver:
        solver.setup_seconds = time.perf_counter() - begin
        return solver.solve(
            b,
            x0,
            rtol=rtol,
            atol=atol,
            maxiter=maxiter,
            method=method,
            pc=pc,
            time_limit=time_limit,
            wait_limit=wait_limit,
            progress=progress,
            replace_every=replace_every,
            chebyshev_degree=chebyshev_degree,
        )
