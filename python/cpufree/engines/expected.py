"""How many iterations are expected of a system, before it is solved.

Conjugate gradients are run on small parts of the matrix: the rows within some steps of a row in the
middle, in the graph of the matrix. By Cauchy's interlacing theorem (Golub and Van Loan 2013,
"Matrix Computations", section 8.1) a principal submatrix is at least as well conditioned as the
whole, and of elliptic problems the iterations grow like a power of the rows: n^(1/d) for problems
of second order in d dimensions, n^0 for mass matrices and short time steps. Parts of two sizes tell
the power, which takes their number of iterations on to n rows.

Without more, it was 0.2 to 1.5 times the iterations of solves of fourteen matrices of paper18-small
and structured-small (0.58 times in the geometric mean), 0.2 to 1.0 times those of sixteen of
paper18 itself (0.44 times), and 0.7 to 1.8 times those of nine other generated systems; what they
fall short in the mean is made up for where iterations grow. It is no bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cpufree.extension import load_core
from cpufree.text import counted, number

if TYPE_CHECKING:  # heavy imports, where GPUs are to be started before anything else
    from cpufree.matrix.problem import CsrMatrix

Int64s = npt.NDArray[np.int64]

USUAL_RTOL = 1e-8
"""Tolerance of the solves of a Solver, which is not known when it is made."""
# Rows of the parts; fewer where rows are long: a part has at most _ENTRIES entries. Parts of
# 4000 rows and 250 000 entries came nearer for long rows (bmwcra_1: 1.09 instead of 0.3 times), and
# took 14 to 140 ms of one core instead of 7 to 30: as long as many a set-up.
_SMALL, _LARGE = 250, 2000
_ENTRIES = 100_000
# Parts predict this many times fewer iterations than are taken, in the geometric mean of those 39
# systems: of those that grow with a power of the rows above _GROWS.
_SHORT, _GROWS = 1.7, 0.1
_NEAR = 10_000  # rows among which one is looked for that has neighbours
_MOST = 1000  # iterations on a part: beyond them a set-up costs nothing beside the solve


@dataclass(frozen=True)
class Workload:
    """What a matrix is set up for."""

    solves: int = 1
    """That are expected with it."""
    rtol: float = USUAL_RTOL
    maxiter: int | None = None


@dataclass(frozen=True)
class Expected:
    """Iterations that are expected of a matrix once it is set up."""

    iterations: float
    """Of one solve."""
    solves: int = 1
    why: str = ""
    """Where the number of iterations comes from."""

    @property
    def total(self) -> float:
        """Iterations of all solves."""
        return self.iterations * self.solves

    @property
    def told(self) -> str:
        """The numbers in words."""
        each = counted(round(self.iterations), "iteration")
        return each if self.solves == 1 else f"{number(self.solves)} × {each}"


def by_past(past: Sequence[int], solves: int) -> Expected:
    """Return what the solves of a Solver until now let expect; there is one at least."""
    mean = sum(past) / len(past)
    return Expected(mean, max(solves, len(past)), f"by {counted(len(past), 'solve')} until now")


def by_parts(A: CsrMatrix, rtol: float, maxiter: int | None, solves: int) -> Expected:
    """Return the iterations with Jacobi's preconditioner, from those on small parts of A.

    Args:
        A: with a symmetric pattern.
        rtol: of the solves.
        maxiter: the most of them; None: as many as it takes.
        solves: how many there will be.

    Where A has no more rows than a part, its own iterations are counted.
    """
    n = A.shape[0]
    most = math.inf if maxiter is None else float(maxiter)
    large = max(1, min(n, _LARGE, _ENTRIES * n // max(1, A.nnz)))
    small = max(1, min(large, _SMALL, large // 8))
    if rtol >= 1.0 or not n:
        return Expected(0.0, solves, "rtol asks for none")

    def count_from(start: int) -> float:
        counts = [_iterations(*part(A, start, size), rtol) for size in (small, large)]
        growth = math.log(counts[1] / counts[0]) / math.log(large / small) if large > small else 0.0
        growth = min(max(growth, 0.0), 1.0)
        short = math.log(_SHORT) if growth > _GROWS and large < n else 0.0
        return math.log(counts[1]) + growth * math.log(n / large) + short

    with ThreadPoolExecutor(2) as side_by_side:
        starts = sorted({_start(A, n // 3), _start(A, 2 * n // 3)})
        logs = list(side_by_side.map(count_from, starts))
    count = math.exp(sum(logs) / len(logs))
    return Expected(min(count, most), solves, f"by parts of {small} and {large} rows")


def _start(A: CsrMatrix, row: int) -> int:
    """Return the first row from this one on that has half as many entries as the mean, or more.

    Rows of prescribed values have a diagonal alone, and no neighbours to take a part from.
    """
    lengths = np.diff(A.indptr[row : row + _NEAR + 1])
    return row + int(np.argmax(2 * lengths * A.shape[0] >= A.nnz))


def part(A: CsrMatrix, start: int, size: int) -> tuple[Int64s, Any, Any]:
    """Return the principal submatrix of `size` rows around a row, as indptr, indices and data.

    Rows are taken step by step in the graph of A, those of the last step by their numbers. It has
    fewer where no more are connected.
    """
    found: tuple[Int64s, Any, Any] = load_core().row_part(A.indptr, A.indices, A.data, start, size)
    return found


def _iterations(indptr: Int64s, indices: Any, data: Any, rtol: float) -> int:
    """Return the iterations of a part for a right-hand side of ones, on one thread; at least 1."""
    rows = indptr.size - 1
    system = load_core().System(indptr, indices, data, None, None, 1, 1, "cpu_threads", [])
    options = {
        **{"method": "cg", "pc": "jacobi", "rtol": rtol, "atol": 0.0, "maxiter": _MOST},
        **{"time_limit": 0.0, "wait_limit": 60.0, "replace_every": 0, "chebyshev_degree": 1},
    }
    ones = np.ones(rows, data.dtype)
    return max(1, int(system.solve(ones, None, None, options, None)["iterations"]))
