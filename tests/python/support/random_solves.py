"""Random solves: systems, guesses, methods, and what must not happen. A run of many:

    python tests/python/support/random_solves.py --count 20000 --resume solves.jsonl

prints counts for each kind, and what has failed. --resume keeps a line for each seed, and goes on
after those that it has; give several processes a --seed and a --stride each.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from extended import residual_norm

import cpufree
from cpufree import Reason, Solver, env

ENDINGS = {Reason.DIVERGED_INDEFINITE_MAT, Reason.DIVERGED_INDEFINITE_PC}


@dataclass(frozen=True)
class Case:
    """A random system and how it is solved."""

    seed: int
    family: str
    A: sp.csr_array
    b: np.ndarray
    x0: np.ndarray | None
    decades: float
    """Of the condition number, or of what spreads in it."""
    warm: int
    """Decimal power of ‖b‖ / ‖A x0‖; 0: no guess."""
    pc: str
    pes: int
    rtol: float


def geometric(n: int, decades: float, rng: Any) -> sp.csr_array:
    """Return a dense matrix of a few hundred rows at most, with a geometric spectrum."""
    n = min(n, 200)
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    A = Q @ np.diag(np.logspace(0, -decades, n)) @ Q.T
    return sp.csr_array((A + A.T) / 2)


def diagonal(n: int, decades: float, rng: Any) -> sp.csr_array:
    """Return a diagonal that spreads."""
    return sp.csr_array(sp.diags_array(10 ** rng.uniform(-decades / 2, decades / 2, n)))


def scaled_chain(n: int, decades: float, rng: Any) -> sp.csr_array:
    """Return S T S, T the second difference, which a hundredth makes definite beyond rounding."""
    T = sp.diags_array([-np.ones(n - 1), np.full(n, 2.01), -np.ones(n - 1)], offsets=[-1, 0, 1])
    S = sp.diags_array(10 ** rng.uniform(-decades / 4, decades / 4, n))
    return sp.csr_array(S @ (T if n > 1 else sp.eye_array(1)) @ S)


def grid(n: int, decades: float, rng: Any) -> sp.csr_array:
    """Return a Poisson matrix; decades do not count."""
    m = max(1, int(n**0.5))
    return sp.csr_array(cpufree.generate.poisson2d(m, m)) if m > 1 else sp.csr_array([[4.0]])


def two_values(n: int, decades: float, rng: Any) -> sp.csr_array:
    """Return a diagonal of two values."""
    values = rng.uniform(0.5, 5.0, 2)
    return sp.csr_array(sp.diags_array(values[np.arange(n) % 2]))


FAMILIES: dict[str, Callable[[int, float, Any], sp.csr_array]] = {
    "geometric": geometric,
    "diagonal": diagonal,
    "scaled chain": scaled_chain,
    "grid": grid,
    "two values": two_values,
}
SIZES = (1, 2, 3, 5, 10, 30, 100, 300, 1000, 3000)
CHANCES = (0.1, 0.1, 0.1, 0.1, 0.1, 0.15, 0.15, 0.1, 0.07, 0.03)


def case_of(seed: int) -> Case:
    """Return the case of a seed."""
    rng = np.random.default_rng(seed)
    family = str(rng.choice(list(FAMILIES)))
    single = bool(rng.random() < 0.4)
    # What is definite must be so in its type, in which dense entries are rounded.
    most = (6 if single else 14) if family == "geometric" else 16
    n, decades = int(rng.choice(SIZES, p=CHANCES)), float(rng.uniform(0, most))
    pcs = ["none", "jacobi", "chebyshev", "fsai"]
    pc = str(rng.choice(pcs, p=[0.4, 0.3, 0.15, 0.15]))
    A = FAMILIES[family](n, decades, rng)
    A = sp.csr_array(A.astype(np.float32 if single else np.float64))
    warm = -int(rng.integers(0, 23)) if rng.random() < 0.6 else 1
    n = A.shape[0]
    x0 = rng.standard_normal(n).astype(A.dtype) if warm < 1 else None
    b = rng.standard_normal(n) if rng.random() < 0.5 else A @ rng.standard_normal(n)
    b /= np.linalg.norm(b)
    if x0 is not None:
        b *= 10.0**warm * float(np.linalg.norm(A @ x0))
    rtol = float(10 ** rng.uniform(-5 if single else -12, -1))
    pes = min(int(rng.choice([1, 2, 3, 4], p=[0.85, 0.05, 0.05, 0.05])), n)
    return Case(seed, family, A, b.astype(A.dtype), x0, decades, min(warm, 0), pc, pes, rtol)


def scaled_norm(A: sp.csr_array, b: np.ndarray, x: np.ndarray) -> float:
    """Return the norm of D^-1/2 (b - A x), D the diagonal, which scales do not change."""
    S = sp.diags_array(A.diagonal().astype(np.float64) ** -0.5)
    return residual_norm(sp.csr_array(S @ A.astype(np.float64)), S @ b.astype(np.float64), x)


def run(case: Case, gpu: int | None = None) -> list[dict[str, Any]]:
    """Return what each method has made of a case, on CPUs or with all PEs on one GPU."""
    A, b, n = case.A, case.b, case.A.shape[0]
    where: dict[str, Any] = {"pes": case.pes, "blocks": 1}
    if gpu is not None:
        where = {"engine": "cuda_p2p", "gpus": [gpu] * case.pes}
    start = np.zeros(n, A.dtype) if case.x0 is None else case.x0
    first = scaled_norm(A, b, start)
    found = []
    with warnings.catch_warnings(), Solver(A, pc=case.pc, **where) as solver:
        warnings.simplefilter("ignore")
        for method in ("cg", "prcg", "pipecg", "auto"):
            result = solver.solve(b, x0=case.x0, rtol=case.rtol, method=method, pc=case.pc)
            norm = residual_norm(A, b, result.x)
            target = case.rtol * float(np.linalg.norm(b.astype(np.float64)))
            found.append(
                {
                    "seed": case.seed,
                    "family": f"{case.family}, {A.dtype}",
                    "pc": case.pc,
                    "decades": case.decades,
                    "method": method,
                    "reason": str(result.reason),
                    "iterations": result.iterations,
                    "lied": bool(result.converged and norm > 1.01 * target),
                    "worse": bool(
                        not result.converged
                        and result.reason is not Reason.DIVERGED_ITS
                        and scaled_norm(A, b, result.x) > 1.01 * first
                    ),
                    "indefinite": result.reason in ENDINGS,
                }
            )
    return found


def failures(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the solves that did what none may do."""
    return [one for one in found if one["lied"] or one["worse"] or one["indefinite"]]


