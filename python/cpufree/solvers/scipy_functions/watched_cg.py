"""SciPy's `cg` with an ending that is verified and has a name.

Its loop believes the residual of its recurrence, which may be smaller than b - A x by orders of
magnitude, and divides by whatever products of vectors it gets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from scipy.sparse.linalg import cg as scipy_cg

from cpufree.solvers.result import Reason

# Of the tolerance, once b - A x was found above it: its norm and that of the loop differ a little.
_CLOSER = 0.9


class _Ended(Exception):
    """The loop cannot go on."""

    def __init__(self, reason: Reason | None) -> None:
        super().__init__(reason)
        self.reason = reason


class _Operators:
    """A and M as the loop applies them, and the iterates that it tells of.

    `apply_m` comes before each product of A with a direction.
    """

    def __init__(self, A: Any, M: Any, callback: Callable[[Any], object] | None) -> None:
        self._A = aslinearoperator(A)
        self._M = None if M is None else aslinearoperator(M)
        self._callback = callback
        self._has_direction = False
        self.iterations = 0
        self.x: Any = None
        shape, dtype = self._A.shape, self._A.dtype
        self.A = LinearOperator(shape, matvec=self._apply_a, dtype=dtype)
        self.M = LinearOperator(shape, matvec=self._apply_m, dtype=self._dtype_of_m(dtype))

    def loop(
        self, b: Any, guess: Any, maxiter: int, tolerances: Mapping[str, float]
    ) -> tuple[Any, Reason | None]:
        """Return x when SciPy's loop ends, and why it could not go on, if so."""
        how = {"M": self.M, "maxiter": maxiter, "callback": self._note, **tolerances}
        try:
            x, _ = scipy_cg(self.A, b, guess, **how)
            return np.reshape(x, -1), None
        except _Ended as end:
            x = guess if self.x is None else self.x
            return np.reshape(np.zeros_like(b) if x is None else x, -1), end.reason

    def _note(self, x: Any) -> None:
        """Count an iteration."""
        self.x = x
        self.iterations += 1
        if self._callback is not None:
            self._callback(x)

    def _dtype_of_m(self, dtype: Any) -> Any:
        return dtype if self._M is None else self._M.dtype

    def _apply_m(self, r: Any) -> Any:
        z = r if self._M is None else self._M.matvec(r)
        self._has_direction = True
        if not r.any():
            raise _Ended(None)  # x is exact
        if not np.isfinite(z).all():
            raise _Ended(Reason.DIVERGED_NANORINF)
        if _is_zero(r, z):
            raise _Ended(Reason.DIVERGED_INDEFINITE_PC)
        return z

    def _apply_a(self, p: Any) -> Any:
        q = self._A.matvec(p)
        if not np.isfinite(q).all():
            raise _Ended(Reason.DIVERGED_NANORINF)
        if self._has_direction and _is_zero(p, q):
            raise _Ended(Reason.DIVERGED_INDEFINITE_MAT)
        self._has_direction = False
        return q


def _is_zero(u: Any, v: Any) -> bool:
    """Whether a product of two vectors is 0, and not for small numbers alone."""
    most = np.abs(u).max(), np.abs(v).max()
    return bool(most[1] == 0.0 or np.vdot(u / most[0], v / most[1]) == 0.0)


def workload_of(b: Any, rtol: float, atol: float) -> float:
    """Return the norm of b - A x asked for; rtol may be infinite."""
    norm = float(np.linalg.norm(b))
    return max(rtol * norm, atol) if norm > 0.0 else atol


def watched_cg(
    A: Any,
    b: Any,
    guess: Any,
    M: Any,
    callback: Callable[[Any], object] | None,
    *,
    rtol: float,
    atol: float,
    maxiter: int | None,
    norm_of_residual: Callable[[Any], float],
) -> tuple[Any, int, Reason, float]:
    """Run SciPy's cg until b - A x is within the tolerance, or cannot be brought there.

    Parameters
    ----------
    A, M : matrix or LinearOperator, shape (n, n)
        M may be None.
    b, guess : array, shape (n,) or (n, 1)
        The first guess may be None.
    callback : callable or None
        Called with x after each iteration.
    rtol, atol, maxiter
        As SciPy's.
    norm_of_residual : callable
        Returns ‖b - A x‖₂ for an x of shape (n,).

    Returns
    -------
    x : array, shape (n,)
    iterations : int
    reason : Reason
        STAGNATED: b - A x does not halve from one end of the loop to the next.
    norm : float
        ‖b - A x‖₂.
    """
    workload = workload_of(b, rtol, atol)
    most = 10 * b.shape[0] if maxiter is None else maxiter
    operators = _Operators(A, M, callback)
    tolerances = {"rtol": rtol, "atol": atol}
    before = np.inf
    while True:
        x, reason = operators.loop(b, guess, most - operators.iterations, tolerances)
        norm = float(norm_of_residual(x))
        if norm <= workload:
            reason = Reason.CONVERGED_RTOL if workload > atol else Reason.CONVERGED_ATOL
        elif not np.isfinite(norm):
            reason = Reason.DIVERGED_NANORINF
        elif reason is None and operators.iterations >= most:
            reason = Reason.DIVERGED_ITS
        elif reason is None and norm > before / 2:
            reason = Reason.STAGNATED
        if reason is not None:
            return x, operators.iterations, reason, norm
        before, guess = norm, x
        tolerances = {"rtol": 0.0, "atol": _CLOSER * workload}
