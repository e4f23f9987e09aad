"""The critical path of a kernel: the chain of work and messages that decides when it ends.

It is walked backwards from the last record: through the work of a block to the last wait that was
ended by a message sent after the wait had begun, along that message to its sender, and on from
there. A message that was sent before is none of it: what took its time was the block itself, and
the rest of the wait is transfer.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from cpufree.trace.records import PHASES, Integers
from cpufree.trace.timeline import LEFT_OUT, Timeline

TRANSFER = "messages"
OTHER = "other work"
START = "until the block starts"


@dataclass(frozen=True)
class Path:
    """What a critical path is made of."""

    seconds: dict[str, float]
    """By section or phase of the blocks that it runs through; TRANSFER: along messages. Iterations
    that were not recorded are left out."""
    hops: int
    """Messages."""

    @property
    def whole(self) -> float:
        """Its length in seconds: that of the kernel."""
        return sum(self.seconds.values())

    def what_if(self) -> dict[str, float]:
        """Return how long the kernel would take at least if one part took half its time, or none.

        Lower bounds: another path may become the longest one.
        """
        found = {}
        for name, seconds in sorted(self.seconds.items(), key=lambda item: -item[1]):
            if seconds > 0.0:
                found[f"{name} in half the time"] = self.whole - 0.5 * seconds
                found[f"{name} in no time"] = self.whole - seconds
        return found


def critical_path(line: Timeline) -> Path:
    """Return the critical path of a time line."""
    trace, waits = line.trace, line.waits
    time = trace.time
    if not len(time):
        return Path({}, 0)
    known = waits.sent >= 0
    begin, end, sent = waits.begin[known], waits.end[known], waits.sent[known]
    ends, of_track = _by_track(trace.track[end], end, len(trace.tracks))
    marks = _marks(line)
    spent: dict[str, float] = {}
    hops, place = 0, int(np.argmax(time))
    while True:
        track = int(trace.track[place])
        k = bisect_left(ends[track], place + 1) - 1
        # Back through waits whose message was there, or on its way, when they began.
        while k >= 0 and time[sent[of_track[track][k]]] <= time[begin[of_track[track][k]]]:
            k -= 1
        if k < 0:
            first = int(np.searchsorted(trace.track, track))
            _spend(spent, marks[track], int(time[first]), int(time[place]))
            spent[START] = int(time[first])
            spent.pop(LEFT_OUT, None)
            return Path({name: 1e-9 * ns for name, ns in spent.items()}, hops)
        number = of_track[track][k]
        there, left = int(end[number]), int(sent[number])
        _spend(spent, marks[track], int(time[there]), int(time[place]))
        spent[TRANSFER] = spent.get(TRANSFER, 0.0) + int(time[there] - time[left])
        hops, place = hops + 1, left


def _by_track(
    track: Integers, end: Integers, tracks: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Return records that end waits, in their order, and their numbers, by track."""
    ends: list[list[int]] = [[] for _ in range(tracks)]
    numbers: list[list[int]] = [[] for _ in range(tracks)]
    for number, (t, e) in enumerate(zip(track.tolist(), end.tolist(), strict=True)):
        ends[t].append(e)
        numbers[t].append(number)
    return ends, numbers


def _marks(line: Timeline) -> list[tuple[list[int], list[str]]]:
    """Return where sections and phases end, and which, by track: sections, where there are some."""
    slices = line.slices
    numbers = line.names.numbers
    names = [numbers[name] for name in (*PHASES, LEFT_OUT) if name in numbers]
    phases = np.flatnonzero(np.isin(slices.name, names))
    phases = phases[np.lexsort((slices.end[phases], slices.track[phases]))]
    sections = np.flatnonzero(slices.section)
    sections = sections[np.lexsort((slices.begin[sections], slices.track[sections]))]
    found = []
    for track in range(len(line.trace.tracks)):
        of_phases, of_sections = (
            these[slice(*np.searchsorted(slices.track[these], [track, track + 1]))]
            for these in (phases, sections)
        )
        ends, cut = _cut(line, of_phases, of_sections)
        found.append((ends.tolist(), [line.names.texts[k] if k >= 0 else OTHER for k in cut]))
    return found


def _cut(line: Timeline, phases: Integers, sections: Integers) -> tuple[Integers, list[int]]:
    """Return the ends of parts of a track that are of one section or phase, and their names."""
    slices = line.slices
    begins, stops = slices.begin[sections], slices.end[sections]
    ends = np.unique(np.concatenate([slices.end[phases], begins, stops]))
    name = np.full(len(ends), -1, np.int64)
    phase = np.searchsorted(slices.end[phases], ends)
    known = phase < len(phases)
    name[known] = slices.name[phases[phase[known]]]
    section = np.searchsorted(begins, ends, side="left") - 1  # the last one that began before
    inside = section >= 0
    inside[inside] &= ends[inside] <= stops[section[inside]]
    name[inside] = slices.name[sections[section[inside]]]
    return ends, name.tolist()


def _spend(
    spent: dict[str, float], marks: tuple[list[int], list[str]], begin: int, end: int
) -> None:
    """Add the time from begin to end to the phases in which it lies."""
    ends, names = marks
    k = bisect_left(ends, begin + 1)
    while begin < end:
        until = min(end, ends[k]) if k < len(ends) else end
        name = names[k] if k < len(ends) else OTHER
        spent[name] = spent.get(name, 0.0) + until - begin
        begin, k = until, k + 1
