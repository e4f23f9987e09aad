"""What comes of many systems that are solved at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.errors import CpufreeError
from cpufree.solvers.result import Reason, listed
from cpufree.text import counted


@dataclass(frozen=True, eq=False, repr=False)
class ManyResult:
    """The outcome of `solve_many`, by the number of each system, from 0.

    `if result:` asks whether all have converged.

    Attributes
    ----------
    x : array (k, n), or list of k arrays where systems differ in size
        The solutions, or the last iterates where not converged; NaN of a system that was refused.
        Beside b, where that lies on a GPU.
    converged : array of bool (k,)
        Whether ‖b - A x‖₂ ≤ max(rtol ‖b‖₂, atol), by the true residual.
    reasons : tuple of Reason or None (k)
        Why each solve ended; None for a system that was refused.
    errors : dict of int to CpufreeError
        What is wrong with the systems that were refused, by their numbers.
    iterations : array of int (k,)
        Of each system.
    residual, true_residual, bnorm : array of float64 (k,)
        ‖r‖₂ of the recurrence, ‖b - A x‖₂ and ‖b‖₂; NaN of a system that was refused.
    method, pc, engine : str
        What all were solved by, and where.
    seconds : float
        Of the whole call.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> A = sp.diags_array([[-1.0] * 9, [2.0] * 10, [-1.0] * 9], offsets=[-1, 0, 1]).tocsr()
    >>> result = cpufree.solve_many([(A, np.ones(10)), (-A, np.ones(10))])
    >>> result.message, result.converged.tolist()
    ('NOT converged: system 1 of 2 (DiagonalError)', [True, False])
    """

    x: Any
    converged: npt.NDArray[np.bool_]
    reasons: tuple[Reason | None, ...]
    iterations: npt.NDArray[np.int64]
    residual: npt.NDArray[np.float64]
    true_residual: npt.NDArray[np.float64]
    bnorm: npt.NDArray[np.float64]
    method: str
    pc: str
    engine: str
    seconds: float
    errors: dict[int, CpufreeError] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.converged.all())

    def __len__(self) -> int:
        return len(self.reasons)

    @property
    def failed(self) -> list[int]:
        """Numbers of the systems that have not converged, those that were refused among them."""
        return [int(k) for k in np.flatnonzero(~self.converged)]

    @property
    def message(self) -> str:
        """How many have converged, which ones have not, and why; in words."""
        failed = self.failed
        if not failed:
            total, after = counted(len(self), "system"), int(self.iterations.sum())
            return f"converged: all of {total}, after {counted(after, 'iteration')}"
        whys = dict.fromkeys(self._why(k) for k in failed)
        return f"NOT converged: {listed(failed, 'system')} of {len(self)} ({'; '.join(whys)})"

    def _why(self, k: int) -> str:
        if k in self.errors:
            return type(self.errors[k]).__name__
        reason = self.reasons[k]
        return "" if reason is None else f"{reason}: {reason.meaning}"

    def __repr__(self) -> str:
        return f"<ManyResult {self.message}>"
