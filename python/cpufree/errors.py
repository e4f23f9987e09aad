"""The one tree of errors and warnings. `except cpufree.CpufreeError` catches everything we raise.

Messages are written for the user: what is wrong, where, and what to do about it. Row, column and
index numbers count from 0, also for files whose own numbers count from 1.
"""

from __future__ import annotations

import os
from typing import Any


class CpufreeError(Exception):
    """Root of all errors of this package."""


class InvalidInputError(CpufreeError, ValueError):
    """The caller's data or options are wrong."""


class UnknownOptionError(InvalidInputError, TypeError):
    """A function was given an option that it does not have; the message names those it has."""


class MatrixError(InvalidInputError):
    """A matrix cannot be used. `row` and `column` say where, None when it is no single entry."""

    def __init__(self, message: str, row: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.row = row
        self.column = column


class NotSymmetricError(MatrixError):
    """A is not symmetric: entry (row, column) differs from entry (column, row)."""


class NonFiniteError(MatrixError):
    """Entry (row, column) of a matrix is NaN or infinite."""


class DiagonalError(MatrixError):
    """A row is empty, or its diagonal entry is missing, zero or negative."""


class FileFormatError(InvalidInputError):
    """The file `path` is damaged, in a format not known here, or of the two kinds below."""

    def __init__(self, message: str, path: str | os.PathLike[str] | None = None) -> None:
        super().__init__(message)
        self.path = path


class UnreadableFileError(FileFormatError, OSError):
    """The file `path` cannot be read, whatever it holds: the system refuses it."""


class MissingFileError(UnreadableFileError, FileNotFoundError):
    """There is no file `path`."""


def unreadable(message: str, path: str | os.PathLike[str], cause: Exception) -> FileFormatError:
    """Return the error for a file that cannot be read, by what the system, or a reader, said."""
    if isinstance(cause, FileNotFoundError):
        return MissingFileError(message, path)
    if isinstance(cause, OSError) and cause.errno is not None:
        return UnreadableFileError(message, path)
    return FileFormatError(message, path)


class VectorError(InvalidInputError):
    """A right-hand side or initial guess cannot be used."""


class ProgramError(InvalidInputError):
    """A function with @cpufree.program has what the compiler does not take, or gets what it cannot.

    `file`, `line` (from 1) and `column` (from 0) say where; the message shows the place.
    """

    def __init__(self, message: str, file: str = "", line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.file = file
        self.line = line
        self.column = column
        self.by_join = False
        """It is about a value that depends on the way taken; the compiler may know another way."""
        self.by_return = False
        """It is about a return before the end of a function."""
        self.by_rows = False
        """It is about rows that are divided among PEs; along another axis it may be none."""
        self.far = ""
        """The array whose rows are read from far; with a copy of it on every PE it may be none."""


class TriggerError(InvalidInputError):
    """Triggers of kernels did not fit the operations that were posted.

    `faults` lists them: dicts with keys pe (whose NIC), tag, epoch, count, text.
    """

    def __init__(self, message: str, faults: list[dict[str, Any]] | None = None) -> None:
        super().__init__(message)
        self.faults: list[dict[str, Any]] = [] if faults is None else faults


class UnsupportedError(CpufreeError):
    """A feature or engine that this build or this machine does not have."""


class NotEnoughGpusError(UnsupportedError):
    """More PEs are asked for than there are GPUs to put them on."""


class EngineError(CpufreeError):
    """An engine failed while it was set up or while it ran."""


class WaitTimeoutError(EngineError):
    """A wait between PEs passed its limit; every PE has left its kernel.

    `waits` lists who waited for whom: dicts with keys pe, block, channel, waits_for_pe,
    waits_for_block, epoch (waited for), seen (the epoch last seen), seconds. `blocks` has all
    blocks, with the key state ("expired" and "aborted" waited); `raw_trace` what they did, where
    the call was traced. cpufree.trace.diagnose_error says what they mean.
    """

    def __init__(
        self,
        message: str,
        waits: list[dict[str, Any]] | None = None,
        blocks: list[dict[str, Any]] | None = None,
        raw_trace: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.waits: list[dict[str, Any]] = [] if waits is None else waits
        self.blocks: list[dict[str, Any]] = [] if blocks is None else blocks
        self.raw_trace = raw_trace


class WrongResultError(EngineError):
    """A run was compared with another computation of the same, and they differ."""


class DeadlockError(InvalidInputError):
    """A simulated program cannot end. `waits` lists who waits for whom, in words."""

    def __init__(self, message: str, waits: list[str] | None = None) -> None:
        super().__init__(message)
        self.waits: list[str] = [] if waits is None else waits


class RankFailedError(EngineError):
    """Another one of the processes that work together has failed, or is not there.

    `rank` says which; the message begins with it.
    """

    def __init__(self, message: str, rank: int = -1) -> None:
        super().__init__(message)
        self.rank = rank


class NotConvergedError(CpufreeError):
    """A solve whose x would go on into a gradient has not met its tolerance.

    `result` is its cpufree.Result: reason, residuals, history.
    """

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message)
        self.result = result


class OutOfMemoryError(CpufreeError, MemoryError):
    """Not enough memory, of the host or of a device."""


class CpufreeWarning(UserWarning):
    """Category of all warnings of this package."""
