"""The records of a trace as a table, a line for each."""

from __future__ import annotations

import numpy as np

from cpufree.trace.records import PHASES, Kind
from cpufree.trace.timeline import CHANNELS, Timeline

HEAD = "ns,pe,block,thread,event,peer,slot,epoch,bytes,what\n"


def to_csv(line: Timeline) -> bytes:
    """Return the table, in order of time.

    Columns: time in ns, PE, block and thread; the event and the other PE; slot in symmetric memory
    in units of 16 bytes; epoch (or number of an iteration); payload in bytes; phase or channel.
    """
    trace = line.trace
    order = np.argsort(trace.time, kind="stable")
    names = {int(kind): kind.name.lower() for kind in Kind}
    lines = [HEAD]
    for k, kind, peer, upper, lower in zip(
        order.tolist(), trace.kind[order].tolist(), trace.peer[order].tolist(),
        trace.upper[order].tolist(), trace.lower[order].tolist(), strict=True,
    ):  # fmt: skip
        pe, block, thread, *_ = trace.tracks[trace.track[k]]
        where = f"{trace.time[k]},{pe},{block},{thread},{names.get(kind, kind)}"
        lines.append(f"{where},{_rest(kind, peer, upper, lower)}\n")
    return "".join(lines).encode()


def _rest(kind: int, peer: int, upper: int, lower: int) -> str:
    """Return the columns that depend on the kind of a record."""
    if kind == Kind.PHASE:
        return f",,,,{PHASES[lower % len(PHASES)]}"
    if kind == Kind.PAYLOAD:
        return f"{peer},,,{upper << 32 | lower},"
    if kind in (Kind.WAIT, Kind.GAVE_UP):
        channel = CHANNELS[min(upper >> 16, len(CHANNELS) - 1)]
        return f"{peer},,{lower},,{channel}"
    if kind in (Kind.REDUCE, Kind.ITERATION):
        return f",,{lower},,"
    if kind == Kind.SECTION:
        return f",,,,{'' if lower >> 31 else lower}"
    return f"{peer},{upper},{lower},,"
