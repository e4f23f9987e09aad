"""Arguments, and names from outside, of programs of DaCe."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

dace = pytest.importorskip("dace", reason="DaCe is not installed: pip install 'cpufree[dace]'")

import cpufree.dace  # noqa: E402
from cpufree.errors import InvalidInputError, ProgramError  # noqa: E402

N = dace.symbol("N", dace.int64)
FACTOR = 2


class Settings:
    """Has numbers that programs use."""

    offset = 3.0


settings = Settings()


@dace.program
def scaled(A: dace.float64[N]):
    A[:] = A * FACTOR + settings.offset


@dace.program
def calls_scaled(A: dace.float64[N]):
    scaled(A)


@pytest.mark.parametrize("program", [scaled, calls_scaled])
def test_names_from_outside_have_the_values_that_they_have_when_called(
    program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = cpufree.dace.compile(program)

    def call() -> list[float]:
        A = np.ones(2)
        compiled(A)
        return list(A)

    assert call() == [5, 5]
    monkeypatch.setitem(scaled.f.__globals__, "FACTOR", 5)
    assert call() == [8, 8]
    monkeypatch.setattr(settings, "offset", 1.0)
    assert call() == [6, 6]
    monkeypatch.undo()
    assert call() == [5, 5]


def untyped(A, B, n):  # type: ignore[no-untyped-def]
    for t in range(n):
        B[:] = A * 2 + t


@dace.program
def of_a_constant(A: dace.float64[N], k: dace.compiletime):
    A[:] = A * k


def test_a_def_without_annotations_takes_types_from_its_arguments() -> None:
    program = cpufree.dace.compile(untyped)
    assert "untyped(A, B, n)" in repr(program)
    for kind, shape in ((np.float64, 3), (np.float32, (3, 4)), (np.float64, 5)):
        A, B = np.ones(shape, kind), np.zeros(shape, kind)
        program(A, B, 4)
        np.testing.assert_array_equal(B, np.full(shape, 5, kind))
    with pytest.raises(InvalidInputError, match="no graph before it is called"):
        program.graph  # noqa: B018


def test_an_argument_of_compile_time_is_a_constant_of_the_call() -> None:
    program = cpufree.dace.compile(of_a_constant)
    A = np.ones(3)
    program(A, 4.0)
    program(A, 5.0)
    assert list(A) == [20, 20, 20]
    assert "of_a_constant" in repr(program)


@dace.program
def numbers(A: dace.float64[N], n: dace.int64, m: dace.int32):
    A[:] = A + n + m


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones(3), 2.7, 1), "n is 2.7, and is declared as int64"),
        ((np.ones(3), 2.0, 1), "n is 2.0, and is declared as int64"),
        ((np.ones(3), np.float64(2.5), 1), "n is 2.5, and is declared as int64"),
        ((np.ones(3), 2, 2**40), "m is 1099511627776, and is declared as int32"),
        ((np.ones(3), [3], 1), "n is list, and no number"),
        ((np.ones(3), 3), "m has no value"),
        (([1.0, 2.0], 2, 1), "A is list, and no array"),
        ((3.0, 2, 1), "A is float, and no array"),
        ((np.ones((2, 2)), 2, 1), "A has 2 dimensions, and is declared with 1"),
        ((np.ones(3, np.float32), 2, 1), "A is float32 .*declared as float64"),
    ],
)
def test_arguments_of_other_types_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        cpufree.dace.compile(numbers)(*arguments)


@dace.program
def divided(A: dace.float64[N], a: dace.int64, b: dace.int64):
    A[:] = A + a // b + a % b


def test_whole_numbers_are_divided_as_pythons_are() -> None:
    program = cpufree.dace.compile(divided)
    A = np.zeros(3)
    program(A, -7, 2)
    assert list(A) == [-7 // 2 + -7 % 2] * 3
    with pytest.raises(ProgramError, match="division by zero") as caught:
        program(A, 7, 0)
    assert caught.value.line == divided.f.__code__.co_firstlineno + 2
    assert list(A) == [-3, -3, -3]
