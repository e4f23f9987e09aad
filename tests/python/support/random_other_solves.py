"""Random systems for minres and bicgstab, and what must not happen. A run of many:

    python tests/python/support/random_other_solves.py --count 5000 --json solves.json

prints how solves have ended, and those that were said to have converged above their tolerance.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from extended import residual_norm

import cpufree
from cpufree import env


@dataclass(frozen=True)
class Case:
    """A random system and how it is solved."""

    seed: int
    A: sp.csr_array
    b: np.ndarray
    x0: np.ndarray | None
    method: str
    pc: str
    pes: int
    rtol: float


def system(n: int, method: str, rng: Any) -> sp.csr_array:
    """Return a matrix, from easy to singular, with entries that spread over up to 12 decades."""
    A = sp.random_array((n, n), density=min(1.0, rng.uniform(1, 6) / n), rng=rng)
    A = sp.csr_array(2.0 * A - (A > 0))
    if method == "minres":
        A = A + A.T
    diagonal = rng.standard_normal(n) + rng.choice([0.0, 2.0, 6.0])
    if rng.random() < 0.2:
        diagonal[rng.integers(n)] = 0.0
    spread = rng.choice([0.0, 1.0, 3.0])
    scale = sp.diags_array(10.0 ** rng.uniform(-spread, spread, n))
    A = sp.csr_array(scale @ (A + sp.diags_array(diagonal)) @ scale)
    if rng.random() < 0.15 and n > 2:  # singular: the last row and column are the first ones
        take = sp.eye_array(n, format="lil")
        take[n - 1, n - 1] = 0.0
        take[0, n - 1] = 1.0
        A = sp.csr_array(take.T @ A @ take)
    return A


def case_of(seed: int) -> Case:
    """Return the case of a seed."""
    rng = np.random.default_rng(seed)
    method = "minres" if seed % 2 else "bicgstab"
    n = int(rng.choice([1, 2, 3, 5, 10, 30, 100, 300, 1000]))
    A = system(n, method, rng)
    kind = np.float32 if rng.random() < 0.3 else np.float64
    A = sp.csr_array(A.astype(kind))
    b = A @ rng.standard_normal(n) if rng.random() < 0.5 else rng.standard_normal(n)
    x0 = None if rng.random() < 0.6 else 10.0 ** rng.uniform(-3, 12) * rng.standard_normal(n)
    pcs = ["jacobi", "none", "fsai"] if method == "minres" else ["jacobi", "none"]
    rtol = float(10 ** rng.uniform(-5 if kind is np.float32 else -12, -1))
    guess = None if x0 is None else x0.astype(kind)
    pes = min(int(rng.choice([1, 1, 2, 3])), n)
    return Case(seed, A, b.astype(kind), guess, method, str(rng.choice(pcs)), pes, rtol)


def run(case: Case, gpu: int | None = None) -> dict[str, Any]:
    """Return what has become of a case, on CPUs or with all PEs on one GPU."""
    where: dict[str, Any] = {"pes": case.pes, "blocks": 1}
    if gpu is not None:
        where = {"engine": "cuda_p2p", "gpus": [gpu] * case.pes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = cpufree.solve(
            case.A, case.b, x0=case.x0, rtol=case.rtol, method=case.method, pc=case.pc,
            maxiter=max(200, 5 * case.A.shape[0]), **where,
        )  # fmt: skip
    target = case.rtol * float(np.linalg.norm(case.b.astype(np.float64)))
    norm = residual_norm(case.A, case.b, result.x) if np.isfinite(result.x).all() else np.inf
    return {
        "seed": case.seed,
        "method": case.method,
        "pc": case.pc,
        "reason": str(result.reason),
        "iterations": result.iterations,
        "lied": bool(result.converged and norm > 1.01 * target),
    }


def main() -> None:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--json", type=Path, help="counts go there")
    parser.add_argument("--gpu", type=int, help="all PEs on this GPU, not on CPU threads")
    asked = parser.parse_args()
    if asked.gpu is not None:
        env.preset_shared_gpus()
    found = [run(case_of(seed), asked.gpu) for seed in range(asked.seed, asked.seed + asked.count)]
    counts = Counter(f"{one['method']} {one['reason']}" for one in found)
    lied = [one for one in found if one["lied"]]
    told = {"solves": len(found), "converged above the tolerance": len(lied), **sorted_of(counts)}
    print("\n".join(f"{name}: {number}" for name, number in told.items()), *lied, sep="\n")
    if asked.json is not None:
        asked.json.write_text(json.dumps(told, indent=1) + "\n")


def sorted_of(counts: Counter[str]) -> dict[str, int]:
    """Return counts by name."""
    return dict(sorted(counts.items()))


if __name__ == "__main__":
    main()
