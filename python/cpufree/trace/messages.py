"""Which put ended which wait."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpufree.trace.records import SENT, Integers, Kind, Trace


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
    if not len(sent) or not len(seen):
        return Messages(sent[:0], seen[:0])
    # Receiver and epoch as one number, the same for both sides.
    places = np.concatenate([trace.peer[sent], trace.pe[seen]]) << 32
    both = np.unique(places | np.concatenate([trace.lower[sent], trace.lower[seen]]),
                     return_inverse=True)[1].astype(np.int64)  # fmt: skip
    key = (both << 32) | np.concatenate([trace.upper[sent], trace.upper[seen]])
    there, wanted = key[: len(sent)], key[len(sent) :]
    order = np.argsort(there, kind="stable")
    # Of packets put in one go the first is recorded: the last slot up to the one that was seen.
    place = np.searchsorted(there[order], wanted, side="right") - 1
    found = sent[order[np.maximum(place, 0)]]
    exact = there[order[np.maximum(place, 0)]] == wanted
    same = (there[order[np.maximum(place, 0)]] >> 32) == (wanted >> 32)
    near = same & (trace.pe[found] == trace.peer[seen]) & (trace.kind[found] != Kind.SIGNAL)
    good = (place >= 0) & (exact | near)
    return Messages(found[good], seen[good])


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
