"""Programs for the compiler, as people write them, with arguments to call them with.

The names of NPBench's (Ziogas et al. 2021) say what they compute; the text is our own.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import numpy as np

import cpufree


@cpufree.program
def jacobi_1d(a, b, steps):
    for _ in range(steps):
        b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3.0
        a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) / 3.0


@cpufree.program
def jacobi_2d(a, b, steps):
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        )
        a[1:-1, 1:-1] = 0.2 * (
            b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1]
        )


@cpufree.program
def second_differences(u):
    inner = u[1:-1, 1:-1, 1:-1]
    return (
        0.125 * (u[2:, 1:-1, 1:-1] - 2.0 * inner + u[:-2, 1:-1, 1:-1])
        + 0.125 * (u[1:-1, 2:, 1:-1] - 2.0 * inner + u[1:-1, :-2, 1:-1])
        + 0.125 * (u[1:-1, 1:-1, 2:] - 2.0 * inner + u[1:-1, 1:-1, :-2])
        + inner
    )


@cpufree.program
def heat_3d(a, b, steps):
    for _ in range(steps):
        b[1:-1, 1:-1, 1:-1] = second_differences(a)
        a[1:-1, 1:-1, 1:-1] = second_differences(b)


@cpufree.program
def fdtd_2d(ex, ey, hz, pulse, steps):
    for t in range(steps):
        ey[0, :] = pulse[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


@cpufree.program
def hdiff(field, out, coefficient):
    n, m = out.shape[0], out.shape[1]
    lap = 4.0 * field[1 : n + 3, 1 : m + 3, :] - (
        field[2 : n + 4, 1 : m + 3, :]
        + field[0 : n + 2, 1 : m + 3, :]
        + field[1 : n + 3, 2 : m + 4, :]
        + field[1 : n + 3, 0 : m + 2, :]
    )
    d = lap[1:, 1 : m + 1, :] - lap[:-1, 1 : m + 1, :]
    rise = field[2 : n + 3, 2 : m + 2, :] - field[1 : n + 2, 2 : m + 2, :]
    x_flux = np.where(d * rise > 0, 0, d)
    d = lap[1 : n + 1, 1:, :] - lap[1 : n + 1, :-1, :]
    rise = field[2 : n + 2, 2 : m + 3, :] - field[2 : n + 2, 1 : m + 2, :]
    y_flux = np.where(d * rise > 0, 0, d)
    fluxes = x_flux[1:, :, :] - x_flux[:-1, :, :] + y_flux[:, 1:, :] - y_flux[:, :-1, :]
    out[:, :, :] = field[2 : n + 2, 2 : m + 2, :] - coefficient[:, :, :] * fluxes


@cpufree.program
def pressure(p, b, dx, dy, turns):
    for _ in range(turns):
        pn = p.copy()
        p[1:-1, 1:-1] = (
            (pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2
        ) / (2 * (dx**2 + dy**2)) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0


@cpufree.program
def cavity_flow(u, v, p, dt, dx, dy, rho, nu, steps, turns):
    b = np.zeros_like(p)
    for _ in range(steps):
        un = u.copy()
        vn = v.copy()
        ux = (un[1:-1, 2:] - un[1:-1, :-2]) / (2 * dx)
        vy = (vn[2:, 1:-1] - vn[:-2, 1:-1]) / (2 * dy)
        uy = (un[2:, 1:-1] - un[:-2, 1:-1]) / (2 * dy)
        vx = (vn[1:-1, 2:] - vn[1:-1, :-2]) / (2 * dx)
        b[1:-1, 1:-1] = rho * (1 / dt * (ux + vy) - ux**2 - 2 * (uy * vx) - vy**2)
        pressure(p, b, dx, dy, turns)
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, :-2])
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
            + nu * dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, :-2])
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[1:-1, :-2])
            - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[:-2, 1:-1])
            + nu * dt / dy**2 * (vn[2:, 1:-1] - 2 * vn[1:-1, 1:-1] + vn[:-2, 1:-1])
        )
        u[0, :] = 0
        u[:, 0] = 0
        u[-1, :] = 1
        v[0, :] = 0
        v[:, -1] = 0


@cpufree.program
def channel_flow(u, dt, dx, force, most):
    change = 1.0
    steps = 0
    while change > 1e-3 and steps < most:
        un = u.copy()
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - dt / dx * un[1:-1, 1:-1] * (un[1:-1, 1:-1] - un[1:-1, :-2])
            + force * dt
        )
        u[1:-1, -1] = un[1:-1, -1] - dt / dx * un[1:-1, -1] * (un[1:-1, -1] - un[1:-1, -2])
        u[1:-1, 0] = un[1:-1, 0] - dt / dx * un[1:-1, 0] * (un[1:-1, 0] - un[1:-1, -1])
        u[0, :] = 0
        u[-1, :] = 0
        change = (np.sum(u) - np.sum(un)) / np.sum(u)
        steps += 1
    return steps


def _second_derivative(order):
    """Return the weights of central second differences (Fornberg 1988), as fractions of floats."""
    half = order // 2
    points = np.arange(1, half + 1)
    system = np.array([points ** (2 * k) for k in range(1, half + 1)], dtype=float)
    right = np.zeros(half)
    right[0] = 1.0
    weights = np.linalg.solve(system, right)
    return (float(-2 * weights.sum()), *map(float, weights))


@cpufree.program
def acoustic(u, before, c, weights, steps):
    m = len(weights) - 1
    n0, n1 = u.shape
    for _ in range(steps):
        lap = 2 * weights[0] * u[m:-m, m:-m]
        for k in range(1, m + 1):
            lap += weights[k] * (
                u[m + k : n0 - m + k, m:-m]
                + u[m - k : n0 - m - k, m:-m]
                + u[m:-m, m + k : n1 - m + k]
                + u[m:-m, m - k : n1 - m - k]
            )
        before[m:-m, m:-m] = 2 * u[m:-m, m:-m] - before[m:-m, m:-m] + c[m:-m, m:-m] * lap
        u, before = before, u


@cpufree.program
def shallow_water(h, u, v, g, dt, steps):
    for _ in range(steps):
        u[1:-1, :] -= g * dt * (h[1:, :] - h[:-1, :])
        v[:, 1:-1] -= g * dt * (h[:, 1:] - h[:, :-1])
        h -= dt * (u[1:, :] - u[:-1, :] + v[:, 1:] - v[:, :-1])


@cpufree.program
def periodic_laplacian(x):
    ring = np.roll(x, 1, axis=0) + np.roll(x, -1, axis=0) + np.roll(x, 1, axis=1)
    return ring + np.roll(x, -1, axis=1) - 4 * x


@cpufree.program
def gray_scott(u, v, f, k, steps):
    for _ in range(steps):
        reaction = u * v * v
        u_new = u + 0.16 * periodic_laplacian(u) - reaction + f * (1 - u)
        v[...] = v + 0.08 * periodic_laplacian(v) + reaction - (f + k) * v
        u[...] = u_new


@cpufree.program
def red_black(u, f, turns):
    for _ in range(turns):
        for first in (1, 2):
            for i in (1, 2):
                j = 2 if i == first else 1
                n, m = (u.shape[0] - 1 - i + 1) // 2, (u.shape[1] - 1 - j + 1) // 2
                u[i : i + 2 * n : 2, j : j + 2 * m : 2] = 0.25 * (
                    u[i - 1 : i - 1 + 2 * n : 2, j : j + 2 * m : 2]
                    + u[i + 1 : i + 1 + 2 * n : 2, j : j + 2 * m : 2]
                    + u[i : i + 2 * n : 2, j - 1 : j - 1 + 2 * m : 2]
                    + u[i : i + 2 * n : 2, j + 1 : j + 1 + 2 * m : 2]
                    + f[i : i + 2 * n : 2, j : j + 2 * m : 2]
                )


@cpufree.program
def life(z, steps):
    for _ in range(steps):
        n = np.zeros_like(z)
        for i in (-1, 0, 1):
            for j in (-1, 0, 1):
                if i or j:
                    n += np.roll(np.roll(z, i, 0), j, axis=1)
        z[...] = (n == 3) | ((z == 1) & (n == 2))


@cpufree.program
def points_27(u, w, steps):
    for _ in range(steps):
        total = np.zeros_like(u[1:-1, 1:-1, 1:-1])
        for i in (0, 1, 2):
            for j in (0, 1, 2):
                for k in (0, 1, 2):
                    total += (
                        w
                        * u[
                            i : u.shape[0] - 2 + i,
                            j : u.shape[1] - 2 + j,
                            k : u.shape[2] - 2 + k,
                        ]
                    )
        u[1:-1, 1:-1, 1:-1] = total


@cpufree.program
def until_still(u, tol):
    n = 0
    new = u.copy()
    error = np.float64(1.0)
    while error > tol:
        new[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        error = np.max(np.abs(new - u))
        u, new = new, u
        n += 1
        if n == 400:
            break
    return u, n, error


@cpufree.program
def batch_of_waves(u, v, c, steps):
    for _ in range(steps):
        v[:, 1:-1] += c * (u[:, 2:] - 2 * u[:, 1:-1] + u[:, :-2])
        u += v


@cpufree.program
def upwind_in_place(u, c, steps):
    for _ in range(steps):
        u[1:] = u[1:] - c * (u[1:] - u[:-1])
        u[0] = u[-1]


@cpufree.program
def waves_without_end(u, steps):
    for _ in range(steps):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])


@cpufree.program
def grows_too_large(u, steps):
    n = 1
    for t in range(steps):
        n = n * 3 + t
        u += 1.0
    u += n


Arguments = Callable[[np.random.Generator, int], tuple[Any, ...]]


# Name -> the program, and its arguments for a generator and a size. The sizes are odd on purpose.
CASES: dict[str, tuple[Any, Arguments]] = {
    "jacobi_1d": (jacobi_1d, lambda r, n: (r.random(5 * n + 3), r.random(5 * n + 3), 4)),
    "jacobi_2d": (jacobi_2d, lambda r, n: (r.random((n, n + 3)), r.random((n, n + 3)), 3)),
    "heat_3d": (heat_3d, lambda r, n: (r.random((n, 7, 9)), r.random((n, 7, 9)), 2)),
    "fdtd_2d": (
        fdtd_2d,
        lambda r, n: (*(r.random((n, n + 1)) for _ in range(3)), r.random(9), 5),
    ),
    "hdiff": (
        hdiff,
        lambda r, n: (r.random((n + 4, 11, 5)), r.random((n, 7, 5)), r.random((n, 7, 5))),
    ),
    "cavity_flow": (
        cavity_flow,
        lambda r, n: (
            *(r.random((n, n + 2)) * 0.1 for _ in range(3)),
            *(0.001, 0.1, 0.1, 1.0, 0.1, 3, 4),
        ),
    ),
    "channel_flow": (channel_flow, lambda r, n: (r.random((n, 13)), 0.01, 0.1, 1.0, 6)),
    **{
        f"acoustic_{order}": (
            acoustic,
            lambda r, n, order=order: (
                r.random((n + order, 21)),
                r.random((n + order, 21)),
                0.01 * r.random((n + order, 21)),
                _second_derivative(order),
                3,
            ),
        )
        for order in (2, 4, 8, 16)
    },
    "shallow_water": (
        shallow_water,
        lambda r, n: (
            1 + 0.1 * r.random((n, 9)),
            np.zeros((n + 1, 9)),
            np.zeros((n, 10)),
            *(9.81, 0.01, 4),
        ),
    ),
    "gray_scott": (
        gray_scott,
        lambda r, n: (r.random((n, 17)), 0.3 * r.random((n, 17)), 0.06, 0.062, 4),
    ),
    "red_black": (red_black, lambda r, n: (r.random((n, n + 1)), 0.01 * r.random((n, n + 1)), 3)),
    "life": (life, lambda r, n: (r.integers(0, 2, (n, 18)).astype(np.int32), 5)),
    "points_27": (points_27, lambda r, n: (r.random((n, 6, 8)).astype(np.float32), 0.03, 2)),
    "until_still": (until_still, lambda r, n: (r.random((n, 9)), 1e-3)),
    "batch_of_waves": (
        batch_of_waves,
        lambda r, n: (r.random((5, n)), np.zeros((5, n)), np.float64(0.1), 6),
    ),
    "upwind_in_place": (upwind_in_place, lambda r, n: (r.random((n, 4)), 0.3, 5)),
}


def case(name: str, size: int, seed: int = 1) -> tuple[Any, tuple[Any, ...]]:
    """Return a program and its arguments."""
    program, make = CASES[name]
    return program, make(np.random.default_rng(seed), size)


def copies(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return arguments with copies of the arrays, of those in lists, too."""
    return tuple(
        list(copies(tuple(a)))
        if isinstance(a, list)
        else a.copy()
        if isinstance(a, np.ndarray)
        else a
        for a in arguments
    )


