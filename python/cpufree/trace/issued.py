"""What blocks had sent when a kernel was given up, by their traces: why a wait was in vain."""

from __future__ import annotations

import numpy as np

from cpufree.text import time_text
from cpufree.trace.records import SENT, Integers, Kind, Trace
from cpufree.trace.waits import Block, Wait

PARTIALS = ("reduction",)
"""Channels whose messages are of kind PARTIAL; those of others are flags or packets."""
Found = tuple[str, str, int]
"""A cause (waits.Cause), in words, and by how many epochs."""


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
        there = mine[self._trace.lower[mine] == want]
        if len(there):
            late = 1e-9 * (int(self._trace.time[there[0]]) - self._given_up(wait.block))
            if late > 0.0:
                return (
                    "late",
                    f"{whom} is late: sent {time_text(late)} after the end of the wait",
                    0,
                )
            return "lost", f"{whom} has sent it, and it has not come: the message is lost", 0
        if (over := self._over(wait, mine, want)) > 0:
            who = f"block {wait.block[1]} of PE {wait.block[0]}"
            words = f"the threshold is too high by {over}: {who} waits for an epoch not due"
            return "threshold too high", words, over
        if (other := self._misdirected(wait, sent, want)) is not None:
            words = f"{whom} has sent it to PE {other} in place of PE {wait.block[0]}"
            return "misdirected", words, 0
        if len(mine) and (off := self._too_low(mine, want)) > 0:
            words = f"{whom} has sent an epoch that is too low by {off}"
            return "too low", words, off
        if self._is_past(wait, sent, mine, want):
            return "never sent", f"{whom} has gone on, and never sent it", 0
        return None

    def _given_up(self, block: Block) -> int:
        """Return when a block gave up; the end of time if its ring does not tell."""
        records = self._records(block)
        ends = records[self._trace.kind[records] == Kind.GAVE_UP]
        return int(self._trace.time[ends[0]]) if len(ends) else int(np.iinfo(np.int64).max)

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
        found: Integers = records[mine]
        return found

    def _over(self, wait: Wait, mine: Integers, want: int) -> int:
        """Return by how much an epoch is above the one that is due; 0 where it is due.

        Who waits rightly has seen the epoch before: no more than one is missing.
        """
        if not len(mine):
            return 0
        last = mine[np.argmax(self._trace.lower[mine])]
        missing = want - int(self._trace.lower[last])
        records = self._records(wait.block)
        seen = np.isin(self._trace.kind[records], (Kind.WAIT_END, Kind.FOUND)) & (
            (self._trace.upper[records] == self._trace.upper[last])
            & (self._trace.lower[records] == self._trace.lower[last])
        )
        return 0 if missing <= 1 else missing - 1 if seen.any() else missing

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
        """Return by how much the last message is too low: it repeats an epoch, or goes back."""
        last = mine[-1]
        before = mine[:-1]
        if self._trace.kind[last] != Kind.PARTIAL:  # of these, slots alternate
            before = before[self._trace.upper[before] == self._trace.upper[last]]
        if not len(before) or self._trace.lower[before[-1]] < self._trace.lower[last]:
            return 0
        return max(0, want - int(self._trace.lower[last]))

    def _is_past(self, wait: Wait, sent: Integers, mine: Integers, want: int) -> bool:
        """Return whether the target is past the place where it sends this message.

        It is where it has sent another one of this epoch. Else its last message tells, as a kernel
        sends in the same order in each epoch: if the same message of one epoch before came after
        the one of one epoch before that is now missed, then this one should have been sent.
        """
        trace = self._trace
        if (trace.lower[sent] >= want).any():
            return True
        records = self._records(wait.target)
        every = records[np.isin(trace.kind[records], SENT)]
        missed = mine[trace.lower[mine] == want - 1]
        if not len(missed):
            return False
        last = every[-1]
        same = (trace.kind[every] == trace.kind[last]) & (trace.peer[every] == trace.peer[last])
        if trace.kind[last] == Kind.SIGNAL:
            same &= trace.upper[every] == trace.upper[last]
        before = every[same & (trace.lower[every] == trace.lower[last] - 1)]
        return bool(len(before)) and int(missed[-1]) < int(before[-1])
