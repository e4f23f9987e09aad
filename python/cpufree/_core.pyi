"""The compiled core: distributed systems and the solves of them. Not a public interface."""

from collections.abc import Callable
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

# The dictionaries are plain ones; these two names exist for type checkers alone.

class Plan(TypedDict):
    """How a matrix lies on the PEs; the lists have one element for each."""

    pes: int
    blocks: int
    rows: list[int]
    nnz: list[int]
    ghosts: list[int]
    boundary_rows: list[int]
    neighbours: list[list[tuple[int, int]]]  # PE, values sent to it in an exchange
    edge_cut: int
    halo_values: int
    imbalance: float
    matrix_bytes: float  # in the format of the engine, all PEs

class Outcome(TypedDict):
    """How a solve ended. Norms are absolute 2-norms, seconds those of the kernels."""

    x: npt.NDArray[Any]
    reason: str
    iterations: int
    residual: float
    true_residual: float
    bnorm: float
    history: npt.NDArray[np.float64]
    history_stride: int
    replacements: int
    handed_over_at: int  # iteration at which prcg took over from pipecg, or -1
    lambda_max: float
    seconds: float
    reductions: int
    exchanges: int
    pes: int
    blocks: int

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
    def plan(self) -> Plan: ...
    def solve(
        self,
        b: npt.NDArray[Any],
        x0: npt.NDArray[Any] | None,
        options: dict[str, Any],
        progress: Callable[[int, float], bool] | None,
    ) -> Outcome: ...