def assert_same(name: str, expected: tuple[Any, ...], found: tuple[Any, ...]) -> None:
    """Compare arguments or results bit for bit."""
    assert len(expected) == len(found)
    for k, (a, b) in enumerate(zip(expected, found, strict=True)):
        assert type(a) is type(b), (name, k, type(a), type(b))
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype and a.shape == b.shape, (name, k)
            np.testing.assert_array_equal(a, b, err_msg=f"{name}, value {k}")
        elif a is not None:
            assert a == b, (name, k)


def plainly(program: Any) -> Callable[..., Any]:
    """Return the function of a program, in which the programs that it calls are plain, too."""
    f = program.function
    names = {
        name: plainly(value) if getattr(value, "is_cpufree_program", False) else value
        for name, value in f.__globals__.items()
        if name in _names_of(f.__code__)
    }
    names["__builtins__"] = f.__globals__["__builtins__"]
    return FunctionType(f.__code__, names, f.__name__, f.__defaults__, f.__closure__)


def _names_of(code: CodeType) -> set[str]:
    """Return the names that a function has from outside, in its list displays, too."""
    inside = (c for c in code.co_consts if isinstance(c, CodeType))
    return {*code.co_names}.union(*map(_names_of, inside))


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return what a program returned as a tuple."""
    return value if isinstance(value, tuple) else (value,)
