"""What an application gains on GPUs by what its messages cost, and what to change first.

Source: Groves et al. 2020, section VI. An application spends a share f of its time in communication
on the CPU, in messages of m bytes, and computes 5 times faster on GPUs. Messages are between CPUs,
initiated by the host for the GPU, with launch and synchronization of a kernel around (K), or from
inside a kernel. The gain of each of the paper's five priorities is that of one change alone, for a
problem that stays as large as it is unless the change is that it grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cpufree.errors import InvalidInputError
from cpufree.machine.communication import Array, Communication
from cpufree.model.use import pipelined, single, way_of

COMPUTE = 5.0
"""How much faster a GPU computes than the CPU of the paper: 10 TFLOPS to 2."""
LAUNCH = 5e-6
"""K: launch and synchronization of a kernel [s]."""
LESS_LAUNCH = 2e-6
SHARES = tuple(k / 10 for k in range(1, 10))
SIZES = tuple(2**k for k in range(3, 25))
"""8 B to 16 MiB."""
LARGER = 16
"""By how much messages grow, and how many fewer there are."""
SUMMIT_WAYS = ("cpu-get", "host-get", "device-get")
"""Roles of the ways of Summit, the paper's machine."""


def fixed(share: ArrayLike, ratio: ArrayLike) -> Array:
    """Return the speed-up of a problem that stays as large as it is.

    Args:
        share: of communication in the time on the CPU.
        ratio: time of a message on the GPU over that on the CPU.

    >>> float(fixed(0.25, 1.0))
    2.5
    """
    f, r = np.asarray(share, dtype=np.float64), np.asarray(ratio, dtype=np.float64)
    return np.asarray(1.0 / ((1.0 - f) / COMPUTE + f * r))


def scaled(share: ArrayLike, ratio: ArrayLike) -> Array:
    """Return the speed-up of a problem that grows until the GPU computes as long as the CPU did.

    `ratio` is that of the larger problem's messages.
    """
    f, r = np.asarray(share, dtype=np.float64), np.asarray(ratio, dtype=np.float64)
    return np.asarray(COMPUTE / ((1.0 - f) + f * r))


@dataclass(frozen=True)
class Roles:
    """Which ways of a machine are those of the projection.

    `cpu` is between CPUs, `host` for GPUs by the host, `device` from inside a kernel, "": none.
    """

    machine: Communication
    cpu: str
    host: str
    device: str = ""
    launch: float = LAUNCH

    def __post_init__(self) -> None:
        if not (math.isfinite(self.launch) and self.launch >= 0):
            raise InvalidInputError(f"launch is {self.launch}: give seconds, 0 or more")
        for way in filter(None, (self.cpu, self.host, self.device)):
            if single(way_of(self.machine, way), 8.0) is None:
                raise InvalidInputError(
                    f"{self.machine.origin}: way {way}: nothing is known of single messages"
                )

    def single(self, way: str, size: ArrayLike) -> Array:
        """Return the time of single messages, without K."""
        found = single(way_of(self.machine, way), size)
        assert found is not None  # checked above
        return found

    def ratio(self, way: str, size: ArrayLike, launch: float | None = None) -> Array:
        """Return the time of messages over that between CPUs, with K where the host initiates."""
        added = 0.0 if way == self.device else self.launch if launch is None else launch
        return np.asarray((self.single(way, size) + added) / self.single(self.cpu, size))


def means(roles: Roles) -> tuple[float, float]:
    """Return the mean fixed and scaled speed-ups over SHARES and SIZES, by the host.

    A problem of two dimensions with 5 times the points has messages that are √5 times as long.
    """
    sizes, shares = np.array(SIZES, dtype=np.float64), np.array(SHARES)[:, None]
    longer = roles.single(roles.host, sizes * math.sqrt(COMPUTE)) + roles.launch
    ratio = longer / roles.single(roles.cpu, sizes)
    return (
        float(np.mean(fixed(shares, roles.ratio(roles.host, sizes)))),
        float(np.mean(scaled(shares, ratio))),
    )


def break_even(roles: Roles, size: float = 8.0) -> float:
    """Return the K above which the device's messages of a size take less than the host's [s]."""
    return float(roles.single(roles.device, size) - roles.single(roles.host, size))


@dataclass(frozen=True)
class Priority:
    """A change, and by what it shortens the time of the application."""

    what: str
    gain: float | None
    """Time before over time after; None: the machine file does not say what it takes."""
    how: str
    paper: int
    """Its place in the paper's order."""


def advise(roles: Roles, size: float, share: float) -> list[Priority]:
    """Return the priorities, the largest gain first, those that are not known last.

    Args:
        roles: machine and ways. size: of the messages [B]. share: of communication in the time on
        the CPU, above 0 and below 1.

    Raises:
        InvalidInputError: size or share is out of range.
    """
    if size < 1:
        raise InvalidInputError(f"{size:g} bytes: a message has at least 1")
    if not 0 < share < 1:
        raise InvalidInputError(f"a share of {share:g}: give one above 0 and below 1")
    before = float(roles.ratio(roles.host, size))

    def gain(ratio: float) -> float:
        return float(fixed(share, ratio) / fixed(share, before))

    longer = float(roles.single(roles.host, size * math.sqrt(COMPUTE)) + roles.launch)
    larger = longer / float(roles.single(roles.cpu, size))
    found = [
        Priority(
            "scale the problem",
            float(scaled(share, larger) / fixed(share, before)),
            f"{COMPUTE:g} times the points, so that a GPU computes as long as the CPU did",
            1,
        ),
        Priority(
            "larger messages",
            gain(_merged(roles, size)),
            f"{LARGER} messages of {size:g} B become one of {LARGER * size:g} B",
            2,
        ),
        _batch(roles, size, gain),
        Priority(
            "less launch and synchronization",
            gain(float(roles.ratio(roles.host, size, min(roles.launch, LESS_LAUNCH)))),
            f"from {roles.launch * 1e6:.3g} us to {min(roles.launch, LESS_LAUNCH) * 1e6:.3g} us",
            4,
        ),
        _initiator(roles, size, share),
    ]
    return sorted(found, key=lambda one: (one.gain is None, -(one.gain or 0.0), one.paper))


def _merged(roles: Roles, size: float) -> float:
    """Return the ratio where messages are LARGER times as long, for the same bytes."""
    one = float(roles.single(roles.host, LARGER * size)) + roles.launch
    return one / LARGER / float(roles.single(roles.cpu, size))


def _batch(roles: Roles, size: float, gain: Callable[[float], float]) -> Priority:
    """Return the gain where the host's messages follow one another without waits between."""
    what, time = "batch messages", pipelined(roles.machine.ways[roles.host], size)
    if time is None:
        how = f"not known: way {roles.host} has no curve of pipelined messages"
        return Priority(what, None, how, 3)
    how = f"many messages of {size:g} B in a row, launched and waited for once"
    return Priority(what, gain(float(time / roles.single(roles.cpu, size))), how, 3)


def _initiator(roles: Roles, size: float, share: float) -> Priority:
    if not roles.device:
        return Priority("who initiates", None, "not known: no way that a device initiates", 5)
    host, device = (float(roles.ratio(way, size)) for way in (roles.host, roles.device))
    better, worse = ("host", "device") if host <= device else ("device", "host")
    gain = float(fixed(share, min(host, device)) / fixed(share, max(host, device)))
    return Priority("who initiates", gain, f"the {better} instead of the {worse}", 5)