def main() -> None:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000, help="cases; each is solved four times")
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--gpu", type=int, help="all PEs on this GPU, not on CPU threads")
    asked = parser.parse_args()
    if asked.gpu is not None:
        env.preset_shared_gpus()
    known: dict[int, list[dict[str, Any]]] = defaultdict(list)
    if asked.resume is not None and asked.resume.exists():
        for line in asked.resume.read_text().splitlines():
            one = json.loads(line)
            known[one[0]["seed"]] = one
    for seed in range(asked.seed, asked.seed + asked.count * asked.stride, asked.stride):
        if seed in known:
            continue
        known[seed] = run(case_of(seed), asked.gpu)
        if asked.resume is not None:
            with asked.resume.open("a") as file:
                file.write(json.dumps(known[seed]) + "\n")
    print("\n".join(summary(list(known.values()))))


def summary(cases: list[list[dict[str, Any]]]) -> Iterator[str]:
    """Yield counts, and ratios of iterations over those of cg."""
    all_solves = [one for case in cases for one in case]
    yield f"{len(cases)} cases, {len(all_solves)} solves"
    for word in ("lied", "worse", "indefinite"):
        bad = [one for one in all_solves if one[word]]
        yield f"{word}: {len(bad)} {bad[:3] if bad else ''}"
    counts = Counter((one["method"], one["reason"]) for one in all_solves)
    for (method, reason), number in sorted(counts.items()):
        yield f"  {method} {reason}: {number}"
    ratios: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for cg, *others in cases:
        for one in others:
            unscaled = "none" if one["pc"] == "none" else "with pc"
            key = (one["family"], unscaled, one["method"])
            ends = [other["reason"].startswith("CONVERGED") for other in (cg, one)]
            if all(ends):
                ratios[key].append((one["iterations"] + 1) / (cg["iterations"] + 1))
            elif ends[0]:
                counts["not ended", one["method"]] += 1
    for method in ("prcg", "pipecg", "auto"):
        yield f"{method} does not converge where cg does: {counts['not ended', method]}"
    for (family, unscaled, method), values in sorted(ratios.items()):
        mean = float(np.exp(np.mean(np.log(values))))
        yield f"  {family}, {unscaled}, {method}: {mean:.3f} ({max(values):.2f}) of {len(values)}"


if __name__ == "__main__":
    main()
