"""Names that stand for other things on one way than on another, and values at the time of use."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from any_program_values import Describer, first_difference
from joining_programs import CASES as JOINING
from ordered_programs import CASES as ORDERED

import cpufree
from cpufree.errors import ProgramError

CASES = [*JOINING, *ORDERED]


def left_by(call: Any, arguments: tuple[Any, ...]) -> Any:
    """Return what a call returns, and what it has made of its arguments, described."""
    known = {f"argument {k}": a for k, a in enumerate(arguments) if isinstance(a, np.ndarray)}
    result = call(*arguments)
    return Describer(known).value((result, arguments))


@pytest.mark.parametrize(
    ("program", "make"), CASES, ids=[f"{p.name}-{k}" for k, (p, _) in enumerate(CASES)]
)
def test_programs_are_pythons_or_refused(program: Any, make: Any) -> None:
    expected = left_by(program.function, make())
    if program.name == "tuple_of_arrays_that_swap" and make()[-1] > 3:
        with pytest.raises(ProgramError, match="is the array of another name on one way"):
            program.interpret(*make())
        return
    found = left_by(program.interpret, make())
    assert first_difference("result", expected, found, rounded=False) is None


@cpufree.program
def state_in_text(u):
    state = "run"
    while state == "run":
        u += 1.0
        if np.max(u) > 3.0:
            state = "stop"


@cpufree.program
def previous_while(u):
    prev = None
    while np.max(u) < 3.0:
        if prev is not None:
            u += prev
        u += 1.0
        prev = 0.5 * u


@cpufree.program
def bool_or_array(u):
    seen = False
    if u[0] > 0.0:
        seen = 1.0 * u
    return seen


@cpufree.program
def whole_or_float_while(k, tol):
    s = 2
    while np.max(k) > tol:
        k *= s
        s = 0.5 * np.max(k)


@cpufree.program
def counted_in_columns(f, u, n):
    for t in range(n):
        u += f[t] * f[:4, t % 4]


@pytest.mark.parametrize(
    ("program", "arguments", "words"),
    [
        (state_in_text, (np.zeros(3),), "state is 'run' .* and 'stop' on another"),
        (previous_while, (np.zeros(3),), "prev is None before the loop and an array"),
        (bool_or_array, (np.zeros(3),), r"seen is (False|an array).* and .* on another"),
        (whole_or_float_while, (np.ones(3, np.int32), 0), "an int of Python or float64"),
    ],
)
def test_a_value_that_depends_on_the_way_is_refused_where_it_is_used(
    program: Any, arguments: Any, words: str
) -> None:
    with pytest.raises(ProgramError, match=words):
        program.lower(*arguments)


def test_a_loop_is_refused_for_the_same_reason_whatever_its_turns_are() -> None:
    first = []
    for turns in (5, 100):
        with pytest.raises(ProgramError) as caught:
            counted_in_columns.lower(np.ones((turns, 4)), np.ones(4), turns)
        first.append(str(caught.value).splitlines()[:4])
    assert first[0] == first[1]
    assert "this index moves with a value of the run" in first[0][0]


@cpufree.program
def many_points(v, n):
    for _ in range(n):
        for i in range(1, 61):
            for j in range(1, 61):
                v[i, j] = 0.25 * (v[i - 1, j] + v[i + 1, j] + v[i, j - 1] + v[i, j + 1]) + v[i, j]


def test_a_loop_of_too_many_statements_is_not_written_out() -> None:
    with pytest.raises(ProgramError) as caught:
        many_points.lower(np.zeros((62, 62)), 3)
    assert re.search("this loop has 360 statements, for which a compiler", str(caught.value))
