"""What a trace costs: solves with all records, with phases only, and with none, in turn.

    python bench/trace.py [--engine cuda_p2p] [--gpus 0] [--grid 512] [--rounds 15] [--json FILE]

Times are medians of the time of an iteration; the cost of a record is the time that all of them
add to an iteration, over the number that the busiest block writes in one.
"""

from __future__ import annotations

import argparse
import json
import statistics
from typing import Any

import numpy as np
from records import provenance

import cpufree
from cpufree.trace.records import Kind, Trace

WAYS: dict[str, dict[str, Any]] = {
    "none": {},
    "phases": {"study": "trace", "trace_kinds": 1 << Kind.PHASE},
    "all": {"study": "trace"},
}


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Return the medians of all ways, and what follows from them."""
    A = cpufree.generate.poisson2d(args.grid, args.grid)
    b = np.random.default_rng(0).standard_normal(A.shape[0])
    how: dict[str, Any] = {"engine": args.engine, "pes": args.pes, "blocks": args.blocks}
    if args.engine == "cuda_p2p":
        how = {"engine": args.engine, "gpus": args.gpus}
    options = {"method": "prcg", "pc": "jacobi", "rtol": 0.0, "maxiter": args.iterations}
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    with cpufree.Solver(A, **how) as solver:
        system: Any = solver._matrix.layout.opened()
        for turn in range(args.rounds + 2):
            for way, more in WAYS.items():
                outcome = system.solve(b, None, None, {**options, **more}, None)
                if turn >= 2:
                    seconds[way].append(outcome["seconds"] / outcome["iterations"])
        trace = Trace.of_core(outcome["trace"], {})
    each = {way: statistics.median(times) for way, times in seconds.items()}
    written = int(trace.tracks[:, 3].max()) / args.iterations
    return {
        "seconds_of_an_iteration": each,
        "slower": {way: each[way] / each["none"] - 1.0 for way in ("phases", "all")},
        "records_of_an_iteration": written,
        "seconds_of_a_record": (each["all"] - each["none"]) / written,
        "samples": seconds,
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="cpu_threads")
    parser.add_argument("--gpus", default="0")
    parser.add_argument("--pes", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=1)
    parser.add_argument("--grid", type=int, default=512)
    parser.add_argument("--iterations", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json")
    args = parser.parse_args()
    found = {**measure(args), "arguments": vars(args), **provenance()}
    told = {k: found[k] for k in ("seconds_of_an_iteration", "slower", "records_of_an_iteration",
                                  "seconds_of_a_record")}  # fmt: skip
    print(json.dumps(told, indent=1))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
