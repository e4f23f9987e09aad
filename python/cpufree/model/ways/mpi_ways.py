"""Ways of MPI between two processes: memory of the host, and of GPUs, staged or by its address.

mpirun starts both processes; this one is neither.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from cpufree.env import for_worker
from cpufree.errors import CpufreeError
from cpufree.extension import has_part, load_core, make_part
from cpufree.model.samples import Kind
from cpufree.model.ways.peer_way import RANKS, WINDOW_BYTES, PeerWay

EXTENSION = "_mpi_messages"


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


class MpiWay(PeerWay):
    """A way between two processes that mpirun starts."""

    kind = Kind("host", "host", "host", "message")
    most_call_bytes = 2048
    """MPI may wait for the receiver of larger ones."""
    modes: tuple[str, ...] = ("single", "window", "send")
    launcher: tuple[str, ...] = ("mpirun", "-quiet", "--bind-to", "none", "-n", str(RANKS))
    peer: tuple[str, ...] = (sys.executable, "-m", "cpufree.model.ways.mpi_peer")

    def __init__(self, name: str, verb: MpiVerb) -> None:
        super().__init__(name, "MPI")
        self.verb = verb
        self.what = verb.what

    def lacking(self) -> str:
        """Return why this machine lacks the way, "" where it has it."""
        if not has_part(EXTENSION):
            return f"cpufree.{EXTENSION} was not built: it needs MPI (apt install libopenmpi-dev)"
        if shutil.which(self.launcher[0]) is None:
            return f"{self.launcher[0]} was not found"
        try:
            core = load_core()
            if not self.verb.on_gpus:
                cores = int(core.available_cores())
                return self._try() if cores >= RANKS else f"two PEs need a core each: {cores}"
            found = self._gpus(core)
            if not found:
                return str(core.gpu_note()) or "there is no GPU"
            return self._try() if len(found) == RANKS else "two PEs need a GPU each, and there is 1"
        except CpufreeError as error:
            return str(error)

    def _gpus(self, core: Any) -> list[int]:
        return super()._gpus(core) if self.verb.on_gpus else []

    def open(self) -> None:
        """Start both processes, unless they are there."""
        if self._peers.running:
            return
        make_part(EXTENSION, "messages of MPI")
        gpus = ",".join(map(str, self._gpus(load_core())))
        program = (*self.launcher, *self.peer, self.verb.memory, gpus, str(WINDOW_BYTES))
        self._peers.start(program, 1, for_worker())

    def _asked(self, order: list[Any]) -> list[Any]:
        return [{"order": order}]


MPI_WAYS: dict[str, Callable[[], MpiWay]] = {
    name: partial(MpiWay, name, verb) for name, verb in MPI_VERBS.items()
}
"""What makes each way, by its name."""
