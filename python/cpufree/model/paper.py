"""Numbers of Groves et al. 2020, computed again from its tables."""

from __future__ import annotations

from dataclasses import dataclass

from cpufree.machine.communication import Communication, load_ways
from cpufree.model import project
from cpufree.model.project import LAUNCH, SHARE, Roles, break_even, means, overlapped
from cpufree.model.use import Array, single

SUMMIT = "summit-2020"
_COUNT = "no count of the equations' terms gives it"
DIFFERENT = {
    "mean speed-up, scaled problem, gets": "2.66 has 2.7 for its two digits; puts have 2.62",
    "share of S in a get of a device, least": _COUNT,
    "fig. 10: the second over the first": "it is that of messages of 2 to 3 kB",
    "fig. 11": _COUNT,
}
"""Statements of the text that its own tables contradict, and what is known of why."""
ROLES = {"get": ("cpu-get", "host-get", "device-get"), "put": ("cpu-put", "host-put", "device-put")}


@dataclass(frozen=True)
class Finding:
    """A number of the paper."""

    what: str
    unit: str
    expected: float
    computed: float
    tolerance: float
    """Half a unit of the last digit that is printed."""
    source: str
    """Whether it is printed, or follows from what is printed."""

    @property
    def known(self) -> str:
        """Why it does not come out of the tables, as far as that is known; "" where it should."""
        return next((why for name, why in DIFFERENT.items() if self.what.startswith(name)), "")

    @property
    def agrees(self) -> bool:
        """Whether both are the same, as far as digits are given."""
        return abs(self.computed - self.expected) <= self.tolerance


def roles(verb: str = "get", launch: float = LAUNCH) -> Roles:
    """Return the ways of Summit for puts or gets."""
    return Roles(load_ways(SUMMIT), *ROLES[verb], launch=launch)


def check_paper() -> list[Finding]:
    """Return what the paper says, and what its tables give."""
    found = _totals(load_ways(SUMMIT))
    gets, puts = roles("get"), roles("put")
    printed, follows = "printed", "follows from the tables"
    for name, one, expected in (("get", gets, 9.1), ("put", puts, 4.3)):
        what = f"launch cost at which host- and device-initiated {name} of 8 B take the same"
        found.append(Finding(what, "us", expected, break_even(one) * 1e6, 0.05, follows))
    for name, one in (("gets", gets), ("puts", puts)):
        fixed, scaled = means(one)
        found.append(
            Finding(f"mean speed-up, fixed problem, {name}", "1", 1.2, fixed, 0.05, printed)
        )
        found.append(
            Finding(f"mean speed-up, scaled problem, {name}", "1", 2.6, scaled, 0.05, printed)
        )
    found += _figures(gets)
    time, share = overlapped(10.0, 0.6, 0.5)
    found.append(
        Finding("10 units, 60 % communication, half of it hidden", "1", 7, time, 0, printed)
    )
    found.append(Finding("communication in these", "%", 43, share * 100, 0.5, printed))
    return found


def _figures(gets: Roles) -> list[Finding]:
    """Return what the text says of its figures, beside what the tables give."""
    sync = 2.0 * gets.machine.ways[gets.device].parameters["S"].value
    most, least = (100.0 * sync / gets.single(gets.device, size) for size in (8.0, 8192.0))
    slow, fast = (float(_speed_up(gets, gets.host, 8.0, k)) for k in (5e-6, 2e-6))
    small, large = (
        float(_speed_up(gets, gets.host, size) / _speed_up(gets, gets.device, size))
        for size in (8.0, 1048576.0)
    )
    figures = (
        ("share of S in a get of a device, 8 B", "%", 82, float(most), 0.5),
        ("share of S in a get of a device, least up to 8 KiB", "%", 72, float(least), 0.5),
        ("fig. 10: speed-up at 8 B, K = 5 us", "1", 0.8, slow, 0.05),
        ("fig. 10: speed-up at 8 B, K = 2 us", "1", 1.3, fast, 0.05),
        ("fig. 10: the second over the first", "1", 1.49, fast / slow, 0.005),
        ("fig. 11: gets of 8 B, host over device", "1", 1.26, small, 0.005),
        ("fig. 11: gets of 1 MiB, device over host", "1", 1.09, 1.0 / large, 0.005),
    )
    return [
        Finding(what, unit, expected, computed, tolerance, "printed")
        for what, unit, expected, computed, tolerance in figures
    ]


def _speed_up(gets: Roles, way: str, size: float, launch: float = LAUNCH) -> Array:
    return project.fixed(SHARE, gets.ratio(way, size, launch))


def _totals(summit: Communication) -> list[Finding]:
    totals = {"host-put": 1998, "host-get": 2070, "device-put": 6337, "device-get": 11169}
    found = []
    for way, expected in totals.items():
        time = single(summit.ways[way], 8.0)
        assert time is not None
        what = f"{way}, 8 B (equation {dict(zip(totals, (4, 3, 2, 1), strict=True))[way]})"
        found.append(
            Finding(what, "ns", expected, float(time) * 1e9, 0.5, "follows from the tables")
        )
    return found
