"""What Python offers besides loops over slices: inner functions, generators, else of loops, stars.

Each form is a program that is compared with plain Python bit for bit, by the interpreter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from grid_programs import as_tuple, assert_same, copies
from python_forms import FORMS

import cpufree
from cpufree.errors import ProgramError

SCALE = 2.0


def _arguments() -> tuple[Any, ...]:
    numbers = np.random.default_rng(5)
    return numbers.standard_normal((7, 5)), numbers.integers(-99, 99, (7, 5)), 3


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_python_give_the_bits_of_plain_python(name: str) -> None:
    plain, ours = copies(_arguments()), copies(_arguments())
    expected = FORMS[name].function(*plain)
    assert_same(name, as_tuple(expected), as_tuple(FORMS[name].interpret(*ours)))
    assert_same(name, plain, ours)


@pytest.mark.parametrize(
    "name", ["inner_functions", "see_arrays_that_move", "else_after_a_break", "shifts", "joined"]
)
@pytest.mark.parametrize("pes", [1, 3])
def test_forms_of_python_are_compiled(name: str, pes: int) -> None:
    plain, ours = copies(_arguments()), copies(_arguments())
    expected = FORMS[name].function(*plain)
    found = FORMS[name].run(ours, pes=pes, engine="cpu_threads")
    assert_same(name, as_tuple(expected), as_tuple(found))
    assert_same(name, plain, ours)


@cpufree.program
def _methods(u, k, n):
    v = u.clip(-0.5, 0.5)
    v += u.round(1) + u.clip(min=0.0)
    u[u > 0.1] = u[u > 0.1].clip(0.2, 0.3)
    return v, k.clip(-5, 5), u[:, 0].repeat(2), u.round(2)


def test_methods_are_those_of_arrays() -> None:
    plain, ours = copies(_arguments()), copies(_arguments())
    expected = _methods.function(*plain)
    assert_same("methods", as_tuple(expected), as_tuple(_methods.interpret(*ours)))
    assert_same("methods", plain, ours)


@cpufree.program
def _inverses(u):
    return np.arcsinh(u), np.arccosh(1.0 + np.abs(u)), np.arctanh(0.4 * u)


def test_inverse_functions_are_near_numpys() -> None:
    u = np.linspace(-2.0, 2.0, 31)
    for found in (_inverses.interpret(u), _inverses.run((u,), engine="cpu_threads", pes=2)):
        for ours, plain in zip(found, _inverses.function(u), strict=True):
            np.testing.assert_array_max_ulp(ours, plain, 3)


# --- near NumPy's ---


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_variances_are_near_numpys(kind: Any) -> None:
    @cpufree.program
    def spreads(u):
        along = np.var(u, axis=1), np.std(u, axis=0, ddof=1), u.var(axis=1, keepdims=True)
        return np.std(u), u.std(ddof=2), *along

    u = (10 * np.random.default_rng(3).standard_normal((9, 6))).astype(kind)
    for ours, plain in zip(spreads.interpret(u), spreads.function(u), strict=True):
        assert ours.dtype == plain.dtype and np.shape(ours) == np.shape(plain)
        np.testing.assert_allclose(ours, plain, rtol=1e-5 if kind is np.float32 else 1e-13)


# --- refused ---


@cpufree.program
def _escaped(u):
    def factory():
        a = 2.0 * u
        return lambda b: a + b

    f = factory()
    u[...] = f(u)


@cpufree.program
def _decorated(u):
    @cpufree.program
    def f(a):
        return a

    u[...] = f(u)


@cpufree.program
def _unknown_bits(u):
    u += 1 << int(np.max(u))


@cpufree.program
def _wrong_count(u):
    _a, _b = u


@cpufree.program
def _effects(u):
    def grown():
        u[...] += 1.0
        return np.max(u)

    return any(grown() > x for x in (0.0, 100.0))


@cpufree.program
def _one_of_two_functions(u):
    def f(a):
        return a + 1.0

    if np.max(u) > 0.0:

        def f(a):
            return a - 1.0

    u[...] = f(u)


@cpufree.program
def _rows_by_list(u):
    rows = [0, -1]
    u[rows] = 0.0


@cpufree.program
def _columns_by_tuple(u):
    u[:, (0, 2)] *= 2.0


@cpufree.program
def _list_with_two_names(u):
    a = [u, 1.0]
    b = a
    a[0] = 2.0 * u
    u[...] = b[0]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (_escaped, "after the function that defines it has ended"),
        (_decorated, "a decorator of a function inside a program"),
        (_unknown_bits, "number of bits that is not known"),
        (_wrong_count, "2 names for 7 values"),
        (_effects, "what a generator evaluates writes"),
        (_one_of_two_functions, "f is one thing on one way and another one .a function."),
        (_rows_by_list, "indexed by several numbers at once"),
        (_columns_by_tuple, "indexed by several numbers at once"),
        (_list_with_two_names, "another name, a loop or the caller shows"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_is_refused_says_why(program: Any, words: str) -> None:
    arguments = (np.ones((7, 5)), 3)[: len(program.signature.parameters)]
    with pytest.raises(ProgramError, match=words):
        program.interpret(*arguments)


# --- names that only an inner function reads ---


def test_names_that_inner_functions_read_are_looked_up_at_each_call() -> None:
    @cpufree.program
    def scaled(u):
        def f(a):
            return SCALE * a

        def g(a):
            SCALE = 10.0
            return SCALE * a

        u[...] = f(u) + g(u)
        return SCALE

    names = globals()
    before = names["SCALE"]
    try:
        for value in (2.0, 5.0, 2.0):
            names["SCALE"] = value
            u = np.ones(3)
            assert scaled.interpret(u) == value
            assert u.tolist() == [value + 10.0] * 3
    finally:
        names["SCALE"] = before
