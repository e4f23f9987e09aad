"""What a solve gives back: the solution, why it ended, how accurate it is, and what it took."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cpufree import summary
from cpufree.dtypes import dtype_name
from cpufree.laps import disjoint
from cpufree.text import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cpufree.trace.records import Trace


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
    UNCONFIRMED = "UNCONFIRMED"
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
    "DIVERGED_DTOL": "the residual grew beyond all bounds, as the preconditioner measures it",
    "DIVERGED_NANORINF": "a NaN or an infinity came up",
    "DIVERGED_INDEFINITE_MAT": "the matrix is not positive definite, p·Ap ≤ 0 for a direction p",
    "DIVERGED_INDEFINITE_PC": "the preconditioner is not positive definite, r·Mr ≤ 0",
    "DIVERGED_BREAKDOWN": "the recurrence cannot go on: a divisor vanished, or a step overflowed",
    "STAGNATED": "rounding errors hold the true residual where it is",
    "UNCONFIRMED": "the check of the answer finds a residual above the tolerance",
    "TIME_LIMIT": "the time limit was reached",
    "INTERRUPTED": "Ctrl-C was pressed, or progress asked to stop",
}


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The outcome of a solve of A x = b.

    `if result:` asks whether it has converged. Of several right-hand sides, `columns` holds a
    Result for each. The attributes then sum up: iterations, counts and seconds are added; reason,
    residuals, bnorm, tolerance and history are those of the worst column, the first one that has
    not converged, or else the one with the largest residual relative to its b.

    Attributes
    ----------
    x : array, shape of b
        The solution, or the last iterate where not converged, in the type of the solve. Where b was
        an array of CuPy or PyTorch on a GPU, x is one on the same GPU.
    converged : bool
        Whether ‖b - A x‖₂ ≤ max(rtol ‖b‖₂, atol), by the true residual; of all columns.
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
    rhs : str
        What b was: type and shape of an array, or the file; of the command line, --rhs.
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
        (from launch to end of the kernels), "per_iteration" (of the kernels), and parts of set-up
        and solve, whose names begin with "setup" or "solve" and an underscore.
    warnings : tuple of str
        What the user should know, in sentences.
    counts : dict
        "reductions", "exchanges" (of halos), "replacements" (of the residual by the true one),
        "handed_over_at" (iteration at which prcg took over from pipecg; -1: it did not),
        "lambda_max" (largest eigenvalue of the Jacobi-scaled matrix as estimated for Chebyshev; 0
        if unused), "dependent" (columns of a block that were found to depend on the others).
    disturbances : int
        On CPU threads: how often another program had taken the core of one, whose work others then
        did.
    tolerance : float
        The residual norm asked for, max(rtol ‖b‖₂, atol).
    weighted_residual : float
        ‖D⁻¹ (b - A x)‖₂ / ‖D⁻¹ b‖₂, D the diagonal of A: each row counts by its own size, so that
        rows of penalties hide nothing. 0 where b is 0.
    outside : float
        With `nullspace`: the norm of the part of b that lies in the null space, over that of b; of
        the worst column. No x gives that part, and residuals are those of the rest.
    levels : tuple of dict
        Of the preconditioner amg: rows, nnz, transfer_nnz (of the prolongator from the next level),
        inverted (solved by a dense inverse) and bytes of each level, the first one that of A.
    columns : tuple of Result
        Of several right-hand sides, one for each, whose x is a view of that column; else empty.
    trace : cpufree.trace.Trace or None
        What the blocks did, where `trace` asked for it; cpufree.trace.save writes it.

    Examples
    --------
    >>> import numpy as np
    >>> A = cpufree.generate.generate("poisson2d", nx=32, ny=32)
    >>> result = cpufree.solve(A, np.eye(1024)[:, :3])
    >>> bool(result), result.x.shape, [column.converged for column in result.columns]
    (True, (1024, 3), [True, True, True])
    >>> result.message
    'converged: all of 3 columns, after ... iterations'
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
    disturbances: int = 0
    gpus: tuple[int, ...] = ()
    device: str = ""
    tolerance: float = 0.0
    weighted_residual: float = 0.0
    outside: float = 0.0
    levels: tuple[dict[str, Any], ...] = ()
    rhs: str = ""
    columns: tuple[Result, ...] = ()
    trace: Trace | None = None

    def __bool__(self) -> bool:
        return self.converged

    @property
    def message(self) -> str:
        """Whether the solve has converged, after how many iterations, and why not; in words."""
        verdict = "converged" if self.converged else "NOT converged"
        after = counted(self.iterations, "iteration")
        if not self.columns:
            why = self.reason.value if self.converged else f"{self.reason}: {self.reason.meaning}"
            return f"{verdict} after {after} ({why})"
        total = counted(len(self.columns), "column")
        failed = [k for k, column in enumerate(self.columns) if not column.converged]
        if not failed:
            return f"{verdict}: all of {total}, after {after}"
        reasons = {str(self.columns[k].reason): self.columns[k].reason.meaning for k in failed}
        why = "; ".join(f"{name}: {meaning}" for name, meaning in reasons.items())
        return f"{verdict}: {listed(failed)} of {total}, after {after} ({why})"

    @property
    def phases(self) -> dict[str, float]:
        """Seconds of set-up and solve in phases that do not overlap, in their order.

        They add up to `timings`' "setup" and "solve". What these take besides their parts is
        "setup_rest" and "solve_rest".
        """
        wholes = ("setup", "solve")
        return disjoint({n: s for n, s in self.timings.items() if n.partition("_")[0] in wholes})

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

    def of_rhs(self, rhs: str) -> Result:
        """Return this result with what b was, in words."""
        columns = (
            replace(column, rhs=f"column {k} of {rhs}") for k, column in enumerate(self.columns)
        )
        return replace(self, rhs=rhs, columns=tuple(columns))

    def to_dict(self) -> dict[str, Any]:
        """Return everything but x as plain Python values, ready for JSON.

        NaN and infinities, which JSON does not have, become None.
        """
        names = (
            "converged reason info iterations residual true_residual relative_residual rhs bnorm "
            "weighted_residual outside "
            "history history_stride method pc why engine pes blocks gpus device timings warnings "
            "counts disturbances levels"
        )
        content = {name: _plain(getattr(self, name)) for name in names.split()}
        if self.columns:
            content["columns"] = [column.to_dict() for column in self.columns]
        return content

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the residual over the iterations, with the tolerance and the true residual.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; default the axes of a new figure of pyplot.

        Returns
        -------
        matplotlib.axes.Axes
            `ax.figure.savefig(path)` saves them.

        Raises
        ------
        UnsupportedError
            Where Matplotlib is not installed.
        """
        from cpufree.solvers.convergence_plot import draw_result, new_axes

        axes = new_axes() if ax is None else ax
        draw_result(axes, self, self.tolerance)
        return axes

    def __repr__(self) -> str:
        return summary.as_text(f"Result: {self.message}", self._rows())

    def _repr_html_(self) -> str:
        return summary.as_html(f"Result: {self.message}", self._rows(), self.converged)

    def _rows(self) -> list[tuple[str, str]]:
        """Return names and values of a report."""
        layout = f"{counted(self.pes, 'PE')} × {counted(self.blocks, 'block')}"
        layout += f", {self.device}" if self.device else ""
        relative = f"{self.relative_residual:.3e}"
        rows = [
            ("true residual", f"{self.true_residual:.3e}   relative to b: {relative}"),
            ("recursive residual", f"{self.residual:.3e}"),
            ("right-hand side", self.described_rhs()),
            ("x", f"{dtype_name(self.x)} {tuple(self.x.shape)}"),
            ("method", f"{self.method}, preconditioner {self.pc}"),
            ("engine", f"{self.engine}, {layout}"),
            ("seconds", self._times()),
            ("disturbed", self.disturbed()),
        ]
        rows = [(name, value) for name, value in rows if value]
        rows += [("why", summary.one_a_line(self.why))] if self.why else []
        return rows + [("warning", warning) for warning in self.warnings]

    def described_rhs(self) -> str:
        """Return what b was, with its norm; "" where that is not known."""
        return f"{self.rhs}, ‖b‖ {self.bnorm:.3e}" if self.rhs else ""

    def disturbed(self) -> str:
        """Return a sentence on `disturbances`; "" where there were none."""
        if not self.disturbances:
            return ""
        times = counted(self.disturbances, "time")
        return f"other programs took the core of a thread {times}; the other threads did its work"

    def _times(self) -> str:
        parts = ("setup_", "solve_")
        whole = {k: s for k, s in self.timings.items() if not k.startswith(parts)}
        return ", ".join(f"{name} {seconds:.3g}" for name, seconds in whole.items())


def listed(numbers: list[int], what: str = "column", most: int = 8) -> str:
    """Return numbers of columns, or `what`, in words: "columns 1, 3 and 5"."""
    if len(numbers) == 1:
        return f"{what} {numbers[0]}"
    if len(numbers) > most:
        shown = ", ".join(map(str, numbers[:most]))
        return f"{what}s {shown} and {len(numbers) - most} more"
    return f"{what}s {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


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
