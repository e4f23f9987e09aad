"""What ways between two processes share that answer a line each: MPI's and NVSHMEM's."""

from __future__ import annotations

from typing import Any

from cpufree.errors import CpufreeError, InvalidInputError
from cpufree.model.ways.line_peers import LinePeers

LIMIT = 60.0
"""Seconds that an answer may take."""
MOST_BYTES = 1 << 23
WINDOW_BYTES = 1 << 24
VALUE_BYTES = 8
RANKS = 2


class PeerWay:
    """A way between two processes, which are started for it and end with it."""

    most_bytes = MOST_BYTES
    most_window_bytes = WINDOW_BYTES
    runs = 0
    disturbed = 0

    def __init__(self, name: str, library: str) -> None:
        self.name = name
        self._peers = LinePeers(f"way {name}: a process of {library}", LIMIT)

    def open(self) -> None:
        """Start both processes, unless they are there."""
        raise NotImplementedError

    def lacking(self) -> str:
        """Return why this machine lacks the way, "" where it has it."""
        raise NotImplementedError

    def _asked(self, order: list[Any]) -> list[Any]:
        """Return what the processes are asked, a line each that answers."""
        raise NotImplementedError

    def _gpus(self, core: Any) -> list[int]:
        return [gpu["index"] for gpu in core.gpus()][:RANKS]

    def _try(self) -> str:
        """Return why the way does not work. It stays open where it does: it starts slowly."""
        try:
            self.open()
            self.times("single", VALUE_BYTES, 1, 0, 1)
        except CpufreeError as error:
            self.close()
            return str(error)
        return ""

    def extras(self) -> tuple[list[tuple[str, int, int]], dict[str, str]]:
        """Return nothing: messages are all that is measured."""
        return [], {}

    def times(
        self, mode: str, size: int, messages: int, warm_ups: int, repeats: int
    ) -> list[float]:
        """Return the seconds of N exchanges.

        Raises:
            InvalidInputError: the way cannot send messages of this size. EngineError: a process is
            gone, took longer than LIMIT, or values arrived wrong.
        """
        if not VALUE_BYTES <= size <= self.most_bytes or size % VALUE_BYTES:
            raise InvalidInputError(
                f"way {self.name} cannot send messages of {size} B: give multiples of "
                f"{VALUE_BYTES} up to {self.most_bytes}"
            )
        order = [mode, size, messages, -(-warm_ups // messages), repeats]
        seconds: list[float] = self._peers.ask(self._asked(order))[0]["seconds"]
        return seconds

    def close(self) -> None:
        """End both processes."""
        self._peers.close()
