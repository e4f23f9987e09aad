"""Kernels of NPBench's list, rewritten for DaCe's front end: what runs, and what is refused."""

from __future__ import annotations

from typing import Any

import dace
import numpy as np

I, J, K, N, M = (dace.symbol(n, dace.int64) for n in "IJKNM")  # noqa: E741


@dace.program
def jacobi_1d(steps: dace.int64, A: dace.float64[N], B: dace.float64[N]):
    for _t in range(1, steps):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])


@dace.program
def jacobi_2d(steps: dace.int64, A: dace.float64[N, M], B: dace.float64[N, M]):
    for _t in range(1, steps):
        B[1:-1, 1:-1] = 0.2 * (
            A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1]
        )
        A[1:-1, 1:-1] = 0.2 * (
            B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1]
        )


@dace.program
def by_elements(
    A: dace.float64[N, M], B: dace.float64[N, M], C: dace.float64[N, M, 3], n: dace.int64
):
    """Elements at two and three numbers: no kernel of the list."""
    for t in range(n):
        for i in range(1, N):
            for j in range(i, M):
                A[i, j] += B[j, i] * 1.5
                A[i, j] += C[t, j, 1] * 0.5


@dace.program
def heat_3d(steps: dace.int64, A: dace.float64[I, J, K], B: dace.float64[I, J, K]):
    for _t in range(1, steps):
        B[1:-1, 1:-1, 1:-1] = (
            0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[:-2, 1:-1, 1:-1])
            + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, :-2, 1:-1])
            + 0.125 * (A[1:-1, 1:-1, 2:] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, 1:-1, :-2])
            + A[1:-1, 1:-1, 1:-1]
        )
        A[:] = B


@dace.program
def fdtd_2d(
    steps: dace.int64,
    ex: dace.float64[N, M],
    ey: dace.float64[N, M],
    hz: dace.float64[N, M],
    source: dace.float64[K],
):
    for t in range(steps):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


@dace.program
def hdiff(
    inp: dace.float64[I + 4, J + 4, K], out: dace.float64[I, J, K], coeff: dace.float64[I, J, K]
):
    lap = 4.0 * inp[1:-1, 1:-1, :] - (
        inp[2:, 1:-1, :] + inp[:-2, 1:-1, :] + inp[1:-1, 2:, :] + inp[1:-1, :-2, :]
    )
    dx = lap[1:, 1:-1, :] - lap[:-1, 1:-1, :]
    fx = np.where(dx * (inp[2:-1, 2:-2, :] - inp[1:-2, 2:-2, :]) > 0, 0.0, dx)
    dy = lap[1:-1, 1:, :] - lap[1:-1, :-1, :]
    fy = np.where(dy * (inp[2:-2, 2:-1, :] - inp[2:-2, 1:-2, :]) > 0, 0.0, dy)
    out[:] = inp[2:-2, 2:-2, :] - coeff * (
        fx[1:, :, :] - fx[:-1, :, :] + fy[:, 1:, :] - fy[:, :-1, :]
    )


@dace.program
def arc_distance(
    a: dace.float64[N], b: dace.float64[N], c: dace.float64[N], d: dace.float64[N],
    out: dace.float64[N],
):  # fmt: skip
    s = np.sin((c - a) / 2) ** 2 + np.cos(a) * np.cos(c) * np.sin((d - b) / 2) ** 2
    out[:] = 2 * np.arctan2(np.sqrt(s), np.sqrt(1 - s))


@dace.program
def compute(A: dace.int64[N, M], B: dace.int64[N, M], a: dace.int64, b: dace.int64):
    B[:] = np.minimum(np.maximum(A, 2), 10) * a + B * b


