"""Numbers of Groves et al. 2020, computed again from its tables."""

from __future__ import annotations

from dataclasses import dataclass

from cpufree.machine.communication import Communication, load_published
from cpufree.model.project import LAUNCH, Roles, break_even, means, overlapped
from cpufree.model.use import single

SUMMIT = "summit-2020"
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
    def agrees(self) -> bool:
        """Whether both are the same, as far as digits are given."""
        return abs(self.computed - self.expected) <= self.tolerance


def roles(verb: str = "get", launch: float = LAUNCH) -> Roles:
    """Return the ways of Summit for puts or gets."""
    return Roles(load_published(SUMMIT), *ROLES[verb], launch=launch)


def check_paper() -> list[Finding]:
    """Return what the paper says, and what its tables give."""
    found = _totals(load_published(SUMMIT))
    gets, puts = roles("get"), roles("put")
    printed, follows = "printed", "follows from the tables"
    for name, one, expected in (("get", gets, 9.1), ("put", puts, 4.3)):
        what = f"launch cost at which host- and device-initiated {name} of 8 B take the same"
        found.append(Finding(what, "us", expected, break_even(one) * 1e6, 0.05, follows))
    fixed, scaled = means(gets)
    found.append(Finding("mean speed-up, fixed problem", "1", 1.2, fixed, 0.05, printed))
    found.append(Finding("the same to one digit more, gets", "1", 1.22, fixed, 0.005, follows))
    fixed_puts, scaled_puts = means(puts)
    found.append(Finding("the same, puts", "1", 1.19, fixed_puts, 0.005, follows))
    # Gets give 2.66 and puts 2.62, of which the print has one digit for both.
    mean = (scaled + scaled_puts) / 2
    found.append(Finding("mean speed-up, scaled problem", "1", 2.6, mean, 0.05, printed))
    time, share = overlapped(10.0, 0.6, 0.5)
    found.append(
        Finding("10 units, 60 % communication, half of it hidden", "1", 7, time, 0, printed)
    )
    found.append(Finding("communication in these", "%", 43, share * 100, 0.5, printed))
    return found


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
