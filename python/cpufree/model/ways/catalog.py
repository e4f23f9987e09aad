"""Ways in which two PEs can exchange data: those that Python measures, and the list of all.

A way has three verbs: `open`, `times` of exchanges, `close`. All clocks are those of one process: a
message one way is half a round trip.
"""

from __future__ import annotations

import array
import fcntl
import math
import os
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from cpufree.errors import EngineError, InvalidInputError
from cpufree.model.samples import MODES, Kind
from cpufree.model.ways import pipe_peer
from cpufree.model.ways.host_ways import HOST_WAYS
from cpufree.model.ways.mpi_ways import MPI_WAYS
from cpufree.model.ways.nvshmem_ways import SHMEM_WAYS
from cpufree.model.ways.probe_ways import PROBE_WAYS
from cpufree.text import meant

LIMIT = 60.0
"""Seconds that one exchange may take; then the other end is ended, and an error says so."""
WATCH_EVERY = 0.5
"""Seconds between two looks at it."""
HOST = Kind("host", "host", "host", "message")


class Way(Protocol):
    """A way between two PEs; ways of other kinds of machines implement the same."""

    name: str
    kind: Kind
    what: str
    """In a few words."""
    most_bytes: int
    """The largest message that it can send."""
    most_call_bytes: int
    """The largest one for which the calls alone are timed."""
    most_window_bytes: int
    """The most that the messages of a window may have together."""
    modes: tuple[str, ...]
    """Of `cpufree.model.samples.MODES`, those in which it can be timed."""
    runs: int
    """Runs of kernels whose times count; 0 for ways without kernels."""
    disturbed: int
    """Those of them in which another program took a core."""

    def lacking(self) -> str:
        """Return why this machine lacks the way, "" where it has it."""

    def open(self) -> None:
        """Set the way up."""

    def extras(self) -> tuple[list[tuple[str, int, int]], dict[str, str]]:
        """Return mode, bytes and count of what is measured besides, and what cannot be, and why."""

    def times(
        self, mode: str, size: int, messages: int, warm_ups: int, repeats: int
    ) -> list[float]:
        """Return the seconds of exchanges in a mode of `modes` or of extras."""

    def close(self) -> None:
        """End what `open` has begun."""


