"""Triggered operations of the compiled core. Not a public interface: cpufree.triggered is."""

from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

class Outcome(TypedDict):
    """How a launch ended."""

    waits: list[dict[str, Any]]  # given up: as WaitTimeoutError.waits
    arrivals: list[list[tuple[int, int]]]  # of each block
    seconds: float
    text: str  # "" where no wait was given up

class Report(TypedDict):
    """What was left when NICs ended."""

    waiting: list[dict[str, Any]]
    faults: list[dict[str, Any]]
    text: str

class Domain:
    """PEs on CPU threads with NICs."""

    def __init__(
        self, sizes: dict[str, int], back_end: str, wait_limit: float, times: bool
    ) -> None: ...
    def add_buffer(self, name: str, bytes: int) -> int: ...
    def remove_buffer(self, name: str) -> None: ...
    def post(self, pe: int, operation: dict[str, Any]) -> None: ...
    def run(
        self, blocks: list[npt.NDArray[np.int64]], values: npt.NDArray[np.float64]
    ) -> Outcome: ...
    def close(self) -> Report: ...
    def firings(self, pe: int) -> npt.NDArray[np.int64]: ...
    def view(self, pe: int, offset: int, bytes: int) -> npt.NDArray[np.uint8]: ...

def jacobi(
    u: npt.NDArray[Any],
    iterations: int,
    pes: int,
    blocks: int,
    by_host: bool,
    back_end: str,
    wait_limit: float,
) -> float: ...
def messages(
    path: str, bytes: int, rounds: int, work: float, back_end: str, order: str = "ahead"
) -> npt.NDArray[np.float64]: ...
def allreduce(
    way: str,
    by_triggers: bool,
    single: bool,
    pes: int,
    blocks: int,
    count: int,
    repeats: int,
    back_end: str,
) -> npt.NDArray[np.float64]: ...
def libfabric_missing() -> str: ...
