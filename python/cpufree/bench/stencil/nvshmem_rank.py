"""One PE of the contender `nvshmem` of the stencils: a process that `nvshmem_solver` starts.

    python -m cpufree.bench.stencil.nvshmem_rank RANK PARENT LIBRARY

The arguments are those of cpufree.bench.contenders.nvshmem_rank.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from cpufree.bench.contenders.nvshmem_rank import main
from cpufree.bench.stencil.solvers import BaselineSolver
from cpufree.errors import InvalidInputError


class RankSolver(BaselineSolver):
    """The baseline on one GPU of several; which one, the options say."""

    maps_start = True  # of a grid that all ranks read, each its planes

    def __init__(self, rank: int) -> None:
        super().__init__("nvshmem")

    def solve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do the iterations of a request; `save`: write its planes into this file of all."""
        if self.start is None:
            raise InvalidInputError("solve was asked for before load")
        iterations, variant = int(request["iterations"]), str(request.get("variant", "full"))
        save = request.get("save")
        out = np.load(save, mmap_mode="r+") if save else None
        seconds = self.run_into(out, self.start, iterations, variant)
        if out is not None:
            out.flush()
        answer = {"seconds": seconds, "iterations": iterations, "reason": "CONVERGED_ITS"}
        return {**answer, "checksum": None}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], RankSolver))
