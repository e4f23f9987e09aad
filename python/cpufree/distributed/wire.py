"""Messages over a TCP connection: a few facts as JSON, and bytes."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from typing import Any

_FRAME = struct.Struct("!4sIQ")
_MARK = b"cpfr"
_MOST_FACTS = 1 << 20  # bytes
_MOST_DATA = 1 << 40
# Of a message that any program may send to the port.
_MOST_FIRST_FACTS = 1 << 12
FIRST_SECONDS = 5.0
# Bytes for which there is room before any has come; from then on there is as much as has come.
_FIRST_ROOM = 1 << 16
# A machine that is switched off, or cut off, answers no probe; it is given up after that many
# seconds. The kernel sends and answers probes, however busy the process is. Data
# without an answer has longer: newer kernels count the time in which the receiver has no room, too,
# and that one may be there, and merely not read for a while.
_IDLE, _INTERVAL, _PROBES, _UNANSWERED_MS = 2, 1, 5, 30_000


class Damaged(ConnectionError):
    """What came is no message of ours."""


def prepare(connection: socket.socket) -> None:
    """Send small messages at once, and notice when the other machine is gone."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _IDLE),
        ("TCP_KEEPINTVL", _INTERVAL),
        ("TCP_KEEPCNT", _PROBES),
        ("TCP_USER_TIMEOUT", _UNANSWERED_MS),
    ):
        if hasattr(socket, name):  # Linux has all of them
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def send(connection: socket.socket, facts: dict[str, Any], data: bytes = b"") -> None:
    """Send one message; OSError where the connection is broken."""
    text = json.dumps(facts).encode()
    connection.sendall(_FRAME.pack(_MARK, len(text), len(data)) + text)
    if data:
        connection.sendall(data)


def receive(connection: socket.socket) -> tuple[dict[str, Any], bytes]:
    """Return the next message; ConnectionError at the end, OSError where it is broken."""
    mark, facts, data = _FRAME.unpack(_exactly(connection, _FRAME.size))
    if mark != _MARK or facts > _MOST_FACTS or data > _MOST_DATA:
        raise Damaged("not a message of cpufree")
    content = _content(_exactly(connection, facts))
    return content, bytes(_exactly(connection, data))


def receive_first(connection: socket.socket, seconds: float = FIRST_SECONDS) -> dict[str, Any]:
    """Return the facts of a message of the handshake: few, without data, and soon; OSError else."""
    end = time.monotonic() + seconds
    mark, facts, data = _FRAME.unpack(_exactly(connection, _FRAME.size, end))
    if mark != _MARK or facts > _MOST_FIRST_FACTS or data:
        raise Damaged("not a message of cpufree")
    content = _content(_exactly(connection, facts, end))
    connection.settimeout(None)
    return content


def _content(text: bytearray) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damaged("not a message of cpufree") from error
    if not isinstance(content, dict):
        raise Damaged("not a message of cpufree")
    return content


def _exactly(connection: socket.socket, count: int, end: float | None = None) -> bytearray:
    """Read `count` bytes, until the time `end` where there is one.

    Memory is taken as the bytes come: a length alone, which may be damaged, takes none.
    """
    buffer = bytearray(min(count, _FIRST_ROOM))
    done = 0
    while done < count:
        if end is not None:
            connection.settimeout(max(1e-3, end - time.monotonic()))
        if done == len(buffer):
            buffer.extend(bytes(min(done, count - done)))
        with memoryview(buffer) as view, view[done:] as room:
            got = connection.recv_into(room)
        if got == 0:
            raise ConnectionError("the connection has ended")
        done += got
    return buffer


def hang_up(connection: socket.socket) -> None:
    """Close a connection, also for a thread that waits for it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
