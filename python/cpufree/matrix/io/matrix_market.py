"""Matrix Market files (.mtx, .mtx.gz, .mtx.bz2).

The format: R. F. Boisvert, R. Pozo, K. A. Remington, "The Matrix Market Exchange Formats: Initial
Design", NISTIR 5935 (1996). Bodies as nearly all files have them are parsed by all cores
(`entry_lines`), the others, and those with anything wrong in them, by SciPy, whose reader (as of
1.17) crashes on a NUL byte and on a last line that ends in a blank, reads `1.0D+05` as 1.0 and
`2,5` as 2, ignores what else a line holds, and loses the sign of -0.0 in arrays. So the text of the
body is checked, some MB at a time, while SciPy reads it; arrays are read by NumPy.
"""

from __future__ import annotations

import bz2
import gzip
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cpufree.errors import FileFormatError, MatrixError
from cpufree.matrix.io.entry_lines import Header, read_entries, rows_of
from cpufree.matrix.io.files import MARK, MAX_LINE, PathLike, reading
from cpufree.matrix.io.fortran import with_exponents_of_c
from cpufree.matrix.io.number_text import BadLineError, count_numbers
from cpufree.matrix.problem import check_shape

if TYPE_CHECKING:
    import scipy.sparse as sp

_FIELDS = {"real", "double", "integer", "unsigned-integer", "pattern", "complex"}
_SYMMETRIES = {"general", "symmetric", "skew-symmetric", "hermitian"}
_MAX_COMMENTS, _MAX_COMMENT_LINES = 16 << 20, 1 << 18
_BLOCK = 1 << 18
_PLACE_0 = re.compile(
    rb"^[ \t]*(?=0+[ \t]|[0-9]+[ \t]+0+(?:\s|\Z))([0-9]+)[ \t]+([0-9]+)", re.MULTILINE
)
EXPANSION = 1032
"""Bytes that a compressed one yields at most: deflate's own limit, which is far above what bzip2
makes of text, too. Promises of the header are held against it before anything is allocated."""
_COMPRESSED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open}


def read_matrix_market(path: PathLike, square: bool = True) -> Any:
    """Return the contents of a Matrix Market file: CsrMatrix, coo_array or, of arrays, ndarray.

    Args:
        path: the file; what gzip or bzip2 have compressed is decompressed, whatever its suffix.
        square: refuse at once what cannot be a symmetric positive definite matrix.

    Raises:
        FileFormatError: damaged, truncated or not in the format.
        MatrixError: skew-symmetric; with `square` also rectangular, empty or too large.
    """
    with open(path, "rb") as file:
        return _parse_unpacked(path, file, os.path.getsize(path), square)


def _parse_unpacked(path: PathLike, file: IO[bytes], size: int, square: bool = True) -> Any:
    """Return what a file of `size` bytes holds, which begins as what has compressed it does."""
    head = file.read(3)
    file.seek(0)
    unpack = next((how for begin, how in _COMPRESSED.items() if head.startswith(begin)), None)
    if unpack is None:
        return parse_matrix_market(path, file, size, square)
    with unpack(file, "rb") as text:
        return parse_matrix_market(path, text, size * EXPANSION, square)


def read_matrix_market_stdin() -> Any:
    """Return the contents of standard input, as `read_matrix_market` does of a file.

    Raises:
        FileFormatError: it is a terminal, empty, or not in the format. MatrixError: as there.
    """
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None or stream.isatty():
        raise FileFormatError("-: standard input is a terminal: pipe a Matrix Market text into it")
    with reading(Path("-"), ".mtx"), tempfile.TemporaryFile() as file:
        shutil.copyfileobj(stream, file)  # its size is needed before it is read
        size = file.tell()
        if size == 0:
            raise FileFormatError(
                "-: standard input is empty. Of several processes the first one alone has it: save "
                "the matrix as a file for them"
            )
        file.seek(0)
        return _parse_unpacked("-", file, size)


