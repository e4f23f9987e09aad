"""Which put ended which wait."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpufree.trace.records import SENT, Integers, Kind, Trace

_BLOCK = 0xFFFF  # the bits of a block in a record


@dataclass(frozen=True)
class Messages:
    """Signals and packets that were seen: arrays of record numbers, one entry for each receipt.

    A flag that several blocks wait for has as many entries.
    """

    sent: Integers
    seen: Integers
    """Of kind WAIT_END, or FOUND where it had come before it was asked for."""


@dataclass(frozen=True)
class Waits:
    """Waits that have ended: arrays, one entry for each."""

    begin: Integers
    """The record of kind WAIT."""
    end: Integers
    """The one of kind WAIT_END that follows it."""
    sent: Integers
    """The record of the message that ended it; -1 where its ring has lost it."""


def match(trace: Trace) -> Messages:
    """Return the messages of a trace: a slot has one writer, and an epoch is written once."""
    sent, seen = trace.select(*SENT), trace.select(Kind.WAIT_END, Kind.FOUND)
    found = _at_or_below(trace, sent, seen, trace.peer[sent], trace.pe[seen])
    exact = (found >= 0) & (trace.upper[found] == trace.upper[seen])
    # Of packets that a block puts in one go the first is recorded: of the same block, the last slot
    # up to the one that was seen.
    block = _awaited(trace, seen)
    others = np.flatnonzero(~exact & (block >= 0))
    rest, packets = seen[others], sent[trace.kind[sent] != Kind.SIGNAL]
    from_block = trace.tracks[trace.track[packets], 1] & _BLOCK
    sender = (trace.pe[packets] << 16) | from_block
    whose = (trace.peer[rest] << 16) | block[others]
    found = np.where(exact, found, -1)
    found[others] = _at_or_below(
        trace, packets, rest, (trace.peer[packets] << 32) | sender, (trace.pe[rest] << 32) | whose
    )
    known = found >= 0
    return Messages(found[known], seen[known])


def _at_or_below(
    trace: Trace, sent: Integers, seen: Integers, one: Integers, other: Integers
) -> Integers:
    """Return the record of `sent` with the last slot up to that of each of `seen`; -1 for none.

    Of those with the same epoch, and for which `one`, of `sent`, is what `other` is, of `seen`.
    """
    if not len(sent) or not len(seen):
        return np.full(len(seen), -1, np.int64)
    both = _numbers(np.concatenate([one, other])) << 32
    records = np.concatenate([sent, seen])
    both = _numbers(both | trace.lower[records]) << 32
    there, wanted = np.split(both | trace.upper[records], [len(sent)])
    order = np.argsort(there, kind="stable")
    place = np.searchsorted(there[order], wanted, side="right") - 1
    found = order[np.maximum(place, 0)]
    same = (place >= 0) & (there[found] >> 32 == wanted >> 32)
    return np.where(same, sent[found], -1)


def _numbers(values: Integers) -> Integers:
    """Return a small number for each of the values, the same for the same ones."""
    numbers: Integers = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return numbers


def _awaited(trace: Trace, seen: Integers) -> Integers:
    """Return the block that each wait that has ended was for; -1 for what is no such record."""
    before = np.maximum(seen - 1, 0)
    known = (trace.kind[seen] == Kind.WAIT_END) & (trace.kind[before] == Kind.WAIT)
    known &= trace.track[before] == trace.track[seen]
    return np.where(known, trace.upper[before] & _BLOCK, -1)


def waits_of(trace: Trace, messages: Messages) -> Waits:
    """Return the waits of all threads that have ended."""
    begin = trace.select(Kind.WAIT)
    begin = begin[begin + 1 < len(trace.kind)]
    follows = (trace.kind[begin + 1] == Kind.WAIT_END) & (
        trace.track[begin + 1] == trace.track[begin]
    )
    begin = begin[follows]
    sent = np.full(len(trace.kind), -1, np.int64)
    sent[messages.seen] = messages.sent
    return Waits(begin, begin + 1, sent[begin + 1])


def payload_of(trace: Trace) -> Integers:
    """Return the payload in bytes that went before each record of kind SIGNAL; 0 for others."""
    payload = np.zeros(len(trace.kind), np.int64)
    told = trace.select(Kind.PAYLOAD)
    told = told[told + 1 < len(payload)]
    payload[told + 1] = trace.words[told, 1].astype(np.int64)
    return payload
