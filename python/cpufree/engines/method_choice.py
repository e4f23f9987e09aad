"""Which variant of conjugate gradients is fastest, by what has been measured.

The numbers are in `cpufree.machine`; docs/methods.md has the evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cpufree import machine, options
from cpufree.engines.choices import one_of
from cpufree.engines.method_bytes import extra_bytes
from cpufree.text import number

GPU_ENGINES = ("cuda_p2p", "nvshmem")
DEFAULT = "prcg"
_WHY_DEFAULT = "one reduction per iteration with the accuracy of classic CG"
WIDE = 1e6
"""Spread of the diagonal from which on cg needs noticeably fewer iterations than prcg, unscaled."""


@dataclass(frozen=True)
class Solve:
    """What the choice rests on."""

    engine: str
    pes: int
    rows: int
    """Of the whole matrix, as the nonzeros."""
    nnz: int
    double: bool
    """Whether values are float64."""
    pc: str
    rtol: float
    spread: float = 1.0
    """Of the diagonal: its largest entry over its smallest, 1 where it is not known."""
    gpu: str = ""
    """Name of the GPUs."""


def choose_method(asked: str, solve: Solve) -> tuple[str, str]:
    """Return the method and why; InvalidInputError for a method that is not known."""
    one_of("method", asked, options.METHOD.choices)
    return (asked, "asked for") if asked != "auto" else fastest(solve)


def fastest(solve: Solve) -> tuple[str, str]:
    """Return the method that takes the least time by what has been measured, and why."""
    if solve.pc == "amg":
        return "cg", "with amg the recurrences of the others are too inaccurate"
    if solve.engine not in GPU_ENGINES and solve.pc == "none" and solve.spread >= WIDE:
        wide = f"the diagonal spreads over {math.log10(solve.spread):.0f} decades"
        return "cg", f"{wide}, which costs prcg iterations; pc 'jacobi' may need far fewer"
    # With a preconditioner, in float32 and on the CPU no other method was reliably faster.
    if solve.engine not in GPU_ENGINES or solve.pc != "none" or not solve.double:
        return DEFAULT, _WHY_DEFAULT
    known = machine.of_gpu(solve.gpu)
    large = known.number("method.cg_nonzeros", "1")
    if solve.pes == 1 and solve.nnz >= large:
        many = f"{number(solve.nnz)} nonzeros on one GPU without preconditioner"
        return "cg", f"{many}: memory bounds an iteration, and prcg's saved reduction is no gain"
    rows_each = solve.rows / solve.pes
    if pipecg_moves(solve) > pipecg_hides(solve):
        return DEFAULT, _WHY_DEFAULT
    if (
        solve.pes >= known.number("method.pipecg_pes", "1")
        and rows_each <= solve.pes * known.number("method.pipecg_rows", "1")
        and solve.nnz <= solve.rows * known.number("method.pipecg_row_length", "1")
        and solve.rtol >= known.number("method.pipecg_rtol", "1")
    ):
        few = f"{number(round(rows_each))} short rows for each of {solve.pes} GPUs"
        return "pipecg", f"{few} without preconditioner: reductions bound an iteration"
    return DEFAULT, _WHY_DEFAULT


def pipecg_moves(solve: Solve) -> float:
    """Return the seconds that pipecg's further passes over vectors take at the least.

    At the rate of on-chip memory: from a GPU's memory they take longer.
    """
    known = machine.of_gpu(solve.gpu)
    more = extra_bytes(solve.rows / solve.pes, solve.pc)
    return more / known.number("solver.chip_bandwidth", "B/s")


def pipecg_hides(solve: Solve) -> float:
    """Return the seconds of an all-reduce of prcg, of which pipecg can hide no more than all."""
    known = machine.of_gpu(solve.gpu)
    if solve.pes == 1:
        return known.table("sum.one_gpu", "s")[4]
    more = known.table("sum.more_gpus", "s")
    nearest = max(pes for pes in more if pes <= solve.pes)
    return known.table("sum.two_gpus", "s")[4] + more[nearest]
