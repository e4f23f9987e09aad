"""Errors of hangs that say why, where a call is traced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cpufree.errors import WaitTimeoutError


@contextmanager
def explained() -> Iterator[None]:
    """Add what the trace tells of a hang to the message of its error, where there is a trace."""
    try:
        yield
    except WaitTimeoutError as error:
        if error.raw_trace is not None:
            from cpufree.trace.hang import diagnose_error  # for those who want traces

            error.args = (f"{error}\n{diagnose_error(error).text}", *error.args[1:])
        raise
