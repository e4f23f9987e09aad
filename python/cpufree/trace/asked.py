"""What a call that may be traced is given, and what becomes of it."""

from __future__ import annotations

import os
from typing import TypeAlias

from cpufree.errors import InvalidInputError

TraceGiven: TypeAlias = bool | str | os.PathLike[str] | None
OPTIONS = {"study": "trace"}
"""Of the compiled core, for a call that is traced."""
EVENTS = 1 << 15
"""That a ring of a program's block holds; solvers and stencils have the same."""
ONE_CLOCK = ("cpu_threads", "cpu_processes")
"""Engines whose PEs all read the clock of one host."""
SUFFIXES = (".pftrace", ".json", ".csv")
"""Perfetto's format, Chrome's, and a table of the records."""


def checked(trace: TraceGiven) -> TraceGiven:
    """Return what was given; InvalidInputError where that can be no trace."""
    if trace is None or isinstance(trace, bool):
        return trace
    if not isinstance(trace, str | os.PathLike):
        raise InvalidInputError(f"trace is True, or the name of a file, and not {trace!r}")
    require_suffix(trace)
    return trace


def require_suffix(path: str | os.PathLike[str]) -> str:
    """Return the ending of the name of a file; InvalidInputError for one that is no trace's."""
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    if suffix not in SUFFIXES:
        raise InvalidInputError(
            f"cannot write a trace to '{path}': the name must end in one of {', '.join(SUFFIXES)}"
        )
    return suffix
