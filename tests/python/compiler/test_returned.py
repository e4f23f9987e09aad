"""What a program returns, and what is given in the place of an array."""

from __future__ import annotations

import array
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cpufree
from cpufree.errors import InvalidInputError

TABLE = np.array([1.0, 2.0, 3.0])


@cpufree.program
def views(u, state):
    v = u[1:]
    g = TABLE
    return v, v, u[0:0:2], u[None, 3:], g, state.u, TABLE[1:], u


@pytest.mark.parametrize("way", ["interpret", "__call__", "function"])
def test_returned_views_are_of_the_arrays_that_python_returns(way: str) -> None:
    u, state = np.arange(4.0), SimpleNamespace(u=np.arange(3.0))
    v, again, empty, empty_row, g, of_state, part, whole = getattr(views, way)(u, state)
    assert v is again and v.base is u and whole is u
    assert empty.shape == (0,) and empty_row.shape == (1, 1)
    assert g is TABLE and of_state is state.u and part.base is TABLE


@cpufree.program
def makes_lists(u):
    return np.arange(3.0), list((1, 2)), u


def test_each_call_returns_new_arrays_and_lists() -> None:
    one, other = makes_lists.interpret(np.ones(3)), makes_lists.interpret(np.ones(3))
    assert one[0] is not other[0] and one[1] is not other[1]
    one[0][0], one[1][0] = 7.0, 7
    again = makes_lists.interpret(np.ones(3))
    assert again[0][0] == 0.0 and again[1] == [1, 2]


@cpufree.program
def write_inside(u):
    u[1:-1] = 2.0


@cpufree.program
def add(u, v):
    u += v


@cpufree.program
def add_inside(u, v):
    u[1:-1] += v[1:-1]


@pytest.mark.parametrize(
    ("program", "arguments", "message"),
    [
        (write_inside, ([1.0, 2.0, 3.0],), r"u is a list: (.|\n)*np.array\(u\)"),
        (write_inside, ((1.0, 2.0, 3.0),), r"u is a tuple: (.|\n)*np.array\(u\)"),
        (add, (np.ones(3), [1.0, 2.0, 3.0]), r"v is a list: (.|\n)*np.array\(v\)"),
        (add, ([1.0, 2.0, 3.0], np.ones(3)), r"u is a list (.|\n)*np.array\(u\)"),
        (add_inside, (np.ones(3), [1.0, 2.0, 3.0]), r"v is a list: (.|\n)*np.array\(v\)"),
        (add, (np.ones(3), memoryview(np.ones(3))), r"v is of type memoryview: pass np.asarray\(v"),
        (add, (np.ones(3), array.array("d", [1.0])), r"v is of type array: pass np.asarray\(v"),
        (add, (np.ones(3), iter([1.0])), r"v is an iterator, (.|\n)*tuple\(v\)"),
    ],
)
def test_what_is_no_array_is_refused_by_name(program: Any, arguments: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        program.interpret(*arguments)
