"""`minres` and `bicgstab` as scipy.sparse.linalg has them: for matrices not positive definite."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from scipy.sparse.linalg import bicgstab as scipy_bicgstab
from scipy.sparse.linalg import minres as scipy_minres

from cpufree.arguments import Count, Engine, Gpus, Order, Preconditioner, VectorLike
from cpufree.calls import public
from cpufree.device_arrays import cuda_device
from cpufree.docstrings import with_parameters
from cpufree.dtypes import is_complex
from cpufree.engines.choices import integer, real
from cpufree.engines.watch import ProgressLike
from cpufree.errors import InvalidInputError, UnsupportedError
from cpufree.matrix.load import as_csr
from cpufree.matrix.problem import MatrixLike
from cpufree.matrix.validate import check_input
from cpufree.partition.part_vector import PartitionLike
from cpufree.solvers.result import Reason
from cpufree.solvers.scipy_functions.cg import (
    check_operator,
    device_cg,
    guess_from_name,
    host_reason,
    host_vectors,
    jacobi,
    recognise,
    reject_extras,
    require_one,
    warn,
)
from cpufree.solvers.scipy_functions.watched_cg import workload_of

_CLOSER = 0.1
"""Of a tolerance of SciPy's minres, which is relative to ‖A‖ ‖x‖ + ‖b‖, where b - A x is above
ours."""


@public
@with_parameters
def minres(
    A: MatrixLike,
    b: VectorLike,
    x0: VectorLike | None = None,
    *,
    rtol: float = 1e-5,
    shift: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[npt.NDArray[Any]], object] | None = None,
    show: bool = False,
    check: bool = False,
    pc: Preconditioner | None = None,
    pes: Count = "auto",
    blocks: Count = "auto",
    engine: Engine = "auto",
    gpus: Gpus = "auto",
    reorder: Order = "auto",
    partition: PartitionLike = "auto",
    time_limit: float | None = None,
    wait_limit: float | None = None,
    progress: ProgressLike = None,
) -> tuple[Any, int]:
    """Solve (A - shift I) x = b, A symmetric, with the signature of SciPy's `minres`.

    Parameters
    ----------
    A : sparse or dense matrix, shape (n, n)
        Symmetric or Hermitian; definite, indefinite or singular. A LinearOperator is handed to
        SciPy, whose `minres` is for real numbers.
    b, x0 : array, shape (n,) or (n, 1)
        Right-hand side and first guess, as `cg` takes them.
    rtol : float, default 1e-5
        The solve ends where ‖b - (A - shift I) x‖₂ ≤ rtol ‖b‖₂, which is not SciPy's rule: that is
        relative to ‖A‖ ‖x‖ + ‖b‖.
    shift : float, default 0
        Subtracted from the diagonal, in the unit of A.
    maxiter : int, optional
        Most iterations; default 5 n, as SciPy's.
    M : matrix or LinearOperator, optional
        Symmetric positive definite approximate inverse of A. None is the inverse of the sizes of
        the diagonal.
    callback : callable, optional
        Called as callback(xk) after each iteration.
    show : bool, default False
        Print the report of the solve.
    check : bool, default False
        Test that A is finite and symmetric.
    pc : {"jacobi", "fsai", "none"}, optional
        Preconditioner; default "jacobi". Not together with M.
    {pes, blocks, engine, gpus, reorder, partition, time_limit, wait_limit, progress}

    Returns
    -------
    x : array, shape (n,)
        The solution, or the last iterate.
    info : int
        0 if converged, else the number of iterations (at least 1).

    Raises
    ------
    InvalidInputError
        And its kinds, for what cannot be solved.

    Warns
    -----
    CpufreeWarning
        Where the solve ended for another reason than maxiter, such as a b out of the range of a
        singular A, and where SciPy's own `minres` runs on the host.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> A = sp.diags([-np.ones(99), np.ones(100), -np.ones(99)], [-1, 0, 1], format="csr")
    >>> x, info = cpufree.minres(A, np.ones(100), rtol=1e-10)
    >>> info, bool(np.allclose(A @ x, 1.0))
    (0, True)
    """
    given = _extras(pes, blocks, engine, gpus, reorder, partition, time_limit, wait_limit)
    limits = {"rtol": rtol, "maxiter": maxiter}
    call = _Call("minres", b, x0, M, callback, pc, progress, check, show, limits, given)
    if shift:
        A = _shifted(A, real("shift", shift, least=-math.inf))
    return call.solve(A)


@public
@with_parameters
def bicgstab(
    A: MatrixLike,
    b: VectorLike,
    x0: VectorLike | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[npt.NDArray[Any]], object] | None = None,
    pc: Preconditioner | None = None,
    pes: Count = "auto",
    blocks: Count = "auto",
    engine: Engine = "auto",
    gpus: Gpus = "auto",
    reorder: Order = "auto",
    partition: PartitionLike = "auto",
    check: bool = True,
    time_limit: float | None = None,
    wait_limit: float | None = None,
    progress: ProgressLike = None,
) -> tuple[Any, int]:
    """Solve A x = b, A square, with the signature of SciPy's `bicgstab`.

    Parameters
    ----------
    A : sparse or dense matrix, shape (n, n)
        Symmetric or not, real or complex. A LinearOperator is handed to SciPy.
    b, x0 : array, shape (n,) or (n, 1)
        Right-hand side and first guess, as `cg` takes them.
    {rtol, atol, maxiter}
    M : matrix or LinearOperator, optional
        Approximate inverse of A, applied from the right. None is the inverse of the sizes of the
        diagonal.
    callback : callable, optional
        Called as callback(xk) after each iteration, of two products.
    pc : {"jacobi", "none"}, optional
        Preconditioner; default "jacobi". Not together with M.
    check : bool, default True
        Test that A is finite.
    {pes, blocks, engine, gpus, reorder, partition, time_limit, wait_limit, progress}

    Returns
    -------
    x : array, shape (n,)
        The solution, or the last iterate.
    info : int
        0 if converged, else the number of iterations (at least 1).

    Raises
    ------
    InvalidInputError
        And its kinds, for what cannot be solved.

    Warns
    -----
    CpufreeWarning
        Where the solve ended for another reason than maxiter, such as a breakdown, and where
        SciPy's own `bicgstab` runs on the host.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> A = sp.diags([-2 * np.ones(99), 3 * np.ones(100), -np.ones(99)], [-1, 0, 1], format="csr")
    >>> x, info = cpufree.bicgstab(A, np.ones(100), rtol=1e-10)
    >>> info, bool(np.allclose(A @ x, 1.0))
    (0, True)
    """
    given = _extras(pes, blocks, engine, gpus, reorder, partition, time_limit, wait_limit)
    limits = {"rtol": rtol, "atol": atol, "maxiter": maxiter}
    call = _Call("bicgstab", b, x0, M, callback, pc, progress, check, False, limits, given)
    return call.solve(A)


def _extras(*values: Any) -> dict[str, Any]:
    names = ("pes", "blocks", "engine", "gpus", "reorder", "partition", "time_limit", "wait_limit")
    return dict(zip(names, values, strict=True))


def _shifted(A: Any, shift: float) -> Any:
    """Return A - shift I."""
    if isinstance(A, LinearOperator):
        return A - shift * aslinearoperator(sp.eye_array(A.shape[0]))
    matrix = as_csr(A).given()
    return sp.csr_array(matrix - shift * sp.eye_array(matrix.shape[0], dtype=matrix.dtype))


@dataclass(frozen=True)
class _Call:
    """A call of one of these, and where it is solved."""

    method: str
    b: Any
    x0: Any
    M: Any
    callback: Any
    pc: str | None
    progress: ProgressLike
    check: bool
    show: bool
    limits: dict[str, Any]
    extras: dict[str, Any]

    def solve(self, A: Any) -> tuple[Any, int]:
        """Return x and info."""
        if self.M is not None and self.pc is not None:
            raise InvalidInputError("both M and pc are given: leave one of them out")
        require_one(self.b)
        if not (self.callback is None or callable(self.callback)):
            raise InvalidInputError(f"callback is {self.callback!r}: give a function, or None")
        pc, host = self.pc, self._host_reason(A)
        if not host and self.M is not None:
            A = as_csr(A)
            pc = recognise(self.M, A)
            host = "" if pc else "this M is not Jacobi's and is applied on the host"
        x0 = guess_from_name(self.x0, self.b, self.M) if isinstance(self.x0, str) else self.x0
        if host:
            reject_extras(host, self.progress, self.extras)
            return self._on_host(A, x0, host)
        limits = dict(self.limits)
        if self.method == "minres" and limits["maxiter"] is None:
            A = as_csr(A)
            limits["maxiter"] = 5 * A.given_shape[0]
        options = {**limits, **self.extras, "check": self.check, "method": self.method}
        return device_cg(A, self.b, self.progress, self.show, x0=x0, pc=pc or "jacobi", **options)

    def _host_reason(self, A: Any) -> str:
        reason = host_reason(A, self.M, self.callback)
        if reason and self.method == "minres" and (is_complex(A) or is_complex(self.b)):
            raise UnsupportedError(
                f"{reason}, and SciPy's minres, which it needs, is for real numbers: cpufree.solve "
                "with method='minres' takes complex ones"
            )
        return reason

    def _on_host(self, A: Any, x0: Any, why: str) -> tuple[Any, int]:
        """Run SciPy's own loop until b - A x is within the tolerance, or cannot be brought there.

        SciPy's minres may end by a rule of its own, and loops trust residuals of recurrences.
        """
        if cuda_device(self.b) is not None:
            raise InvalidInputError(
                f"b lies on a GPU, but SciPy's {self.method} would have to solve this on the host: "
                f"{why}"
            )
        tolerances = {n: real(n, self.limits.get(n, 0.0), infinite=True) for n in ("rtol", "atol")}
        most = self.limits["maxiter"]
        A, b, x, M = self._for_host(A, x0)
        most = (
            (5 if self.method == "minres" else 10) * b.size
            if most is None
            else integer("maxiter", most)
        )
        warn(f"SciPy's {self.method}, driven by the host, solves this: {why}", stacklevel=6)
        work, before, done, rtol = workload_of(b, **tolerances), np.inf, 0, tolerances["rtol"]
        while True:
            left = {"maxiter": most - done, "rtol": rtol}
            x, info, steps = self._scipy(A, b, x, M, left, work)
            done += steps
            norm = float(np.linalg.norm(b - A @ x))
            if norm <= work:
                return x, 0
            ended = _reason(norm, before, done >= most, info)
            if ended is not None:
                if ended is not Reason.DIVERGED_ITS:
                    what = f"{ended}, {ended.meaning}; b - A x has norm {norm:.3g}"
                    warn(f"not converged: {what}", stacklevel=6)
                return x, max(1, done)
            before, rtol = norm, _CLOSER * rtol

    def _scipy(
        self, A: Any, b: Any, x: Any, M: Any, left: dict[str, Any], work: float
    ) -> tuple[Any, int, int]:
        """Return x, info and the iterations of SciPy's loop."""
        seen: list[int] = []

        def note(xk: Any) -> None:
            seen.append(1)
            if self.callback is not None:
                self.callback(xk)

        how: dict[str, Any] = {"M": M, "callback": note, "maxiter": left["maxiter"]}
        if self.method == "minres":
            rtol = left["rtol"] if np.isfinite(left["rtol"]) else 1e300
            x, info = scipy_minres(A, b, x, rtol=rtol, show=self.show, **how)
        else:
            x, info = scipy_bicgstab(A, b, x, rtol=0.0, atol=work, **how)
        return np.reshape(x, -1), info, len(seen)

    def _for_host(self, A: Any, x0: Any) -> tuple[Any, Any, Any, Any]:
        """Return A, b, the guess and M as SciPy takes them, checked."""
        M = self.M
        if isinstance(A, LinearOperator):
            check_operator(A, self.pc)
        elif getattr(getattr(A, "dtype", None), "kind", "") != "c":
            matrix = as_csr(A)
            if self.check:
                check_input(matrix, self.method)
            M = jacobi(matrix, self.pc) if M is None else M
            A = matrix.given()
        if M is not None and tuple(M.shape) != tuple(A.shape):
            raise InvalidInputError(f"M has shape {M.shape}, A has {A.shape}: they must be equal")
        if is_complex(A) or is_complex(self.b):
            guess = None if x0 is None else np.reshape(np.asarray(x0), -1)
            return A, np.reshape(np.asarray(self.b), -1), guess, M
        b, guess = host_vectors(A, self.b, x0)
        return A, np.reshape(b, -1), None if guess is None else np.reshape(guess, -1), M


def _reason(norm: float, before: float, at_limit: bool, info: int) -> Reason | None:
    """Return why SciPy's loop is not started again, None where it is."""
    if not np.isfinite(norm):
        return Reason.DIVERGED_NANORINF
    if at_limit:
        return Reason.DIVERGED_ITS
    if info < 0:
        return Reason.DIVERGED_BREAKDOWN
    return Reason.STAGNATED if norm > before / 2 else None
