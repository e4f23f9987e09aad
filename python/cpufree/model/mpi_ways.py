"""Ways of MPI between two processes: memory of the host, and of GPUs, staged or by its address.

mpirun starts both processes; this one is neither.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from cpufree.env import for_worker
from cpufree.errors import CpufreeError, InvalidInputError
from cpufree.extension import load_core
from cpufree.model.line_peers import LinePeers
from cpufree.model.samples import Kind

LIMIT = 60.0
"""Seconds that an answer may take."""
MOST_BYTES = 1 << 23
WINDOW_BYTES = 1 << 24
VALUE_BYTES = 8
RANKS = 2
EXTENSION = "cpufree._mpi_messages"


@dataclass(frozen=True)
class MpiVerb:
    """What a way does."""

    memory: str
    """Its name in the extension."""
    what: str
    on_gpus: bool


MPI_VERBS = {
    "processes-mpi": MpiVerb("host", "MPI_Send and MPI_Recv between two processes", False),
    "host-mpi-staged": MpiVerb(
        "staged", "the same between GPUs, copied to the host before and from there after it", True
    ),
    "host-mpi-direct": MpiVerb("direct", "the same between GPUs, whose addresses MPI takes", True),
}


class MpiWay:
    """A way between two processes that mpirun starts."""

    kind = Kind("host", "host", "host", "message")
    most_bytes = MOST_BYTES
    most_call_bytes = 2048
    """MPI may wait for the receiver of larger ones."""
    most_window_bytes = WINDOW_BYTES
    modes: tuple[str, ...] = ("single", "window", "send")
    runs = 0
    disturbed = 0
    launcher: tuple[str, ...] = ("mpirun", "-quiet", "--bind-to", "none", "-n", str(RANKS))
    peer: tuple[str, ...] = (sys.executable, "-m", "cpufree.model.mpi_peer")

    def __init__(self, name: str, verb: MpiVerb) -> None:
        self.name = name
        self.verb = verb
        self.what = verb.what
        self._peers = LinePeers(f"way {name}: a process of MPI", LIMIT)

    def lacking(self) -> str:
        """Return why this machine lacks the way, "" where it has it."""
        if importlib.util.find_spec(EXTENSION) is None:
            return f"{EXTENSION} was not built: it needs MPI (apt install libopenmpi-dev)"
        if shutil.which(self.launcher[0]) is None:
            return f"{self.launcher[0]} was not found"
        try:
            core = load_core()
            if not self.verb.on_gpus:
                cores = int(core.available_cores())
                return self._try() if cores >= RANKS else f"two PEs need a core each: {cores}"
            found = self._gpus()
            if not found:
                return str(core.gpu_note()) or "there is no GPU"
            return self._try() if len(found) == RANKS else "two PEs need a GPU each, and there is 1"
        except CpufreeError as error:
            return str(error)

    def _gpus(self) -> list[int]:
        if not self.verb.on_gpus:
            return []
        return [gpu["index"] for gpu in load_core().gpus()][:RANKS]

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

    def open(self) -> None:
        """Start both processes, unless they are there."""
        if self._peers.running:
            return
        gpus = ",".join(map(str, self._gpus()))
        program = (*self.launcher, *self.peer, self.verb.memory, gpus, str(WINDOW_BYTES))
        self._peers.start(program, 1, for_worker())

    def times(
        self, mode: str, size: int, messages: int, warm_ups: int, repeats: int
    ) -> list[float]:
        """Return the seconds of so many exchanges.

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
        seconds: list[float] = self._peers.ask([{"order": order}])[0]["seconds"]
        return seconds

    def close(self) -> None:
        """End both processes."""
        self._peers.close()


MPI_WAYS: dict[str, Callable[[], MpiWay]] = {
    name: partial(MpiWay, name, verb) for name, verb in MPI_VERBS.items()
}
"""What makes each way, by its name."""
