"""The process at the other end of a way between processes: a program of the standard library alone.

`python pipe_peer.py READ WRITE`: takes orders from one descriptor and answers by the other one. An
order is three numbers, mode, bytes and messages; an order of mode END ends the program.
"""

from __future__ import annotations

import os
import struct
import sys

ORDER = struct.Struct("<QQQ")
ANSWER = b"\0" * 8
SINGLE, WINDOW, SEND, RECEIVE, END = range(5)
MOST_BYTES = 1 << 26


def write_all(descriptor: int, data: memoryview) -> None:
    """Write all of some bytes, however many calls it takes."""
    done = os.write(descriptor, data)
    while done < len(data):
        done += os.write(descriptor, data[done:])


def read_all(descriptor: int, into: memoryview) -> None:
    """Fill a buffer.

    Raises:
        EOFError: the other end has closed the way.
    """
    done = 0
    while done < len(into):
        count = os.readv(descriptor, [into[done:]])
        if count == 0:
            raise EOFError("the other end is closed")
        done += count


def serve(source: int, sink: int) -> None:
    """Carry out orders until one says END, or the other end is gone."""
    order, buffer = bytearray(ORDER.size), memoryview(bytearray(8))
    while True:
        read_all(source, memoryview(order))
        mode, size, messages = ORDER.unpack(order)
        if mode == END:
            return
        if len(buffer) < size:
            buffer = memoryview(bytearray(size))
        data = buffer[:size]
        if mode == RECEIVE:  # of the one who orders
            write_all(sink, data)
            continue
        for _ in range(messages):
            read_all(source, data)
        write_all(sink, data if mode == SINGLE else memoryview(ANSWER))


if __name__ == "__main__":
    try:
        serve(int(sys.argv[1]), int(sys.argv[2]))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        sys.exit(1)
