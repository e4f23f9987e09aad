"""Calls that are alike are lowered once, and others are not taken for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from grid_programs import CASES, case

import cpufree
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.remembered import call_key, names_are_fixed

factors = [2.0]
factor = 3.0


@cpufree.program
def scaled(u: Any, by: Any) -> None:
    u *= by


@cpufree.program
def by_global(u: Any) -> None:
    u *= factor


@cpufree.program
def by_list(u: Any) -> None:
    u *= factors[0]


class Holder:
    """Of a number that may change."""

    value = 2.0


@cpufree.program
def by_class(u: Any) -> None:
    u *= Holder.value


@cpufree.program
def calls_by_list(u: Any) -> None:
    by_list(u)


def _lowered(program: Any, *args: Any) -> Any:
    return program._lowered(Arguments.of(program.signature, program.name, args, {}))


def test_a_call_is_lowered_once() -> None:
    u = np.ones((3, 4))
    assert _lowered(scaled, u, 2.0) is _lowered(scaled, u + 1, 2.0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((np.ones(3), 2.0), (np.ones(4), 2.0)),
        ((np.ones(3), 2.0), (np.ones(3, np.float32), 2.0)),
        ((np.ones(3), 2.0), (np.ones(3), 3.0)),
        ((np.ones(3), 0.0), (np.ones(3), -0.0)),
        ((np.ones(3), 1), (np.ones(3), 1.0)),
        ((np.ones(3), 1), (np.ones(3), True)),
        ((np.ones(3), 1.0), (np.ones(3), np.float32(1.0))),
        ((np.ones(3), (1, 2.0)), (np.ones(3), (1, 2))),
    ],
)
def test_other_calls_are_others(one: Any, other: Any) -> None:
    keys = [call_key({"u": u, "by": by}) for u, by in (one, other)]
    assert keys[0] is not None and keys[1] is not None and keys[0] != keys[1]


@pytest.mark.parametrize("value", [[1.0], np.array(1.0), {"a": 1}, (1, [2]), 1j])
def test_values_that_may_change_are_not_remembered(value: Any) -> None:
    assert call_key({"u": np.ones(3), "by": value}) is None


def test_globals_that_may_change_are_looked_at_anew() -> None:
    assert names_are_fixed(by_global.source)
    assert not names_are_fixed(by_class.source)
    assert not names_are_fixed(by_list.source) and not names_are_fixed(calls_by_list.source)
    u = np.ones(2)
    by_list.interpret(u)
    factors[0] = 5.0
    by_list.interpret(u)
    np.testing.assert_array_equal(u, [10.0, 10.0])


@pytest.mark.parametrize("name", CASES)
def test_programs_as_people_write_them_are_remembered(name: str) -> None:
    program, arguments = case(name, 20)
    assert _lowered(program, *arguments) is _lowered(program, *arguments)
