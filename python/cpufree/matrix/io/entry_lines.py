"""Bodies of Matrix Market files that are spelled as nearly all are, parsed by all cores.

A line holds a row, a column and a value, and nothing else. Where a body is spelled otherwise, or
where anything is wrong with it, the reader of `matrix_market` reads it again from its beginning: it
takes all that the format allows, and says what is wrong and in which line.
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
from collections.abc import Generator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from cpufree.extension import load_core
from cpufree.matrix.io.files import MAX_LINE
from cpufree.matrix.problem import CsrMatrix

BLOCK = 8 << 20
"""Bytes of text that are parsed at a time."""


@dataclass(frozen=True)
class Header:
    """What the first lines of a Matrix Market file say."""

    format: str
    field: str
    symmetry: str
    rows: int
    columns: int
    entries: int
    """Entries in the file: lines of a coordinate body, numbers of an array body."""
    lines: int
    """Lines before the body."""

    @property
    def numbers(self) -> int:
        """How many numbers the body holds."""
        return self.entries * (self.numbers_per_line or self.reals)

    @property
    def reals(self) -> int:
        """Real numbers that a value is."""
        return 2 if self.field == "complex" else 1

    @property
    def numbers_per_line(self) -> int:
        """Numbers that each line holds; 0 for arrays, whose lines may hold any number."""
        return 0 if self.format == "array" else 2 if self.field == "pattern" else 2 + self.reals

    def amount(self, numbers: int) -> str:
        """Return how much N numbers are, in words: 4 entries, or 12 numbers of an array."""
        each = self.numbers_per_line
        if not each:
            return f"{numbers} numbers"
        return f"{numbers // each} {'entry' if numbers // each == 1 else 'entries'}"

    @property
    def is_whole(self) -> bool:
        """Whether all numbers of the body are whole."""
        return self.field not in ("real", "double", "complex")

    @property
    def content(self) -> str:
        """What a line holds, in words."""
        value = "a whole number" if self.is_whole else "a real number"
        value = "real and imaginary part" if self.field == "complex" else value
        if self.field == "pattern":
            return "row and column"
        if self.format == "array":
            return value
        return f"row, column, {value}" if self.reals == 2 else f"row, column and {value}"


class UnusualError(Exception):
    """The text is for another reader."""


def read_entries(file: IO[bytes], header: Header) -> tuple[Any, Any, Any] | None:
    """Return rows, columns and values of a coordinate body, from 0; None: file is where it was."""
    if header.field in ("complex", "unsigned-integer") or not file.seekable():
        return None
    begin = file.tell()
    size = header.entries
    row, column = np.empty(size, np.int32), np.empty(size, np.int32)
    value: Any = None if header.field == "pattern" else np.empty(size, _dtype_of(header))
    core, count = load_core(), 0
    shape = (header.rows, header.columns)
    if isinstance(getattr(file, "raw", None), io.FileIO):  # each core reads its own bytes
        number = file.fileno()
        end = max(begin, os.fstat(number).st_size)
        found = core.parse_entries_of_file(number, begin, end, *shape, row, column, value)
        if found != size:
            return None
        return row, column, np.ones(size) if value is None else value
    try:
        with contextlib.closing(blocks_ahead(file)) as blocks:
            for block in blocks:
                text = np.frombuffer(block, np.uint8)
                found = core.parse_entries(text, *shape, row, column, value, count)
                if found < 0:
                    raise UnusualError
                count += found
        if count != size:
            raise UnusualError
    except UnusualError:
        file.seek(begin)
        return None
    return row, column, np.ones(size) if value is None else value


def _dtype_of(header: Header) -> type:
    return np.int64 if header.is_whole else np.float64


def rows_of(header: Header, triplets: tuple[Any, Any, Any]) -> CsrMatrix | None:
    """Return the matrix that triplets are, None where an entry is there twice, or not a real."""
    row, column, value = triplets
    if value.dtype != np.float64 or header.rows != header.columns:
        return None
    mirror = header.symmetry != "general"
    found = load_core().rows_of_entries(row, column, value, header.rows, mirror)
    return None if found is None else CsrMatrix(*found)


def blocks_ahead(file: IO[bytes]) -> Generator[bytes, None, None]:
    """Return blocks of whole lines; while one is used, a thread reads and decompresses the next.

    Raises:
        UnusualError: a line is too long, or the file cannot be read: reading it again tells why.
    """
    block = _block_of(file)
    while block:
        later = _Later(file)
        try:
            yield block
        finally:
            block = later.wait()
        if later.failed:
            raise UnusualError


class _Later:
    """The next block of a file, which a thread reads."""

    failed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._block = file, b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            self._block = _block_of(self._file)
        except Exception:
            self.failed = True

    def wait(self) -> bytes:
        self._thread.join()
        return self._block


def _block_of(file: IO[bytes]) -> bytes:
    """Return whole lines, none at the end of the file."""
    block = file.read(BLOCK)
    if not block:
        return b""
    if not block.endswith(b"\n"):
        rest = file.readline(MAX_LINE)
        if len(rest) == MAX_LINE:
            raise UnusualError
        block += rest if rest.endswith(b"\n") else rest + b"\n"
    return block
