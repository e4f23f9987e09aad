"""Programs as scientists write them with NumPy, and arguments of them: (program, arguments)."""

from __future__ import annotations

from typing import Any

import multigrid_programs as multigrid
import numpy as np
import sweeping_programs as sweeping

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
_W = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
_CX = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1])
_CY = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])


@cpufree.program
def lattice_boltzmann(g: Any, solid: Any, omega: float, n: int) -> Any:
    for _ in range(n):
        for k in range(9):
            g[k] = np.roll(g[k], (_CY[k], _CX[k]), axis=(0, 1))
        rho = np.sum(g, axis=0)
        ux = np.sum(g * _CX[:, None, None], axis=0) / rho
        uy = np.sum(g * _CY[:, None, None], axis=0) / rho
        ux[solid] = 0
        uy[solid] = 0
        cu = 3 * (_CX[:, None, None] * ux + _CY[:, None, None] * uy)
        feq = rho * _W[:, None, None] * (1 + cu + 0.5 * cu**2 - 1.5 * (ux**2 + uy**2))
        g += omega * (feq - g)
    return rho, ux, np.max(uy)


WEIGHTS = (4 / 9, *[1 / 9] * 4, *[1 / 36] * 4)
"""Of the nine populations of D2Q9, whose velocities are (EAST[k], NORTH[k])."""
EAST, NORTH = (0, 1, 0, -1, 0, 1, -1, -1, 1), (0, 0, 1, 0, -1, 1, 1, -1, -1)


@cpufree.program
def lattice_boltzmann_pulled(g: Any, new: Any, omega: float, n: int) -> None:
    for _ in range(n):
        s = [np.roll(g[k], (NORTH[k], EAST[k]), axis=(0, 1)) for k in range(9)]
        rho = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7] + s[8]
        ux = (s[1] - s[3] + s[5] - s[6] - s[7] + s[8]) / rho
        uy = (s[2] - s[4] + s[5] + s[6] - s[7] - s[8]) / rho
        square = 1.5 * (ux * ux + uy * uy)
        for k in range(9):
            cu = 3 * (EAST[k] * ux + NORTH[k] * uy)
            equilibrium = WEIGHTS[k] * rho * (1 + cu + 0.5 * cu * cu - square)
            new[k] = s[k] + omega * (equilibrium - s[k])
        g, new = new, g


@cpufree.program
def planes(g: Any, w: Any, n: int) -> Any:
    """Planes of one array and of another, all of them at once, and some in steps."""
    for t in range(n):
        g[1:] += 0.25 * g[:-1]
        total = g[0] - g[3] + np.roll(g[1], 1, 0)
        w[::2] = 0.5 * g[1:3] + total
        w[1] = w[2] * t
        g[...] = 0.5 * np.roll(g, 1, axis=1)
        largest = np.max(g[2])
        g[3] += w[0] / (1 + largest)
    return np.max(w[1]), largest


@cpufree.program
def lattice_boltzmann_last(g: Any, rho: Any, n: int) -> Any:
    for _ in range(n):
        for k in range(9):
            g[:, :, k] = np.roll(np.roll(g[:, :, k], _CX[k], axis=1), _CY[k], axis=0)
        rho[:] = g[..., 0] + g[..., 1] + g[..., 2] + g[..., 3] + g[..., 4]
        momentum = np.sum(g * _CX, axis=2) / rho
        feq = rho[..., None] * _W * (1 + 3 * _CX * momentum[..., None])
        g -= (g - feq) / 0.8
    return g


@cpufree.program
def by_rows(u: Any, n: int) -> Any:
    for _ in range(n):
        largest = np.max(u, axis=1)
        u -= 0.5 * np.min(u, axis=1, keepdims=True)
        u[1:] *= largest[:-1, None]
        u /= 1.0 + np.max(np.abs(u))
    return largest, np.count_nonzero(u > 0, axis=1), np.any(u > 0.5, axis=1)


@cpufree.program
def by_columns(u: Any, n: int) -> Any:
    for _ in range(n):
        mean = u.mean(axis=0)
        u -= mean
        u[1:] += 0.25 * u[:-1]
    return mean, np.sum(u, axis=0), u[1:]


FEWER = {
    "lattice_boltzmann": (
        lattice_boltzmann, (1 + 0.1 * _R.random((9, 12, 10)), _R.random((12, 10)) > 0.8, 0.6, 3)
    ),
    "lattice_boltzmann_last": (
        lattice_boltzmann_last, (1 + 0.1 * _R.random((11, 10, 9)), np.zeros((11, 10)), 3)
    ),
    "lattice_boltzmann_pulled": (
        lattice_boltzmann_pulled,
        (1 + 0.1 * _R.random((9, 12, 10)), np.zeros((9, 12, 10)), 0.6, 3),
    ),
    "planes": (planes, (_R.random((4, 12, 10)), np.zeros((3, 12, 10)), 3)),
    "by_rows": (by_rows, (_R.standard_normal((9, 40)), 3)),
    "by_columns": (by_columns, (_R.standard_normal((40, 8)), 3)),
}  # fmt: skip


