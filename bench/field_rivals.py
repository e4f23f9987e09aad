"""Lattice Boltzmann and V-cycles of bench/programs.py as users of CuPy and JAX write them."""

# They are written as people write them, without types.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu_program_cases import fields

EAST, NORTH, WEIGHTS = fields.EAST, fields.NORTH, fields.WEIGHTS
INNER = (slice(1, -1), slice(1, -1))


def collided(s, omega):
    """Return the nine populations after a collision."""
    rho = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7] + s[8]
    ux = (s[1] - s[3] + s[5] - s[6] - s[7] + s[8]) / rho
    uy = (s[2] - s[4] + s[5] + s[6] - s[7] - s[8]) / rho
    square = 1.5 * (ux * ux + uy * uy)
    out = []
    for k in range(9):
        cu = 3 * (EAST[k] * ux + NORTH[k] * uy)
        equilibrium = WEIGHTS[k] * rho * (1 + cu + 0.5 * cu * cu - square)
        out.append(s[k] + omega * (equilibrium - s[k]))
    return tuple(out)


def beside(u: Any) -> tuple[Any, Any, Any, Any]:
    """Return the four neighbours of inner points."""
    return u[2:, 1:-1], u[:-2, 1:-1], u[1:-1, 2:], u[1:-1, :-2]


def relaxed(a, b, c, d, f, hh):
    return 0.25 * (a + b + c + d + hh * f)


def residual(a, b, c, d, u, f, hh):
    return f + (a + b + c + d - 4 * u) / hh


def restricted(r, a, b, c, d):
    return 0.5 * r + 0.125 * (a + b + c + d)


def of_coarse(r: Any) -> Any:
    """Return what `restricted` takes: every second inner point, and its neighbours."""
    even = slice(2, -2, 2)
    return (
        *(r[even, even], r[1:-3:2, even], r[3:-1:2, even]),
        *(r[even, 1:-3:2], r[even, 3:-1:2]),
    )


def corrections(e: Any) -> Any:
    """Return views of the fine grid, a weight, and what is added there, of a coarse correction."""
    all_points, between = slice(None, None, 2), slice(1, None, 2)
    return (
        ((all_points, all_points), 1.0, (e,)),
        ((between, all_points), 0.5, (e[1:], e[:-1])),
        ((all_points, between), 0.5, (e[:, 1:], e[:, :-1])),
        ((between, between), 0.25, (e[1:, 1:], e[:-1, 1:], e[1:, :-1], e[:-1, :-1])),
    )


def cupy_rivals(cupy: Any) -> dict[str, Callable[..., Any]]:
    """Return programs for arrays of CuPy, by name; they write into their arguments."""
    relax, defect, restrict = map(cupy.fuse(), (relaxed, residual, restricted))

    @cupy.fuse()
    def collide(a, b, c, d, e, f, g, h, i, omega):
        return collided((a, b, c, d, e, f, g, h, i), omega)

    @cupy.fuse()
    def corrected_1(u, a, weight):
        return u + weight * a

    @cupy.fuse()
    def corrected_2(u, a, b, weight):
        return u + weight * (a + b)

    @cupy.fuse()
    def corrected_4(u, a, b, c, d, weight):
        return u + weight * (a + b + c + d)

    correct = {1: corrected_1, 2: corrected_2, 4: corrected_4}

    def lattice_boltzmann(g, new, omega, steps):
        now = [g[k] for k in range(9)]
        for _ in range(steps):
            s = [cupy.roll(now[k], (NORTH[k], EAST[k]), axis=(0, 1)) for k in range(9)]
            now = collide(*s, omega)
        for k in range(9):
            g[k] = now[k]

    def smooth(u, f, hh, turns):
        for _ in range(turns):
            u[INNER] = relax(*beside(u), f[INNER], hh)

    def cycle(u, f, hh, grids):
        smooth(u, f, hh, 2 if grids > 1 else 8)
        if grids > 1:
            r, n = cupy.zeros_like(u), u.shape[0] // 2 + 1
            r[INNER] = defect(*beside(u), u[INNER], f[INNER], hh)
            coarse, e = cupy.zeros((n, n)), cupy.zeros((n, n))
            coarse[INNER] = restrict(*of_coarse(r))
            cycle(e, coarse, 4 * hh, grids - 1)
            for at, weight, values in corrections(e):
                u[at] = correct[len(values)](u[at], *values, weight)
            smooth(u, f, hh, 1)

    def v_cycles(u, f, hh, grids, cycles):
        for _ in range(cycles):
            cycle(u, f, hh, grids)

    return {f.__name__: f for f in (lattice_boltzmann, v_cycles)}


def jax_steps(jnp: Any) -> dict[str, Callable[..., tuple[Any, ...]]]:
    """Return one step of each program for arrays of JAX: step(t, arrays, others) -> arrays."""

    def lattice_boltzmann(t, s, o):
        g, _ = s
        streamed = [jnp.roll(g[k], (NORTH[k], EAST[k]), axis=(0, 1)) for k in range(9)]
        return jnp.stack(collided(streamed, o[0])), g

    def smooth(u, f, hh, turns):
        for _ in range(turns):
            u = u.at[INNER].set(relaxed(*beside(u), f[INNER], hh))
        return u

    def cycle(u, f, hh, grids):
        u = smooth(u, f, hh, 2 if grids > 1 else 8)
        if grids > 1:
            n = u.shape[0] // 2 + 1
            r = residual(*beside(u), u[INNER], f[INNER], hh)
            r = jnp.zeros_like(u).at[INNER].set(r)
            coarse = jnp.zeros((n, n)).at[INNER].set(restricted(*of_coarse(r)))
            e = cycle(jnp.zeros((n, n)), coarse, 4 * hh, grids - 1)
            for at, weight, values in corrections(e):
                u = u.at[at].add(weight * sum(values[1:], start=values[0]))
            u = smooth(u, f, hh, 1)
        return u

    def v_cycles(t, s, o):
        return (cycle(s[0], *o),)

    return {f.__name__: f for f in (lattice_boltzmann, v_cycles)}
