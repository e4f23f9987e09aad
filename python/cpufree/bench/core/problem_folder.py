"""The problem that a contender is given: a folder of arrays, mapped into memory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpufree.errors import unreadable


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
    """Map the arrays of a folder; FileFormatError for one that is missing or damaged."""
    needed = [_read(folder / f"{name}.npy") for name in ("indptr", "indices", "data", "b")]
    shares = [folder / f"{name}.npy" for name in ("part", "order")]
    return Arrays(*needed, *(_read(file) if file.exists() else None for file in shares))


def _read(file: Path) -> Any:
    try:
        return np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise unreadable(f"{file} cannot be read: {error}", file, error) from None


def read_facts(folder: Path) -> dict[str, Any]:
    """Return name, rows, nnz and pes of a folder."""
    facts: dict[str, Any] = json.loads((folder / "problem.json").read_text())
    return facts
