"""Messages of MPI between two processes that mpirun has started."""

from typing import NoReturn

class MpiMessages:
    """Starts MPI; the same calls on both ranks."""

    def __init__(
        self,
        kind: str,  # "host", "staged", "direct"
        gpus: list[int],  # of both ranks; none for memory of the host
        bytes: int,  # of the largest window
    ) -> None: ...
    @property
    def rank(self) -> int: ...
    @staticmethod
    def broadcast(text: str) -> str: ...
    @staticmethod
    def finish() -> None: ...
    @staticmethod
    def abort(status: int) -> NoReturn: ...
    def times(
        self,
        mode: str,  # "single", "window", "send"
        bytes: int,
        messages: int,
        warm_ups: int,
        repeats: int,
    ) -> list[float]: ...
