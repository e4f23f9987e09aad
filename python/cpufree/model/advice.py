"""What to change first in an application on GPUs: five priorities, ranked.

Source: Groves et al. 2020, section VI, which has them in an order of its own. Each gain is
that of one change alone, for a problem that stays as large as it is unless the change is that it
grows. The application is that of `cpufree.model.project`, initiated by the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from cpufree.errors import InvalidInputError
from cpufree.model.project import COMPUTE, LESS_LAUNCH, Roles, fixed, scaled
from cpufree.model.use import pipelined

LARGER = 16
"""By how much messages grow, and how many fewer there are."""


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
