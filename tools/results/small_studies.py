"""Preconditioners (docs/solving/methods.md) and expected iterations (docs/gpus.md)."""

from __future__ import annotations

import math
import statistics

from cpufree.bench.core.noise import geometric_mean
from tools.results.records import markdown, medians, problems

PRECONDITIONERS = "preconditioners-1x-2026-11-25.json"
EXPECTED = "expected-iterations-2026-11-26.json"
WAYS = {"fsai": "`fsai`", "fsai-2": "`fsai`, `pc_level=2`"}


def _spaced(count: float) -> str:
    return f"{count:,.0f}".replace(",", " ")


def preconditioners() -> str:
    """Return iterations and the speed-up over Jacobi of each preconditioner, a row a matrix."""
    counts, seconds, rows = medians(PRECONDITIONERS, "iterations"), medians(PRECONDITIONERS), []
    for case, problem in problems(PRECONDITIONERS).items():
        took, first = seconds[case], seconds[case]["jacobi"]
        cells = [f"{_spaced(counts[case][pc])}, {first / took[pc]:.2f}" for pc in WAYS]
        rows.append([case, _spaced(problem["rows"]), _spaced(counts[case]["jacobi"]), *cells])
    return markdown(["matrix", "rows", "Jacobi, iterations", *WAYS.values()], rows)


def _over_taken(which: str) -> list[float]:
    return [of[which] / max(1, of["taken"]) for of in medians(EXPECTED, "iterations").values()]


def _off(ratios: list[float]) -> float:
    """Return by which factor expectations are off in the mean."""
    return math.exp(statistics.fmean(abs(math.log(ratio)) for ratio in ratios))


def expected() -> dict[object, str]:
    """Return figures of expected iterations, by the words before and after them."""
    parts, rows = _over_taken("expected"), _over_taken("by rows")
    return {
        ("the expected number is ", " times the number taken: "): (
            f"{min(parts):.2f} to {max(parts):.2f}"
        ),
        ("times the number taken: ", " times in the geometric mean"): (
            f"{geometric_mean(parts):.2f}"
        ),
        ("geometric mean, and off by a factor of ", ". The simple rule"): f"{_off(parts):.1f}",
        ("at least 1000, is off by a factor of ", " at worst"): (
            f"{_off(rows):.1f}, and of {max(rows):.0f}"
        ),
    }
