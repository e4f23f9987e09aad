"""Jacobi iterations by the serial reference, which other runs are compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.extension import load_core
from cpufree.stencil.grid_input import as_boundary, as_grid, as_source, whole


def reference(
    u0: npt.NDArray[Any],
    iters: int,
    *,
    boundary: str | Sequence[str] = "dirichlet",
    source: Any = None,
    progress: Callable[[int], object] = lambda done: None,
) -> npt.NDArray[Any]:
    """Return what `jacobi` is to give, from the serial reference; slow on large grids.

    `progress` is called with the number of iterations done, between stretches of about a second, so
    that Ctrl-C works.
    """
    first = as_grid(u0, "u0", None, None)
    start = first.part(whole(first.shape))
    periodic = as_boundary(boundary, start.ndim)
    term = None if source is None else as_source(source, first).part(whole(first.shape))
    done = 0
    # A point takes some nanoseconds.
    stretch = max(1, int(3e8 / max(1, start.size)))
    result = start.copy()
    while done < iters:
        now = min(stretch, iters - done)
        out = np.empty_like(result)
        load_core().jacobi_reference(result, term, out, periodic, now)
        result, done = out, done + now
        progress(done)
    return result
