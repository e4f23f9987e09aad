"""Programs as scientists write them with NumPy, and arguments of them: (program, arguments)."""

from __future__ import annotations

from typing import Any

import numpy as np

import cpufree

_R = np.random.default_rng(5)


@cpufree.program
def thresholds(u: Any, v: Any, n: int) -> Any:
    for t in range(n):
        u[u < 0] = 0
        mask = v > u
        u[mask] += v[mask]
        u[1:-1][~mask[1:-1]] *= 0.5
        v[mask] = 2 * u[mask] - np.sqrt(np.abs(v[mask]))
        u[np.roll(u, 1, 0) > 1.0 + t] -= 0.25
    return np.count_nonzero(mask), np.any(v[mask] > 3), np.all(u[mask]), np.count_nonzero(u)


@cpufree.program
def obstacles(u: Any, solid: Any, n: int) -> Any:
    for _ in range(n):
        new = 0.25 * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1))
        new[solid] = -u[solid]
        new[0][solid[0]] = 1.0
        u[...] = new
    return np.count_nonzero(u > 0.1)


CHOSEN = {
    "thresholds": (thresholds, (_R.standard_normal((14, 9)), _R.standard_normal((14, 9)), 3)),
    "obstacles": (obstacles, (_R.standard_normal((13, 8)), _R.random((13, 8)) > 0.7, 4)),
}
CASES: dict[str, Any] = {**CHOSEN}
QUICK = ("thresholds",)
"""Whose text for GPUs is compiled in quick tests."""
ROUNDED: tuple[str, ...] = ()
"""Programs whose last bits differ from NumPy's: of long sums."""


@cpufree.program
def kept_points(u: Any) -> Any:
    chosen = u[u > 0]
    return np.sum(chosen)


@cpufree.program
def two_masks(u: Any, v: Any) -> None:
    u[u > 0] = v[v > 0]


REFUSED = {
    "kept_points": (kept_points, (np.ones((5, 4)),), "known only in the run.*np.where"),
    "two_masks": (two_masks, (np.ones((5, 4)),) * 2, "meet others.*the same mask"),
}