def parse_matrix_market(path: PathLike, file: IO[bytes], most: int, square: bool = True) -> Any:
    """Return what a text in Matrix Market format holds, as `read_matrix_market` does.

    Args:
        path: what errors call it.
        file: the text.
        most: bytes that it can have at most.
        square: as of `read_matrix_market`.
    """
    header = _parse_header(path, file)
    _check_header(path, header, square)
    _check_promises(path, header, most)
    triplets = read_entries(file, header) if header.format == "coordinate" else None
    if triplets is not None:
        matrix = rows_of(header, triplets) if square else None
        return _matrix_of(path, header, triplets) if matrix is None else matrix
    body = _Body(path, file, header, most)
    if header.format == "array":
        return _array_of(header, body)
    import scipy.io  # a heavy import

    try:
        contents = scipy.io.mmread(body)
    except Exception:
        # What the body refused explains why the reader failed.
        body.check()
        raise
    body.finish()
    return _matrix_of(path, header, (contents.row, contents.col, contents.data))


def _matrix_of(path: PathLike, header: Header, triplets: tuple[Any, Any, Any]) -> sp.coo_array:
    """Return the matrix of the entries that a file holds."""
    import scipy.sparse as sp  # a heavy import

    if header.symmetry != "general":
        triplets = both_triangles(path, *triplets, header.symmetry)
    rows, columns, values = triplets
    return sp.coo_array((values, (rows, columns)), shape=(header.rows, header.columns))


def _parse_header(path: PathLike, file: IO[bytes]) -> Header:
    banner = file.readline(MAX_LINE).removeprefix(MARK).decode("latin-1").lower().split()
    if len(banner) != 5 or banner[0] not in ("%%matrixmarket", "%matrixmarket"):
        raise FileFormatError(
            f"{path}: not a Matrix Market file: the first line must read "
            "'%%MatrixMarket matrix coordinate real symmetric', or similar",
            path,
        )
    _, thing, form, field, symmetry = banner
    for what, word, known in (
        ("object", thing, {"matrix"}),
        ("format", form, {"coordinate", "array"}),
        ("field", field, _FIELDS),
        ("symmetry", symmetry, _SYMMETRIES),
    ):
        if word not in known:
            raise FileFormatError(
                f"{path}: line 1: unknown {what} {word!r}; known are {', '.join(sorted(known))}",
                path,
            )
    if form == "array" and field == "pattern":
        raise FileFormatError(f"{path}: line 1: an array cannot be a pattern", path)
    lines, comments = 1, 0
    while True:
        line = file.readline(MAX_LINE)
        lines, comments = lines + 1, comments + len(line)
        if not line or comments > _MAX_COMMENTS or lines > _MAX_COMMENT_LINES:
            raise FileFormatError(f"{path}: truncated: there is no line with the sizes", path)
        if line.strip() and not line.lstrip().startswith(b"%"):
            break
    sizes = line.split()
    wanted = ["rows", "columns", "entries"][: 3 if form == "coordinate" else 2]
    if len(sizes) != len(wanted) or not all(word.isdigit() and len(word) < 19 for word in sizes):
        raise FileFormatError(
            f"{path}: line {lines}: {' '.join(wanted)} expected, all whole numbers, found "
            f"{line[:60].decode('latin-1').strip()!r}",
            path,
        )
    rows, columns, *rest = (int(word) for word in sizes)
    if form == "coordinate":
        entries = rest[0]
    else:
        diagonal = {"general": 0, "skew-symmetric": -rows}.get(symmetry, rows)
        entries = rows * columns if symmetry == "general" else (rows * columns + diagonal) // 2
    return Header(form, field, symmetry, rows, columns, entries, lines)


