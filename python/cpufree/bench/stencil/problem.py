"""The grids that are measured: their first values in a folder, and what must come of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cpufree import stencil
from cpufree.bench.core.problem_folder import read_facts
from cpufree.bench.stencil.plan import points, shape_text
from cpufree.output_file import write_text

LAYOUT = 1  # of the folders; another number makes them again
SEED = 1
# Updates of points that the serial reference, or the CPU engine, is to do at most: a few seconds.
MOST_SERIAL, MOST_ENGINE = 2 * 10**8, 10**10
FEW_ITERATIONS = 37  # where all that are timed would take too long to check; odd: no whole graphs


def checksum(values: NDArray[Any]) -> str:
    """Return the SHA-256 of values, in the order of the grid's axes."""
    return hashlib.sha256(np.ascontiguousarray(values).data).hexdigest()


def make_folder(cache: Path, shape: Sequence[int], precision: str) -> Path:
    """Return a folder with u0.npy and problem.json; it is made where it is not there yet."""
    folder = cache / f"stencil{LAYOUT}-{shape_text(shape)}-{precision}"
    if not (folder / "problem.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        dtype = np.float32 if precision == "single" else np.float64
        values = np.random.default_rng(SEED).random(tuple(shape), dtype=dtype)
        np.save(first_values(folder), values)
        facts = {"shape": list(shape), "precision": precision}
        write_text(folder / "problem.json", json.dumps(facts))
    return folder


def first_values(folder: Path) -> Path:
    """Return the file of the first values."""
    return folder / "u0.npy"


def read_folder(folder: Path, mapped: bool = False) -> NDArray[Any]:
    """Return the first values that a folder has; `mapped`: read where they are looked at."""
    read_facts(folder)
    mode: Literal["r"] | None = "r" if mapped else None
    values: NDArray[Any] = np.load(first_values(folder), mmap_mode=mode, allow_pickle=False)
    return values


def check_iterations(shape: Sequence[int], iterations: int) -> int:
    """Return how many iterations are checked: those that are timed, or few of a large grid."""
    whole = points(shape) * iterations <= MOST_ENGINE
    return iterations if whole else min(iterations, FEW_ITERATIONS)


def expected(folder: Path, shape: Sequence[int], boundary: str, iterations: int) -> dict[str, Any]:
    """Return the checksum that must come of `iterations`, and by whom; None by agreement."""
    updates = points(shape) * iterations
    if updates > MOST_ENGINE:
        return {"iterations": iterations, "checksum": None, "by": "agreement"}
    values = read_folder(folder)
    if updates <= MOST_SERIAL:
        by, found = "the serial reference", stencil.reference(values, iterations, boundary=boundary)
    else:
        by = "the CPU engine"
        found = stencil.jacobi(values, iterations, boundary=boundary, engine="cpu_threads", pes=1).u
    return {"iterations": iterations, "checksum": checksum(found), "by": by}
