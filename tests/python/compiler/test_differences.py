"""What differs from Python and NumPy by intent: a test for each row of the table in the docs."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from paths import ROOT

import cpufree
from cpufree.errors import InvalidInputError, ProgramError

ROWS: dict[str, Callable[..., None]] = {}


def row(label: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Note that a test is of a row."""

    def note(test: Callable[..., None]) -> Callable[..., None]:
        ROWS[label] = test
        return test

    return note


def test_each_row_of_the_table_has_its_test() -> None:
    page = (ROOT / "docs/compiler.md").read_text()
    table = page.split("| what | here | in Python and NumPy |\n| --- | --- | --- |\n")[1]
    labels = re.findall(r"^\| (.*?) \|", table.split("\n\n")[0], flags=re.MULTILINE)
    assert labels == list(ROWS)


@cpufree.program
def exponential(u):
    u[...] = np.exp(u)


@row("last bits of functions")
def test_functions_of_the_c_library_are_near_numpys() -> None:
    u = np.linspace(-3.0, 3.0, 101)
    exponential(v := u.copy())
    np.testing.assert_array_max_ulp(v, np.exp(u), 2)


@cpufree.program
def total(u):
    return np.sum(u)


@row("last bits of sums")
def test_sums_are_as_accurate_as_pairwise_ones_and_the_same_in_each_run() -> None:
    u = np.random.default_rng(1).random((50, 40)) - 0.5
    found = [total.run((u,), engine="cpu_threads", pes=2) for _ in range(3)]
    exact = math.fsum(u.ravel())
    assert len(set(found)) == 1
    assert abs(found[0] - exact) <= 2.0**-52 * np.sum(np.abs(u))


@cpufree.program
def zeros(u, v):
    return np.maximum(u, v), np.max(u)


@row("zeros of both signs")
def test_maximum_takes_numpys_zero_and_max_either() -> None:
    u, v = np.array([0.0, -0.0, 0.0]), np.array([-0.0, 0.0, 0.0])
    largest, of_all = zeros.interpret(u, v)
    assert np.signbit(largest).tolist() == np.signbit(np.maximum(u, v)).tolist()
    assert of_all == 0.0


@cpufree.program
def whole(u):
    return u.astype(np.int64)


@row("floats out of range")
def test_floats_out_of_range_become_the_least_whole_number() -> None:
    u = np.array([np.nan, np.inf, -np.inf, 1e30, 2.5])
    least = -(2**63)
    for call in (whole, whole.interpret):
        assert call(u).tolist() == [least, least, least, least, 2]


@cpufree.program
def quotient(u):
    return 1.0 / u


@row("warnings")
def test_no_warnings_are_given() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert quotient.interpret(np.array([0.0, 2.0])).tolist() == [np.inf, 0.5]


@cpufree.program
def power_of_eight(u, n):
    k = 1
    for _ in range(n):
        k = k * 8
    u += 1.0
    return k


@row("large whole numbers")
def test_whole_numbers_of_python_end_at_64_bits() -> None:
    assert power_of_eight.interpret(np.zeros(2), 20) == 8**20
    with pytest.raises(ProgramError, match="64 bits"):
        power_of_eight.interpret(np.zeros(2), 21)


@cpufree.program
def grows_and_divides(u, n):
    u += 1.0
    k = n
    for _ in range(n):
        k = k - 1
    u += 1 / k


@row("errors of the run")
def test_an_error_of_the_run_leaves_the_arrays_as_they_were() -> None:
    for call in (grows_and_divides, grows_and_divides.interpret):
        u = np.zeros(3)
        with pytest.raises(ProgramError, match="zero") as caught:
            call(u, 2)
        assert caught.value.line > 0
        assert u.tolist() == [0.0, 0.0, 0.0]


@cpufree.program
def chosen(u):
    return np.where(u[0] > 0.0, 1.5, 2)


@row("`np.where` of numbers")
def test_where_of_numbers_is_a_number() -> None:
    found = chosen.interpret(np.ones(2))
    assert (type(found), found) == (np.float64, 1.5)


TABLE = np.arange(3.0)


@cpufree.program
def writes_table(u):
    table = TABLE
    table += u


@row("arrays from outside")
def test_arrays_from_outside_are_not_written() -> None:
    with pytest.raises(ProgramError, match="TABLE is no argument of the program"):
        writes_table.lower(np.ones(3))


@cpufree.program
def add(u, v):
    u += v


@row("shared memory")
def test_written_arguments_share_no_memory() -> None:
    u = np.arange(4.0)
    with pytest.raises(InvalidInputError, match="shares memory with v"):
        add.interpret(u[1:], u[:-1])
    own = np.lib.stride_tricks.as_strided(np.ones(5), (4,), (0,))
    with pytest.raises(InvalidInputError, match="several points share memory"):
        add.interpret(own, u)


@cpufree.program
def text_or_none(u):
    found = None
    if u[0] > 0.0:
        found = "positive"
    return found


@row("values of one kind")
def test_a_name_is_one_thing_or_is_not_used() -> None:
    with pytest.raises(ProgramError, match="found is None on one way and 'positive' on another"):
        text_or_none.lower(np.ones(2))


@cpufree.program
def with_coordinates(u, n):
    for _ in range(n):
        u += np.linspace(0.0, 1.0, 4)


@row("functions beforehand")
def test_functions_of_known_values_are_called_when_the_call_is_lowered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[Any] = []

    def counted(*args: Any) -> Any:
        calls.append(args)
        return np.arange(4.0)

    counted.__name__, counted.__module__ = "linspace", "numpy"
    monkeypatch.setattr(np, "linspace", counted)
    with_coordinates.interpret(u := np.zeros(4), 3)
    assert u.tolist() == [0.0, 3.0, 6.0, 9.0]
    assert len(calls) < 3
