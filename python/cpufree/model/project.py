"""What an application gains on GPUs, by what its messages cost (Groves et al. 2020, section VI).

An application spends a share f of its time in communication on the CPU, in messages of m bytes, and
computes 5 times faster on GPUs. c(m) is a message between CPUs, h(m) one that the host initiates
for the GPU, K launch and synchronization of a kernel around it, d(m) one from inside a kernel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cpufree.errors import InvalidInputError
from cpufree.machine.communication import Communication
from cpufree.model.use import pipelined, single, way_of

Array = NDArray[np.float64]
COMPUTE = 5.0
"""How much faster a GPU computes than the CPU of the paper: 10 TFLOPS to 2."""
LAUNCH = 5e-6
"""K: launch and synchronization of a kernel [s]."""
LESS_LAUNCH = 2e-6
SHARE = 0.25
"""f of figures 9 to 11."""
SHARES = tuple(k / 10 for k in range(1, 10))
SIZES = tuple(2**k for k in range(3, 25))
"""8 B to 16 MiB."""


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


def overlapped(total: float, share: float, hidden: float) -> tuple[float, float]:
    """Return time and share of communication after a part of the communication is hidden.

    >>> overlapped(10.0, 0.6, 0.5)
    (7.0, 0.42857142857142855)
    """
    left = total * share * (1.0 - hidden)
    time = total * (1.0 - share) + left
    return time, left / time


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

    def pipelined_ratio(self, way: str, size: ArrayLike, as_printed: bool = False) -> Array | None:
        """Return the same for messages in a row, of which K is no part; None: not known.

        Args:
            as_printed: compare overhead per byte with gap per message, as the paper's figures 9 and
                11 do. Only curves of the form power have both.
        """
        times = [self._pipelined(name, size, as_printed) for name in (way, self.cpu)]
        if times[0] is None or times[1] is None:
            return None
        return times[0] / times[1]

    def _pipelined(self, way: str, size: ArrayLike, as_printed: bool) -> Array | None:
        record = way_of(self.machine, way)
        if not as_printed:
            return pipelined(record, size)
        curve = record.curves.get("pipelined")
        if curve is None or curve.form != "power":
            return None
        m = np.asarray(size, dtype=np.float64)
        scale, exponent, gap = (curve.parameters[k].value for k in ("scale", "exponent", "G"))
        return np.maximum(scale * m**exponent, gap * m)


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
