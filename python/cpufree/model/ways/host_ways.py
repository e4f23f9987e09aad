"""Ways between two GPUs in which the host takes part, timed by the compiled core.

A put of the host counts until the host knows that it has ended. Launches of kernels, on a stream
and in a graph, are measured beside the copies that go the same way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cpufree.errors import CpufreeError, EngineError, InvalidInputError
from cpufree.extension import load_core, load_gpu_core
from cpufree.host import find_nccl
from cpufree.model.samples import Kind
from cpufree.model.ways.line_peers import LinePeers, why_no_pair

if TYPE_CHECKING:
    from cpufree._core import HostWay

LIMIT = 60.0
"""Seconds that the host waits for the end of what it has launched."""
MOST_BYTES = 1 << 23
WINDOW_BYTES = 1 << 24
VALUE_BYTES = 8
LAUNCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Kernels that are queued one behind the other (LeBeane et al. 2017, figure 1)."""

Extra = tuple[str, int, int]


@dataclass(frozen=True)
class HostVerb:
    """What a way does."""

    core: str
    """Its name in the compiled core."""
    what: str
    kind: Kind
    modes: tuple[str, ...]
    launches: bool = False
    """Whether launches are measured beside it."""


def _put(triggered: str = "host", controlled: str = "host", initiated: str = "host") -> Kind:
    return Kind(initiated, triggered, controlled, "put")


PUT_MODES = ("single", "window", "send")
HOST_VERBS = {
    "host-copy": HostVerb("copy", "the copy engine, on a stream", _put(), PUT_MODES, launches=True),
    "host-copy-get": HostVerb(
        "copy-get",
        "the copy engine, on a stream of the receiver",
        Kind("host", "host", "host", "get"),
        PUT_MODES,
    ),
    "host-copy-graph": HostVerb(
        "copy-graph", "the copy engine, in a graph", _put(), PUT_MODES, launches=True
    ),
    "host-nccl": HostVerb("nccl", "ncclSend and ncclRecv, on two streams", _put(), PUT_MODES),
    "host-ipc": HostVerb("ipc", "the copy engine, to memory of another process", _put(), PUT_MODES),
    "host-managed": HostVerb(
        "managed",
        "pages that the host has written migrate to the kernel that reads them",
        Kind("host", "device", "host", "get"),
        ("single",),
    ),
    "host-pinned": HostVerb(
        "pinned",
        "a thread and a kernel store into memory of the host, then a flag",
        Kind("host", "host", "host", "message"),
        ("single", "window", "send", "receive"),
    ),
    "device-proxy": HostVerb(
        "proxy",
        "a kernel asks, a thread of the host has the copy engine do it",
        _put("host", "host", "device"),
        ("single",),
    ),
}


class HostProbe:
    """A way of the host's to another GPU."""

    most_bytes = MOST_BYTES
    most_call_bytes = 8192
    runs = 0
    disturbed = 0

    def __init__(self, name: str, verb: HostVerb) -> None:
        self.name = name
        self.verb = verb
        self.kind = verb.kind
        self.what = f"{verb.what}, between GPUs"
        self.modes = verb.modes
        self.most_window_bytes = WINDOW_BYTES if "window" in verb.modes else 0
        self._way: HostWay | None = None

    def lacking(self) -> str:
        """Return why this machine lacks the way, "" where it has it."""
        try:
            return why_no_pair(self._gpus()) or self._try()
        except CpufreeError as error:
            return str(error)

    @staticmethod
    def _gpus() -> list[int]:
        return [gpu["index"] for gpu in load_core().gpus()][:2]

    def _try(self) -> str:
        """Return why the way does not work: a library that is not there, for one.

        It stays open where it does: to open it takes longer than all else.
        """
        try:
            self.open()
            self.times("single", VALUE_BYTES, 1, 0, 1)
        except CpufreeError as error:
            self.close()
            return str(error)
        return ""

    def extras(self) -> tuple[list[Extra], dict[str, str]]:
        """Return the launches that are measured beside messages."""
        if not self.verb.launches:
            return [], {}
        return [(mode, 0, count) for mode in ("launch", "queue") for count in LAUNCHES], {}

    def open(self) -> None:
        """Set the way up, unless it is."""
        if self._way is None:
            self._way = self._make(b"")

    def _make(self, handle: bytes) -> HostWay:
        library = find_nccl() if self.verb.core == "nccl" else ""
        way: HostWay = load_gpu_core().HostWay(
            self.verb.core, self._gpus(), WINDOW_BYTES, library, handle
        )
        return way

    def times(
        self, mode: str, size: int, messages: int, warm_ups: int, repeats: int
    ) -> list[float]:
        """Return the seconds of N exchanges, or launches of `messages` kernels.

        Raises:
            InvalidInputError: the way cannot send messages of this size. EngineError: it broke
            down, or took longer than LIMIT.
        """
        launches = mode in ("launch", "queue")
        if not launches and (not VALUE_BYTES <= size <= self.most_bytes or size % VALUE_BYTES):
            raise InvalidInputError(
                f"way {self.name} cannot send messages of {size} B: give multiples of "
                f"{VALUE_BYTES} up to {self.most_bytes}"
            )
        assert self._way is not None, "open comes before times"
        warm_ups = -(-warm_ups // messages)
        try:
            size = VALUE_BYTES if launches else size
            seconds: list[float] = self._way.times(mode, size, messages, warm_ups, repeats, LIMIT)
            return seconds
        except EngineError as error:
            raise EngineError(f"way {self.name}: {error}") from None

    def close(self) -> None:
        """Free what `open` has made."""
        self._way = None


class SharedCopy(HostProbe):
    """Copies between two PEs that share a GPU."""

    def __init__(self, name: str, verb: HostVerb) -> None:
        super().__init__(name, verb)
        self.what = f"{verb.what}, between PEs that share a GPU"

    @staticmethod
    def _gpus() -> list[int]:
        return [gpu["index"] for gpu in load_core().gpus()][:1] * 2


class IpcProbe(HostProbe):
    """A way into memory of another process, which holds it until the way is closed."""

    def __init__(self, name: str, verb: HostVerb) -> None:
        super().__init__(name, verb)
        self._peer = LinePeers(f"way {name}: the other process", LIMIT)

    def open(self) -> None:
        """Start the other process, and map its memory, unless that has been done."""
        if self._way is None:
            program = [sys.executable, "-m", "cpufree.model.ways.ipc_peer"]
            arguments = [str(self._gpus()[1]), str(WINDOW_BYTES)]
            self._peer.start(program + arguments, 1)
            (found,) = self._peer.ask([{"handle": True}])
            self._way = self._make(bytes.fromhex(found["handle"]))

    def close(self) -> None:
        """Unmap the memory, then have the other process end."""
        super().close()
        self._peer.close()


SHARED_COPY = HostVerb("copy", "the copy engine, on a stream", _put(), PUT_MODES)
HOST_WAYS: dict[str, Callable[[], HostProbe]] = {
    **{
        name: partial(IpcProbe if verb.core == "ipc" else HostProbe, name, verb)
        for name, verb in HOST_VERBS.items()
    },
    "shared-copy": partial(SharedCopy, "shared-copy", SHARED_COPY),
}
"""What makes each way, by its name."""
