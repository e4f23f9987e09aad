"""Whether multigrid is sooner at the answer than Jacobi's preconditioner, by counts alone.

Costs are in iterations with Jacobi, from the machine's numbers (`amg.`). What multigrid needs
depends on the kind of system, which the signs of the entries and the nodes tell. What Jacobi needs
is asked in two steps: on CPUs parts of the matrix let expect it (engines/expected.py), and where
that leaves multigrid possible, some iterations on the whole system do, as they do on GPUs, where
they take less than parts do on the host. No clock is read: the same input has the same answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.engines.expected import Expected, Workload, by_parts
from cpufree.engines.placement import Placement
from cpufree.machine import Machine, of_gpu
from cpufree.matrix.gpu_csr import GpuCsr
from cpufree.matrix.problem import CsrMatrix
from cpufree.matrix.samples import RowSample, sample
from cpufree.text import counted, number

Doubles = npt.NDArray[np.float64]
ENGINES = ("cpu_threads", "cpu_processes", "cuda_p2p")
"""Those whose costs are known."""
LEAST_ROWS = 2000
"""Below, solves take less time than questions."""
TRIAL = 50
"""Iterations on the whole system that tell how many it needs: 0.4 to 1.6 times as many as it took,
of 13 of the 14 systems of the suites amg12-small and paper18-small on which multigrid was possible
(of the last one, which multigrid solves sooner, 7 times)."""
MOST_POSITIVE = 0.05
"""Of the sum of the sizes of entries beside the diagonal: with more, and without nodes, multigrid
took 40 to 615 iterations on eight systems, with less, 5 to 32 on 15."""
CERTAIN = 3.5
"""Parts of A that predict Jacobi to take this many times as long as multigrid leave no doubt: on 22
systems of amg12-small and paper18-small they predicted up to 3.4 times the iterations taken."""
SMALLEST = 1e-16
"""Tolerance that is expected to be reached at most."""
USUAL_DIGITS = 8
"""Of the residual, for which iterations are known."""


@dataclass(frozen=True)
class Cost:
    """Of multigrid for a kind of system, in iterations with Jacobi."""

    setup: float
    """Of a large system."""
    cycle: float
    """Of an iteration."""
    iterations: float
    """To a residual of 1e-8."""

    @classmethod
    def on(cls, where: Placement, nonzeros: int, unknowns: int) -> Cost:
        """Return the cost of a system on its PEs."""
        known = of_gpu(where.gpu_name)
        iterations = known.at("amg.iterations", "1", unknowns)
        if where.engine == "cuda_p2p":
            one = _seconds(known, "iteration", nonzeros / where.pes)
            setup = _seconds(known, "setup" if where.pes == 1 else "several_setup", nonzeros)
            cycle = cycle_seconds(known, nonzeros, where.pes)
            return cls(setup / one, cycle / one, iterations)
        small = 1.0 + known.number("amg.cpu_small", "1") / max(1, nonzeros)
        setup = known.at("amg.cpu_setup", "1", unknowns) * small
        return cls(setup, known.at("amg.cpu_cycle", "1", unknowns), iterations)

    def of(self, workload: Workload) -> float:
        """Return that of the set-up and all solves."""
        digits = max(1.0, -math.log10(min(max(workload.rtol, SMALLEST), 1.0)))
        cycles = self.iterations * digits / USUAL_DIGITS * workload.solves
        return self.setup + self.cycle * cycles


def cycle_seconds(known: Machine, nonzeros: int, pes: int) -> float:
    """Return the predicted seconds of an iteration with multigrid on GPUs."""
    more = known.number("amg.gpu_several_cycle", "s") if pes > 1 else 0.0
    return _seconds(known, "cycle", nonzeros / pes) + more


def _seconds(known: Machine, what: str, nonzeros: float) -> float:
    """Return seconds on a GPU, of which each nonzero takes some."""
    each = known.number(f"amg.gpu_{what}_nonzero", "s")
    return known.number(f"amg.gpu_{what}", "s") + each * nonzeros


@dataclass(frozen=True)
class MultigridGain:
    """What multigrid takes for all solves of a system, and what Jacobi is expected to take."""

    cost: float = math.inf
    """In iterations with Jacobi."""
    expected: float = 0.0
    """Iterations with Jacobi, by parts of the matrix."""
    workload: Workload = field(default_factory=Workload)
    why: str = ""
    worth_looking_for_nodes: bool = False
    """Whether multigrid could be sooner if nodes had several unknowns."""
    by: Expected | None = None
    """What parts of A have told then."""

    @classmethod
    def of(
        cls,
        A: CsrMatrix | GpuCsr,
        workload: Workload,
        where: Placement,
        unknowns: int = 1,
        expected: Expected | None = None,
    ) -> MultigridGain:
        """Return what is known before the first iteration.

        `unknowns`: of a node, as far as it is known. `expected`: by parts, where it is known.
        """
        if where.engine not in ENGINES:
            return cls(why=f"what multigrid gains is not known on {where.engine}")
        if A.shape[0] < LEAST_ROWS:
            return cls(why=f"multigrid does not pay below {number(LEAST_ROWS)} rows")
        if where.engine == "cuda_p2p" and unknowns > 1:
            return cls(
                why="the host makes the levels for several unknowns a node, which takes long"
            )
        cost = Cost.on(where, A.nnz, unknowns).of(workload)
        slow = unknowns == 1 and positive_part(sample(A)) > MOST_POSITIVE
        signs = "amg is slow where entries beside the diagonal have both signs"
        if not isinstance(A, CsrMatrix) or where.engine == "cuda_p2p":
            if slow:
                return cls(why=signs)
            if workload.maxiter is None:
                return cls(cost, math.inf, workload)
            most = workload.maxiter * workload.solves
            few = f"{counted(most, 'iteration')} at most, and amg pays from {_whole(cost)} on"
            return cls(cost, most, workload, few)
        expected = expected or by_parts(A, workload.rtol, workload.maxiter, workload.solves)
        told = f"{expected.told} with jacobi are expected ({expected.why})"
        if slow:
            nodes = A.shape[0] % 2 == 0 or A.shape[0] % 3 == 0
            worth = nodes and expected.total > Cost.on(where, A.nnz, 3).of(workload)
            return cls(why=f"{told}, and {signs}", worth_looking_for_nodes=worth, by=expected)
        return cls(cost, expected.total, workload, f"{told}, and amg pays from {_whole(cost)} on")

    @property
    def possible(self) -> bool:
        """Whether some iterations should tell."""
        return self.expected > self.cost

    @property
    def certain(self) -> bool:
        """Whether multigrid is expected to be sooner whatever some iterations would tell."""
        return math.isfinite(self.expected) and self.expected > CERTAIN * self.cost

    def by_trial(self, history: Doubles) -> tuple[bool, str]:
        """Return whether multigrid is expected to be sooner for all solves, and why.

        `history`: norms of the residual of a solve with Jacobi, from that of its first guess on.
        """
        each = needed(history, self.workload.rtol)
        if self.workload.maxiter is not None:
            each = min(each, float(self.workload.maxiter))
        sooner = each * self.workload.solves > self.cost
        solves = "" if self.workload.solves == 1 else f"{number(self.workload.solves)} × "
        its = "more than can be counted" if math.isinf(each) else counted(round(each), "iteration")
        first = counted(len(history) - 1, "iteration")
        return sooner, (
            f"{'amg' if sooner else 'jacobi'}: {solves}{its} with jacobi are expected "
            f"(by the first {first}), and amg pays from {_whole(self.cost)} on"
        )


def positive_part(rows: list[RowSample]) -> float:
    """Return the part of the entries beside the diagonal that is positive, by size over diagonals.

    `rows`: some of the matrix.
    """
    positive = total = 0.0
    for some in rows:
        values = some.data.astype(np.float64)
        beside = some.indices != some.numbers
        diagonal = np.zeros(some.indptr.size - 1)
        own = some.numbers - some.first
        diagonal[own[~beside]] = np.abs(values[~beside])
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.nan_to_num(values[beside] / diagonal[own[beside]], posinf=0.0, neginf=0.0)
        positive += float(shares[shares > 0.0].sum())
        total += float(np.abs(shares).sum())
    return positive / total if total else 0.0


def needed(history: Doubles, rtol: float) -> float:
    """Return how many iterations reach a tolerance, by the speed of the second half of some."""
    best = np.minimum.accumulate(np.asarray(history, np.float64))
    last, half = len(best) - 1, (len(best) - 1) // 2
    target = best[0] * max(rtol, SMALLEST)
    if not best[0] or best[last] <= target:
        return float(last)
    if last == half or best[last] <= 0.0 or not best[last] < best[half]:
        return math.inf
    speed = math.log(best[half] / best[last]) / (last - half)
    return last + math.log(best[last] / target) / speed


def _whole(value: float) -> Any:
    return number(round(value))
