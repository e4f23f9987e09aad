"""The programs of the benchmark as users of CuPy and JAX write them: the same arithmetic.

CuPy: updates fused by cupy.fuse, one kernel each. JAX: the whole time loop in one jitted function.
"""

# They are written as people write them, without types.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Step = Callable[..., tuple[Any, ...]]


def cupy_rivals(cupy: Any) -> dict[str, Callable[..., Any]]:
    """Return programs for arrays of CuPy, by name; they write into their arguments."""
    fuse = cupy.fuse

    @fuse()
    def third(a, b, c):
        return (a + b + c) / 3.0

    def jacobi_1d(a, b, steps):
        for _ in range(steps):
            b[1:-1] = third(a[:-2], a[1:-1], a[2:])
            a[1:-1] = third(b[:-2], b[1:-1], b[2:])

    @fuse()
    def fifth(a, b, c, d, e):
        return 0.2 * (a + b + c + d + e)

    def sides(u):
        return u[1:-1, 1:-1], u[1:-1, :-2], u[1:-1, 2:], u[2:, 1:-1], u[:-2, 1:-1]

    def jacobi_2d(a, b, steps):
        for _ in range(steps):
            b[1:-1, 1:-1] = fifth(*sides(a))
            a[1:-1, 1:-1] = fifth(*sides(b))

    @fuse()
    def heat(c, n, s, e, w, u, d):
        return 0.125 * (n - 2.0 * c + s) + 0.125 * (e - 2.0 * c + w) + 0.125 * (u - 2.0 * c + d) + c

    def around(u):
        m = slice(1, -1)
        return (
            *(u[m, m, m], u[2:, m, m], u[:-2, m, m], u[m, 2:, m], u[m, :-2, m]),
            *(u[m, m, 2:], u[m, m, :-2]),
        )

    def heat_3d(a, b, steps):
        for _ in range(steps):
            b[1:-1, 1:-1, 1:-1] = heat(*around(a))
            a[1:-1, 1:-1, 1:-1] = heat(*around(b))

    @fuse()
    def less_half(e, a, b):
        return e - 0.5 * (a - b)

    @fuse()
    def magnetic(h, a, b, c, d):
        return h - 0.7 * (a - b + c - d)

    def fdtd_2d(ex, ey, hz, pulse, steps):
        for t in range(steps):
            ey[0, :] = pulse[t]
            ey[1:, :] = less_half(ey[1:, :], hz[1:, :], hz[:-1, :])
            ex[:, 1:] = less_half(ex[:, 1:], hz[:, 1:], hz[:, :-1])
            inner = hz[:-1, :-1], ex[:-1, 1:], ex[:-1, :-1], ey[1:, :-1], ey[:-1, :-1]
            hz[:-1, :-1] = magnetic(*inner)

    @fuse()
    def slope(u, c, a, b):
        return u - c * (a - b)

    @fuse()
    def height(h, dt, a, b, c, d):
        return h - dt * (a - b + c - d)

    def shallow_water(h, u, v, g, dt, steps):
        for _ in range(steps):
            u[1:-1, :] = slope(u[1:-1, :], g * dt, h[1:, :], h[:-1, :])
            v[:, 1:-1] = slope(v[:, 1:-1], g * dt, h[:, 1:], h[:, :-1])
            h[...] = height(h, dt, u[1:, :], u[:-1, :], v[:, 1:], v[:, :-1])

    @fuse()
    def reacted(u, v, un, us, ue, uw, vn, vs, ve, vw, f, k):
        r = u * v * v
        return (
            u + 0.16 * (un + us + ue + uw - 4 * u) - r + f * (1 - u),
            v + 0.08 * (vn + vs + ve + vw - 4 * v) + r - (f + k) * v,
        )

    def rolled(x):
        return [cupy.roll(x, d, axis) for axis in (0, 1) for d in (1, -1)]

    def gray_scott(u, v, f, k, steps):
        for _ in range(steps):
            a, b = reacted(u, v, *rolled(u), *rolled(v), f, k)
            u[...] = a
            v[...] = b

    return {
        f.__name__: f for f in (jacobi_1d, jacobi_2d, heat_3d, fdtd_2d, shallow_water, gray_scott)
    }