@cpufree.program
def functions(u: Any, v: Any, h: float, n: int) -> Any:
    for _ in range(n):
        gx, gy = np.gradient(u, h, 0.5, edge_order=2)
        wide = np.pad(u, 1, mode="edge")
        u += 0.1 * (wide[2:, 1:-1] + wide[:-2, 1:-1] - 2 * u) - 0.01 * np.hypot(gx, gy)
        v[1:] -= np.diff(u, axis=0)
        v = np.roll(v, (1, -2), axis=(0, 1))
        u = np.round(u, 6)
    return u, v, np.pad(v, ((2, 1), (0, 3)), mode="wrap"), np.einsum("ij,ij->j", u, v)


@cpufree.program
def forced(u: Any, f: Any, w: Any, out: Any, hist: Any, n: int) -> Any:
    for t in range(n):
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] - 2 * u[1:-1, 1:-1])
        u += f[t] * w[t]
        if t % 2 == 0:
            out[t // 2] = u
        hist[t] = np.max(u)
        u -= 0.01 * out[t // 2 - 1]
    return hist[n - 1], out


@cpufree.program
def by_columns_in_turn(u: Any, n: int) -> None:
    for j in range(1, n):
        u[:, j] += 0.5 * u[:, j - 1]
    for j in range(n - 2, -1, -1):
        u[:, j] = u[:, j] - 0.25 * u[:, j + 1]


TURNS = {
    "forced": (
        forced,
        (
            _R.random((9, 8)),
            _R.random((6, 9, 8)),
            _R.random(6),
            np.zeros((3, 9, 8)),
            np.zeros(6),
            6,
        ),
    ),
    "vadv": (sweeping.vadv, sweeping.arguments_of_vadv(70)),
    "by_columns_in_turn": (by_columns_in_turn, (_R.random((7, 12)), 12)),
}


@cpufree.program
def two_layers(x: Any, w1: Any, b1: Any, w2: Any, out: Any) -> Any:
    """The rows of x are divided; every PE has the weights."""
    hidden = np.maximum(x @ w1 + b1, 0.0)
    last = hidden @ w2
    e = np.exp(last - np.reshape(np.max(last, axis=1), (-1, 1)))
    out[:] = e / np.sum(e, axis=1).reshape(-1, 1)
    return hidden


@cpufree.program
def both_ways(A: Any, x: Any, y: Any, u: Any, n: int) -> Any:
    for k in range(n):
        y += A @ x + 0.5 * k
        u += (A @ x) @ A + A[1]
    return np.sum(A, axis=0), np.sum(A, axis=1)


PRODUCTS = {
    "two_layers": (
        two_layers,
        (
            *(_R.standard_normal((13, 6)), _R.standard_normal((6, 40)), _R.standard_normal(40)),
            *(_R.standard_normal((40, 5)), np.zeros((13, 5))),
        ),
    ),
    "both_ways": (both_ways, (_R.random((12, 9)), _R.random(9), np.zeros(12), np.zeros(9), 2)),
}
FIELDS = {
    "functions": (functions, (_R.standard_normal((12, 9)), _R.standard_normal((12, 9)), 0.25, 3)),
}
CASES: dict[str, Any] = {**CHOSEN, **FEWER, **TURNS, **FIELDS, **PRODUCTS, **multigrid.CASES}
QUICK = ("forced", "thresholds", "planes", "by_columns", "cells")
"""Whose text for GPUs is compiled in quick tests."""
ROUNDED = (
    "functions",
    "lattice_boltzmann_last",
    *PRODUCTS,
)
"""Programs whose last bits differ from NumPy's: of long sums."""


@cpufree.program
def kept_points(u: Any) -> Any:
    chosen = u[u > 0]
    return np.sum(chosen)


@cpufree.program
def two_masks(u: Any, v: Any) -> None:
    u[u > 0] = v[v > 0]


@cpufree.program
def shown(u: Any, out: Any, n: int) -> Any:
    last = out[0]
    k = np.count_nonzero(u)
    last = out[k]
    u += last
    return last


@cpufree.program
def by_row_and_column(u: Any, n: int) -> None:
    for j in range(1, n):
        u[j] += u[j - 1]
        u[:, j] += u[:, j - 1]


REFUSED = {
    "shown": (shown, (np.ones((5, 4)), np.ones((9, 5, 4)), 3), "at an index of the run.*a copy"),
    "by_row_and_column": (
        by_row_and_column,
        (np.ones((90, 90)), 90),
        "a sweep from row to row.*one after the other",
    ),
    "kept_points": (kept_points, (np.ones((5, 4)),), "known only in the run.*np.where"),
    "two_masks": (two_masks, (np.ones((5, 4)),) * 2, "meet others.*the same mask"),
    **multigrid.REFUSED,
}
