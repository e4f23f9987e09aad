"""Triggered operations of the compiled core on GPUs. Not a public interface."""

from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from cpufree._triggered import Operation, Outcome, Report, Step

class Domain:
    """PEs on GPUs with NICs."""

    def __init__(
        self,
        sizes: dict[str, int],
        back_end: str,
        wait_limit: float,
        times: bool,
        gpus: list[int],
    ) -> None: ...
    def add_buffer(self, name: str, bytes: int) -> int: ...
    def remove_buffer(self, name: str) -> None: ...
    def post(self, pe: int, operation: Operation) -> None: ...
    def run(self, blocks: list[list[Step]], values: npt.NDArray[np.float64]) -> Outcome: ...
    def close(self) -> Report: ...
    def firings(self, pe: int) -> npt.NDArray[np.int64]: ...
    def view(self, pe: int, offset: int, bytes: int) -> npt.NDArray[np.uint8]: ...
    def write(self, pe: int, offset: int, values: npt.NDArray[np.float64]) -> None: ...

class Replay(TypedDict):
    """What came of a script."""

    name: str
    skipped: str
    replays: int
    wrong: int
    difference: str

def messages(
    gpus: list[int],
    path: str,
    back_end: str,
    bytes: int,
    rounds: int,
    blocks: int,
    before: float,
    after: float,
    order: str = "ahead",
) -> tuple[npt.NDArray[np.float64], float, float]: ...
def overlap(
    gpus: list[int],
    back_end: str,
    bytes: int,
    copies: int,
    tags: int,
    rounds: int,
    seconds: float,
) -> npt.NDArray[np.float64]: ...
def allreduce(
    gpus: list[int],
    way: str,
    by: str,
    single: bool,
    blocks: int,
    threads: int,
    count: int,
    repeats: int,
) -> float: ...
def collective_allreduce(
    gpus: list[int], library: str, graph: bool, single: bool, count: int, repeats: int
) -> float: ...
def jacobi(
    u: npt.NDArray[Any],
    iterations: int,
    gpus: list[int],
    blocks: int,
    threads: int,
    way: str,
    back_end: str,
    wait_limit: float,
) -> float: ...
def soak(
    gpus: list[int], back_end: str, words: int, blocks: int, epochs: int, channels: int = 1
) -> tuple[float, int, int, int]: ...
def flood(gpu: int, back_end: str, blocks: int, threads: int, items: int) -> float: ...
def scripts(text: str, gpus: list[int], back_end: str, replays: int) -> list[Replay]: ...
