"""The programs of bench/programs.py as users of CuPy, JAX and DaCe write them: the same arithmetic.

CuPy: updates fused by cupy.fuse, one kernel each. JAX: the whole time loop in one jitted function.
"""

# They are written as people write them, without types.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import importlib
import importlib.util
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import field_rivals
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/python/support/dace"))

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

    own = (jacobi_1d, jacobi_2d, heat_3d, fdtd_2d, shallow_water, gray_scott)
    return {f.__name__: f for f in own} | field_rivals.cupy_rivals(cupy)


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

    own = (
        *(jacobi_1d, jacobi_2d, heat_3d, fdtd_2d, shallow_water, gray_scott, life),
        *(points_27, acoustic, upwind_in_place),
    )
    return {f.__name__: f for f in own} | field_rivals.jax_steps(jnp)


ARRAYS = {
    **{"fdtd_2d": 3, "shallow_water": 3, "cavity_flow": 3},
    **{"life": 1, "points_27": 1, "upwind_in_place": 1, "v_cycles": 1},
}
"""How many arrays a step changes; 2 where nothing is said."""
SECOND_IS_OLD = ("lattice_boltzmann", "jacobi", "jacobi_3d")
"""Programs of two arrays of which the second one is left with what is of no use."""


def answer_of(name: str, args: tuple[Any, ...]) -> list[Any]:
    """Return the arrays of a call that are its answer."""
    return list(args[: 1 if name in SECOND_IS_OLD else ARRAYS.get(name, 2)])


def jax_run(jax: Any, name: str, args: tuple[Any, ...]) -> Callable[[int], Any] | None:
    """Return what does steps by JAX and gives the arrays; None: it is not written for JAX."""
    jax.config.update("jax_enable_x64", True)
    step = jax_steps(jax.numpy).get(name)
    if step is None:
        return None
    count = ARRAYS.get(name, 2)
    state = tuple(jax.numpy.asarray(a) for a in args[:count])
    others = tuple(jax.numpy.asarray(a) if isinstance(a, np.ndarray) else a for a in args[count:-1])
    # The number of steps is an argument, as it is one of ours.
    compiled = jax.jit(lambda s, n: jax.lax.fori_loop(0, n, lambda t, x: step(t, x, others), s))
    return lambda steps: jax.block_until_ready(compiled(state, steps))


def dace_rivals() -> dict[str, Callable[..., Any]]:
    """Return programs by name, with the arguments of ours; {}: DaCe is not installed.

    DaCe's automatic optimization and its own code generator, the C++ compiler at -O3. The results
    are the same to rounding: DaCe compiles with -ffast-math unless it is told otherwise.
    """
    if importlib.util.find_spec("dace") is None:
        return {}
    dace: Any = importlib.import_module("dace")
    kernels: Any = importlib.import_module("dace_kernels")
    dace.Config.set("default_build_folder", value=tempfile.mkdtemp(prefix="dace-"))

    def compiled(name: str) -> Any:
        optimize = importlib.import_module("dace.transformation.auto.auto_optimize")
        sdfg = getattr(kernels, name).to_sdfg(simplify=True)
        optimize.auto_optimize(sdfg, dace.DeviceType.CPU)
        return sdfg.compile()

    def jacobi(name: str, sizes: Callable[[Any], dict[str, int]]) -> Callable[..., Any]:
        made: list[Any] = []

        def call(a: Any, b: Any, steps: int) -> None:
            made[:] = made or [compiled(name)]
            made[0](A=a, B=b, steps=np.int64(steps + 1), **sizes(a))  # it counts from 1

        return call

    fdtd: list[Any] = []

    def fdtd_2d(ex: Any, ey: Any, hz: Any, pulse: Any, steps: int) -> None:
        fdtd[:] = fdtd or [compiled("fdtd_2d")]
        n, m = ex.shape
        fdtd[0](
            ex=ex, ey=ey, hz=hz, source=pulse, steps=np.int64(steps), N=n, M=m, K=pulse.shape[0]
        )

    return {
        "jacobi_1d": jacobi("jacobi_1d", lambda a: {"N": a.shape[0]}),
        "jacobi_2d": jacobi("jacobi_2d", lambda a: {"N": a.shape[0], "M": a.shape[1]}),
        "fdtd_2d": fdtd_2d,
    }
