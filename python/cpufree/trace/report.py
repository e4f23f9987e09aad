"""What a trace answers: who sent how much to whom, what was waited for, what made it long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.trace.critical import Path, critical_path
from cpufree.trace.records import PHASES, Integers, Kind, Trace
from cpufree.trace.timeline import CHANNELS, Timeline

TOP = 10


@dataclass(frozen=True)
class Longest:
    """One of the longest waits."""

    seconds: float
    pe: int
    block: int
    waits_for: int
    channel: str
    epoch: int
    cause: str
    """What most of it was: "late sender" or "transfer"."""


@dataclass(frozen=True)
class Report:
    """Answers of a trace. Seconds are sums over blocks, but for `seconds`."""

    facts: dict[str, Any]
    records: int
    lost: int
    left_out: int
    """Iterations that were not recorded, as one in several was to be."""
    recorded: int
    """Iterations that the trace has, that after the last one included where it was begun."""
    seconds: float
    """From the first record to the last one."""
    bytes: npt.NDArray[np.int64]
    """Payload from each PE (row) to each other one."""
    messages: npt.NDArray[np.int64]
    """Signals and packets of payload from each PE to each other one, as far as rings hold them."""
    phases: dict[str, float]
    """And sections: levels of multigrid, which have phases themselves, and lines of programs."""
    late_sender: dict[str, float]
    """Of waits, by channel: until the last message was sent."""
    transfer: dict[str, float]
    """From then on."""
    late_receiver: dict[str, float]
    """How long messages lay there before they were looked for; no thread waits then."""
    longest: tuple[Longest, ...]
    path: Path

    @property
    def iterations(self) -> int:
        """How many the kernel did; 1 where it does not count them."""
        return max(1, int(self.facts.get("iterations", 1)))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        found = {
            name: getattr(self, name)
            for name in ("facts", "records", "lost", "left_out", "seconds", "phases", "late_sender")
        }
        return {
            **found,
            "transfer": self.transfer,
            "late_receiver": self.late_receiver,
            "bytes": self.bytes.tolist(),
            "messages": self.messages.tolist(),
            "longest": [vars(one) for one in self.longest],
            "critical_path": self.path.seconds,
            "what_if": self.path.what_if(),
        }


def report(trace: Trace) -> Report:
    """Return the answers of a trace, on one clock (files.checked)."""
    line = Timeline(trace)
    time = trace.time
    return Report(
        facts=trace.facts,
        records=len(time),
        lost=trace.lost,
        left_out=trace.left_out,
        recorded=_recorded(trace),
        seconds=1e-9 * float(time.max(initial=0)),
        bytes=trace.bytes,
        messages=_messages(trace),
        phases=_phases(line),
        **_split(line),
        longest=_longest(line),
        path=critical_path(line),
    )


def _recorded(trace: Trace) -> int:
    """Return how many iterations were recorded.

    A solver begins one more than it counts, which `left_out` has or not; marks of iterations, as
    far as rings hold them, say which.
    """
    known = int(trace.facts.get("iterations", 1)) - trace.left_out
    if trace.left_out == 0:
        return max(1, known)
    marks = np.bincount(trace.track[trace.select(Kind.ITERATION)], minlength=1)
    return max(1, known, min(known + 1, int(marks.max())))


def _messages(trace: Trace) -> Integers:
    found = np.zeros((trace.pes, trace.pes), np.int64)
    sent = trace.select(Kind.SIGNAL, Kind.PACKET)
    sent = sent[(trace.pe[sent] != trace.peer[sent]) & (trace.peer[sent] < trace.pes)]
    np.add.at(found, (trace.pe[sent], trace.peer[sent]), 1)
    return found


def _phases(line: Timeline) -> dict[str, float]:
    slices = line.slices
    sections = [line.names.texts[k] for k in np.unique(slices.name[slices.section])]
    spent = np.bincount(
        slices.name, weights=slices.end - slices.begin, minlength=len(line.names.texts)
    )
    numbers = line.names.numbers
    return {
        name: 1e-9 * float(spent[numbers[name]]) for name in (*PHASES, *sections) if name in numbers
    }


def channels_of(trace: Trace, waits: Integers) -> Integers:
    """Return the number of the channel of records of kind WAIT."""
    channels: Integers = np.minimum((trace.upper[waits] >> 16) & 0xFFFF, len(CHANNELS) - 1)
    return channels


@dataclass(frozen=True)
class BlockWaits:
    """What blocks waited for, by channel: threads of a block wait side by side, and count once."""

    last: Integers
    """Of line.waits that overlap: which ended last."""
    channel: Integers
    late: Integers
    """Nanoseconds until the last message was sent."""
    transfer: Integers
    """From then until the last wait ended."""

    @classmethod
    def of(cls, line: Timeline) -> BlockWaits:
        """Join the waits of each block and channel that overlap."""
        trace, waits = line.trace, line.waits
        if not len(waits.begin):
            none = np.zeros(0, np.int64)
            return cls(none, none, none, none)
        begin, end = trace.time[waits.begin], trace.time[waits.end]
        sent = np.where(waits.sent >= 0, trace.time[waits.sent], begin)
        channel = channels_of(trace, waits.begin)
        _, block = np.unique(trace.tracks[:, :2], axis=0, return_inverse=True)
        key = block.reshape(-1)[trace.track[waits.begin]] * len(CHANNELS) + channel
        order = np.lexsort((end, begin, key))
        # One axis of time for all blocks and channels, one behind the other.
        shift = key[order].astype(np.int64) * (int(end.max()) + 1)
        reached = np.maximum.accumulate(end[order] + shift)
        fresh = np.r_[True, (begin[order] + shift)[1:] > reached[:-1]]
        first = np.flatnonzero(fresh)
        ended = np.maximum.reduceat(end[order], first)
        start, sent = begin[order][first], np.maximum.reduceat(sent[order], first)
        late = np.clip(sent, start, ended) - start
        ends_it = end[order] == ended[np.cumsum(fresh) - 1]
        last = order[np.flatnonzero(ends_it)]
        _, one = np.unique((np.cumsum(fresh) - 1)[ends_it], return_index=True)
        return cls(last[one], channel[last[one]], late, ended - start - late)


def _split(line: Timeline) -> dict[str, dict[str, float]]:
    trace, waits = line.trace, BlockWaits.of(line)

    def by_channel(values: Integers, of: Integers) -> dict[str, float]:
        sums = np.bincount(of, weights=values, minlength=len(CHANNELS))
        return {CHANNELS[k]: 1e-9 * float(s) for k, s in enumerate(sums) if (of == k).any()}

    found = trace.kind[line.messages.seen] == Kind.FOUND
    sent, seen = line.messages.sent[found], line.messages.seen[found]
    local = trace.pe[sent] == trace.pe[seen]
    lay = {
        name: 1e-9 * float((trace.time[seen] - trace.time[sent])[mine].sum())
        for name, mine in (("within a PE", local), ("between PEs", ~local))
        if mine.any()
    }
    return {
        "late_sender": by_channel(waits.late, waits.channel),
        "transfer": by_channel(waits.transfer, waits.channel),
        "late_receiver": lay,
    }


def _longest(line: Timeline) -> tuple[Longest, ...]:
    trace, waits, of_block = line.trace, line.waits, BlockWaits.of(line)
    late, transfer = of_block.late, of_block.transfer
    found = []
    for k in np.argsort(-(late + transfer), kind="stable")[:TOP].tolist():
        last = of_block.last[k]
        record = int(waits.begin[last])
        found.append(
            Longest(
                seconds=1e-9 * int(late[k] + transfer[k]),
                pe=int(trace.pe[record]),
                block=int(trace.tracks[trace.track[record], 1]),
                waits_for=int(trace.peer[waits.end[last]]),
                channel=CHANNELS[of_block.channel[k]],
                epoch=int(trace.lower[record]),
                cause="late sender" if late[k] >= transfer[k] else "transfer",
            )
        )
    return tuple(found)