def _check_header(path: PathLike, header: Header, square: bool) -> None:
    """Refuse what the header alone shows to be unusable."""
    if header.symmetry == "skew-symmetric":
        raise MatrixError(
            f"{path}: skew-symmetric (A = -A.T), so it is not positive definite; conjugate "
            "gradients cannot solve it"
        )
    if square:
        stored = header.entries if header.format == "coordinate" else None
        try:
            check_shape((header.rows, header.columns), stored)
        except MatrixError as error:
            error.args = (f"{path}: {error}",)
            raise
    elif header.rows * header.columns >= 2**31:
        raise FileFormatError(f"{path}: {header.rows} x {header.columns} is no vector", path)
    if header.symmetry != "general" and header.rows != header.columns:
        raise FileFormatError(
            f"{path}: the header says {header.symmetry}, but {header.rows} x {header.columns} is "
            "not square",
            path,
        )


def _check_promises(path: PathLike, header: Header, most: int) -> None:
    """Hold the number of entries against the bytes of the text: a number takes two."""
    if 2 * header.numbers > most + 1:
        raise FileFormatError(
            f"{path}: truncated, or the header is wrong: it promises {header.entries} entries, "
            f"which a file of at most {most} bytes of text cannot hold",
            path,
        )


def _array_of(header: Header, body: _Body) -> NDArray[Any]:
    """Return the numbers of an array body; SciPy's reader would lose the sign of -0.0."""
    shape = (header.columns, header.rows)  # they run column by column
    values = np.empty(header.numbers)
    end = 0
    for block in body.blocks():
        # Numbers and blanks alone are left; they have been counted.
        found = np.fromstring(block, sep=" ")
        values[end : end + found.size] = found
        end += found.size
    body.finish()
    if end != header.numbers:  # with a NumPy that only warns
        raise ValueError("a number has no digits")
    entries: NDArray[Any] = values.view(np.complex128) if header.reals == 2 else values
    if header.symmetry == "general":
        return entries.reshape(shape).T
    full = np.empty(shape, entries.dtype)
    triangle = np.triu_indices(header.rows)
    full[triangle] = entries.conj() if header.symmetry == "hermitian" else entries
    full.T[triangle] = entries
    return full


