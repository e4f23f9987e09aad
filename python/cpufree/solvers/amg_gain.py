"""Whether multigrid is sooner at the answer than Jacobi's preconditioner, by counts alone.

Iterations with Jacobi are those that parts of the matrix let expect (engines/expected.py), those
with multigrid hardly depend on the system. Costs are in iterations with Jacobi, and numbers of the
machine file. No clock is read: the same input has the same answer.
"""

from __future__ import annotations

from cpufree.engines.expected import by_parts
from cpufree.machine import of_gpu
from cpufree.matrix.problem import CsrMatrix
from cpufree.solvers.forecast import Workload
from cpufree.text import number

ENGINES = ("cpu_threads", "cpu_processes")
"""Those whose costs are known here."""
SURE = 1.7
"""So many times more iterations than that have to be expected: parts of grids, where multigrid is
good, let expect 1.3 to 3.4 times as many as there are."""
LEAST_ROWS = 2000
"""Below, solves take less time than questions."""


def amg_is_sooner(A: CsrMatrix, workload: Workload, engine: str, modes: int) -> tuple[bool, str]:
    """Return whether multigrid is expected to be sooner for all solves, and why.

    `modes`: how many vectors its levels represent.
    """
    if engine not in ENGINES:
        return False, f"jacobi: what multigrid gains is not known on {engine}"
    if A.shape[0] < LEAST_ROWS:
        return False, f"jacobi: multigrid does not pay below {number(LEAST_ROWS)} rows"
    expected = by_parts(A, workload.rtol, workload.maxiter, workload.solves)
    known = of_gpu("")
    setup = known.number("multigrid.cpu_setup" if modes == 1 else "multigrid.cpu_setup_nodes", "1")
    each = known.number("multigrid.cpu_cycle", "1") * known.number("multigrid.iterations", "1")
    cost = SURE * (setup + each * workload.solves)
    pays = expected.total > cost
    return pays, (
        f"{'amg' if pays else 'jacobi'}: {expected.told} with jacobi are expected "
        f"({expected.why}), "
        f"and amg pays from {number(round(cost))} on"
    )
