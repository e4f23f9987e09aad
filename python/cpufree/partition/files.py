"""Partitions in files: what METIS's programs write, one part number a line, or .npy."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cpufree.errors import CpufreeError, FileFormatError, InvalidInputError
from cpufree.matrix.cache import read_parts
from cpufree.matrix.io.files import PathLike, reading, regular_file, text_lines
from cpufree.matrix.io.npy import map_npy
from cpufree.output_file import write_file
from cpufree.partition.part_vector import Int32s, as_part_vector

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_LINES_AT_ONCE = 1 << 20


def load_partition(path: PathLike, pes: int | None = None) -> Int32s:
    """Return the part numbers in a file, for `partition` of Solver and solve.

    Args:
        path: a text with one number a line, such as METIS's `gpmetis` writes (A.graph.part.8), or a
            .npy file of whole numbers, shape (n,); row i has the i-th of them, parts count from 0.
            Or a .cpufree file whose rows lie by parts: these.
        pes: how many parts there may be; None: not known yet.

    Raises:
        FileFormatError: missing, unreadable, or something else than such numbers; it names the
            line, or the place.
    """
    file = regular_file(path)
    suffix = file.suffix.lower()
    with reading(file, suffix if suffix in (".npy", ".cpufree") else "text"):
        try:
            if suffix == ".cpufree":
                return as_part_vector(read_parts(file), pes, str(path))
            if suffix == ".npy":
                array = map_npy(file)
                return np.array(as_part_vector(array, pes, str(path)))
            numbers = _read_text(path, file)
            return as_part_vector(
                numbers, pes, str(path), lambda k: f"{path}: line {_line(file, k)}"
            )
        except InvalidInputError as error:
            raise FileFormatError(str(error), path) from None


def save_partition(path: PathLike, part: Int32s) -> None:
    """Write part numbers, as `load_partition` reads them: .npy, or text where it is none.

    Raises:
        FileFormatError: the file cannot be written.
        InvalidInputError: no part numbers.
    """
    numbers = as_part_vector(part)
    with write_file(path) as file:
        if os.fsdecode(path).lower().endswith(".npy"):
            np.save(file, numbers, allow_pickle=False)
            return
        for begin in range(0, numbers.size, _LINES_AT_ONCE):
            piece = numbers[begin : begin + _LINES_AT_ONCE].tolist()
            file.write(("\n".join(map(str, piece)) + "\n").encode())


def _read_text(path: PathLike, file: Path) -> np.ndarray:
    """Return the numbers of a text, one a line; name the line of what is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # numbers with a point
            # Of a file without numbers: there are none then.
            warnings.simplefilter("ignore", UserWarning)
            numbers = np.loadtxt(text_lines(file), dtype=np.int64, comments=None, ndmin=2)
    except CpufreeError:
        raise
    except (ValueError, DeprecationWarning):
        _refuse_text(path, file)
        raise
    if numbers.size and numbers.shape[1] != 1:
        _refuse_text(path, file)
    return numbers.reshape(-1)


def _refuse_text(path: PathLike, file: Path) -> None:
    """Raise FileFormatError with the first line that is no whole number by itself."""
    for number, words in _lines(file):
        if len(words) > 1:
            what = f"{len(words)} words, but a partition has one part number a line"
        elif not _WHOLE.fullmatch(words[0]):
            what = f"{words[0][:40]!r} is not a part number"
        else:
            continue
        raise FileFormatError(f"{path}: line {number}: {what}", path)


def _line(file: Path, k: int) -> int:
    """Return the number of the line with the k-th part number."""
    return next(line for place, (line, _) in enumerate(_lines(file)) if place == k)


def _lines(file: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield number and words of the lines that are not blank."""
    for number, line in enumerate(text_lines(file), 1):
        words = line.split()
        if words:
            yield number, words
