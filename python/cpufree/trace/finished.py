"""The trace of a run that has ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cpufree.trace import files
from cpufree.trace.asked import ONE_CLOCK, TraceGiven
from cpufree.trace.records import Trace


def finished(
    raw: Mapping[str, Any], facts: Mapping[str, Any], trace: TraceGiven, speaks: bool
) -> Trace:
    """Return the trace of a run, which is written where a file was named.

    `raw`: of the compiled core. `facts` has the engine. `speaks`: this process writes.
    """
    one_clock = facts["engine"] in ONE_CLOCK
    found = files.checked(Trace.of_core(raw, {**facts, "one_clock": one_clock}))
    if speaks and trace is not None and not isinstance(trace, bool):
        files.save(found, trace)
    return found
