"""The compiled core: distributed systems and the solves of them. Not a public interface."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

class System:
    """A matrix laid out for the PEs of an engine; solved as often as wanted."""

    def __init__(
        self,
        indptr: npt.NDArray[np.int64],
        indices: npt.NDArray[np.int32],
        data: npt.NDArray[np.float64] | npt.NDArray[np.float32],
        part: npt.NDArray[np.int32] | None,
        order: npt.NDArray[np.int32] | None,
        pes: int,
        blocks: int,
        engine: str,
    ) -> None: ...
    def plan(self) -> dict[str, Any]: ...
    def solve(
        self,
        b: npt.NDArray[Any],
        x0: npt.NDArray[Any] | None,
        options: dict[str, Any],
        progress: Callable[[int, float], bool] | None,
    ) -> dict[str, Any]: ...