def both_triangles(
    path: PathLike,
    rows: NDArray[Any],
    columns: NDArray[Any],
    values: NDArray[Any],
    symmetry: str = "symmetric",
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Mirror the entries of a symmetric or Hermitian file, which holds each pair once."""
    off = rows != columns
    lower = rows > columns
    if lower.any() and not lower[off].all():
        pairs = np.maximum(rows, columns).astype(np.int64) << 32 | np.minimum(rows, columns)
        below, above = np.unique(pairs[lower]), np.unique(pairs[off & ~lower])
        twice = np.intersect1d(below, above, assume_unique=True)
        if twice.size:
            row, column = int(twice[0] >> 32), int(twice[0] & (2**32 - 1))
            raise FileFormatError(
                f"{path}: the header says {symmetry}, so each pair is given once; but both entry "
                f"(row {row}, column {column}) and entry (row {column}, column {row}) are there. "
                f"If the file holds both triangles, write 'general' for '{symmetry}'.",
                path,
            )
    mirrored = values[off].conj() if symmetry == "hermitian" else values[off]
    return (
        np.concatenate((rows, columns[off])),
        np.concatenate((columns, rows[off])),
        np.concatenate((values, mirrored)),
    )


class _Body(io.RawIOBase):
    """What SciPy reads: a header in its spelling, then the checked and normalised body.

    Every block ends with the end of a line: SciPy's reader crashes where a text ends otherwise.
    """

    def __init__(self, path: PathLike, file: IO[bytes], header: Header, most: int) -> None:
        super().__init__()
        self._path = path
        self._header = header
        self._most = most
        self._numbers = 0
        self._error: Exception | None = None
        self._blocks = self._make_blocks(file)
        self._block = self._spell_header()
        self._position = 0

    def read(self, size: int = -1) -> bytes:
        """Return some bytes, at most `size`; none at the end, or where something is wrong."""
        if self._position >= len(self._block):
            # An exception thrown through the reader's C++ stream would get lost.
            try:
                self._block = next(self._blocks, b"")
            except Exception as error:
                self._error, self._block = error, b""
            self._position = 0
        end = len(self._block) if size < 0 else self._position + size
        part = self._block[self._position : end]
        self._position += len(part)
        return part

    def check(self) -> None:
        """Raise what was wrong with the body so far, if anything."""
        if self._error is not None:
            raise self._error

    def blocks(self) -> Iterator[bytes]:
        """Return the blocks of the body, for who reads it otherwise than SciPy."""
        return self._blocks

    def finish(self) -> None:
        """Check what is left and that the body held as many numbers as the header promises."""
        self.check()
        for _ in self._blocks:
            pass
        if self._numbers != self._header.numbers:
            raise FileFormatError(
                f"{self._path}: truncated: the header promises {self._amount()}, "
                f"the body holds {self._header.amount(self._numbers)}",
                self._path,
            )

    def _amount(self) -> str:
        return self._header.amount(self._header.numbers)

    def _spell_header(self) -> bytes:
        """Write the header so that SciPy's line numbers are those of the file."""
        header = self._header
        field = "real" if header.field == "double" else header.field
        sizes = f"{header.rows} {header.columns} {header.entries}"
        banner = f"%%MatrixMarket matrix coordinate {field} general\n"  # mirrored here
        return (banner + "%\n" * (header.lines - 2) + sizes + "\n").encode()

    def _make_blocks(self, file: IO[bytes]) -> Iterator[bytes]:
        header = self._header
        line, length = header.lines + 1, 0
        while block := file.read(_BLOCK):
            rest = file.readline(MAX_LINE)
            if len(rest) == MAX_LINE:
                raise FileFormatError(
                    f"{self._path}: line {line + block.count(10)}: longer than {MAX_LINE} "
                    "characters; break it up",
                    self._path,
                )
            block += rest
            length += len(block)
            spelled = with_exponents_of_c(block)
            try:
                self._numbers += count_numbers(
                    spelled, header.numbers_per_line, header.is_whole, header.reals
                )
            except BadLineError as error:
                found = block.split(b"\n")[error.line].decode("latin-1")
                raise FileFormatError(
                    f"{self._path}: line {line + error.line}: {header.content} expected, "
                    f"separated by blanks; found {found[:80]!r}",
                    self._path,
                ) from None
            self._check_places(block, line)
            line += block.count(10)
            self._check_amount(line, length)
            yield self._normalised(spelled if spelled.endswith(b"\n") else spelled + b"\n")

    def _check_places(self, block: bytes, line: int) -> None:
        """Refuse a row or column 0: SciPy's reader says no more than that it is out of bounds."""
        match = _PLACE_0.search(block) if self._header.format == "coordinate" else None
        if match is not None:
            line += block.count(10, 0, match.start(1))
            raise FileFormatError(
                f"{self._path}: line {line}: row {match[1].decode()}, column {match[2].decode()}: "
                "rows and columns count from 1 in this format. If the file counts from 0, add 1 to "
                "both",
                self._path,
            )

    def _check_amount(self, line: int, length: int) -> None:
        """Refuse a body that goes on and on: a small compressed file may hold terabytes."""
        promised = self._header.numbers
        what = ""
        if self._numbers > promised:
            what = f"too long: the header promises {self._amount()}, and there are more"
        # Blanks are free, but not without end.
        elif length > min(256 * self._numbers, self._most) + MAX_LINE:
            what = f"far more text than {self._header.amount(self._numbers)} can take"
        if what:
            raise FileFormatError(f"{self._path}: line {line}: {what}", self._path)

    def _normalised(self, block: bytes) -> bytes:
        """Spell numbers as SciPy takes them: no plus sign in front."""
        text = np.frombuffer(block, dtype=np.uint8)
        plus = np.flatnonzero(text == ord("+"))
        plus = plus[(plus == 0) | (text[plus - 1] <= ord(" "))]
        if plus.size:
            text = text.copy()
            text[plus] = ord(" ")
            block = text.tobytes()
        return block
