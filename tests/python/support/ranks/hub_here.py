"""A hub in this process, and connections that play its members."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

from ranks_here import PATIENCE

from cpufree.distributed import handshake, wire
from cpufree.distributed.hub import Hub

KEY = handshake.key_for(b"the secret of the tests", "job")


def hello(rank: int, ranks: int, **more: Any) -> dict[str, Any]:
    """Return what a rank says of itself."""
    said = {"rank": rank, "ranks": ranks, "version": "1", "host": "here", "pid": 70 + rank}
    return {**said, "machine": "this", "processes": "all", "local_rank": None, **more}


@contextlib.contextmanager
def hub(ranks: int, seconds: float = PATIENCE) -> Iterator[tuple[Hub, tuple[str, int]]]:
    """Give a hub, and where it is."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = Hub(listener, ranks, KEY, "1", seconds)
    yield server, listener.getsockname()
    server._latest = 0.0  # who has not come need not come any more
    server.wait(PATIENCE)
    listener.close()


def connect(place: tuple[str, int]) -> socket.socket:
    """Return a connection that does not wait for long."""
    return socket.create_connection(place, timeout=PATIENCE)


@contextlib.contextmanager
def member(place: tuple[str, int], said: dict[str, Any]) -> Iterator[socket.socket]:
    """Give a connection whose rank the hub has let in."""
    with connect(place) as connection:
        handshake.enter(connection, KEY, said, PATIENCE)
        connection.settimeout(PATIENCE)
        yield connection


@contextlib.contextmanager
def members(count: int) -> Iterator[tuple[Hub, list[socket.socket]]]:
    """Give a hub, and the connections of its members, which have come."""
    with contextlib.ExitStack() as stack:
        server, place = stack.enter_context(hub(count))
        found = [stack.enter_context(member(place, hello(k, count))) for k in range(count)]
        for one in found:
            assert wire.receive(one)[0]["do"] == "begin"
        yield server, found
