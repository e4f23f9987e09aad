"""Matrices in Harwell-Boeing and Rutherford-Boeing files (.rb, .hb, .rsa, .rua).

The formats: I. S. Duff, R. G. Grimes, J. G. Lewis, "Users' Guide for the Harwell-Boeing Sparse
Matrix Collection", 1992, and "The Rutherford-Boeing Sparse Matrix Collection", 1997. SciPy's reader
(as of 1.17) takes neither symmetric matrices, which positive definite ones are, nor numbers that
have no blank between them, nor formats other than I and E.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cpufree.dtypes import COMPLEX_ADVICE
from cpufree.errors import FileFormatError, MatrixError
from cpufree.matrix.io.files import MAX_LINE
from cpufree.matrix.io.matrix_market import both_triangles
from cpufree.matrix.problem import check_shape

_FORMAT = re.compile(
    r"\(\s*(?:(?P<scale>[+-]?\d+)P\s*,?\s*)?(?P<repeat>\d*)\s*(?P<kind>[IEDFG])\s*(?P<width>\d+)"
    r"(?:\.(?P<digits>\d+)(?:E\d+)?)?\s*\)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Format:
    """A Fortran format: so many numbers on a line, each as many characters wide."""

    repeat: int
    width: int
    whole: bool
    implied_point: bool
    """A number without a decimal point has one nevertheless."""


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
    if starts[0] != 0 or starts[-1] != entries or (starts[1:] < starts[:-1]).any():
        raise FileFormatError(
            f"{path}: damaged: the column pointers do not rise from 1 to {entries + 1}", path
        )
    if entries and not 0 <= indices.min() <= indices.max() < rows:
        raise FileFormatError(f"{path}: damaged: row numbers are not all from 1 to {rows}", path)
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
        raise MatrixError(f"{path}: complex, but only real systems are solved; {COMPLEX_ADVICE}")
    if kind[0] == "Q":
        raise FileFormatError(f"{path}: {kind}: the values are in another file", path)
    if kind[1] == "Z":
        raise MatrixError(f"{path}: skew-symmetric (A = -A.T), so it is not positive definite")


def _formats(cards: _Cards, count: int) -> list[_Format]:
    """Return the formats of pointers, row numbers and values that the fourth line tells."""
    text = cards.line().decode("latin-1")
    found: list[_Format] = []
    for word in re.findall(r"\([^()]*\)", text)[:count]:
        match = _FORMAT.fullmatch(word)
        whole = match is not None and match["kind"].upper() == "I"
        if match is None or (len(found) < 2 and not whole) or int(match["width"]) == 0:
            raise cards.error(f"cannot read numbers in the Fortran format {word}")
        if int(match["scale"] or 0) and match["kind"].upper() in "FG":
            raise cards.error(f"cannot read numbers with the scale factor of {word}")
        implied = not whole and int(match["digits"] or 0) > 0
        found.append(_Format(int(match["repeat"] or 1), int(match["width"]), whole, implied))
    if len(found) < count or not all(form.repeat for form in found):
        raise cards.error(f"{count} Fortran formats expected, found {text[:60].strip()!r}")
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

    def numbers(self, lines: int, count: int, form: _Format) -> NDArray[Any]:
        """Return the numbers on the next lines."""
        if lines != -(-count // form.repeat):
            raise self.error(
                f"damaged: {count} numbers, {form.repeat} a line, do not take the {lines} lines "
                "that the header promises"
            )
        taken = []
        for k in range(lines):
            line, fields = self.line(), min(form.repeat, count - k * form.repeat)
            # Fields may touch. Where blanks divide them, the width does not matter: SciPy's writer
            # makes numbers of other widths than it says.
            if len(line.split()) != fields:
                if len(line) <= (fields - 1) * form.width:
                    raise self.error(f"truncated: {fields} numbers expected")
                places = range(0, fields * form.width, form.width)
                line = b" ".join(line[at : at + form.width] for at in places)
            taken.append(line)
        text = b" ".join(taken)
        if text.translate(None, b"0123456789 +-" if form.whole else b"0123456789 +-.EeDd"):
            raise self.error(f"numbers expected on the {lines} lines before")
        if form.implied_point and text.count(b".") != count:
            raise self.error("a number on the lines before has no decimal point")
        dtype = np.int64 if form.whole else np.float64
        found = np.fromstring(text.translate(bytes.maketrans(b"Dd", b"EE")), dtype, sep=" ")
        if found.size != count:
            raise self.error(f"{count} numbers expected on the {lines} lines before")
        return found
