"""The time line of a trace: slices, instants and arrows, as tables that every format is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cpufree.trace.messages import Messages, Waits, match, payload_of, waits_of
from cpufree.trace.records import PHASES, SENT, Integers, Kind, Trace

CHANNELS = (
    *("local arrival", "halo arrival", "reduction", "reduction of nodes"),
    *("room for triggers", "completion of a triggered operation"),
    *("signal of a triggered operation", "queue of triggered operations"),
)
"""Names of the channels of cpufree/device/types.hpp."""
PUTS = {Kind.SIGNAL: "signal", Kind.PACKET: "packets", Kind.PARTIAL: "partial sums"}

LEFT_OUT = "not recorded"
KERNELS = ("solve: kernel", "program: run", "stencil: kernel")
"""Phases of the host in which the kernel runs."""


@dataclass
class Names:
    """Texts by number, each once."""

    texts: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        """Return the number of a text."""
        if text not in self.numbers:
            self.numbers[text] = len(self.texts)
            self.texts.append(text)
        return self.numbers[text]


@dataclass(frozen=True)
class Slices:
    """Something that lasts, on a track: arrays, one entry for each. Times in ns.

    Slices of one track lie beside or within one another.
    """

    track: Integers
    begin: Integers
    end: Integers
    name: Integers
    epoch: Integers
    """-1: none."""
    record: Integers
    """The last one that it is made of."""
    section: np.ndarray
    """Whether it is a level of multigrid, or a line of a program."""


@dataclass(frozen=True)
class Timeline:
    """What a trace shows."""

    trace: Trace

    @cached_property
    def messages(self) -> Messages:
        """Which put was seen by whom."""
        return match(self.trace)

    @cached_property
    def arrows(self) -> Messages:
        """Which put ended which wait; and which trigger a NIC took, which looks for all of them."""
        sent, seen = self.messages.sent, self.messages.seen
        kind = self.trace.kind
        ended = (kind[seen] == Kind.WAIT_END) | (
            (kind[seen] == Kind.FOUND) & (kind[sent] == Kind.PACKET)
        )
        return Messages(sent[ended], seen[ended])

    @cached_property
    def waits(self) -> Waits:
        """The waits that have ended."""
        return waits_of(self.trace, self.messages)

    @cached_property
    def payload(self) -> Integers:
        """Bytes that went before each signal."""
        return payload_of(self.trace)

    @cached_property
    def host(self) -> list[tuple[str, int, int]]:
        """What the host did before and after the kernel: names, begins and ends in ns.

        The kernel begins at `base`, which is added to all times of records where they are shown.
        """
        found, now = [], 0
        for name, seconds in self.trace.facts.get("phases", {}).items():
            lasts = max(0, round(1e9 * seconds))
            found.append((name.replace("_", ": ", 1).replace("_", " "), now, now + lasts))
            now += lasts
        return found

    @cached_property
    def base(self) -> int:
        """When the kernel begins, in ns from the begin of the first phase of the host."""
        return next((begin for name, begin, _ in self.host if name in KERNELS), 0)

    @cached_property
    def names(self) -> Names:
        """Of slices and instants."""
        return Names()

    @cached_property
    def slices(self) -> Slices:
        """All slices, in no order."""
        parts = [self._phases(), self._waits(), self._reductions(), self._gaps(), self._sections()]
        of = ("track", "begin", "end", "name", "epoch", "record")
        fields = {name: np.concatenate([part[k] for part in parts]) for k, name in enumerate(of)}
        lengths = [len(part[0]) for part in parts]
        fields["section"] = np.arange(sum(lengths)) >= sum(lengths[:-1])
        lasts = fields["end"] > fields["begin"]  # a ring may end where something begins
        return Slices(**{name: column[lasts] for name, column in fields.items()})

    @cached_property
    def puts(self) -> Integers:
        """Records of what was put: instants of their blocks."""
        return self.trace.select(*SENT)

    def named(self, texts: list[str], choice: Integers) -> Integers:
        """Return the numbers of the names texts[choice]."""
        used, place = np.unique(choice, return_inverse=True)
        numbers = np.array([self.names.number(texts[k]) for k in used], np.int64)
        return numbers[place] if len(used) else choice

    def put_names(self) -> Integers:
        """Return the name of each of `puts`."""
        pes, kinds = self.trace.pes, list(PUTS)
        texts = [f"{PUTS[kind]} → PE {pe}" for kind in kinds for pe in range(pes)]
        place = np.searchsorted(np.array(kinds), self.trace.kind[self.puts])
        return self.named(texts, place * pes + np.minimum(self.trace.peer[self.puts], pes - 1))

    def _phases(self) -> tuple[Integers, ...]:
        """From one mark to the next one; the first begins with the ring."""
        trace = self.trace
        marks = trace.select(Kind.PHASE)
        track = trace.track[marks]
        firsts = np.searchsorted(trace.track, np.arange(len(trace.tracks)))
        before = np.concatenate([[-1], marks[:-1]]) if len(marks) else marks
        gaps = np.concatenate([[-1], trace.select(Kind.LEFT_OUT)])
        before = np.maximum(before, gaps[np.searchsorted(gaps, marks) - 1])  # none spans a gap
        begin = np.maximum(before, firsts[track])
        name = self.named(list(PHASES), trace.lower[marks] % len(PHASES))
        real = begin < marks
        none = np.full(len(marks), -1, np.int64)
        return tuple(
            part[real] for part in (track, trace.time[begin], trace.time[marks], name, none, marks)
        )

    def _waits(self) -> tuple[Integers, ...]:
        """Waits that have ended, and those that were given up or never ended."""
        trace, waits = self.trace, self.waits
        begin = trace.select(Kind.WAIT)
        last = np.searchsorted(trace.track, np.arange(len(trace.tracks)), side="right") - 1
        end = np.minimum(begin + 1, last[trace.track[begin]])
        ended = np.isin(begin, waits.begin)
        channel = np.minimum((trace.upper[begin] >> 16) & 0xFFFF, len(CHANNELS) - 1)
        # Who came last is known where a wait has ended.
        whom = np.minimum(np.where(ended, trace.peer[end], trace.peer[begin]), trace.pes - 1)
        texts = [
            f"{word} for PE {pe}: {channel}"
            for word in ("waits in vain", "waits")
            for channel in CHANNELS
            for pe in range(trace.pes)
        ]
        choice = (ended * len(CHANNELS) + channel) * trace.pes + whom
        name = self.named(texts, choice)
        return (
            *(
                trace.track[begin],
                trace.time[begin],
                np.maximum(trace.time[end], trace.time[begin]),
            ),
            *(name, trace.lower[begin], end),
        )

    def _reductions(self) -> tuple[Integers, ...]:
        """While the sums of all blocks are collected."""
        trace = self.trace
        told = trace.select(Kind.REDUCE)
        pair = np.flatnonzero(
            (trace.lower[told[:-1]] == 1)
            & (trace.lower[told[1:]] == 0)
            & (trace.track[told[:-1]] == trace.track[told[1:]])
        )
        begin, end = told[pair], told[pair + 1] if len(pair) else told[pair]
        name = self.named(["collects sums"], np.zeros(len(pair), np.int64))
        none = np.full(len(pair), -1, np.int64)
        return trace.track[begin], trace.time[begin], trace.time[end], name, none, end

    def _gaps(self) -> tuple[Integers, ...]:
        """Iterations that were not recorded, each from a mark to the next one."""
        trace = self.trace
        marks = trace.select(Kind.LEFT_OUT)
        pair = np.flatnonzero(
            (trace.track[marks[:-1]] == trace.track[marks[1:]])
            & (trace.lower[marks[:-1]] < trace.lower[marks[1:]])
        )
        begin, end = marks[pair], marks[pair + 1] if len(pair) else marks[pair]
        name = self.named([LEFT_OUT], np.zeros(len(pair), np.int64))
        none = np.full(len(pair), -1, np.int64)
        return trace.track[begin], trace.time[begin], trace.time[end], name, none, end

    def _sections(self) -> tuple[Integers, ...]:
        """Levels of multigrid and lines of programs, each up to where the next one begins.

        The last one of a ring ends with it.
        """
        trace = self.trace
        told = trace.select(Kind.SECTION, Kind.LEFT_OUT)
        number = trace.words[told, 1].astype(np.int32).astype(np.int64)
        number[trace.kind[told] == Kind.LEFT_OUT] = -1
        last = np.searchsorted(trace.track, np.arange(len(trace.tracks)), side="right") - 1
        follows = np.append(np.diff(trace.track[told]) == 0, False)[: len(told)]
        ends = np.where(follows, np.append(told[1:], 0)[: len(told)], last[trace.track[told]])
        begins = np.flatnonzero(number >= 0)
        begin, end = told[begins], ends[begins]
        known = trace.facts.get("sections", {})
        numbers, choice = np.unique(number[begins], return_inverse=True)
        texts = [known.get(str(n), f"level {n}") for n in numbers.tolist()]
        name = self.named(texts, choice)
        none = np.full(len(begins), -1, np.int64)
        return trace.track[begin], trace.time[begin], trace.time[end], name, none, end

    @cached_property
    def under_way(self) -> tuple[Integers, Integers, Integers]:
        """Bytes that are stored and not yet seen: times, PEs that sent them, and the values."""
        messages = self.messages
        sent, first = np.unique(messages.sent, return_index=True)
        order = np.lexsort((self.trace.time[messages.seen], messages.sent))
        ordered = messages.sent[order]
        last = np.flatnonzero(np.diff(ordered, append=-1))
        seen = messages.seen[order][last]
        size = self.payload[sent]
        del first
        time = np.concatenate([self.trace.time[sent], self.trace.time[seen]])
        pe = np.tile(self.trace.pe[sent], 2)
        return running(time, pe, np.concatenate([size, -size]))

    @cached_property
    def waiting(self) -> tuple[Integers, Integers, Integers]:
        """How many blocks of each PE wait: times, PEs, and the numbers."""
        waits = self.waits
        first = self.trace.tracks[self.trace.track[waits.begin], 2] == 0
        begin, end = waits.begin[first], waits.end[first]
        time = np.concatenate([self.trace.time[begin], self.trace.time[end]])
        change = np.repeat(np.array([1, -1]), len(begin))
        return running(time, np.tile(self.trace.pe[begin], 2), change)


def running(time: Integers, pe: Integers, change: Integers) -> tuple[Integers, Integers, Integers]:
    """Return changes as values, by PE and time; those of 0 are left out."""
    real = change != 0
    time, pe, change = time[real], pe[real], change[real]
    order = np.lexsort((-change, time, pe))
    time, pe, change = time[order], pe[order], change[order]
    value = np.cumsum(change)  # each PE ends with 0
    return time, pe, value


def track_name(trace: Trace, block: int, thread: int) -> str:
    """Return what a ring is of: a block, another thread of it, or the NIC behind the last block."""
    if trace.facts.get("nics") and block == trace.facts["blocks"]:
        return "NIC"
    return f"block {block}" + (f", thread {thread}" if thread else "")
