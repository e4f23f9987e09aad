"""One solve of so many iterations on a GPU, for bench/traffic.py to count what it moves.

    python bench/traffic_worker.py ARRAYS.npz METHOD ITERATIONS

Prints the plan as JSON.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from cpufree.extension import load_gpu_core


def main(path: str, method: str, iterations: int) -> None:
    """Solve, without preconditioner and without a tolerance, for a random right-hand side."""
    with np.load(path) as arrays:
        matrix = [arrays[name] for name in ("indptr", "indices", "data")]
        order = arrays.get("order", None)
    system = load_gpu_core().System(*matrix, None, order, 1, 0, "cuda_p2p", [0])
    b = np.random.default_rng(1).standard_normal(matrix[0].size - 1)
    limits = {"rtol": 0.0, "atol": 0.0, "maxiter": iterations, "wait_limit": 30.0}
    found = system.solve(b, None, None, {"method": method, "pc": "none", **limits}, None)
    print(json.dumps({"iterations": found["iterations"], "plan": {**system.plan()}}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
