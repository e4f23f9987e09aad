"""The clocks of the PEs: how far they are apart, and how well that is known.

Messages in both directions between two PEs bound the offset of their clocks, as pings and pongs do:
none is seen before it is sent. Let clock b be ahead of clock a by d. The quickest message from a to
b takes m = t + d by the clocks, the quickest one back n = t' - d, with t, t' >= 0: so
-n <= d <= m, and d = (m - n) / 2 is wrong by (m + n) / 2 at most. Each pair of PEs is asked at the
beginning and at the end of a trace, which shows a drift.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from cpufree.trace.messages import Messages, match
from cpufree.trace.records import Integers, Trace


@dataclass(frozen=True)
class Clocks:
    """What the messages of a trace say of the clocks of its PEs, relative to PE 0, in ns."""

    offsets: Integers
    """What each is ahead."""
    bounds: Integers
    """By how much `offsets` may be wrong; -1 where no messages go both ways."""
    drift: float
    """Largest change of an offset from the first half of the trace to the second one."""

    @property
    def bound(self) -> int:
        """The largest of the bounds; -1 where one is not known."""
        unknown = (self.bounds < 0).any()
        return -1 if unknown else int(self.bounds.max(initial=0))


def has_none(least: Integers, one: int, other: int) -> bool:
    """Return whether no message goes from one PE to another one; times may be negative."""
    return bool(least[one, other] == np.iinfo(np.int64).max)


def measure(trace: Trace, messages: Messages | None = None) -> Clocks:
    """Return what the messages say of the clocks as the trace has them now."""
    messages = match(trace) if messages is None else messages
    order = np.argsort(trace.time[messages.seen], kind="stable")
    messages = Messages(messages.sent[order], messages.seen[order])
    half = len(order) // 2
    whole, bounds = _from_first(_least(trace, messages, slice(None)))
    early, _ = _from_first(_least(trace, messages, slice(0, half)))
    late, _ = _from_first(_least(trace, messages, slice(half, None)))
    return Clocks(whole, bounds, float(np.abs(late - early).max(initial=0)))


def aligned(trace: Trace) -> Trace:
    """Return a trace whose clocks are one: as it is where they were, by its messages if not."""
    if trace.facts.get("one_clock", False) or trace.pes == 1:
        return trace
    offsets = trace.offsets + measure(trace).offsets
    return replace(trace, facts={**trace.facts, "clock_offsets": [int(d) for d in offsets]})


def violations(trace: Trace, messages: Messages, bounds: Integers) -> Integers:
    """Return the messages that are seen before they are sent, by more than the bounds allow.

    Nothing can be said of those between PEs of which one has a clock that is not known (bound -1).
    """
    sent, seen = messages.sent, messages.seen
    one, other = trace.pe[sent], trace.pe[seen]
    unknown = (one != other) & ((bounds[one] < 0) | (bounds[other] < 0))
    known = np.maximum(bounds, 0)
    early = trace.time[sent] - trace.time[seen]
    return np.flatnonzero(~unknown & (early > known[one] + known[other]))


def _least(trace: Trace, messages: Messages, part: slice) -> Integers:
    sent, seen = messages.sent[part], messages.seen[part]
    least = np.full((trace.pes, trace.pes), np.iinfo(np.int64).max)
    np.minimum.at(least, (trace.pe[sent], trace.pe[seen]), trace.time[seen] - trace.time[sent])
    return least


def _from_first(least: Integers) -> tuple[Integers, Integers]:
    """Return offsets and bounds of all PEs, from neighbour to neighbour, beginning with PE 0."""
    pes = len(least)
    offsets, bounds = np.zeros(pes, np.int64), np.full(pes, -1, np.int64)
    bounds[0] = 0
    waiting = deque([0])
    while waiting:
        one = waiting.popleft()
        for other in range(pes):
            if bounds[other] >= 0 or has_none(least, one, other) or has_none(least, other, one):
                continue
            there, back = int(least[one, other]), int(least[other, one])
            offsets[other] = offsets[one] + (there - back) // 2
            bounds[other] = bounds[one] + (there + back + 1) // 2
            waiting.append(other)
    return offsets, bounds
