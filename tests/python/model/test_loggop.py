"""LogGOP: equations 1 to 4, growth in pieces, and what is no parameter."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cpufree.errors import InvalidInputError
from cpufree.machine.communication import Curve
from cpufree.model.loggop import PARTS, LogGOP, Verb, linear

# Distinct powers of ten: the digits of a time say how often each parameter occurs.
DIGITS = LogGOP(1.0, 5.0, 5.0, linear(100.0), 1000.0, linear(1e4), 1e5)


@pytest.mark.parametrize(
    ("verb", "payload", "expected"),
    [
        ("get", "printed", 2 * (1 + 100 + 1e4 + 1e5) + 2 * 10 + 4 * 1e3),  # equation 1, 3
        ("put", "printed", 1e5 + 100 + 2 * (1 + 1e4) + 2 * 10 + 4 * 1e3),  # equation 2, 4
        ("get", "once", 2 * (1 + 1e5) + 1e4 + 2 * 10 + 4 * 1e3),
        ("put", "once", 1e5 + 2 + 1e4 + 2 * 10 + 4 * 1e3),
        ("message", "once", 1 + 10 + 1e4 + 1e5),
        ("message", "twice", 1 + 10 + 2e4 + 1e5),
    ],
)
def test_time_is_that_of_the_equations(verb: Verb, payload: str, expected: float) -> None:
    assert float(DIGITS.time(verb, 1, payload)) == pytest.approx(expected)  # type: ignore[arg-type]


def test_the_longer_one_of_overhead_and_gap_hides_the_other() -> None:
    loggop = LogGOP(1.0, 0.0, 0.0, linear(3.0), 0.0, Curve("pieces", (0.0, 0.0, 9.0), (10.0,)))
    parts = loggop.parts("message", [8.0, 20.0], "once")
    np.testing.assert_allclose((parts["O"], parts["G"]), ((24.0, 0.0), (0.0, 90.0)))


def test_parts_add_up_to_the_time() -> None:
    parts = DIGITS.parts("get", [1.0, 8.0])
    assert tuple(parts) == PARTS
    np.testing.assert_allclose(sum(parts.values()), DIGITS.time("get", [1.0, 8.0]))


def test_growth_follows_its_pieces() -> None:
    growth = Curve("pieces", (0.0, 1.0, 0.0, 2.0), (10.0, 20.0))
    np.testing.assert_allclose(growth([0.0, 5.0, 15.0, 25.0]), [0.0, 5.0, 10.0, 20.0])


@pytest.mark.parametrize("name", ["L", "o_send", "o_recv", "g", "S"])
@pytest.mark.parametrize("value", [-1e-9, math.nan, math.inf])
def test_a_time_that_is_none_is_refused(name: str, value: float) -> None:
    with pytest.raises(InvalidInputError, match=f"{name} is "):
        LogGOP(**{"L": 1.0, "o_send": 1.0, "o_recv": 1.0, name: value})
