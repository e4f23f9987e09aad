"""What blocks had sent when a kernel was given up, by their traces: why a wait was in vain."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cpufree.trace.messages import match
from cpufree.trace.records import Integers, Kind, Trace

if TYPE_CHECKING:
    from cpufree.trace.hang import Block, Wait

PARTIALS = ("reduction",)
"""Channels whose messages are of kind PARTIAL; those of others are flags or packets."""
Found = tuple[str, str, int]
"""A cause (hang.Cause), in words, and by how many epochs."""


class Issued:
    """What each block has sent."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        ids = [tuple(row[:2]) for row in trace.tracks.tolist()]
        self._of_block: dict[Block, list[int]] = {}
        for number, block in enumerate(ids):
            self._of_block.setdefault(block, []).append(number)

    def explain(self, wait: Wait) -> Found | None:
        """Return why a wait was in vain; None where the sender has not come so far, or is lost."""
        if wait.target not in self._of_block or wait.block not in self._of_block:
            return None
        sent = self._sent(wait)
        if not len(sent):
            return None
        low = (1 << 32) - 1
        want = wait.epoch & low
        mine = sent[self._trace.peer[sent] == wait.block[0]]
        whom = f"block {wait.target[1]} of PE {wait.target[0]}"
        if len(mine) and (self._trace.lower[mine] == want).any():
            return "lost", f"{whom} has sent it, and it has not come: the message is lost", 0
        if (over := self._over(wait)) > 0:
            words = f"the threshold is too high by {over}: block {wait.block[1]} of PE "
            return "threshold too high", f"{words}{wait.block[0]} waits for an epoch not due", over
        if (other := self._misdirected(wait, sent, want)) is not None:
            words = f"{whom} has sent it to PE {other} in place of PE {wait.block[0]}"
            return "misdirected", words, 0
        if len(mine) and (off := self._too_low(mine, want)) > 0:
            words = f"{whom} has sent an epoch that is too low by {off}"
            return "too low", words, off
        if self._is_past(wait, sent, mine, want):
            return "never sent", f"{whom} has gone on, and never sent it", 0
        return None

    @cached_property
    def _seen(self) -> Integers:
        """Of each record that is a receipt, the record of its message; else -1."""
        found = np.full(len(self._trace.kind), -1, np.int64)
        messages = match(self._trace)
        found[messages.seen] = messages.sent
        return found

    def _records(self, block: Block) -> Integers:
        return np.concatenate(
            [np.flatnonzero(self._trace.track == k) for k in self._of_block[block]]
        )

    def _sent(self, wait: Wait) -> Integers:
        """Return what the target has sent on such a channel, in order of time."""
        records = self._records(wait.target)
        kind = self._trace.kind[records]
        if wait.channel in PARTIALS:
            mine = kind == Kind.PARTIAL
        else:
            mine = (kind == Kind.SIGNAL) | (kind == Kind.PACKET)
            # Flags for blocks of the own PE are of a channel of their own.
            local = self._trace.peer[records] == wait.target[0]
            mine &= local if wait.channel == "local arrival" else ~local
        return records[mine]

    def _over(self, wait: Wait) -> int:
        """Return by how much the epoch waited for is more than one after the last one."""
        records = self._records(wait.block)
        kinds = np.isin(self._trace.kind[records], (Kind.WAIT_END, Kind.FOUND))
        got = records[kinds & (self._trace.peer[records] == wait.target[0])]
        got = got[self._seen[got] >= 0]
        senders = self._seen[got]
        same = np.isin(self._trace.track[senders], self._of_block[wait.target])
        partial = self._trace.kind[senders] == Kind.PARTIAL
        same &= partial if wait.channel in PARTIALS else ~partial
        epochs = self._trace.lower[got[same]]
        if not len(epochs):
            return 0
        return max(0, (wait.epoch & 0xFFFFFFFF) - int(epochs.max()) - 1)

    def _misdirected(self, wait: Wait, sent: Integers, want: int) -> int | None:
        """Return the PE that got one message of this epoch too many."""
        epochs, peers = self._trace.lower[sent], self._trace.peer[sent]
        now = np.bincount(peers[epochs == want], minlength=self._trace.pes)
        before = np.bincount(peers[epochs == want - 1], minlength=self._trace.pes)
        if not before[wait.block[0]]:
            return None
        more = np.flatnonzero(now > before)
        return int(more[0]) if len(more) else None

    def _too_low(self, mine: Integers, want: int) -> int:
        """Return by how much the last message is too low; 0 where it is the first of its epoch."""
        epochs = self._trace.lower[mine]
        last = int(epochs[-1])
        slots = self._trace.upper[mine]
        again = (epochs[:-1] >= last) & (slots[:-1] == slots[-1])
        return max(0, want - last) if again.any() else 0

    def _is_past(self, wait: Wait, sent: Integers, mine: Integers, want: int) -> bool:
        """Return whether the target is past the place where it sends this message.

        It is where it has sent another one of this epoch, or where it waits for what, one epoch
        before, it had waited for after it had sent the message before this one.
        """
        if (self._trace.lower[sent] >= want).any():
            return True
        before = mine[self._trace.lower[mine] == want - 1]
        records = self._records(wait.target)
        waits = records[self._trace.kind[records] == Kind.WAIT]
        if not len(before) or not len(waits):
            return False
        last = waits[-1]
        same = (self._trace.upper[waits] >> 16 == self._trace.upper[last] >> 16) & (
            self._trace.lower[waits] == self._trace.lower[last] - 1
        )
        ends = records[
            np.isin(self._trace.kind[records], (Kind.FOUND, Kind.WAIT_END, Kind.REDUCE))
            & (self._trace.lower[records] == self._trace.lower[last] - 1)
        ]
        earlier = np.concatenate([waits[same], ends])
        return bool((earlier > before[0]).any() and last > before[-1])
