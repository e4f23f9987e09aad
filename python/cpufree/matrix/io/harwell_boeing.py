"""Matrices in Harwell-Boeing and Rutherford-Boeing files (.rb, .hb, .rsa, .rua).

The formats: I. S. Duff, R. G. Grimes, J. G. Lewis, "Users' Guide for the Harwell-Boeing Sparse
Matrix Collection", 1992, and "The Rutherford-Boeing Sparse Matrix Collection", 1997. SciPy's reader
(as of 1.17) takes neither symmetric matrices, which positive definite ones are, nor numbers that
have no blank between them, nor formats other than I and E, nor groups in them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cpufree.dtypes import COMPLEX_FILE
from cpufree.errors import FileFormatError, MatrixError
from cpufree.matrix.io.files import MAX_LINE
from cpufree.matrix.io.fortran import Format, formats_in, parse_format, with_exponents_of_c
from cpufree.matrix.io.matrix_market import both_triangles
from cpufree.matrix.problem import check_shape

_FROM_0 = "; these files count from 1, and this one seems to count from 0: add 1 to both"


def read_harwell_boeing(path: Path) -> Any:
    """Return the matrix of a file as a coo_array; of a symmetric one both triangles.

    Raises:
        FileFormatError: damaged, truncated, elemental, or in a format that is not read here.
        MatrixError: complex, skew-symmetric, not square, empty or too large.
    """
    with open(path, "rb") as stream:
        cards = _Cards(path, stream)
        cards.line()  # title and key
        counts = cards.whole_numbers(cards.line(), "numbers of lines")
        first = cards.line().decode("latin-1")
        kind = first[:3].upper()
        sizes = cards.whole_numbers(first[3:].encode("latin-1"), "type and sizes")
        if len(counts) < 4 or len(sizes) < 3:
            raise cards.error("not a Harwell-Boeing or Rutherford-Boeing file: sizes are missing")
        (rows, columns, entries), lines = sizes[:3], counts[1:4]
        _check_kind(path, kind)
        check_shape((rows, columns), entries)
        formats = _formats(cards, 2 if kind[0] == "P" else 3)
        if len(counts) > 4 and counts[4] > 0:
            cards.line()  # about right-hand sides
        starts = cards.numbers(lines[0], columns + 1, formats[0]) - 1
        indices = cards.numbers(lines[1], entries, formats[1]) - 1
        if kind[0] == "P":
            values = np.ones(entries)
        else:
            values = cards.numbers(lines[2], entries, formats[2])
    hint = _FROM_0 if starts[0] == -1 or (entries and indices.min() == -1) else ""
    if starts[0] != 0 or starts[-1] != entries or (starts[1:] < starts[:-1]).any():
        why = f"the column pointers do not rise from 1 to {entries + 1}{hint}"
        raise FileFormatError(f"{path}: damaged: {why}", path)
    if entries and not 0 <= indices.min() <= indices.max() < rows:
        why = f"row numbers are not all from 1 to {rows}{hint}"
        raise FileFormatError(f"{path}: damaged: {why}", path)
    triplets = indices, np.repeat(np.arange(columns), np.diff(starts)), values
    if kind[1] == "S":
        triplets = both_triangles(path, *triplets)
    return sp.coo_array((triplets[2], triplets[:2]), shape=(rows, columns))


def _check_kind(path: Path, kind: str) -> None:
    """Refuse what the three letters of the type show to be unusable."""
    if not re.fullmatch("[RICPQ][SUHZR][AE]", kind):
        raise FileFormatError(
            f"{path}: line 3: {kind!r} is no type of matrix, such as RSA (real, symmetric, "
            "assembled)",
            path,
        )
    if kind[2] == "E":
        raise FileFormatError(
            f"{path}: {kind}: the matrix is stored by elements; assemble it, and pass the sum", path
        )
    if kind[0] == "C" or kind[1] == "H":
        raise MatrixError(f"{path}: {COMPLEX_FILE}")
    if kind[0] == "Q":
        raise FileFormatError(f"{path}: {kind}: the values are in another file", path)
    if kind[1] == "Z":
        raise MatrixError(f"{path}: skew-symmetric (A = -A.T), so it is not positive definite")


def _formats(cards: _Cards, count: int) -> list[Format]:
    """Return the formats of pointers, row numbers and values that the fourth line tells."""
    text = cards.line().decode("latin-1")
    words = formats_in(text)[:count]
    if len(words) < count:
        raise cards.error(f"{count} Fortran formats expected, found {text[:60].strip()!r}")
    found = []
    for k, word in enumerate(words):
        try:
            found.append(parse_format(word, whole=k < 2))
        except ValueError as error:
            what = f"cannot read numbers in the Fortran format {word[:60]}: {error}"
            raise cards.error(what) from None
    return found


class _Cards:
    """The lines of a file, which hold numbers in columns."""

    def __init__(self, path: Path, stream: IO[bytes]) -> None:
        self._path, self._stream = path, stream
        self._number = 0

    def error(self, what: str) -> FileFormatError:
        return FileFormatError(f"{self._path}: line {self._number}: {what}", self._path)

    def line(self) -> bytes:
        line = self._stream.readline(MAX_LINE)
        self._number += 1
        if not line:
            what = f"truncated after {self._number - 1} lines"
            raise FileFormatError(f"{self._path}: {what}", self._path)
        if len(line) == MAX_LINE:
            raise self.error(f"longer than {MAX_LINE} characters")
        return line.rstrip(b"\r\n")

    def whole_numbers(self, line: bytes, what: str) -> list[int]:
        words = line.split()
        if not all(word.isdigit() and len(word) < 19 for word in words):
            shown = line[:60].decode("latin-1").strip()
            raise self.error(f"{what} expected, all whole numbers; found {shown!r}")
        return [int(word) for word in words]

    def numbers(self, lines: int, count: int, form: Format) -> NDArray[Any]:
        """Return the numbers on the next lines."""
        if not form.free and lines != form.lines_of(count):
            raise self.error(
                f"damaged: {count} numbers, {len(form.later)} a line, do not take the {lines} "
                "lines that the header promises"
            )
        taken, left = [], count
        for k in range(lines):
            fields = (form.later if k else form.first)[:left]
            line = self.line()
            taken.append(line if form.free else self._divided(line, fields))
            left -= len(fields)
        text = b" ".join(taken)
        if not form.whole:
            text = with_exponents_of_c(text)
        if text.translate(None, b"0123456789 +-" if form.whole else b"0123456789 +-.Ee"):
            raise self.error(f"numbers expected on the {lines} lines before")
        if form.implied_point and text.count(b".") != count:
            raise self.error("a number on the lines before has no decimal point")
        try:
            found = np.fromstring(text, np.int64 if form.whole else np.float64, sep=" ")
        except ValueError:
            found = np.empty(0)
        if found.size != count:
            raise self.error(f"{count} numbers expected on the {lines} lines before")
        return found

    def _divided(self, line: bytes, fields: tuple[tuple[int, int], ...]) -> bytes:
        """Return the numbers of a line with blanks between: fields may touch."""
        # Where blanks divide them, the width does not matter: SciPy's writer makes numbers of other
        # widths than it says.
        if len(line.split()) == len(fields):
            return line
        if len(line) <= fields[-1][0]:
            raise self.error(f"truncated: {len(fields)} numbers expected")
        return b" ".join(line[begin:end] for begin, end in fields)