class ProcessWay:
    """A way to another process, over a descriptor to write to and one to read from."""

    name = ""
    kind = HOST
    what = ""
    most_bytes = pipe_peer.MOST_BYTES
    # Beyond what the kernel buffers, a call that sends waits for the one that receives.
    most_call_bytes = 8192
    most_window_bytes = 1 << 40
    modes: tuple[str, ...] = MODES
    runs = 0
    disturbed = 0

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._source = self._sink = -1
        self._buffer = memoryview(bytearray(8))
        self._deadline = math.inf
        self._watch: threading.Thread | None = None

    def lacking(self) -> str:
        """Return why this machine lacks the way, "" where it has it."""
        return "" if sys.executable else "the path of the Python interpreter is not known"

    def descriptors(self) -> tuple[int, int, int, int]:
        """Return what this end reads from and writes to, then the same of the other end."""
        raise NotImplementedError

    def open(self) -> None:
        """Set the way up, and start the process at the other end."""
        self._source, self._sink, *theirs = self.descriptors()
        program = [sys.executable, "-I", "-S", str(Path(pipe_peer.__file__)), *map(str, theirs)]
        try:
            self._process = subprocess.Popen(program, pass_fds=theirs, stdin=subprocess.DEVNULL)
        except OSError as error:
            self.close()
            raise EngineError(f"way {self.name}: the other process cannot start: {error}") from None
        finally:
            for descriptor in set(theirs):
                os.close(descriptor)
        self._watch = threading.Thread(target=self._end_when_late, args=[self._process])
        self._watch.daemon = True
        self._watch.start()

    def extras(self) -> tuple[list[tuple[str, int, int]], dict[str, str]]:
        """Return nothing: messages are all that is measured."""
        return [], {}

    def times(
        self, mode: str, size: int, messages: int, warm_ups: int, repeats: int
    ) -> list[float]:
        """Return the seconds of N exchanges; see `time` for errors."""
        for _ in range(-(-warm_ups // messages)):
            self.time(mode, size, messages)
        return [self.time(mode, size, messages) for _ in range(repeats)]

    def time(self, mode: str, size: int, messages: int = 1) -> float:
        """Return the seconds of one exchange.

        Raises:
            InvalidInputError: the way cannot send messages of this size. EngineError: the other end
            is gone, or took longer than LIMIT.
        """
        if not 1 <= size <= self.most_bytes:
            raise InvalidInputError(
                f"way {self.name} cannot send messages of {size} B: give 1 to {self.most_bytes}"
            )
        if len(self._buffer) < size:
            self._buffer = memoryview(bytearray(size))
        self._deadline = time.monotonic() + LIMIT
        try:
            return self._exchange(mode, self._buffer[:size], messages)
        except (EOFError, OSError) as error:
            late = time.monotonic() > self._deadline
            why = f"took longer than {LIMIT:g} s" if late else f"is gone ({error})"
            raise EngineError(f"way {self.name}: the process at the other end {why}") from None
        finally:
            self._deadline = math.inf

    def _end_when_late(self, process: subprocess.Popen[bytes]) -> None:
        """End the other process where an exchange takes too long: this end then finds it gone."""
        while process.poll() is None:
            if time.monotonic() > self._deadline:
                process.kill()
            time.sleep(WATCH_EVERY)

    def _exchange(self, mode: str, data: memoryview, messages: int) -> float:
        number = ("single", "window", "send", "receive").index(mode)
        pipe_peer.write_all(
            self._sink, memoryview(pipe_peer.ORDER.pack(number, len(data), messages))
        )
        answer = data if mode == "single" else memoryview(bytearray(8))
        if mode == "receive":
            self._await(len(data))
            begin = time.perf_counter()
            pipe_peer.read_all(self._source, data)
            return time.perf_counter() - begin
        begin = time.perf_counter()
        for _ in range(messages):
            pipe_peer.write_all(self._sink, data)
        sent = time.perf_counter()
        pipe_peer.read_all(self._source, answer)
        done = time.perf_counter()
        if mode == "send":
            return sent - begin
        return (done - begin) / 2 if mode == "single" else done - begin

    def _await(self, size: int) -> None:
        """Wait until N bytes are there to be read."""
        there = array.array("i", [0])
        while there[0] < size:
            if self._process is None or self._process.poll() is not None:
                raise EOFError("no message came")
            fcntl.ioctl(self._source, termios.FIONREAD, there)

    def close(self) -> None:
        """End the other process."""
        process, self._process = self._process, None
        for descriptor in {self._source, self._sink} - {-1}:
            os.close(descriptor)
        self._source = self._sink = -1
        if process is not None:
            try:
                process.wait(5.0)  # it ends when the way is closed
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class PipeWay(ProcessWay):
    """Two pipes between two processes."""

    name = "pipe"
    what = "pipes between two processes"

    def descriptors(self) -> tuple[int, int, int, int]:
        """Return the ends of two pipes."""
        (ours, theirs_out), (theirs, ours_out) = os.pipe(), os.pipe()
        return ours, ours_out, theirs, theirs_out


class SocketWay(ProcessWay):
    """A TCP connection over the loopback device between two processes."""

    name = "socket"
    what = "TCP over the loopback device between two processes"

    def lacking(self) -> str:
        """Return why this machine lacks the way, "" where it has it."""
        try:
            with socket.create_server(("127.0.0.1", 0)):
                return super().lacking()
        except OSError as error:
            return f"no socket on 127.0.0.1: {error.strerror}"

    def descriptors(self) -> tuple[int, int, int, int]:
        """Return the ends of a connection."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            ours = socket.create_connection(server.getsockname(), timeout=LIMIT)
            theirs, _ = server.accept()
        for end in (ours, theirs):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.setblocking(True)
        mine, others = ours.detach(), theirs.detach()
        return mine, mine, others, others


WAYS: dict[str, type[ProcessWay]] = {way.name: way for way in (PipeWay, SocketWay)}
ALL_WAYS: dict[str, Callable[[], Way]] = {
    **WAYS, **PROBE_WAYS, **HOST_WAYS, **SHMEM_WAYS, **MPI_WAYS,
}  # fmt: skip


def find_ways(names: tuple[str, ...]) -> list[Way]:
    """Return ways by name; none: all.

    Raises:
        InvalidInputError: a name is not known, or there twice.
    """
    for name in names:
        if name not in ALL_WAYS:
            known = ", ".join(ALL_WAYS)
            raise InvalidInputError(f"no way '{name}'{meant(name, ALL_WAYS)}: there are {known}")
        if names.count(name) > 1:
            raise InvalidInputError(f"way '{name}' is there twice")
    return [ALL_WAYS[name]() for name in names or tuple(ALL_WAYS)]
