"""Where the nodes of a generated matrix are: kept on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
_KEPT: ContextVar[list[FloatArray] | None] = ContextVar("kept", default=None)


@contextmanager
def positions() -> Iterator[list[FloatArray]]:
    """Give a list to which generators that are called meanwhile add coordinates of their nodes."""
    kept: list[FloatArray] = []
    token = _KEPT.set(kept)
    try:
        yield kept
    finally:
        _KEPT.reset(token)


def keep(points: Callable[[], FloatArray]) -> None:
    """Keep coordinates, shape (nodes, 3), in the order of the unknowns, if they are wanted."""
    kept = _KEPT.get()
    if kept is not None:
        kept.append(points())
