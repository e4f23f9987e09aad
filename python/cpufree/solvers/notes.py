"""What a user should be warned of, in sentences that go into Result.warnings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.dtypes import dtype_name, parts_type
from cpufree.solvers.result import Reason, Result

# The recursive residual may understate the true one by this factor before the user is warned.
GAP = 10.0
# A weighted residual above this part of b, and this many times the plain one, is reported. Of
# systems without penalties it is up to 5 times the plain one; of one with 0.035, x was off by 10 %.
HIDDEN, HIDDEN_TIMES = 0.01, 10.0

_INDEFINITE = (
    "conjugate gradients need a positive definite A: method 'minres' takes one that is symmetric "
    "and indefinite, 'bicgstab' one that is not symmetric"
)
_ADVICE = {
    **{(Reason.DIVERGED_INDEFINITE_MAT, name): _INDEFINITE for name in ("cg", "prcg", "pipecg")},
    (Reason.DIVERGED_BREAKDOWN, "minres"): (
        "A maps b - A x to 0, as far as rounding errors show it: A is singular and b out of its "
        "range, and no x makes ‖b - A x‖, as the preconditioner measures it, smaller"
    ),
    (Reason.DIVERGED_BREAKDOWN, "bicgstab"): (
        "the shadow residual has become orthogonal to what it is multiplied with, or r to A M r, "
        "and a start from b - A x did not help: another x0 may, and for a symmetric A method "
        "'minres' does not break down so"
    ),
}
"""What a reason means of a method."""


def numerical_notes(result: Result, options: Mapping[str, Any]) -> list[str]:
    """Return what the residuals of a solve tell, beyond its reason."""
    notes = []
    tolerance = max(options["rtol"] * result.bnorm, options["atol"])
    single = dtype_name(result.x) in ("float32", "complex64")
    if result.converged and result.true_residual > tolerance:
        notes.append(
            f"the true residual {result.true_residual:.3e} is above the tolerance {tolerance:.3e}"
        )
    relative = result.true_residual / result.bnorm if result.bnorm > 0 else 0.0
    if result.converged and result.weighted_residual > max(HIDDEN, HIDDEN_TIMES * relative):
        notes.append(
            f"the residual is {relative:.1e} of b, but {result.weighted_residual:.1e} where each "
            "row is divided by its entry of the diagonal: rows that outweigh the others hide them, "
            "as penalties for boundary values do, and x may be wrong there; eliminate such rows, "
            "make the penalty smaller, or take a smaller rtol"
        )
    if result.reason is Reason.STAGNATED:
        advice = "; float32 carries 7 digits, give A as float64 for more" if single else ""
        notes.append(
            f"rounding errors hold the true residual at {result.true_residual:.3e}: restarts from "
            f"it did not halve it; the tolerance is {tolerance:.3e}{advice}"
        )
    elif result.true_residual > GAP * result.residual and not result.converged:
        notes.append(
            f"the recursive residual {result.residual:.3e} understates the true one, "
            f"{result.true_residual:.3e}"
        )
    if (result.reason, result.method) in _ADVICE:
        notes.append(_ADVICE[result.reason, result.method])
    handed_over_at = result.counts.get("handed_over_at", -1)
    if handed_over_at >= 0:
        notes.append(
            "the recurrences of pipecg lost touch with b - A x, fell behind, or got no further, by "
            f"iteration {handed_over_at}, where prcg took over; method 'prcg' from the start may "
            "be faster"
        )
    if result.reason is Reason.INTERRUPTED:
        notes.append(
            f"stopped on request after {result.iterations} iterations; x is the last iterate"
        )
    return notes


def rounding_note(b: Any, dtype: npt.DTypeLike) -> list[str]:
    """Return a note if b holds more digits than the solve's float32."""
    kind = np.dtype(dtype)
    if parts_type(kind) != np.float32 or dtype_name(b) not in ("float64", "complex128"):
        return []
    return [f"b was rounded from {dtype_name(b)} to {kind}, the type of the matrix"]
