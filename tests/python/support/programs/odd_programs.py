"""Programs that use what few others do, for the compiler, with their arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import cpufree


@cpufree.program
def whole_numbers(a, b, n):
    for k in range(n, 0, -2):
        a += b // 3 - a % 5
        b[1:] = np.where(a[1:] > k, a[:-1] * 2, -b[1:])
        a[...] = (a & 1023) ^ (b & 7) | k
    return np.sum(a), np.max(b), np.min(a), a // 7, a / 3, (a > 3).any(), np.all(b < 100)


@cpufree.program
def mixed_types(x, m, flag, c):
    y = x * c + 1
    z = np.where(flag, y, 0.5)
    w = m * x.astype(np.float32)
    x[...] = z + w.astype(np.float32)
    flag[1:-1] = (flag[:-2] | flag[2:]) & ~flag[1:-1]
    total = flag + flag
    m += flag
    return y, z, total, m % 3, -m, np.float32(c) * y


@cpufree.program
def numbers(u, n, dt):
    t = 0.0
    k = 0
    while True:
        k += 1
        if k % 3 == 0:
            continue
        t = t + dt / (1 + k)
        u += min(t, 0.25) * k
        if k > n or t > 0.9:
            break
        if u[2, 1] > 1.5 and np.max(u) < 100:
            u *= 0.5
        else:
            t += 0.125
    u[0, 0] = t
    u[-1, -1] += 2 * k
    return k, t, 7 // k, -7 % k, max(k, 3), float(k) ** 0.5, u[1, 1]


@cpufree.program
def powers(x, y, e):
    y[...] = x**2 + x**0.5 - x**-1 + x**0 + x**1
    a = np.ones(x.shape) * 3 + np.full(x.shape, 2.0) - np.zeros_like(x)
    b = np.clip(y, 0.25, 4.0) + np.sign(x - 0.5) + np.floor(3 * x) + np.rint(2.6 * x)
    c = np.minimum(x, y) if e else np.maximum(x, y) % 0.3
    y += a * b + c // 0.7
    y[np.newaxis, 0] = x[0] + math.sqrt(2.0)


@cpufree.program
def broadcasts(u, column, row, table, steps):
    for t in range(steps):
        u += column[:, None] * row
        u[:, 1:] -= row[1:] * table[t]
        row[...] = row * 0.5 + table[-1]
        u[2:4] = 1
        u[:, 2] = column
    return u[1:3, ::2], row


@cpufree.program
def new_arrays(u, n):
    before = u
    for _ in range(n):
        after = before + 0.5 * (np.roll(before, (1, -1), axis=(0, 1)) - before)
        before, old = after, before
    return before, old if n < 0 else n


def arguments() -> list[tuple[Any, tuple[Any, ...]]]:
    """Return programs with arguments."""
    rng = np.random.default_rng(3)
    ints = rng.integers(-50, 50, (9, 7)).astype(np.int32)
    positive = 0.2 + rng.random((8, 6))
    return [
        (whole_numbers, (ints, ints[::-1].copy(), 6)),
        (
            mixed_types,
            (
                rng.random((7, 5)).astype(np.float32),
                ints[:7, :5].copy(),
                rng.random((7, 5)) > 0.5,
                0.3,
            ),
        ),
        (numbers, (rng.random((6, 5)), 9, 0.5)),
        (powers, (positive, positive.copy(), 0)),
        (broadcasts, (rng.random((9, 6)), rng.random(9), rng.random(6), rng.random(4), 4)),
        (new_arrays, (rng.random((8, 9)), 5)),
    ]
