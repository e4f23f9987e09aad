"""For tests of the GPU benchmark: a made-up record with every part, and a fake system."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

REDUCTION = {1: 1.2e-6, 2: 2.6e-6, 4: 3.0e-6, 8: 3.4e-6}
RATE = 4.0e12
SIZES = {
    "poisson2d 64²": (64**2, 5 * 64**2),
    "poisson2d 512²": (512**2, 5 * 512**2),
    "poisson2d 4096²": (4096**2, 5 * 4096**2),
    "poisson3d 192³": (192**3, 7 * 192**3),
}
LARGE = {"flange_hex": (1_569_924, 118_219_716)}
ITERATIONS = 200


def measurement(
    name: str,
    size: tuple[int, int],
    pes: int,
    methods: Sequence[str],
    rng: random.Random,
    tuning: dict[str, int] | None = None,
) -> dict[str, Any]:
    """Return one measurement: floor and a third more, with noise."""
    rows, nnz = size
    matrix = 12.0 * nnz + 4.0 * rows
    record: dict[str, Any] = {"name": name, "spec": "made?up", "rows": rows, "nnz": nnz}
    record |= {"pes": pes, "tuning": tuning or {}, "partition": "contiguous"}
    record |= {"partition_seconds": 0.1, "setup_seconds": [0.4, 0.3], "methods": {}}
    record["plan"] = {"threads": 512, "blocks": 132, "matrix_bytes": matrix}
    for method in methods:
        sums = 2 if method == "cg" else 1
        time = 1.33 * (3e-6 + sums * REDUCTION[pes] + (matrix + 96.0 * rows) / (pes * RATE))
        times = [time * (1 + 0.05 * rng.random()) for _ in range(7)]
        record["methods"][method] = {
            "iterations": ITERATIONS,
            "seconds": [ITERATIONS * t + 50e-6 for t in times],
            "short_iterations": ITERATIONS // 4,
            "short_seconds": [ITERATIONS // 4 * t + 50e-6 for t in times],
        }
    return record


def part(*found: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a part that went well."""
    return {"found": list(found), "failed": [], "skipped": [], "seconds": 1.0}


def channels(pes: int) -> list[dict[str, Any]]:
    """Return what run_channels says."""
    factors = {"sum 1": 0.9, "sum 2": 0.95, "sum 5": 1.0, "push pull 3": 0.8, "exchange": 1.1}
    return [
        {"gpus": pes, "threads": threads, "what": what, "right": True, "epochs": 20000}
        | {"seconds": factor * REDUCTION[pes] * threads / 512, "stressed_seconds": 7e-6}
        for what, factor in factors.items()
        for threads in (512, 1024)
    ]


def made_up(counts: Sequence[int] = (1, 2, 4)) -> dict[str, Any]:
    """Return a record without what is derived."""
    rng = random.Random(1)
    all_methods = ("cg", "prcg", "pipecg")
    machine: list[dict[str, Any]] = [
        {"gpus": {"listed": [{"name": "NVIDIA H200"}], "driver": "580.1", "links": {"NV18": 6}}}
    ]
    machine += [
        {"device": k, "by": "cupy", "bytes": 2**31, "bytes_per_second": [RATE] * 7}
        for k in range(max(counts))
    ]
    sizes = [(name, size, pes) for name, size in SIZES.items() for pes in counts]
    small = [(name, SIZES[name], pes) for name in list(SIZES)[1::-1] for pes in counts]
    tunings: list[dict[str, int]] = [{}, {"threads": 256}, {"residency": 0}]
    peer = {"name": "poisson2d 512²", "solver": "cupyx cg", "version": "14.0", "rows": 512**2}
    parts = {
        "machine": part(*machine),
        "latency": part(*(measurement(*one, all_methods, rng) for one in small)),
        "reductions": part(*(entry for pes in counts for entry in channels(pes))),
        "sweep": part(*(measurement(*one, ("cg", "prcg"), rng) for one in sizes)),
        "large": part(
            *(
                measurement(name, size, pes, ("cg", "prcg"), rng)
                for name, size in LARGE.items()
                for pes in counts
            )
        ),
        "variants": part(
            *(
                measurement("poisson2d 512²", SIZES["poisson2d 512²"], pes, ("prcg",), rng, tuning)
                for pes in counts
                for tuning in tunings
            )
        ),
        "peers": part({**peer, "nnz": 5 * 512**2, "iterations": 200, "seconds": [0.02] * 5}),
    }
    return {
        "schema": 1,
        "benchmark": "gpu",
        "quick": False,
        "date": "2026-01-01T00:00:00+00:00",
        "engine": "cuda_p2p",
        "devices": list(range(max(counts))),
        "settings": {"rounds": 7, "budget": 420.0},
        "parts": parts,
        "derived": {},
    }


class FakeLaidOut:
    """Solves that take 2 s and 1 s an iteration, end at `last`, and are handed over at `handed`."""

    def __init__(self, last: int, handed: int = -1) -> None:
        self.last, self.handed = last, handed
        self.asked: list[int] = []

    def solve(self, method: str, iterations: int) -> dict[str, Any]:
        self.asked.append(iterations)
        done = min(iterations, self.last)
        return {
            "iterations": done,
            "seconds": 2.0 + done,
            "handed_over_at": self.handed if 0 <= self.handed <= done else -1,
            "reason": "DIVERGED_ITS" if done == iterations else "STAGNATED",
        }
