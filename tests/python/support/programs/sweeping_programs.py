"""Programs whose loops go along an axis, as NPBench has them (the text is our own)."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

import cpufree


@cpufree.program
def seidel_2d(a, steps):
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            a[i, 1:-1] += (
                a[i - 1, :-2] + a[i - 1, 1:-1] + a[i - 1, 2:]
                + a[i, 2:] + a[i + 1, :-2] + a[i + 1, 1:-1] + a[i + 1, 2:]
            )  # fmt: skip
            for j in range(1, n - 1):
                a[i, j] += a[i, j - 1]
                a[i, j] /= 9.0


@cpufree.program
def adi(u, v, p, q, a, b, d, steps):
    n = u.shape[0]
    for _ in range(steps):
        v[0, 1:-1] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = v[0, 1:-1]
        for j in range(1, n - 1):
            p[1:-1, j] = -a / (a * p[1:-1, j - 1] + b)
            q[1:-1, j] = (
                -d * u[j, :-2] + (1.0 + 2.0 * d) * u[j, 1:-1] - d * u[j, 2:] - a * q[1:-1, j - 1]
            ) / (a * p[1:-1, j - 1] + b)
        for j in range(n - 2, 0, -1):
            v[j, 1:-1] = p[1:-1, j] * v[j + 1, 1:-1] + q[1:-1, j]


@cpufree.program
def vadv(stage, u, w, before, dt):
    levels = stage.shape[2]
    c, d = np.zeros_like(stage), np.zeros_like(stage)
    for k in range(1, levels - 1):
        down = -0.25 * (w[1:, :, k] + w[:-1, :, k])
        up = 0.25 * (w[1:, :, k + 1] + w[:-1, :, k + 1])
        scale = 1.0 / (dt - 0.5 * down - 0.5 * up - 0.5 * down * c[:, :, k - 1])
        c[:, :, k] = 0.5 * up * scale
        d[:, :, k] = (dt * before[:, :, k] - 0.5 * down * d[:, :, k - 1]) * scale
    for k in range(levels - 2, -1, -1):
        d[:, :, k] = d[:, :, k] - c[:, :, k] * d[:, :, k + 1]
        stage[:, :, k] = dt * (d[:, :, k] - u[:, :, k])


@cpufree.program
def vadv_that_keeps_axes(stage, u, w, before, dt):
    levels = stage.shape[2]
    c, d = np.zeros_like(stage), np.zeros_like(stage)
    for k in range(1, levels - 1):
        down = -0.25 * (w[1:, :, k : k + 1] + w[:-1, :, k : k + 1])
        up = 0.25 * (w[1:, :, k + 1 : k + 2] + w[:-1, :, k + 1 : k + 2])
        scale = 1.0 / (dt - 0.5 * down - 0.5 * up - 0.5 * down * c[:, :, k - 1 : k])
        c[:, :, k : k + 1] = 0.5 * up * scale
        d[:, :, k : k + 1] = (
            dt * before[:, :, k : k + 1] - 0.5 * down * d[:, :, k - 1 : k]
        ) * scale
    for k in range(levels - 2, -1, -1):
        d[:, :, k : k + 1] = d[:, :, k : k + 1] - c[:, :, k : k + 1] * d[:, :, k + 1 : k + 2]
        stage[:, :, k : k + 1] = dt * (d[:, :, k : k + 1] - u[:, :, k : k + 1])


def arguments_of_vadv(levels: int) -> tuple[object, ...]:
    """Return arguments for a number of levels."""
    r = np.random.default_rng(2)
    shapes = (9, 6, levels), (9, 6, levels), (10, 6, levels), (9, 6, levels)
    return (*(r.random(shape) for shape in shapes), 0.15)
