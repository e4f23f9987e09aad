"""What bench/programs.py measures: programs, sizes, arguments."""

# The programs are written as people write them, without types.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import cpufree

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/python/support/programs"))
grids: Any = importlib.import_module("grid_programs")
fields: Any = importlib.import_module("field_programs")
v_cycles: Any = importlib.import_module("multigrid_programs").v_cycles
SECONDS_OF_A_CALL = 0.04


@cpufree.program
def jacobi(u, new, steps):
    for _ in range(steps):
        new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u, new = new, u


@cpufree.program
def jacobi_3d(u, new, steps):
    for _ in range(steps):
        new[1:-1, 1:-1, 1:-1] = (
            u[:-2, 1:-1, 1:-1]
            + u[2:, 1:-1, 1:-1]
            + u[1:-1, :-2, 1:-1]
            + u[1:-1, 2:, 1:-1]
            + u[1:-1, 1:-1, :-2]
            + u[1:-1, 1:-1, 2:]
        ) * (1 / 6)
        u, new = new, u


@cache
def _random(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(1).random(shape)


def grid(*shape: int) -> Any:
    """Return an array of random numbers, the same for all that ask for a shape."""
    return _random(shape).copy()


def arguments(name: str, n: int, steps: int) -> tuple[Any, ...]:
    """Return the arguments of a program for grids of n points a side."""
    made: dict[str, Callable[[], tuple[Any, ...]]] = {
        "jacobi_1d": lambda: (grid(n * n), grid(n * n), steps),
        "jacobi_2d": lambda: (grid(n, n), grid(n, n), steps),
        "heat_3d": lambda: (grid(n, n, n), grid(n, n, n), steps),
        "fdtd_2d": lambda: (grid(n, n), grid(n, n), grid(n, n), grid(steps), steps),
        "shallow_water": lambda: (
            *(1 + 0.1 * grid(n, n), np.zeros((n + 1, n)), np.zeros((n, n + 1))),
            *(9.81, 1e-4, steps),
        ),
        "gray_scott": lambda: (grid(n, n), 0.3 * grid(n, n), 0.06, 0.062, steps),
        "life": lambda: ((grid(n, n) < 0.5).astype(np.int32), steps),
        "points_27": lambda: (grid(n, n, n).astype(np.float32), 1 / 27, steps),
        "acoustic": lambda: (
            *(grid(n, n), grid(n, n), 0.01 * grid(n, n)),
            *(grids._second_derivative(8), steps),
        ),
        "upwind_in_place": lambda: (grid(n, n), 0.3, steps),
        "cavity_flow": lambda: (
            *(0.1 * grid(n, n) for _ in range(3)),
            *(1e-5, 0.1, 0.1, 1.0, 0.1, steps, 10),
        ),
        "lattice_boltzmann": lambda: (*(1 + 0.1 * grid(9, n, n), np.zeros((9, n, n)), 0.6, steps),),
        "v_cycles": lambda: (np.zeros((n + 1, n + 1)), grid(n + 1, n + 1), 1 / n**2, 6, steps),
        "jacobi": lambda: (grid(n, n), grid(n, n), steps),
        "jacobi_3d": lambda: (grid(n, n, n), grid(n, n, n), steps),
    }
    return made[name]()


def plain(name: str) -> Any:
    """Return a program as plain Python, the programs that it calls, too."""
    return grids.plainly(find(name))


THREE_D = ("heat_3d", "points_27", "jacobi_3d")
PROGRAMS = (
    *("jacobi_2d", "heat_3d", "fdtd_2d", "shallow_water", "gray_scott", "acoustic", "life"),
    *("points_27", "jacobi_1d", "upwind_in_place", "cavity_flow", "lattice_boltzmann", "v_cycles"),
)
SIZES = ((1024, 128), (4096, 384), (256, 64))


def with_steps(name: str, args: tuple[Any, ...], steps: int) -> tuple[Any, ...]:
    """Return arguments of another number of steps."""
    at = len(args) - (2 if name == "cavity_flow" else 1)
    return (*args[:at], steps, *args[at + 1 :])


def side(name: str, n: int) -> int:
    """Return the points a side of a program whose flat grids have n."""
    return dict(SIZES).get(n, n // 8) if name in THREE_D else n


def find(name: str) -> Any:
    """Return the program of a name."""
    own = {f.name: f for f in (jacobi, jacobi_3d, v_cycles)}
    if name == "lattice_boltzmann":
        return fields.lattice_boltzmann_pulled
    return own.get(name) or getattr(grids, name)


def steps_for(points: int) -> int:
    """Return the steps of a call: enough that a call of the fastest takes a while."""
    step = 3e-6 + points * 16 / 2e12
    return max(20, min(4000, int(SECONDS_OF_A_CALL / step)))
