"""Programs whose kernels are compiled for AMD's GPUs."""

from __future__ import annotations

from typing import Any

import numpy as np

import cpufree
from cpufree.compiler.grid import grid_kernel
from cpufree.compiler.passes.barriers import add_barriers
from cpufree.compiler.passes.points import group_points


@cpufree.program
def heat(u, v, turns):  # type: ignore[no-untyped-def]
    for _ in range(turns):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u[:, :], v[:, :] = v.copy(), u.copy()
    return np.sum(u)


@cpufree.program
def waves(u, v, turns):  # type: ignore[no-untyped-def]
    for _ in range(turns):
        v[1:-1] = np.sin(u[:-2]) * np.exp(-u[2:] * u[2:])
        largest = np.max(np.abs(v))
        u[1:-1] = v[1:-1] / (1.0 + largest)


def program_texts() -> dict[str, str]:
    """Return the texts of the kernels, by name."""
    u: Any = np.zeros((60, 40))
    found = {}
    for name, program in (("heat", heat), ("waves", waves)):
        lowered = program.lower(u, u.copy(), 20)
        kernel = grid_kernel(add_barriers(group_points(lowered)), 2, (), 8)
        found[f"programs-{name}"] = kernel.text.on_gpu()
    return found
