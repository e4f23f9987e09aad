"""The numbers of Groves et al. 2020, computed again from its tables."""

from __future__ import annotations

import numpy as np
import pytest

from cpufree.machine.communication import load_ways
from cpufree.model.advice import Roles, break_even, fixed, means, scaled
from cpufree.model.use import single

ROLES = {"get": ("cpu-get", "host-get", "device-get"), "put": ("cpu-put", "host-put", "device-put")}


def roles(verb: str = "get") -> Roles:
    """Return the ways of Summit for puts or gets."""
    return Roles(load_ways("summit-2020"), *ROLES[verb])


@pytest.mark.parametrize(
    ("way", "nanoseconds"),
    [
        ("host-put", (1998, 2236, 3913)),
        ("host-get", (2070, 2369, 4476)),
        ("device-put", (6337, 6500, 7647)),
        ("device-get", (11169, 11332, 12479)),
    ],
)
def test_totals_of_small_messages_are_those_of_the_equations(
    way: str, nanoseconds: tuple[int, ...]
) -> None:
    found = single(load_ways("summit-2020").ways[way], [8, 1024, 8192])
    assert found is not None
    np.testing.assert_allclose(found * 1e9, nanoseconds, atol=0.6)


def test_launch_cost_at_which_both_take_the_same() -> None:
    assert break_even(roles("get")) == pytest.approx(9.1e-6, abs=0.05e-6)
    assert break_even(roles("put")) == pytest.approx(4.3e-6, abs=0.05e-6)


def printed() -> dict[str, tuple[float, float, float]]:
    """Return what is printed, what the tables give, and half a unit of the last digit."""
    gets, puts = roles("get"), roles("put")
    sync = 200.0 * gets.machine.ways[gets.device].parameters["S"].value
    most, least = (sync / float(gets.single(gets.device, size)) for size in (8, 8192))

    def speed_up(way: str, size: float, launch: float = 5e-6) -> float:
        return float(fixed(0.25, gets.ratio(way, size, launch)))

    slow, fast = (speed_up(gets.host, 8, k) for k in (5e-6, 2e-6))
    small, large = (
        speed_up(gets.host, size) / speed_up(gets.device, size) for size in (8, 1 << 20)
    )
    return {
        "fixed problem, gets": (1.2, means(gets)[0], 0.05),
        "fixed problem, puts": (1.2, means(puts)[0], 0.05),
        "scaled problem, puts": (2.6, means(puts)[1], 0.05),
        "share of S in a get of 8 B [%]": (82, most, 0.5),
        "figure 10, 5 us": (0.8, slow, 0.05),
        "figure 10, 2 us": (1.3, fast, 0.05),
        # What the tables contradict:
        "scaled problem, gets": (2.6, means(gets)[1], 0.05),
        "share of S in a get of 8 KiB [%]": (72, least, 0.5),
        "figure 10, ratio": (1.49, fast / slow, 0.005),
        "figure 11, 8 B": (1.26, small, 0.005),
        "figure 11, 1 MiB": (1.09, 1.0 / large, 0.005),
    }


def test_numbers_of_the_paper_agree_but_for_those_that_its_tables_contradict() -> None:
    found = printed()
    agree = [name for name, (text, value, half) in found.items() if abs(value - text) <= half]
    assert agree == list(found)[:6]


def test_what_the_tables_give_where_they_contradict_the_text() -> None:
    found = {name: value for name, (_, value, _) in printed().items()}
    assert [round(value, 2) for value in list(found.values())[6:]] == [2.66, 73.24, 1.6, 1.51, 1.37]


def test_speed_ups_are_bounded_by_what_is_left_on_either_side() -> None:
    assert float(fixed(0.0, 7.0)) == pytest.approx(5.0)
    assert float(fixed(1.0, 4.0)) == pytest.approx(0.25)
    assert float(scaled(0.3, 1.0)) == pytest.approx(5.0)


def power_law(way: str) -> list[float]:
    """Return scale, exponent and gap of table II."""
    curve = load_ways("summit-2020").ways[way].curves["pipelined"].parameters
    return [curve[name].value for name in ("scale", "exponent", "G")]


def test_pipelined_100_bytes_in_consistent_units_and_as_printed() -> None:
    times = []
    for way in ("host-get", "cpu-get"):
        scale, exponent, gap = power_law(way)
        times.append([max(scale * 100.0 ** (k + exponent), 100.0 * gap) for k in (1, 0)])
    consistent, as_printed = (host / cpu for host, cpu in zip(*times, strict=True))
    assert float(fixed(0.25, consistent)) == pytest.approx(1.16, abs=0.005)
    assert float(fixed(0.25, as_printed)) == pytest.approx(2.5)


@pytest.mark.parametrize(
    ("way", "printed", "consistent"),
    [("host-get", 73, 3.7e3), ("device-get", 242, 274e3), ("cpu-get", 45, 1.2e3)],
)
def test_sizes_at_which_the_gap_takes_over(way: str, printed: float, consistent: float) -> None:
    scale, exponent, gap = power_law(way)
    assert (scale / gap) ** (1 / (1 - exponent)) == pytest.approx(printed, rel=0.02)
    assert (scale / gap) ** (-1 / exponent) == pytest.approx(consistent, rel=0.04)
