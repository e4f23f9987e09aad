"""Programs that were once computed wrongly on GPUs, or whose kernels must refuse them."""

from __future__ import annotations

from typing import Any

import numpy as np

import cpufree


@cpufree.program
def inner_copy(u: Any, n: int) -> None:
    for _ in range(n):
        new = 0.5 * (u + np.roll(u, 1, 0))
        u[1:-1] = new[1:-1]


@cpufree.program
def two_writes(u: Any, n: int) -> None:
    for _ in range(n):
        new = 0.5 * u + 1
        new[1:-1] = 0.5 * (u[2:] + u[:-2])
        u[1:-1] = new[1:-1]


@cpufree.program
def other_edge(u: Any, n: int) -> None:
    for _ in range(n):
        new = np.empty_like(u)
        new[1:-1] = 0.5 * (u[2:] + u[:-2])
        new[0] = 7
        u[1:-1] = new[1:-1]


@cpufree.program
def sums_and_breaks(u: Any, v: Any, n: int) -> Any:
    s = 0.0
    while s < n:
        w = 0.5 * (u + np.roll(u, 1, 0))
        s += 1 + 0 * np.sum(w)
        u[2:] = w[2:]
        if s > 2:
            break
        u, v = v, u
    return u, s


@cpufree.program
def spread(u: Any, w: Any, steps: int) -> None:
    for _ in range(steps):
        new = 0.5 * (u + np.roll(u, 1, 1)) * w
        u[...] = new


@cpufree.program
def spread_rows(u: Any, w: Any, steps: int) -> None:
    for _ in range(steps):
        new = 0.5 * (u + np.roll(u, 1, 0)) * w[:, None]
        u[...] = new


@cpufree.program
def ring_of_rows(u: Any, steps: int) -> None:
    for _ in range(steps):
        new = 0.5 * (u + np.roll(u, 1, 0))
        u[...] = new


@cpufree.program
def ring_of_columns(u: Any, steps: int) -> None:
    for _ in range(steps):
        new = 0.5 * (np.roll(u, 2, 1) + np.roll(u, -1, 1))
        u[...] = new


@cpufree.program
def swapped(u: Any, v: Any, steps: int) -> None:
    for _ in range(steps):
        v[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        u, v = v, u


@cpufree.program
def three_places(u: Any, v: Any, w: Any, steps: int) -> None:
    for _ in range(steps):
        v[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        w[2:-1, 1:-2] = v[2:-1, 1:-2] * 0.5 + u[2:-1, 1:-2]
        u, v, w = w, u, v


@cpufree.program
def three_in_turn(u: Any, v: Any, w: Any, steps: int) -> None:
    for _ in range(steps):
        v[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        u, v, w = v, w, u


@cpufree.program
def longer_rows(u: Any, w: Any, steps: int) -> None:
    for t in range(steps):
        u[12, :] = u[12, :] + w[2, :]
        w[2, :] = w[2, :] * 0.5 + t


@cpufree.program
def longer_columns(u: Any, w: Any, steps: int) -> None:
    for t in range(steps):
        u[:, 12] = u[:, 12] + w[:, 2]
        w[:, 2] = w[:, 2] * 0.5 + t


@cpufree.program
def shifted_rows(u: Any, w: Any, steps: int) -> None:
    for _ in range(steps):
        u[2:, :] = u[2:, :] * 0.5 + w
        w[1:-1, :] = 0.5 * (w[2:, :] + w[:-2, :])


@cpufree.program
def shifted_columns(u: Any, w: Any, steps: int) -> None:
    for _ in range(steps):
        u[:, 2:] = u[:, 2:] * 0.5 + w
        w[:, 1:-1] = 0.5 * (w[:, 2:] + w[:, :-2])


@cpufree.program
def four_dimensions(u: Any, steps: int) -> None:
    for _ in range(steps):
        u[:, 1:-1, :, 1:-1] += 0.1 * (u[:, 2:, :, 1:-1] + u[:, :-2, :, 1:-1])
        u[:, :, 1:-1, :] *= 0.5


@cpufree.program
def may_divide_by_zero(u: Any, v: Any, steps: int, bad: int) -> None:
    for t in range(steps):
        v[1:-1, 1:-1] = u[2:, 1:-1] + u[:-2, 1:-1] * (1 / (t - bad))
        u[1:-1, 1:-1] = v[1:-1, 2:] + v[1:-1, :-2]


@cpufree.program
def last_axis_edges(u: Any, steps: int) -> None:
    for _ in range(steps):
        u[1:-1, :, :] += 0.1 * (u[2:, :, :] - u[:-2, :, :])
        u[:, :, 0] = u[:, :, -2]


@cpufree.program
def rolled_into_longer(u: Any, w: Any, steps: int) -> None:
    for _ in range(steps):
        u[2:, :] = u[2:, :] * 0.5 + np.roll(w, -1, 0)
        w[...] = 0.5 * w


@cpufree.program
def rolled_columns_beside(u: Any, w: Any, steps: int) -> None:
    for _ in range(steps):
        u[:, 2:] = u[:, 2:] * 0.5 + np.roll(w, -1, 1)
        w[...] = 0.5 * w


@cpufree.program
def rolled_into_longer_line(u: Any, w: Any, steps: int) -> None:
    for _ in range(steps):
        u[2:] = u[2:] * 0.5 + np.roll(w, -1, 0)


@cpufree.program
def layers(u: Any, v: Any, w: Any, steps: int) -> None:
    for _ in range(steps):
        u[1:-1, 1:] = 2.0 * v[1:-1, 1:]
        u[2:-2, 2:-2] += 1.0
        w[:, :] = 0.5 * u[:, :] + 0.25 * w[:, :]
        v[1:-1, :] = 0.5 * (w[2:, :] + w[:-2, :])


@cpufree.program
def reads_others_aside(u: Any, k: Any, steps: int) -> None:
    for _ in range(steps):
        u[1:-1, 1:-1] = 0.5 * u[1:-1, 1:-1] + k[1:-1, :-2] + 2 * k[1:-1, 2:]


@cpufree.program
def reads_others_further(u: Any, k: Any, steps: int) -> None:
    for _ in range(steps):
        u[1:-1, 2:-2] = 0.5 * u[1:-1, 2:-2] + u[1:-1, 1:-3] + k[1:-1, :-4] + 2 * k[:-2, 4:]
