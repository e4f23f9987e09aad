"""What the ranks of `cpufree run` print: it reaches the launcher's own output in whole lines.

A rank writes to a pipe. Where the launcher has a terminal, rank 0 writes to that itself, so that
its colours, its progress and its questions are there at once, unless lines have labels. Where
stdout and stderr of the launcher are one file, so are those of a rank, whose order is kept. Bytes
are passed on as they are.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import selectors
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_CHUNK = 1 << 16
_LONGEST_LINE = 1 << 16  # bytes that are held back until their line ends
_PATIENCE = 0.05  # seconds after which it is looked whether all ranks have ended
# Seconds of silence after which nothing more is expected once all ranks have ended: processes that
# they have left behind may keep the pipes open.
_LAST_SILENCE = 0.2
_LAST_SECONDS = 2.0  # for those who read the output, where the job is to end at once


@dataclass
class _Stream:
    """What one rank writes to one file of the launcher."""

    rank: int
    target: int  # descriptor of the launcher
    held: bytes = b""


class Output:
    """Reads from all ranks in a thread, and writes lines."""

    def __init__(self, label: bool = False, targets: tuple[int, int] = (1, 2)) -> None:
        """`label`: begin each line with the number of its rank."""
        self._label, self._targets = label, targets
        self._selector = selectors.DefaultSelector()
        self._open: dict[tuple[int, ...], int] = {}  # ranks whose lines have not ended, by file
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, name="cpufree output", daemon=True)

    @contextlib.contextmanager
    def of_rank(self, rank: int) -> Iterator[tuple[int, int]]:
        """Give what a rank is to have as stdout and stderr, while it is started."""
        with contextlib.ExitStack() as theirs:
            given: dict[tuple[int, ...], int] = {}
            for target in self._targets:
                if rank == 0 and not self._label and os.isatty(target):
                    given[_file_of(target)] = target
                elif _file_of(target) not in given:
                    ours, end = os.pipe()
                    theirs.callback(os.close, end)
                    self._selector.register(ours, selectors.EVENT_READ, _Stream(rank, target))
                    given[_file_of(target)] = end
            stdout, stderr = (given[_file_of(target)] for target in self._targets)
            yield stdout, stderr

    def start(self) -> None:
        """Begin to pass on, once all ranks have started."""
        self._thread.start()

    def finish(self, hurry: Callable[[], bool]) -> None:
        """Return once all has been written; soon where there is a hurry."""
        self._ended.set()
        if self._thread.ident is None:
            return
        latest = float("inf")
        while self._thread.is_alive() and time.monotonic() < latest:
            self._thread.join(0.05)
            if hurry():
                latest = min(latest, time.monotonic() + _LAST_SECONDS)

    def _read(self) -> None:
        while self._selector.get_map():
            ready = self._selector.select(_LAST_SILENCE if self._ended.is_set() else _PATIENCE)
            if not ready and self._ended.is_set():
                break
            for key, _ in ready:
                if key.fd in self._selector.get_map():
                    self._take(key.fd, key.data)
        for key in self._keys():
            self._end(key.fd, key.data)

    def _keys(self) -> list[selectors.SelectorKey]:
        return list(self._selector.get_map().values())

    def _take(self, fd: int, stream: _Stream) -> None:
        data = os.read(fd, _CHUNK)
        if not data:
            self._end(fd, stream)
            return
        lines, newline, rest = (stream.held + data).rpartition(b"\n")
        stream.held = rest
        if newline:
            self._write(stream, lines + newline)
        if len(stream.held) > _LONGEST_LINE:
            self._write_held(stream)

    def _end(self, fd: int, stream: _Stream) -> None:
        self._write_held(stream)
        self._selector.unregister(fd)
        os.close(fd)

    def _write_held(self, stream: _Stream) -> None:
        held, stream.held = stream.held, b""
        if held:
            self._write(stream, held)

    def _write(self, stream: _Stream, data: bytes) -> None:
        """Write what ends with a line, or does not."""
        file = _file_of(stream.target)
        begun = self._open.pop(file, None)
        if begun is not None and begun != stream.rank:
            _write_all(stream.target, b"\n")
        if self._label:
            mark = b"%d: " % stream.rank
            marked = data.replace(b"\n", b"\n" + mark, data.count(b"\n", 0, -1))
            data = marked if begun == stream.rank else mark + marked
        if not data.endswith(b"\n"):
            self._open[file] = stream.rank
        if not _write_all(stream.target, data):
            self._drop(stream.target)

    def _drop(self, target: int) -> None:
        """Let ranks know, as they write, that the reader has gone."""
        for key in self._keys():
            if key.data.target == target:
                key.data.held = b""
                self._end(key.fd, key.data)


def make_room(ranks: int) -> tuple[int, int]:
    """Let this process have files for N ranks; return the limits that it had."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 4 * ranks + 100
    if before[0] != resource.RLIM_INFINITY and before[0] < needed:
        with contextlib.suppress(ValueError, OSError):  # the limit stays, and a start may fail
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, before[1]))
    return before


def _file_of(target: int) -> tuple[int, ...]:
    """Return what two descriptors of one file have in common."""
    found = os.fstat(target)
    return found.st_dev, found.st_ino, found.st_rdev


def _write_all(target: int, data: bytes) -> bool:
    """Write all, however long readers take; return False where there are none any more."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:
            select.select([], [target], [], 1.0)
        except OSError:
            return False
    return True
