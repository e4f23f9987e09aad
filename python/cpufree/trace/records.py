"""What the blocks of a kernel have written down, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

PHASES = ("vector updates", "product", "halo wait", "reduction")
"""Names of the phases of cpufree/device/study.hpp."""
_TIME_BITS = 40


class Kind(IntEnum):
    """What a record tells; see cpufree/trace/record.hpp."""

    PHASE = 0
    PAYLOAD = 1
    SIGNAL = 2
    PACKET = 3
    PARTIAL = 4
    WAIT = 5
    WAIT_END = 6
    FOUND = 7
    GAVE_UP = 8
    REDUCE = 9
    SECTION = 10
    ITERATION = 11
    LEFT_OUT = 12


SENT = (Kind.SIGNAL, Kind.PACKET, Kind.PARTIAL)


@dataclass(frozen=True)
class Trace:
    """A trace of one kernel on all of its PEs.

    Attributes
    ----------
    tracks : array of int64, shape (t, 5)
        PE, block and thread of each ring; how many records it was given, and how many it kept.
    words : array of uint64, shape (n, 2)
        The records, ring after ring, each in order of time.
    bytes : array of int64, shape (pes, pes)
        Payload that each PE (row) has stored in the memory of each other one, in bytes.
    starts : array of int64, shape (pes,)
        Nanoseconds that the clock of each PE showed at its time 0.
    facts : dict
        What was traced: "what", "engine", "pes", "blocks", "iterations", "seconds", ...
    """

    tracks: Integers
    words: npt.NDArray[np.uint64]
    bytes: Integers
    starts: Integers
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of_core(cls, raw: Mapping[str, Any], facts: Mapping[str, Any]) -> Trace:
        """Return what the compiled core has recorded."""
        size = round(len(raw["bytes"]) ** 0.5)
        return cls(
            np.asarray(raw["tracks"]).astype(np.int64).reshape(-1, 5),
            np.asarray(raw["records"], dtype=np.uint64).reshape(-1, 2),
            np.asarray(raw["bytes"]).astype(np.int64)[: size * size].reshape(size, size),
            np.asarray(raw["starts"]).astype(np.int64),
            dict(facts),
        )

    @property
    def pes(self) -> int:
        """Number of PEs."""
        return len(self.bytes)

    @property
    def lost(self) -> int:
        """Records that did not fit into their rings: the first ones are gone."""
        return int((self.tracks[:, 3] - self.tracks[:, 4]).sum())

    @cached_property
    def left_out(self) -> int:
        """Iterations that were not recorded, as one in several was to be."""
        gaps = self.select(Kind.LEFT_OUT)
        return int(self.lower[gaps].max(initial=0))

    @cached_property
    def track(self) -> Integers:
        """The number of the ring of each record."""
        return np.repeat(np.arange(len(self.tracks)), self.tracks[:, 4])

    @cached_property
    def pe(self) -> Integers:
        """The PE of each record."""
        pe: Integers = self.tracks[self.track, 0]
        return pe

    @cached_property
    def kind(self) -> npt.NDArray[np.uint8]:
        """The Kind of each record."""
        return ((self.words[:, 0] >> np.uint64(16)) & np.uint64(0xFF)).astype(np.uint8)

    @cached_property
    def peer(self) -> Integers:
        """The other PE of each record."""
        return (self.words[:, 0] & np.uint64(0xFFFF)).astype(np.int64)

    @cached_property
    def upper(self) -> Integers:
        """Slot or site of each record."""
        return (self.words[:, 1] >> np.uint64(32)).astype(np.int64)

    @cached_property
    def lower(self) -> Integers:
        """Epoch or number of each record, its lower 32 bits."""
        return (self.words[:, 1] & np.uint64(0xFFFFFFFF)).astype(np.int64)

    @cached_property
    def shown(self) -> Integers:
        """What the PE's own clock showed at each record, in ns, without its wrapping."""
        time = (self.words[:, 0] >> np.uint64(24)).astype(np.int64)
        if not len(time):
            return time
        full = 1 << _TIME_BITS
        # No two records that follow one another in a ring are further apart than half of it.
        steps = np.diff(time, prepend=time[:1])
        steps = (steps + full // 2) % full - full // 2
        shown: Integers = time[0] + np.cumsum(steps)
        return shown

    @cached_property
    def time(self) -> Integers:
        """The time of each record in ns, of one clock; 0 is the first of all.

        Records of one ring have different times, in their order: where the clock of the PE ticks
        more slowly than the block writes, they are 1 ns apart.
        """
        shown = self.shown
        if not len(shown):
            return shown
        first = int(self.tracks[:, 0].min())
        clock = self.starts - self.starts.min()
        time: Integers = shown + clock[self.pe - first] - self.offsets[self.pe]
        number = np.arange(len(time))
        begins = np.flatnonzero(np.diff(self.track, prepend=-1))
        for begin, end in zip(begins, [*begins[1:], len(time)], strict=True):
            part = slice(begin, end)
            time[part] = np.maximum.accumulate(time[part] - number[part]) + number[part]
        time -= time.min()
        return time

    @cached_property
    def offsets(self) -> Integers:
        """What the clock of each PE is ahead of that of PE 0, in ns (facts["clock_offsets"])."""
        given = self.facts.get("clock_offsets")
        return np.zeros(self.pes, np.int64) if given is None else np.asarray(given, np.int64)

    def select(self, *kinds: Kind) -> Integers:
        """Return the numbers of the records of these kinds."""
        return np.flatnonzero(np.isin(self.kind, kinds))
