"""The file of a run: JSON lines, one a measurement, so that a run can stop and go on.

The first line is the header: what was asked for, and where it runs. Others have a `kind`:
`problem`, `rate`, `load` (facts of a contender), `check` (of its x), `measurement`, `split` (of a
solve for that alone), `failure`, and `end`, one for each time that the run was gone on with.
"""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

from cpufree.bench.core import file_lock
from cpufree.errors import FileFormatError, InvalidInputError, unreadable

SCHEMA = 1
BENCHMARKS = ("cg", "stencil", "time")
# What must be the same for measurements to stand in one file.
SAME = ("benchmark", "schema", "configuration", "machine", "versions", "commit")

# What tells a measurement from all others, whatever the benchmark.
_KEYS = ("case", "precision", "preconditioner", "boundary", "pes")
_TASK = ("contender", "method", "variant")

_BEGIN = b'{"kind": "header"'  # of every file
Line: TypeAlias = Mapping[str, Any]
"""A line of any kind, as `cpufree.bench.core.lines` has them."""


def now() -> str:
    """Return the time, in UTC, to the second."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def read(path: Path, benchmarks: Sequence[str] = BENCHMARKS) -> tuple[list[Line], int]:
    """Return the lines of a file, the header first, and the bytes that they take.

    `benchmarks`: what it may be of. A last line that was cut off is left out, and
    does not count among the bytes.
    Raises FileFormatError for a file that is none of a benchmark, is damaged before its end, or
    holds a measurement twice.
    """
    lines: list[Line] = []
    good = 0
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise unreadable(f"{path}: cannot be read: {error.strerror}", path, error) from None
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
    if not lines or lines[0]["kind"] != "header" or lines[0].get("benchmark") not in benchmarks:
        what = " or ".join(f"cpufree bench {name}" for name in benchmarks)
        name = lines[0].get("benchmark") if lines and lines[0]["kind"] == "header" else None
        but = f", but of {name}: its own command shows them by --show {path.name}" if name else ""
        raise FileFormatError(f"{path}: no results of {what}{but}", path)
    if lines[0]["schema"] != SCHEMA:
        schema = lines[0]["schema"]
        raise FileFormatError(f"{path}: schema {schema}; this cpufree reads {SCHEMA}", path)
    _refuse_repeated(path, lines)
    return lines, good


def _refuse_repeated(path: Path, lines: Sequence[Line]) -> None:
    """Raise FileFormatError where a repeat of a contender was measured twice."""
    first: dict[tuple[Any, ...], int] = {}
    for number, line in enumerate(lines, 1):
        if line["kind"] != "measurement":
            continue
        key = tuple(line.get(name) for name in (*_KEYS, *_TASK, "round"))
        if (before := first.setdefault(key, number)) != number:
            what = " ".join(str(line.get(name)) for name in _TASK)
            raise FileFormatError(
                f"{path}: lines {before} and {number} are the same measurement, repeat "
                f"{line.get('round')} of {what} on {line.get('case')}: two runs have written to "
                "this file and disturbed one another. Remove it, and measure again",
                path,
            )


class Log:
    """A file that lines are appended to; each is there once `write` has returned.

    It is locked until it is closed, or its process has ended: one run writes to it at a time.
    """

    def __init__(self, path: Path, header: Line) -> None:
        """Begin the file with the header, or go on with one of the same configuration.

        A file of another configuration that holds no measurement is begun again.
        Raises InvalidInputError for a file of another configuration that does, or that another run
        writes to, FileFormatError for one that is no result or is damaged.
        """
        self.path = path
        self.lines: list[Line] = []
        self.notes: list[str] = []
        """Messages for the user who has started the run."""
        self._file: IO[str] = path.open("a", encoding="utf-8")
        try:
            self._lock()
            if path.stat().st_size > 0:
                self.lines = self._go_on(header)
        except BaseException:
            self._file.close()
            raise
        if not self.lines:
            self.write(header)

    def _lock(self) -> None:
        try:
            if not file_lock.lock(self._file.fileno()):
                self.notes.append(
                    f"'{self.path}' lies on a file system without locks: see to it that no other "
                    "run writes to it"
                )
        except BlockingIOError:
            holder = file_lock.holder(self.path)
            who = "" if holder is None else f" (process {holder})"
            raise InvalidInputError(
                f"another run writes to '{self.path}'{who}: wait for its end, or give another --out"
            ) from None

    def _go_on(self, header: Line) -> list[Line]:
        try:
            lines, good = read(self.path, (*BENCHMARKS, header["benchmark"]))
        except FileFormatError:
            begun = self.path.read_bytes()
            if b"\n" in begun or begun[: len(_BEGIN)] != _BEGIN[: len(begun)]:
                raise
            lines, good = [], 0  # the header itself was cut off
        if lines and (different := differences(lines[0], header)):
            if any(line["kind"] == "measurement" for line in lines):
                raise InvalidInputError(
                    f"'{self.path}' holds results of another run: {'; '.join(different)}. Give "
                    "another --out, or remove the file"
                )
            self.notes.append(f"'{self.path}' was of another run without measurements: begun again")
            lines, good = [], 0
        os.truncate(self.path, good)
        return lines

    def write(self, line: Line) -> None:
        """Append a line."""
        self.lines.append(line)
        self._file.write(json.dumps(line, allow_nan=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file, which ends the lock."""
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
