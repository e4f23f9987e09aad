"""What a solve gives back: the solution, why it ended, how accurate it is, and what it took."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.dtypes import dtype_name
from cpufree.text import counted


class Reason(str, Enum):
    """Why a solve ended. Names after PETSc's KSPConvergedReason where it has one.

    A member is its name: Reason.STAGNATED == "STAGNATED".
    """

    CONVERGED_RTOL = "CONVERGED_RTOL"
    CONVERGED_ATOL = "CONVERGED_ATOL"
    DIVERGED_ITS = "DIVERGED_ITS"
    DIVERGED_DTOL = "DIVERGED_DTOL"
    DIVERGED_NANORINF = "DIVERGED_NANORINF"
    DIVERGED_INDEFINITE_MAT = "DIVERGED_INDEFINITE_MAT"
    DIVERGED_INDEFINITE_PC = "DIVERGED_INDEFINITE_PC"
    DIVERGED_BREAKDOWN = "DIVERGED_BREAKDOWN"
    STAGNATED = "STAGNATED"
    TIME_LIMIT = "TIME_LIMIT"
    INTERRUPTED = "INTERRUPTED"

    @property
    def meaning(self) -> str:
        """The reason in words."""
        return _MEANINGS[self.value]

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met."""
        return self in (Reason.CONVERGED_RTOL, Reason.CONVERGED_ATOL)

    def __str__(self) -> str:
        return self.value


_MEANINGS = {
    "CONVERGED_RTOL": "the residual fell below rtol ‖b‖",
    "CONVERGED_ATOL": "the residual fell below atol, or b is 0",
    "DIVERGED_ITS": "maxiter iterations were not enough",
    "DIVERGED_DTOL": "the residual grew beyond all bounds",
    "DIVERGED_NANORINF": "a NaN or an infinity came up",
    "DIVERGED_INDEFINITE_MAT": "the matrix is not positive definite, p·Ap ≤ 0 for a direction p",
    "DIVERGED_INDEFINITE_PC": "the preconditioner is not positive definite, r·Mr ≤ 0",
    "DIVERGED_BREAKDOWN": "a step length overflowed: the entries of A lie at an end of their range",
    "STAGNATED": "rounding errors admit no smaller residual",
    "TIME_LIMIT": "the time limit was reached",
    "INTERRUPTED": "Ctrl-C was pressed, or progress asked to stop",
}


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The outcome of a solve of A x = b.

    Attributes
    ----------
    x : array, shape of b
        The solution, or the last iterate where not converged, in the type of the solve. Where b was
        an array of CuPy or PyTorch on a GPU, x is one on the same GPU.
    converged : bool
        Whether ‖b - A x‖₂ ≤ max(rtol ‖b‖₂, atol), by the true residual.
    reason : Reason
        Why the solve ended.
    iterations : int
        Number of iterations; each has one product with A (Chebyshev: more).
    residual : float
        ‖r‖₂ of the residual that the recurrence carries.
    true_residual : float
        ‖b - A x‖₂, computed at the end.
    bnorm : float
        ‖b‖₂.
    history : array of float64
        ‖r‖₂ at iterations 0, history_stride, 2 history_stride, ...
    history_stride : int
        Iterations between entries of history; above 1 only in very long solves.
    method, pc : str
        Method and preconditioner that were used.
    why : str
        Why this method, engine, number of PEs and order.
    engine : str
        Where it ran.
    pes, blocks : int
        Number of PEs, and blocks in each; on the CPU engine a block is a thread.
    gpus : tuple of int
        Numbers of the GPUs, one for each PE; empty on the CPU.
    device : str
        What they are, such as "4 × NVIDIA H200".
    timings : dict
        Seconds: "setup" (checks, partition, layout), "solve" (all of the solve call), "kernel"
        (from launch to end of the kernels), "per_iteration" (of the kernels), and parts of the
        set-up, whose names begin with "setup" and an underscore.
    warnings : tuple of str
        What the user should know, in sentences.
    counts : dict
        "reductions", "exchanges" (of halos), "replacements" (of the residual by the true one),
        "handed_over_at" (iteration at which prcg took over from pipecg; -1: it did not),
        "lambda_max" (largest eigenvalue of the Jacobi-scaled matrix as estimated for Chebyshev; 0
        if unused).
    """

    x: Any
    converged: bool
    reason: Reason
    iterations: int
    residual: float
    true_residual: float
    bnorm: float
    history: npt.NDArray[np.float64]
    history_stride: int
    method: str
    pc: str
    why: str
    engine: str
    pes: int
    blocks: int
    timings: dict[str, float]
    warnings: tuple[str, ...] = ()
    counts: dict[str, float] = field(default_factory=dict)
    gpus: tuple[int, ...] = ()
    device: str = ""

    @property
    def relative_residual(self) -> float:
        """The true residual relative to b, ‖b - A x‖₂ / ‖b‖₂; 0 / 0 counts as 0."""
        if self.bnorm == 0.0:
            return 0.0 if self.true_residual == 0.0 else math.inf
        return self.true_residual / self.bnorm

    @property
    def info(self) -> int:
        """SciPy's info code, 0 if converged, else the number of iterations (at least 1)."""
        return 0 if self.converged else max(1, self.iterations)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but x as plain Python values, ready for JSON.

        NaN and infinities, which JSON does not have, become None.
        """
        names = (
            "converged reason info iterations residual true_residual relative_residual bnorm "
            "history history_stride method pc why engine pes blocks gpus device timings warnings "
            "counts"
        )
        return {name: _plain(getattr(self, name)) for name in names.split()}

    def __repr__(self) -> str:
        verdict = "converged" if self.converged else "NOT converged"
        reason = self.reason.value if self.converged else f"{self.reason}: {self.reason.meaning}"
        layout = f"{counted(self.pes, 'PE')} × {counted(self.blocks, 'block')}"
        layout += f", {self.device}" if self.device else ""
        relative = f"{self.relative_residual:.3e}"
        lines = [
            f"Result: {verdict} after {counted(self.iterations, 'iteration')} ({reason})",
            f"  true residual       {self.true_residual:.3e}   relative to b: {relative}",
            f"  recursive residual  {self.residual:.3e}",
            f"  x                   {dtype_name(self.x)} {tuple(self.x.shape)}",
            f"  method              {self.method}, preconditioner {self.pc}",
            f"  engine              {self.engine}, {layout}",
            f"  seconds             {self._times()}",
        ]
        lines += [f"  why                 {self.why}"] if self.why else []
        lines += [f"  warning             {warning}" for warning in self.warnings]
        return "\n".join(lines)

    def _times(self) -> str:
        whole = {k: s for k, s in self.timings.items() if not k.startswith("setup_")}
        return ", ".join(f"{name} {seconds:.3g}" for name, seconds in whole.items())


def _plain(value: Any) -> Any:
    """Return value made of plain Python types, None in the place of NaN and infinities."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
