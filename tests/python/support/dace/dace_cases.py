"""Saved programs of ranks, for machines without DaCe: `save` makes them, `load` reads them."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
from dace_grids import CASES

from cpufree.compiler import ir, saved
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.ranks import routes

FOLDER = Path(__file__).parent / "dace_saved"
STEPS = 6
SAVED = [
    ("jacobi_1d", 2), ("jacobi_1d", 4), ("jacobi_2d", 1), ("jacobi_2d", 2), ("jacobi_2d", 4),
    ("heat_3d", 2), ("heat_3d", 4), ("jacobi_2d_signals", 2), ("jacobi_2d_signals", 4),
]  # fmt: skip


def path(name: str, ranks: int) -> Path:
    """Return where a program is saved."""
    return FOLDER / f"{name}-{ranks}.json"


@functools.cache
def compiled(name: str) -> Any:
    """Return a program, which DaCe parses once: that takes seconds."""
    from dace_programs import PROGRAMS

    import cpufree.dace

    return cpufree.dace.compile(PROGRAMS[name])


def lowered(name: str, ranks: int, points: Any = None) -> Any:
    """Return what DaCe's front end makes of a case."""
    of, _, usual, _ = CASES[name]
    return compiled(name).lower_ranks(of(points or usual, STEPS), ranks)


def save(folder: Path = FOLDER) -> None:
    """Save all cases."""
    for name, ranks in SAVED:
        (folder / f"{name}-{ranks}.json").write_text(routes.to_json(lowered(name, ranks)) + "\n")
    for name in KERNELS:
        text = saved.to_json(lowered_kernel(name))
        (folder / f"kernel-{name}.json").write_text(text + "\n")


def load(file: Path) -> routes.Ranks:
    """Return a saved program."""
    return routes.from_json(file.read_text())


KERNELS = ("gemm", "mvt", "correlation", "softmax", "conv2d", "nbody")
"""Of dace_algebra.py, those that are saved: on one PE, with folds."""


def lowered_kernel(name: str) -> ir.Program:
    """Return what DaCe's front end makes of a kernel, for the arguments of its test."""
    import copy

    import dace_algebra_cases

    import cpufree.dace

    program, given = dace_algebra_cases.RUNS[name]
    return cpufree.dace.compile(program).lower(*copy.deepcopy(given))


def load_kernel(name: str) -> ir.Program:
    """Return a saved kernel."""
    return saved.from_json((FOLDER / f"kernel-{name}.json").read_text())


def arguments(name: str, ranks: int, steps: int, points: Any = None) -> list[Arguments]:
    """Return the arguments of all ranks of a case."""
    of, _, usual, _ = CASES[name]
    return [Arguments(name, of(points or usual, steps)(r, ranks)) for r in range(ranks)]


def constants(ranks: routes.Ranks) -> dict[str, Any]:
    """Return the data of a program's constants, which count from 0."""
    return {f.name: np.arange(f.shape[0]) for f in ranks.fields if f.role == "constant"}


if __name__ == "__main__":
    save()
