"""What is known of a system before it is solved: by its solves until now, or by parts of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cpufree import options
from cpufree.engines import choices
from cpufree.engines.expected import Workload, by_parts, by_past
from cpufree.engines.method_choice import Solve, choose_method
from cpufree.engines.partition_gain import gain_on
from cpufree.engines.placement import Placement
from cpufree.engines.system_rule import Forecast
from cpufree.matrix.problem import CsrMatrix
from cpufree.partition.cost import Spread
from cpufree.solvers.columns import shape_of


@dataclass(frozen=True)
class ExpectedCall:
    """What a caller knows who makes a Solver for one call."""

    workload: Workload = field(default_factory=Workload)
    right: Any = None
    """The right-hand side, for the type of the solve and the GPU; None: not known."""
    method: str = "auto"


def workload_of(b: Any, rtol: Any, maxiter: Any) -> Workload:
    """Return the workload of a set-up for one call; InvalidInputError for options out of range.

    Each column of b is a solve. A b that is no array of columns is refused later.
    """
    shape = shape_of(b)
    columns = shape[1] if len(shape) == 2 and shape[0] > 1 else 1
    limits = (choices.valid(options.RTOL, rtol), choices.valid(options.MAXITER, maxiter))
    return Workload(max(1, columns), *limits)


def with_first_solve(where: Placement, pc: str, call: ExpectedCall) -> Placement:
    """Return where a system goes, GPUs told of the solve that comes first: its kernels compile.

    Args:
        where: without that. pc: the preconditioner of the Solver. call: what is known of the solve.
    """
    if not where.gpus:
        return where
    if pc == "auto":
        pc = "jacobi"  # which is tried first
    method, _ = choose_method(call.method, Solve(where.engine, pc))
    return replace(where, tuning={**where.tuning, "first_method": method, "first_pc": pc})


def forecast(A: CsrMatrix, workload: Workload, past: Sequence[int]) -> Forecast:
    """Return what is known of a system.

    Args:
        A: the matrix. workload: what it is set up for.
        past: iterations of the solves until now; without any, those on parts of A tell.
    """
    if past:
        expected = by_past(past, workload.solves)
    else:
        expected = by_parts(A, workload.rtol, workload.maxiter, workload.solves)
    gain = gain_on("cuda_p2p", expected.solves, expected.iterations)
    return Forecast(expected, Spread.of(A), gain)