@dace.program
def cavity_flow(
    steps: dace.int64, rounds: dace.int64, u: dace.float64[N, M], v: dace.float64[N, M],
    p: dace.float64[N, M], dt: dace.float64, h: dace.float64,
):  # fmt: skip
    b = np.zeros((N, M), dtype=np.float64)
    pn = np.zeros((N, M), dtype=np.float64)
    un = np.zeros((N, M), dtype=np.float64)
    for _t in range(steps):
        un[:] = u
        b[1:-1, 1:-1] = (
            (u[1:-1, 2:] - u[1:-1, :-2]) / (2.0 * h) + (v[2:, 1:-1] - v[:-2, 1:-1]) / (2.0 * h)
        ) / dt
        for _q in range(rounds):
            pn[:] = p
            p[1:-1, 1:-1] = (
                (pn[1:-1, 2:] + pn[1:-1, :-2] + pn[2:, 1:-1] + pn[:-2, 1:-1]) * 0.25
                - 0.25 * h * h * b[1:-1, 1:-1]
            )  # fmt: skip
            p[:, M - 1] = p[:, M - 2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[N - 1, :] = 0.0
        u[1:-1, 1:-1] = un[1:-1, 1:-1] - dt / (2.0 * h) * (p[1:-1, 2:] - p[1:-1, :-2])
        v[1:-1, 1:-1] = v[1:-1, 1:-1] - dt / (2.0 * h) * (p[2:, 1:-1] - p[:-2, 1:-1])


@dace.program
def channel_flow(
    u: dace.float64[N, M], v: dace.float64[N, M], dt: dace.float64, limit: dace.float64
):
    change = 1.0
    un = np.zeros((N, M), dtype=np.float64)
    while change > limit:
        un[:] = u
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - dt * un[1:-1, 1:-1] * (un[1:-1, 1:-1] - un[1:-1, :-2])
            + dt * (un[2:, 1:-1] - 2.0 * un[1:-1, 1:-1] + un[:-2, 1:-1])
        )
        change = np.max(np.abs(u - un))
    v[:] = u


@dace.program
def conv_3x3(A: dace.float64[N, M], out: dace.float64[N - 2, M - 2], w: dace.float64[3, 3]):
    out[:] = 0.0
    for i in range(3):
        for j in range(3):
            out[:] = out + w[i, j] * A[i : N - 2 + i, j : M - 2 + j]


@dace.program
def softmax_row(A: dace.float64[N, M], out: dace.float64[N, M]):
    top = np.max(A)
    e = np.exp(A - top)
    out[:] = e / np.sum(e)


@dace.program
def seidel_2d(steps: dace.int64, A: dace.float64[N, M]):
    for _t in range(steps):
        for i in range(1, N - 1):
            A[i, 1:-1] += A[i - 1, :-2] + A[i - 1, 1:-1] + A[i - 1, 2:] + A[i, 2:]
            for j in range(1, M - 1):
                A[i, j] = (A[i, j] + A[i, j - 1]) / 9.0


@dace.program
def floyd_warshall(path: dace.float64[N, N]):
    for k in range(N):
        for i in range(N):
            path[i, :] = np.minimum(path[i, :], path[i, k] + path[k, :])


@dace.program
def go_fast(A: dace.float64[N, N]):
    trace = 0.0
    for i in range(N):
        trace += np.tanh(A[i, i])
    A[:] = A + trace


def grid(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


def whole(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).integers(0, 20, shape)


RUNS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "jacobi_1d": (jacobi_1d, (7, grid(1, 300), grid(2, 300))),
    "jacobi_2d": (jacobi_2d, (6, grid(1, 30, 21), grid(2, 30, 21))),
    "heat_3d": (heat_3d, (5, grid(1, 12, 9, 10), grid(2, 12, 9, 10))),
    "fdtd_2d": (fdtd_2d, (90, grid(1, 30, 21), grid(2, 30, 21), grid(3, 30, 21), grid(4, 90))),
    "hdiff": (hdiff, (grid(1, 20, 16, 6), grid(2, 16, 12, 6), grid(3, 16, 12, 6))),
    "arc_distance": (arc_distance, tuple(grid(k, 500) for k in range(5))),
    "compute": (compute, (whole(1, 30, 20), whole(2, 30, 20), 4, 3)),
    "cavity_flow": (
        cavity_flow,
        (3, 4, grid(1, 20, 15), grid(2, 20, 15), grid(3, 20, 15), 0.01, 0.5),
    ),
    "channel_flow": (channel_flow, (0.1 * grid(1, 20, 15), grid(2, 20, 15), 0.01, 0.001)),
    "conv_3x3": (conv_3x3, (grid(1, 20, 15), grid(2, 18, 13), grid(3, 3, 3))),
    "seidel_2d": (seidel_2d, (8, grid(1, 50, 50))),
    "floyd_warshall": (floyd_warshall, (np.abs(grid(1, 60, 60)),)),
    "go_fast": (go_fast, (grid(1, 99, 99),)),
    "softmax (all points)": (softmax_row, (grid(1, 20, 15), grid(2, 20, 15))),
}
"""Kernels that run, with arguments."""
