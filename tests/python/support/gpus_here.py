"""The GPUs of this machine, for tests that need some."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import cpufree
from cpufree.engines import gpus
from cpufree.errors import UnsupportedError


def find_gpus() -> list[gpus.Gpu]:
    """Return the GPUs of this machine that the engine runs on."""
    try:
        return gpus.usable(gpus.find())
    except UnsupportedError:  # no extension
        return []


HERE = find_gpus()
NUMBERS = [gpu.index for gpu in HERE]
COUNTS = [count for count in (1, 2, 3, 4, 8) if count <= len(HERE)] or [1]
needs_gpu = pytest.mark.skipif(not HERE, reason="no GPU that the engine runs on")
several = pytest.mark.skipif(len(HERE) < 2, reason="needs 2 GPUs")
on_all_counts = pytest.mark.parametrize("pes", COUNTS)

solve = partial(cpufree.solve, engine="cuda_p2p")


def true_residual(A: Any, x: Any, b: Any) -> float:
    """Return ‖b - A x‖ / ‖b‖ in double precision, by SciPy."""
    wide = sp.csr_array(A).astype(np.float64)
    right = np.asarray(b, dtype=np.float64)
    return float(np.linalg.norm(right - wide @ np.asarray(x, np.float64)) / np.linalg.norm(right))
