"""The file of a run: JSON lines, one a measurement, so that a run can stop and go on.

The first line is the header: what was asked for, and where it runs. Others have a `kind`:
`problem`, `rate`, `load` (facts of a contender), `check` (of its x), `measurement`, `split` (of a
solve for that alone), `failure`, and `end`, one for each time that the run was gone on with.
"""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path
from typing import IO, Any

from ..errors import FileFormatError, InvalidInputError

SCHEMA = 1
BENCHMARKS = ("cg", "stencil")
# What must be the same for measurements to stand in one file.
SAME = ("benchmark", "schema", "configuration", "machine", "versions", "commit")

_BEGIN = b'{"kind": "header"'  # of every file
Line = dict[str, Any]


def now() -> str:
    """Return the time, in UTC, to the second."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def read(path: Path, benchmark: str | None = None) -> tuple[list[Line], int]:
    """Return the lines of a file, the header first, and the bytes that they take.

    `benchmark`: what it must be of; None: of any. A last line that was cut off is left out, and
    does not count among the bytes.
    Raises FileFormatError for a file that is none of a benchmark, or is damaged before its end.
    """
    lines: list[Line] = []
    good = 0
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}", path) from None
    pieces = raw.split(b"\n")
    for number, piece in enumerate(pieces[:-1], 1):  # what follows the last newline was cut off
        try:
            line = json.loads(piece)
            if not isinstance(line, dict) or "kind" not in line:
                raise ValueError("no object with a kind")
        except ValueError as error:
            if number == len(pieces) - 1:
                break
            raise FileFormatError(f"{path}: line {number} is damaged: {error}", path) from None
        lines.append(line)
        good += len(piece) + 1
    known = BENCHMARKS if benchmark is None else (benchmark,)
    if not lines or lines[0]["kind"] != "header" or lines[0].get("benchmark") not in known:
        what = " or ".join(f"cpufree bench {name}" for name in known)
        raise FileFormatError(f"{path}: no results of {what}", path)
    if lines[0]["schema"] != SCHEMA:
        schema = lines[0]["schema"]
        raise FileFormatError(f"{path}: schema {schema}; this cpufree reads {SCHEMA}", path)
    return lines, good


class Log:
    """A file that lines are appended to; each is there once `write` has returned."""

    def __init__(self, path: Path, header: Line) -> None:
        """Begin the file with the header, or go on with one of the same configuration.

        Raises InvalidInputError for a file of another configuration, FileFormatError for one that
        is no result or is damaged.
        """
        self.path = path
        self.lines: list[Line] = []
        if path.exists() and path.stat().st_size > 0:
            self.lines = self._go_on(header)
        self._file: IO[str] = path.open("a", encoding="utf-8")
        if not self.lines:
            self.write(header)

    def _go_on(self, header: Line) -> list[Line]:
        try:
            lines, good = read(self.path)
        except FileFormatError:
            begun = self.path.read_bytes()
            if b"\n" in begun or begun[: len(_BEGIN)] != _BEGIN[: len(begun)]:
                raise
            lines, good = [], 0  # the header itself was cut off
        if lines and (different := differences(lines[0], header)):
            raise InvalidInputError(
                f"'{self.path}' holds results of another run: {'; '.join(different)}. Give "
                "another --out, or remove the file"
            )
        os.truncate(self.path, good)
        return lines

    def write(self, line: Line) -> None:
        """Append a line."""
        self.lines.append(line)
        self._file.write(json.dumps(line, allow_nan=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def differences(old: Line, new: Line) -> list[str]:
    """Return in what two headers differ that must be the same."""
    found = []
    for name in SAME:
        before, after = old.get(name), json.loads(json.dumps(new.get(name)))
        if isinstance(before, dict) and isinstance(after, dict):
            keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
            found += [
                f"{key} was {_short(before.get(key))}, is {_short(after.get(key))}" for key in keys
            ]
        elif before != after:
            found.append(f"{name} was {_short(before)}, is {_short(after)}")
    return found


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
