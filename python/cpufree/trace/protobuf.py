"""Protocol buffers as far as a trace needs them: a writer of many like messages, and a reader.

The writer makes numbers as wide as their type allows (a reader takes them: zeros in front of a
number are allowed), so that all messages of one kind have the same length, and NumPy writes a
million of them at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5


def varint(value: int) -> bytes:
    """Return a number as it is usually written."""
    found = bytearray()
    value &= (1 << 64) - 1
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def key(field: int, kind: int) -> bytes:
    """Return the beginning of a field."""
    return varint(field << 3 | kind)


def number(field: int, value: int) -> bytes:
    """Return a field with a number."""
    return key(field, VARINT) + varint(value)


def piece(field: int, content: bytes | str) -> bytes:
    """Return a field with a text, bytes or a message."""
    content = content.encode() if isinstance(content, str) else content
    return key(field, LENGTH) + varint(len(content)) + content


class Rows:
    """Many messages of one form: bytes that all have, and columns of numbers.

    Args:
        count: of messages.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._columns: list[Bytes] = []

    @property
    def width(self) -> int:
        """Bytes of a message until now."""
        return sum(column.shape[1] for column in self._columns)

    def same(self, content: bytes) -> Rows:
        """Add bytes that all messages have."""
        row = np.frombuffer(content, np.uint8)
        self._columns.append(np.broadcast_to(row, (self._count, len(row))))
        return self

    def numbers(self, field: int, values: npt.NDArray[np.int64], width: int = 9) -> Rows:
        """Add a field of numbers >= 0 of 7 * width bits at most."""
        self.same(key(field, VARINT))
        shifts = np.arange(width, dtype=np.uint64) * np.uint64(7)
        digits = (values.astype(np.uint64)[:, None] >> shifts) & np.uint64(0x7F)
        digits[:, :-1] |= np.uint64(0x80)
        self._columns.append(digits.astype(np.uint8))
        return self

    def fixed(self, field: int, values: npt.NDArray[np.int64]) -> Rows:
        """Add a field of 8 bytes."""
        self.same(key(field, FIXED64))
        self._columns.append(values.astype("<u8")[:, None].view(np.uint8))
        return self

    def within(self, field: int) -> Rows:
        """Return messages in which each of these is a field."""
        outer = Rows(self._count).same(key(field, LENGTH) + varint(self.width))
        outer._columns += self._columns
        return outer

    def add(self, others: Rows) -> Rows:
        """Append the bytes of other messages, one to each."""
        self._columns += others._columns
        return self

    def table(self) -> Bytes:
        """Return all of them, one a row."""
        return np.concatenate(self._columns, axis=1)


def fields(message: bytes | memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield number and content of each field: an int, or the bytes of a text or message."""
    view, place = memoryview(message), 0
    while place < len(view):
        head, place = _read_varint(view, place)
        field, kind = head >> 3, head & 7
        if kind == VARINT:
            value, place = _read_varint(view, place)
            yield field, value
        elif kind == LENGTH:
            size, place = _read_varint(view, place)
            yield field, view[place : place + size]
            place += size
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
            yield field, int.from_bytes(view[place : place + size], "little")
            place += size
        else:
            raise ValueError(f"a field of kind {kind} at byte {place}")


def _read_varint(view: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = view[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
