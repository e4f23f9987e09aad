"""Triggered operations of the compiled core. Not a public interface: cpufree.triggered is."""

import enum
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

class Tag:
    """A number of an operation and an epoch."""

    def __init__(self, operation: int, epoch: int) -> None: ...

class OperationKind(enum.Enum):
    """Which way data travel."""

    put = 0
    get = 1

class Operation:
    """What is posted with a NIC; fields as in cpufree/triggered/device/trigger_types.hpp."""

    first: Tag
    kind: OperationKind
    epochs: int
    threshold: int
    pe: int
    source: int
    target: int
    bytes: int
    source_step: int
    target_step: int
    slots: int
    signal: int
    reports: bool
    def leave_open(self, field: str) -> None: ...

class StepKind(enum.Enum):
    """What a step of a block's program does."""

    store = 0
    copy = 1
    add = 2
    trigger = 3
    wait_done = 4
    wait_signal = 5
    next_arrival = 6

class Step:
    """A step of a block's program; fields as in cpufree/triggered/domain.hpp."""

    kind: StepKind
    tag: Tag
    pe: int
    number: int
    place: int
    source: int
    first: int
    count: int
    def supply(self, field: str, value: int, bytes: int = 0) -> None: ...

class Domain:
    """PEs on CPU threads with NICs."""

    def __init__(
        self,
        sizes: dict[str, int],
        back_end: str,
        wait_limit: float,
        times: bool,
        trace_events: int = 0,
    ) -> None: ...
    def trace(self) -> dict[str, Any]: ...
    def add_buffer(self, name: str, bytes: int) -> int: ...
    def remove_buffer(self, name: str) -> None: ...
    def post(self, pe: int, operation: Operation) -> None: ...
    def run(self, blocks: list[list[Step]], values: npt.NDArray[np.float64]) -> Outcome: ...
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
