"""Small Jacobi runs by every sweep, bit by bit: a case for compute-sanitizer.

    compute-sanitizer --tool racecheck python tests/cuda/small_stencils.py --pes 2

Exit status 1 where a value is not that of the CPU engine.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from cpufree.extension import load_core
from cpufree.stencil import jacobi

# On GPUs; elsewhere there is one sweep.
SWEEPS: dict[int, tuple[dict[str, Any], ...]] = {
    2: (
        {"sweep": "time_tiles", "halo_steps": 4},
        {"sweep": "wavefront", "halo_steps": 2},
    ),
    3: (
        {"sweep": "registers_3d"},
        {"sweep": "time_tiles", "halo_steps": 1},
        {"sweep": "time_tiles", "halo_steps": 2},
    ),
}
SHAPES = ((21, 34), (9, 12, 10), (6, 37, 40))
BLOCKS = 4
WAIT_LIMIT = 600.0  # seconds; what is instrumented is slow


def run_all(pes: int, engine: str, iterations: int) -> list[str]:
    """Run all combinations; return what is wrong."""
    on_gpu = engine == "cuda_p2p"
    wrong = []
    ran = set()
    for shape in SHAPES:
        u0 = np.random.default_rng(1).random(shape).astype(np.float32)
        boundary = ["periodic"] + ["dirichlet"] * (len(shape) - 1)
        expected = jacobi(u0, iterations, boundary=boundary, engine="cpu_threads").u
        for sweep in SWEEPS[len(shape)] if on_gpu else ({},):
            where = {"engine": engine, "pes": pes, "blocks": BLOCKS}
            if on_gpu:
                where["gpus"] = [gpu["index"] for gpu in load_core().gpus()][:pes]
            options = {**where, **sweep, "iterations": iterations, "wait_limit": WAIT_LIMIT}
            out = np.empty_like(u0)
            periodic = [kind == "periodic" for kind in boundary]
            name = f"{pes} PEs, {shape}, {sweep}"
            try:
                facts = load_core().jacobi(u0, None, out, periodic, options, None)
            except ValueError as error:  # too many points for so few blocks' registers
                print(f"{name}: {error}", flush=True)
                continue
            ran.add((len(shape), str(sweep)))
            print(f"{name}: {facts['sweep']}, halos as {facts['halo']}", flush=True)
            if out.tobytes() != expected.tobytes():
                wrong.append(name)
    if on_gpu:
        for dims, sweeps in SWEEPS.items():
            wrong += [f"{sweep} ran nowhere" for sweep in sweeps if (dims, str(sweep)) not in ran]
    return wrong


def main() -> int:
    """Run, and say what is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pes", type=int, default=1, help="GPUs to use")
    parser.add_argument("--engine", default="cuda_p2p", help=argparse.SUPPRESS)
    parser.add_argument("--iterations", type=int, default=7)
    given = parser.parse_args()
    wrong = run_all(given.pes, given.engine, given.iterations)
    for line in wrong:
        print(f"wrong: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