def jax_steps(jnp: Any) -> dict[str, Step]:
    """Return one step of each program for arrays of JAX: step(t, arrays, others) -> arrays."""

    def jacobi_1d(t, s, o):
        a, b = s
        b = b.at[1:-1].set((a[:-2] + a[1:-1] + a[2:]) / 3.0)
        return a.at[1:-1].set((b[:-2] + b[1:-1] + b[2:]) / 3.0), b

    def five(u):
        return 0.2 * (u[1:-1, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + u[2:, 1:-1] + u[:-2, 1:-1])

    def jacobi_2d(t, s, o):
        a, b = s
        b = b.at[1:-1, 1:-1].set(five(a))
        return a.at[1:-1, 1:-1].set(five(b)), b

    def second(u):
        m = slice(1, -1)
        c = u[m, m, m]
        return (
            0.125 * (u[2:, m, m] - 2.0 * c + u[:-2, m, m])
            + 0.125 * (u[m, 2:, m] - 2.0 * c + u[m, :-2, m])
            + 0.125 * (u[m, m, 2:] - 2.0 * c + u[m, m, :-2])
            + c
        )

    def heat_3d(t, s, o):
        a, b = s
        m = slice(1, -1)
        b = b.at[m, m, m].set(second(a))
        return a.at[m, m, m].set(second(b)), b

    def fdtd_2d(t, s, o):
        ex, ey, hz = s
        ey = ey.at[0, :].set(o[0][t])
        ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        change = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
        return ex, ey, hz.at[:-1, :-1].add(-0.7 * change)

    def shallow_water(t, s, o):
        h, u, v = s
        g, dt = o
        u = u.at[1:-1, :].add(-g * dt * (h[1:, :] - h[:-1, :]))
        v = v.at[:, 1:-1].add(-g * dt * (h[:, 1:] - h[:, :-1]))
        return h - dt * (u[1:, :] - u[:-1, :] + v[:, 1:] - v[:, :-1]), u, v

    def laplacian(x):
        ring = jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1)
        return ring - 4 * x

    def gray_scott(t, s, o):
        u, v = s
        f, k = o
        r = u * v * v
        new = u + 0.16 * laplacian(u) - r + f * (1 - u)
        return new, v + 0.08 * laplacian(v) + r - (f + k) * v

    def life(t, s, o):
        (z,) = s
        n = sum(jnp.roll(jnp.roll(z, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        return (((n == 3) | ((z == 1) & (n == 2))).astype(z.dtype),)

    def points_27(t, s, o):
        (u,) = s
        n0, n1, n2 = u.shape
        total = jnp.zeros_like(u[1:-1, 1:-1, 1:-1])
        for i in (0, 1, 2):
            for j in (0, 1, 2):
                for k in (0, 1, 2):
                    total += o[0] * u[i : n0 - 2 + i, j : n1 - 2 + j, k : n2 - 2 + k]
        return (u.at[1:-1, 1:-1, 1:-1].set(total),)

    def acoustic(t, s, o):
        u, before = s
        c, weights = o
        m = len(weights) - 1
        n0, n1 = u.shape
        inner = (slice(m, -m), slice(m, -m))
        lap = 2 * weights[0] * u[inner]
        for k in range(1, m + 1):
            lap += weights[k] * (
                u[m + k : n0 - m + k, m:-m]
                + u[m - k : n0 - m - k, m:-m]
                + u[m:-m, m + k : n1 - m + k]
                + u[m:-m, m - k : n1 - m - k]
            )
        return before.at[inner].set(2 * u[inner] - before[inner] + c[inner] * lap), u

    def upwind_in_place(t, s, o):
        (u,) = s
        u = u.at[1:].set(u[1:] - o[0] * (u[1:] - u[:-1]))
        return (u.at[0].set(u[-1]),)

    return {
        f.__name__: f
        for f in (
            *(jacobi_1d, jacobi_2d, heat_3d, fdtd_2d, shallow_water, gray_scott, life),
            *(points_27, acoustic, upwind_in_place),
        )
    }
