"""The problem that a contender is given: a folder of arrays, mapped into memory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Arrays:
    """A matrix in CSR (int64 row starts, int32 columns, sorted in each row), b, and its shares."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[Any]
    b: NDArray[Any]
    part: NDArray[np.int32] | None
    """Owner of each row; None: one PE."""
    order: NDArray[np.int32] | None
    """Rows in the sequence in which PEs keep them; None: as they come."""


def read_arrays(folder: Path) -> Arrays:
    """Map the arrays of a folder; OSError or ValueError where they are not there."""

    def read(name: str) -> Any:
        return np.load(folder / f"{name}.npy", mmap_mode="r")

    def read_if_there(name: str) -> Any:
        return read(name) if (folder / f"{name}.npy").exists() else None

    return Arrays(
        read("indptr"),
        read("indices"),
        read("data"),
        read("b"),
        read_if_there("part"),
        read_if_there("order"),
    )


def read_facts(folder: Path) -> dict[str, Any]:
    """Return name, rows, nnz and pes of a folder."""
    facts: dict[str, Any] = json.loads((folder / "problem.json").read_text())
    return facts
