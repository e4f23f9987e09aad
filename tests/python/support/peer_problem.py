"""A small SPD system in the folder that contenders of a benchmark read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp


def write(folder: Path, pes: int = 1, dtype: Any = np.float64, side: int = 12) -> Path:
    """Write a 5-point system of side × (side - 3) rows with jumps; return the folder."""
    rng = np.random.default_rng(11)
    lines = [
        sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
        for n in (side, side - 3)
    ]
    ones = [sp.eye_array(line.shape[0]) for line in lines]
    grid = sp.kron(lines[0], ones[1]) + sp.kron(ones[0], lines[1])
    scale = sp.diags_array(10 ** rng.uniform(-0.3, 0.3, grid.shape[0]))
    A = sp.csr_array(scale @ grid @ scale)
    A.sort_indices()
    n = A.shape[0]
    arrays = {
        "indptr": A.indptr.astype(np.int64),
        "indices": A.indices.astype(np.int32),
        "data": A.data.astype(dtype),
        "b": (A @ rng.standard_normal(n)).astype(dtype),
    }
    if pes > 1:
        arrays["part"] = rng.permutation(np.arange(n, dtype=np.int32) % pes)
        arrays["order"] = rng.permutation(n).astype(np.int32)
    folder.mkdir()
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values)
    facts = {"name": "grid", "rows": n, "nnz": int(A.nnz), "pes": pes}
    (folder / "problem.json").write_text(json.dumps(facts))
    return folder


def system(folder: Path) -> tuple[sp.csr_array, np.ndarray]:
    """Return A and b of the folder."""
    indptr, indices, data, b = (
        np.load(folder / f"{name}.npy") for name in ("indptr", "indices", "data", "b")
    )
    return sp.csr_array((data, indices, indptr), shape=(len(b), len(b))), b
