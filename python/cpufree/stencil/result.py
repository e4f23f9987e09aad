"""What a run on a grid gives back: the values, why it ended, and what it took."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from cpufree import summary
from cpufree.dtypes import dtype_name
from cpufree.stencil.grid_input import Box
from cpufree.text import counted
from cpufree.trace.records import Trace


class StencilReason(str, Enum):
    """Why a run ended. Names after PETSc. A member is its name."""

    CONVERGED_ITS = "CONVERGED_ITS"
    CONVERGED_ATOL = "CONVERGED_ATOL"
    DIVERGED_ITS = "DIVERGED_ITS"
    DIVERGED_NANORINF = "DIVERGED_NANORINF"
    TIME_LIMIT = "TIME_LIMIT"
    INTERRUPTED = "INTERRUPTED"

    @property
    def meaning(self) -> str:
        """The reason in words."""
        return _MEANINGS[self.value]

    @property
    def converged(self) -> bool:
        """Whether what was asked for was done: all iterations, or those until tol was met."""
        return self in (StencilReason.CONVERGED_ITS, StencilReason.CONVERGED_ATOL)

    def __str__(self) -> str:
        return self.value


_MEANINGS = {
    "CONVERGED_ITS": "all iterations asked for were done",
    "CONVERGED_ATOL": "no point changed by more than tol",
    "DIVERGED_ITS": "the iterations asked for were not enough to meet tol",
    "DIVERGED_NANORINF": "values became too large for their type: infinities or NaN came up",
    "TIME_LIMIT": "the time limit was reached",
    "INTERRUPTED": "Ctrl-C was pressed, or progress asked to stop",
}


@dataclass(frozen=True, eq=False, repr=False)
class StencilResult:
    """The outcome of a run of Jacobi iterations.

    `if result:` asks whether it has converged: whether what was asked for was done.

    Attributes
    ----------
    u : array
        The values after `iterations` iterations, of the points `box`; float32 or float64; an array
        of CuPy or PyTorch on the GPU of u0 where u0 is one.
    box : tuple of slice
        The points of the grid that u has: all of them, except in several processes, where rank 0
        has all and each other one its own part (with gather=False: rank 0 as well).
    shape : tuple of int
        Points of the grid along each axis.
    iterations : int
        Iterations done.
    reason : StencilReason
        Why the run ended.
    residual : float
        Largest change of a point in the last iteration; NaN where a point has become NaN, and where
        a run without tol was stopped early, which measures nothing.
    seconds : float
        From the launch of the kernels to the end of the last one.
    updates : int
        Points that an iteration updates: all but those that a Dirichlet boundary keeps.
    engine : str
        Where it ran.
    pes, blocks : int
        Number of PEs, and blocks in each; on the CPU engine a block is a thread, on GPUs a PE is a
        GPU.
    halo_steps : int
        Iterations from one exchange of halos to the next.
    plan : dict
        How the grid was divided: "pe_grid" and "block_grid" (parts along each axis), "tile_points"
        (of the largest tile), "halo" ("packets", "values", or "none"), "halo_points" (that all
        tiles receive in an exchange), "pe_halo_points" (those from other PEs), "check_every",
        "thickness" (planes between two barriers of a block), "sweep" (how blocks hold their tiles),
        "exchanges" and "checks" that took place, "gpus" (their numbers).
    warnings : tuple of str
        What the user should know, in sentences.
    trace : cpufree.trace.Trace or None
        What the blocks did, where `trace` asked for it; cpufree.trace.save writes it.
    """

    u: Any
    box: Box
    shape: tuple[int, ...]
    iterations: int
    reason: StencilReason
    residual: float
    seconds: float
    updates: int
    engine: str
    pes: int
    blocks: int
    halo_steps: int
    plan: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    trace: Trace | None = None

    def __bool__(self) -> bool:
        return self.converged

    @property
    def converged(self) -> bool:
        """Whether all iterations were done, or with tol, whether it was met."""
        return self.reason.converged

    @property
    def message(self) -> str:
        """How many iterations were done, and why no more; in words."""
        return f"{counted(self.iterations, 'iteration')} ({self.reason}: {self.reason.meaning})"

    @property
    def per_iteration(self) -> float:
        """Seconds for each iteration."""
        return self.seconds / max(1, self.iterations)

    @property
    def glups(self) -> float:
        """10⁹ points updated per second (GLUP/s); NaN where there was nothing to do."""
        work = 1e-9 * self.updates * self.iterations
        return work / self.seconds if work and self.seconds > 0 else math.nan

    @property
    def moved_bytes(self) -> int:
        """Bytes of an iteration that reads and writes every updated point once."""
        return 2 * self.updates * np.dtype(dtype_name(self.u)).itemsize

    def to_dict(self) -> dict[str, Any]:
        """Return everything but u as plain Python values, ready for JSON; NaN becomes None."""
        names = "iterations reason residual seconds per_iteration glups updates moved_bytes engine "
        names += "pes blocks halo_steps plan warnings"
        content = {name: getattr(self, name) for name in names.split()}
        content |= {"reason": self.reason.value, "warnings": list(self.warnings)}
        content |= {"shape": list(self.shape), "dtype": dtype_name(self.u)}
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in content.items()
        }

    def __repr__(self) -> str:
        return summary.as_text(f"StencilResult: {self.message}", self._rows(), width=11)

    def _repr_html_(self) -> str:
        return summary.as_html(f"StencilResult: {self.message}", self._rows(), self.converged)

    def _rows(self) -> list[tuple[str, str]]:
        """Return names and values of a report."""
        where = f"{self.engine}, {counted(self.pes, 'PE')} × {counted(self.blocks, 'block')}"
        times = f"{self.seconds:.3g}, per iteration {self.per_iteration:.3g}"
        return [
            ("u", f"{dtype_name(self.u)} {tuple(self.u.shape)}"),
            ("residual", f"{self.residual:.3e}"),
            ("seconds", f"{times}, {self.glups:.3g} GLUP/s"),
            ("engine", f"{where}, halos every {counted(self.halo_steps, 'iteration')}"),
            *(("warning", warning) for warning in self.warnings),
        ]
