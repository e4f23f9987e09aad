"""LogGOP parameters of a way between two PEs, and the time of messages by them.

Source: Groves, Brock, Chen, Ibrahim, Oliker, Wright and Yelick 2020, Performance Trade-offs in GPU
Communication: A Study of Host and Device-initiated Approaches, equations 1 to 4. All times are in
seconds, sizes in bytes.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from cpufree.errors import InvalidInputError
from cpufree.machine.communication import Array, Curve

Verb = Literal["message", "put", "get"]
Payload = Literal["once", "twice", "printed"]
VERBS: tuple[Verb, ...] = ("message", "put", "get")
PAYLOADS: tuple[Payload, ...] = ("once", "twice", "printed")
PARTS = ("L", "o", "g", "O", "G", "S")
"""Of the time of a message, in the order in which pictures stack them."""


def _require_time(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0.0):
        raise InvalidInputError(f"{name} is {value}: a time must be finite, and 0 or more")


def linear(slope: float) -> Curve:
    """Return what grows by `slope` seconds a byte."""
    return Curve("pieces", (0.0, slope))


FREE = linear(0.0)


@dataclass(frozen=True)
class Counts:
    """How often each parameter occurs in the time of a message."""

    L: int
    o: int
    """Of the overheads of both ends together: so often that of each."""
    g: int
    O: int  # noqa: E741
    G: int
    S: int


# Equations 1 to 4 as printed, with the payload counted twice. With S = 0, device put is host put.
# A message one way, which is half a round trip, has no answer: LogP's L + 2 o.
COUNTS: dict[Verb, Counts] = {
    "message": Counts(L=1, o=1, g=0, O=1, G=2, S=1),
    "put": Counts(L=2, o=2, g=4, O=1, G=2, S=1),
    "get": Counts(L=2, o=2, g=4, O=2, G=2, S=2),
}


def counts_of(verb: Verb, payload: Payload) -> Counts:
    """Return the counts of an equation; with the payload once, O and G occur once."""
    counts = COUNTS[verb]
    return dataclasses.replace(counts, O=1, G=1) if payload == "once" else counts


@dataclass(frozen=True)
class LogGOP:
    """The parameters of one way.

    Parameters:
        L: latency of a small message [s]. o_send, o_recv: time for which the sender and the
        receiver are busy with one [s]. O: what overhead grows by with the size. g: least time
        between two small messages [s]. G: what the gap grows by, the inverse of the bandwidth.
        S: synchronization and consistency, per use [s]; 0 where the host initiates.

    Raises:
        InvalidInputError: a time is negative or not finite.

    >>> host = LogGOP(530e-9, 229e-9, 229e-9, linear(0.074e-9), 5e-9, linear(0.08e-9))
    >>> round(float(host.time("put", 8)) * 1e9)
    1998
    """

    L: float
    o_send: float
    o_recv: float
    O: Curve = FREE  # noqa: E741
    g: float = 0.0
    G: Curve = FREE
    S: float = 0.0

    def __post_init__(self) -> None:
        for name in ("L", "o_send", "o_recv", "g", "S"):
            _require_time(name, getattr(self, name))

    def parts(self, verb: Verb, size: ArrayLike, payload: Payload = "printed") -> dict[str, Array]:
        """Return what each of PARTS adds to the time of one message of `size` bytes.

        `printed` are equations 1 to 4, which add O and G. `once` and `twice` say how often the
        payload counts; of O and G, which overlap there, the longer one adds to the time.
        """
        m = np.asarray(size, dtype=np.float64)
        counts, zero = counts_of(verb, payload), np.zeros_like(m)
        overhead, gap = counts.O * self.O(m), counts.G * self.G(m)
        if payload != "printed":
            overhead, gap = np.where(overhead > gap, (overhead, 0.0 * m), (0.0 * m, gap))
        return {
            "L": zero + counts.L * self.L,
            "o": zero + counts.o * (self.o_send + self.o_recv),
            "g": zero + counts.g * self.g,
            "O": overhead,
            "G": gap,
            "S": zero + counts.S * self.S,
        }

    def time(self, verb: Verb, size: ArrayLike, payload: Payload = "printed") -> Array:
        """Return the time of one message of `size` bytes, in seconds."""
        found: Any = sum(self.parts(verb, size, payload).values())
        return np.asarray(found, dtype=np.float64)
