"""Messages of a pattern, by the curves of a machine file, and which tiles go from whom to whom."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cpufree.machine.communication import Communication, WayRecord
from cpufree.model.samples import HOST_DRIVEN, PatternSample
from cpufree.model.use import pipelined, single

STORE = {"threads": "threads-store", "gpus": "device-store-block", "shared": "shared-store-block"}
FLAG_BYTES = 8
GET = {"threads": "threads-get", "gpus": "device-get", "shared": "shared-get"}
"""The way of a put, and of a get, between threads, between GPUs, and on one GPU."""
HOST_PUT = {"gpus": "host-copy", "shared": "shared-copy"}
HOST_GET = {"gpus": "host-copy-get", "shared": "shared-copy"}
"""The same of tiles that the host moves."""


@dataclass(frozen=True)
class Message:
    """What a message between two PEs takes [s]."""

    single: float
    further: float
    """What one more message behind another one adds."""
    taken: float
    """What the receiver spends on it where it is there already."""


class Messages:
    """Messages of a pattern, by a machine file."""

    def __init__(self, found: Communication, sample: PatternSample, gets: bool) -> None:
        self._found = found
        self._sample = sample
        driven = sample.pattern.endswith(HOST_DRIVEN)
        self._names = (HOST_GET if gets else HOST_PUT) if driven else GET if gets else STORE
        self._known: dict[tuple[str, int], Message] = {}

    def way(self, one: int, other: int) -> str:
        """Return the way between two PEs.

        A fence waits for all stores of a GPU. So where some of its PEs store to another GPU, stores
        to PEs of the same one take as long.
        """
        gpus = self._sample.gpus
        if not gpus:
            return self._names["threads"]
        if self._names is STORE and "gets" not in self._sample.pattern and len(set(gpus)) > 1:
            return self._names["gpus"]
        return self._names["shared" if gpus[one] == gpus[other] else "gpus"]

    def of(self, one: int, other: int, size: int) -> Message:
        """Return the message between two PEs; KeyError where the way is not known."""
        key = (self.way(one, other), size)
        if key not in self._known:
            on_gpus = bool(self._sample.gpus)
            self._known[key] = _message(self._found.ways[key[0]], size, on_gpus)
        return self._known[key]


def _message(way: WayRecord, size: int, on_gpus: bool) -> Message:
    alone = single(way, float(size))
    if alone is None:
        raise KeyError("single messages")
    row = pipelined(way, float(size))
    further = min(float(row if row is not None else alone), float(alone))
    received = way.parameters.get("o_recv") if on_gpus else None
    return Message(float(alone), further, received.value if received else further)


def compute_of(sample: PatternSample, pe: int) -> float:
    """Return the seconds that a PE computes in a step of a product."""
    side = math.isqrt(sample.pes)
    return (sample.computes[pe] if sample.computes else sample.alone) / side


def owner(pe: int, side: int, step: int, which: int) -> int:
    """Return the PE that has tile A (which = 0) or B (1) that a PE needs in a step."""
    row, column = divmod(pe, side)
    k = (row + column + step) % side
    return row * side + k if which == 0 else k * side + column
