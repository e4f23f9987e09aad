"""Jacobi iterations whose halos are triggered puts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.errors import InvalidInputError
from cpufree.triggered.extension import (
    BACK_ENDS,
    GPU_BACK_ENDS,
    load_extension,
    load_gpu_extension,
)

_THREADS = 512  # of a block on a GPU


def jacobi(
    u0: npt.ArrayLike,
    iterations: int,
    *,
    pes: int = 2,
    blocks: int = 1,
    back_end: str | None = None,
    gpus: Sequence[int] | None = None,
    wait_limit: float = 60.0,
) -> npt.NDArray[Any]:
    """Iterate on a grid in two dimensions: one kernel for the whole run, halos by triggered puts.

    Each new value is the mean of its four neighbours; the border keeps its values. The bits are
    those of `cpufree.stencil.jacobi`, which is faster on one machine: this shows triggered halos.

    Parameters
    ----------
    u0 : array_like of shape (rows, columns)
        First values, float32 or float64; others become float64.
    iterations : int
        Number of iterations.
    pes, blocks : int, default 2 and 1
        PEs, and blocks of each: every block has at least one inner row.
    back_end : str, default "thread", and "copy_engine" on GPUs
        What carries the puts out, as for `Domain`.
    gpus : sequence of int, optional
        The GPU of each PE; then `pes` is their number.
    wait_limit : float, default 60.0
        Seconds after which a wait is given up.

    Returns
    -------
    u : ndarray of shape (rows, columns)
        The values after the iterations.

    Raises
    ------
    InvalidInputError
        The grid is too small for that number of blocks, or no grid.
    EngineError
        A wait was given up; the message says what the NICs had seen.

    Examples
    --------
    >>> import numpy as np
    >>> import cpufree
    >>> u = np.zeros((6, 5))
    >>> u[0] = 16.0
    >>> cpufree.triggered.jacobi(u, 2)[1]
    array([0., 5., 6., 5., 0.])
    """
    given = np.asarray(u0)
    if given.ndim != 2:
        raise InvalidInputError(f"the grid has {given.ndim} dimensions; 2 are needed")
    if not 0 <= iterations < 1 << 32:
        raise InvalidInputError(f"iterations is {iterations}; it is 0 to 4294967295")
    kind = np.float32 if given.dtype == np.float32 else np.float64
    u = np.array(given, kind, order="C")
    if gpus is None:
        name = back_end or BACK_ENDS[0]
        load_extension().jacobi(u, iterations, pes, blocks, False, name, wait_limit)
    else:
        name, places = back_end or GPU_BACK_ENDS[0], [int(gpu) for gpu in gpus]
        load_gpu_extension().jacobi(
            u, iterations, places, blocks, _THREADS, "triggered", name, wait_limit
        )
    return u
