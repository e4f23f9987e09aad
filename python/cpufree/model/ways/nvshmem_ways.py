"""Ways of NVSHMEM between two GPUs, each of a process of its own.

Both processes are started by this one, which is neither: what NVSHMEM does to a process, it does to
them, and one that does not answer is ended. The one of rank 0 keeps the time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from cpufree.engines import remote
from cpufree.env import for_worker
from cpufree.errors import CpufreeError
from cpufree.extension import load_core
from cpufree.model.samples import Kind
from cpufree.model.ways.line_peers import why_no_pair
from cpufree.model.ways.peer_way import LIMIT, RANKS, WINDOW_BYTES, PeerWay

PROBE = "_nvshmem_probe.fatbin"
"""The kernel, beside the extension."""


@dataclass(frozen=True)
class ShmemVerb:
    """What a way does."""

    what: str
    kind: Kind
    modes: tuple[str, ...]
    in_kernel: bool
    """Whether the device library does it, within a kernel."""


def _device(what: str, verb: str = "message") -> ShmemVerb:
    return ShmemVerb(what, Kind("device", "device", "device", verb), ("single", "window"), True)


def _host(what: str, verb: str) -> ShmemVerb:
    return ShmemVerb(what, Kind("host", "host", "host", verb), ("single", "window", "send"), False)


SHMEM_VERBS = {
    "nvshmem-p": _device("nvshmem_double_p by each thread, a quiet, and a signal"),
    "nvshmem-iput": _device("nvshmemx_double_iput_block of every second value, a quiet, a signal"),
    "nvshmem-put-thread": _device("nvshmem_putmem_nbi by a thread, a quiet, and a signal"),
    "nvshmem-put-warp": _device("nvshmemx_putmem_nbi_warp, a quiet, and a signal"),
    "nvshmem-put-block": _device("nvshmemx_putmem_nbi_block, a quiet, and a signal"),
    "nvshmem-put-signal": _device("nvshmemx_putmem_signal_nbi_block"),
    "nvshmem-get": _device("nvshmemx_getmem_block", "get"),
    "nvshmem-put-stream": _host("nvshmemx_putmem_signal_on_stream", "put"),
    "nvshmem-get-stream": _host("nvshmemx_getmem_on_stream", "get"),
}


class ShmemWay(PeerWay):
    """A way between two processes that NVSHMEM connects."""

    most_call_bytes = 8192
    program: tuple[str, ...] = (sys.executable, "-m", "cpufree.model.ways.nvshmem_peer")
    """Of each process."""

    def __init__(self, name: str, verb: ShmemVerb) -> None:
        super().__init__(name, "NVSHMEM")
        self.verb = verb
        self.kind = verb.kind
        self.what = f"{verb.what}, between GPUs of two processes"
        self.modes = verb.modes

    def lacking(self) -> str:
        """Return why this machine lacks the way, "" where it has it."""
        try:
            if why := why_no_pair(self._gpus(load_core())):
                return why
            remote.NVSHMEM.version()
            if self.verb.in_kernel and not self._kernels():
                return (
                    f"{PROBE} was not built: build cpufree with nvcc where NVSHMEM's headers are "
                    "(pip install nvidia-nvshmem-cu13)"
                )
        except CpufreeError as error:
            return str(error)
        return self._try()

    @staticmethod
    def _kernels() -> str:
        return remote.find_kernels(PROBE)

    def open(self) -> None:
        """Start both processes, which find one another, unless they are there."""
        if self._peers.running:
            return
        self._peers.start(self.program, RANKS, for_worker())
        way = {
            "way": self.name,
            "library": remote.NVSHMEM.find(),
            "kernels": self._kernels() if self.verb.in_kernel else "",
            "bytes": WINDOW_BYTES,
        }
        (identity,) = self._peers.ask([{**way, "identify": True}])
        start = [
            {**way, "rank": rank, "gpu": gpu, "identity": identity["identity"]}
            for rank, gpu in enumerate(self._gpus(load_core()))
        ]
        self._peers.ask(start)

    def _asked(self, order: list[Any]) -> list[Any]:
        return [{"order": [*order, LIMIT / 4]}] * RANKS


SHMEM_WAYS: dict[str, Callable[[], ShmemWay]] = {
    name: partial(ShmemWay, name, verb) for name, verb in SHMEM_VERBS.items()
}
"""What makes each way, by its name."""
