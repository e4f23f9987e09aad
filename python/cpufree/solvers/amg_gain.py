"""Whether multigrid is sooner at the answer than Jacobi's preconditioner, by counts alone.

Before a solve, iterations with Jacobi are those that parts of the matrix let expect
(engines/expected.py), those with multigrid hardly depend on the system. Costs are in iterations
with Jacobi, from the machine's numbers. Where that leaves it open, the first solve begins with
Jacobi, and its residual tells after some iterations (solvers/trial.py). No clock is read: the same
input has the same answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cpufree.engines.expected import by_parts
from cpufree.machine import Machine, of_gpu
from cpufree.matrix.problem import CsrMatrix
from cpufree.solvers.forecast import Workload
from cpufree.text import number

ENGINES = ("cpu_threads", "cpu_processes", "cuda_p2p")
"""Those whose costs are known."""
SURE = 2.5
"""Parts of grids, where multigrid is good, let expect 1.3 to 3.4 times as many iterations as there
are: so many times the cost have to be expected for multigrid to be taken at once."""
MOST_LIKELY = 1.7
"""The same where there can be no trial."""
TRIAL, OF_MANY = 0.2, 4
"""Of the cost of multigrid for one solve, which a trial with Jacobi takes; of many solves it takes
a part of that."""
LEAST_ROWS = 2000
"""Below, solves take less time than questions."""
LEAST_LOOK = 300_000
"""Nonzeros below which a trial is cheaper than a look at parts of the matrix (10 to 20 ms)."""


@dataclass(frozen=True)
class Cost:
    """What multigrid takes, in iterations with Jacobi."""

    setup: float
    cycle: float
    """Of an iteration."""
    iterations: float
    """To a residual of 1e-8."""

    def of(self, solves: int) -> float:
        """Return the cost of a set-up and of so many solves."""
        return self.setup + self.solves(solves)

    def solves(self, count: int) -> float:
        """Return the cost of so many solves."""
        return self.cycle * self.iterations * count

    @classmethod
    def on(cls, engine: str, A: CsrMatrix, modes: int, gpu: str = "") -> Cost:
        """Return the cost on an engine, of levels that represent so many vectors."""
        known = of_gpu(gpu)
        iterations = known.number("amg.iterations", "1")
        if engine != "cuda_p2p":
            setup = known.at("amg.cpu_setup", "1", modes)
            return cls(setup, known.number("amg.cpu_cycle", "1"), iterations)
        one = _seconds(known, "iteration", A.nnz)
        setup, cycle = (_seconds(known, what, A.nnz) / one for what in ("setup", "cycle"))
        return cls(setup, cycle, iterations)


def _seconds(known: Machine, what: str, nonzeros: int) -> float:
    """Return seconds on a GPU, of which each nonzero takes some."""
    each = known.number(f"amg.gpu_{what}_nonzero", "s")
    return known.number(f"amg.gpu_{what}", "s") + each * nonzeros


@dataclass(frozen=True)
class Trial:
    """Iterations with Jacobi, after which the residual tells whether to go on with multigrid."""

    iterations: int
    solves: int
    cost: Cost

    def pays(self, fallen: float, left: float) -> bool:
        """Return whether multigrid is expected to be sooner from here on.

        fallen: the least residual of the trial over that at its beginning. left: what the residual
        still has to fall to, over that.

        >>> trial = Trial(150, 1, Cost(setup=450, cycle=10, iterations=15))
        >>> trial.pays(fallen=0.02, left=5e-7), trial.pays(fallen=1e-4, left=1e-4)
        (True, False)
        """
        if not 0.0 < fallen < 1.0:
            return True
        each = math.log(fallen) / self.iterations
        rest = math.log(min(left, 1.0)) / each
        others = (self.iterations + rest) * (self.solves - 1)
        return rest + others > self.cost.of(self.solves)


@dataclass(frozen=True)
class Gain:
    """What is done first, and why."""

    multigrid: bool
    why: str
    trial: Trial | None = None


def gain_of_amg(
    A: CsrMatrix, workload: Workload, engine: str, modes: int, gpu: str = "", tries: bool = True
) -> Gain:
    """Return whether multigrid is expected to be sooner for all solves, and why.

    `modes`: how many vectors its levels represent. `tries`: there can be a trial.
    """
    if engine not in ENGINES:
        return Gain(False, f"jacobi: what multigrid gains is not known on {engine}")
    if A.shape[0] < LEAST_ROWS:
        return Gain(False, f"jacobi: multigrid does not pay below {number(LEAST_ROWS)} rows")
    cost = Cost.on(engine, A, modes, gpu)
    least = cost.of(workload.solves)
    length = TRIAL * cost.of(1) / min(OF_MANY, workload.solves)
    trial = Trial(max(1, round(length)), workload.solves, cost)
    if tries and A.nnz < LEAST_LOOK:
        after = number(trial.iterations)
        return Gain(False, f"jacobi, whose residual tells after {after} iterations", trial)
    expected = by_parts(A, workload.rtol, workload.maxiter, workload.solves)
    pays = expected.total > (SURE if tries else MOST_LIKELY) * least
    said = (
        f"{'amg' if pays else 'jacobi'}: {expected.told} with jacobi are expected "
        f"({expected.why}), and amg takes as long as {number(round(least))}"
    )
    if not (tries and least < expected.total <= SURE * least):
        return Gain(pays, said)
    return Gain(False, f"{said}; the residual tells after {number(trial.iterations)}", trial)
