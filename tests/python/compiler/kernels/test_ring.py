"""Programs whose ends are neighbours, and loops with exits, compiled on one PE and on several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from grid_programs import assert_same, copies

import cpufree


@cpufree.program
def flux(q: Any, f: Any, n: int) -> None:
    for _ in range(n):
        p = 0.5 * q
        f[1:] = p[1:] - p[:-1]
        f[0] = p[0] - p[-1]
        q += f


@cpufree.program
def ahead(v: Any, g: Any, n: int) -> None:
    for _ in range(n):
        p = v + 1
        g[:-1] = p[1:]
        v[:] = np.roll(p, -1) + g


@cpufree.program
def planes(v: Any, g: Any, n: int) -> None:
    for _ in range(n):
        p = 0.5 * v
        g[1:, :, 1:] = p[1:, :, 1:] - p[:-1, :, :-1]
        v[:] = np.roll(np.roll(p, 1, 0), -1, 2) - g
        v, g = g, v


@cpufree.program
def zebra(u: Any, w: Any, tol: float) -> None:
    err = 1.0
    while err > tol:
        u[1:-1, ::2] = 0.25 * (u[2:, ::2] + u[:-2, ::2])
        w[1:-1] = u[2:] - u[:-2]
        err = np.max(np.abs(w))


@cpufree.program
def every_third(u: Any, w: Any, n: int) -> None:
    for _ in range(n):
        u[1:-1, 1::3] = u[2:, 1::3] - 0.5 * u[:-2, 1::3]
        w[1:-1, 1::3] = u[2:, 1::3] + u[:-2, 1::3]
        if np.max(w) > 9.0:
            break
        u[0] = u[-2]


def _grids(*shape: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    return rng.standard_normal(shape), rng.standard_normal(shape)


CASES = {
    "flux": (flux, (np.arange(8.0)[:, None] ** 2, np.zeros((8, 1)), 3)),
    "ahead": (ahead, (np.arange(8.0), np.zeros(8), 2)),
    "planes": (planes, (*_grids(9, 4, 5), 5)),
    "zebra": (zebra, (np.eye(9, 4), np.zeros((9, 4)), 1.0)),
    "every_third": (every_third, (*_grids(9, 7), 4)),
}


@pytest.mark.parametrize("pes", [1, 2, 3, 4])
@pytest.mark.parametrize("name", CASES)
def test_ends_and_exits_give_the_bits_of_python(name: str, pes: int) -> None:
    program, arguments = CASES[name]
    plain, ours = copies(arguments), copies(arguments)
    program.function(*plain)
    program.run(ours, pes=pes, engine="cpu_threads")
    assert_same(f"{name}, {pes} PEs", plain, ours)
