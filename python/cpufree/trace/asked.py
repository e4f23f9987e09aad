"""What a call that may be traced is given."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from cpufree.errors import InvalidInputError

if TYPE_CHECKING:
    from cpufree.trace.hang import HangReport

ONE_CLOCK = ("cpu_threads", "cpu_processes")
"""Engines whose PEs all read the clock of one host."""
SUFFIXES = (".pftrace", ".json", ".csv")
"""Perfetto's format, Chrome's, and a table of the records."""
MOST_EVERY = 1 << 30


@dataclass(frozen=True)
class Recording:
    """How a call is traced: what `trace=True` and `trace="out.pftrace"` are short for.

    Attributes
    ----------
    file : str or path, optional
        Where the trace is written: .pftrace, .json or .csv.
    every : int
        One iteration in so many is recorded, the first one included: of a long run rings then hold
        all of it. Payload is counted in all iterations. The report says how many were left out.
    on_wait : callable, optional
        Called while kernels run, on the host's thread, with a HangReport of all blocks that this
        process sees, once a wait has stood for `after` seconds, and again when it has stood twice
        as long. None: the terminal or the log gets the text of the report.
    after : float
        Seconds.

    Raises
    ------
    InvalidInputError
        A value is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> A = cpufree.generate.generate("poisson2d", nx=32, ny=32)
    >>> recording = cpufree.trace.Recording("out.pftrace", every=10)
    >>> result = cpufree.solve(A, np.ones(1024), pes=2, engine="cpu_threads", trace=recording)
    >>> result.trace.left_out > 0
    True
    """

    file: str | os.PathLike[str] | None = None
    every: int = 1
    on_wait: Callable[[HangReport], object] | None = None
    after: float = 2.0

    def __post_init__(self) -> None:
        if self.file is not None:
            if not isinstance(self.file, str | os.PathLike):
                raise InvalidInputError(f"a trace is written to a file, not to {self.file!r}")
            require_suffix(self.file)
        counts = hasattr(self.every, "__index__") and not isinstance(self.every, bool)
        if not counts or not 1 <= self.every <= MOST_EVERY:
            raise InvalidInputError(
                f"one iteration in `every` is traced, from 1 to 2^30, not {self.every!r}"
            )
        if self.on_wait is not None and not callable(self.on_wait):
            raise InvalidInputError(f"on_wait is {self.on_wait!r}: give a function, or None")
        number = hasattr(self.after, "__float__") and not isinstance(self.after, bool)
        if not number or not 0.0 < self.after < 1e9:
            raise InvalidInputError(f"after is {self.after!r}: give a number of seconds above 0")

    def core(self) -> dict[str, Any]:
        """Return what the compiled core is told."""
        return {"every": int(self.every), "after": float(self.after), "heard": self._heard}

    def options(self) -> dict[str, Any]:
        """Return the options of a solve or a stencil that is traced."""
        return {"study": "trace", "trace": self.core()}

    def _heard(self, blocks: Sequence[Mapping[str, Any]]) -> None:
        from cpufree.trace.hang import diagnose  # for those whose kernels wait

        report = diagnose(blocks)
        if self.on_wait is not None:
            self.on_wait(report)
            return
        from cpufree.patience import say

        say(f"kernels wait:\n{report.text}", logging.WARNING)


TraceGiven: TypeAlias = bool | str | os.PathLike[str] | Recording | None


def checked(trace: TraceGiven) -> Recording | None:
    """Return how a call is traced, None where it is not; InvalidInputError for anything else."""
    if trace is None or isinstance(trace, Recording):
        return trace
    if isinstance(trace, bool):
        return Recording() if trace else None
    if not isinstance(trace, str | os.PathLike):
        raise InvalidInputError(
            f"trace is True, the name of a file or a Recording, and not {trace!r}"
        )
    return Recording(trace)


def of_command(file: str | None, every: int) -> Recording | None:
    """Return how --trace and --trace-every ask for a trace, None where they do not."""
    if file is None and every > 1:
        raise InvalidInputError("--trace-every is about --trace: give its FILE, too")
    return None if file is None else Recording(file, every)


def agreed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options in which ranks must agree: of a trace, which iterations are recorded."""
    found = dict(options)
    if "trace" in found:
        found["trace"] = f"one iteration in {found['trace'].get('every', 1)}"
    return found


def require_suffix(path: str | os.PathLike[str]) -> str:
    """Return the ending of the name of a file; InvalidInputError for one that is no trace's."""
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    if suffix not in SUFFIXES:
        raise InvalidInputError(
            f"cannot write a trace to '{path}': the name must end in one of {', '.join(SUFFIXES)}"
        )
    return suffix
