"""The trace of a run that has ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cpufree.trace import files
from cpufree.trace.asked import ONE_CLOCK, Recording
from cpufree.trace.records import Trace


def finished(
    raw: Mapping[str, Any], facts: Mapping[str, Any], recording: Recording, speaks: bool
) -> Trace:
    """Return the trace of a run, which is written where a file was named.

    `raw`: of the compiled core. `facts` has the engine. `speaks`: this process writes.
    """
    one_clock = facts["engine"] in ONE_CLOCK
    more = {"one_clock": one_clock, "every": recording.every}
    found = files.checked(Trace.of_core(raw, {**facts, **more}))
    if speaks and recording.file is not None:
        files.save(found, recording.file)
    return found
