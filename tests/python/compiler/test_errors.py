"""What is outside the language is refused with file, line, a caret and what to write instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cpufree
from cpufree.errors import InvalidInputError, ProgramError

U = np.ones((6, 6))


@cpufree.program
def sweep(a, n):
    for i in range(1, n):
        a[i, 1:-1] += a[i - 1, 1:-1]
        a[1:-1, i] += a[1:-1, i - 1]


@cpufree.program
def sweep_of_columns(p, u, n):
    for j in range(1, n):
        p[j] = 0.5 * p[j - 1] + u[j]
        p[1:-1, j] = 0.5 * p[1:-1, j - 1] + u[1:-1, j]


@cpufree.program
def along_both_axes(a):
    a += 1.0
    return np.sum(a, axis=0), np.sum(a, axis=1)


@cpufree.program
def transposed(a, b):
    a[...] = b.T


@cpufree.program
def printing(a):
    print(a)


@cpufree.program
def unequal(a):
    a[1:] = a[:-2]


@cpufree.program
def index_array(a, i):
    return a[i]


@cpufree.program
def far_row(a):
    a[1:] = a[0] + a[1:, :1]


@cpufree.program
def random_numbers(a):
    a += np.random.rand()


@cpufree.program
def truth(a):
    if a > 1:
        a += 1


@cpufree.program
def whole_in_place(a):
    a += 0.5


@cpufree.program
def unbound(a, n):
    while np.max(a) < n:
        last = a + 1
        a += 1
    return last


@cpufree.program
def two_types(a, n):
    error = 1.0
    while np.max(a) < n:
        a[...] = a * error
        error = np.max(a) / np.float64(3)


@cpufree.program
def aliases(a, b, n):
    old = a
    for _ in range(n):
        a, b = b, a
    return old


@cpufree.program
def kept(a, n):
    old = a
    for _ in range(n):
        a = a + old
    return a, old


@cpufree.program
def negative_step(a):
    a[...] = a[::-1]


@cpufree.program
def row_of_column(a, b):
    b[...] = 1.0
    a[0, :] = b[:, 0]


@cpufree.program
def misspelt(a):
    a[1:] = aa[:-1]  # noqa: F821


@cpufree.program
def joined(a):
    return np.vstack([a, a])


@cpufree.program
def running_sum(a):
    a[0, :] = np.cumsum(a)[:6]


@cpufree.program
def flattened(a):
    return a.ravel()


@cpufree.program
def by_name(a):
    fields = {"a": a}
    a[...] = fields["a"]


JOINED = "np.vstack([a, a])"
CASES: list[tuple[Any, tuple[Any, ...], str, str, str]] = [
    (sweep, (U, 200), "moves with a value of the run", "all rows in one statement", "i"),
    (
        sweep_of_columns,
        (U, U.copy(), 99),
        "moves with a value of the run",
        "one statement",
        "j - 1",
    ),
    (along_both_axes, (U,), "fewer dimensions", "reduce to a number", "np.sum(a, axis=0)"),
    (transposed, (U, U.copy()), "attribute T", "as an operand of @ alone", "b.T"),
    (joined, (U,), "vstack is outside", "make the whole array before", JOINED),
    (running_sum, (U,), "cumsum cannot be used", "an axis that is not divided", "np.cumsum(a)"),
    (flattened, (U,), "method ravel is outside", "reductions take all axes", "a.ravel()"),
    (by_name, (U,), "a dictionary is outside", "docs/compiler.md", '{"a": a}'),
    (row_of_column, (U, U.copy()), "rows that stand for another axis", "constant", "a[0, :]"),
    (printing, (U,), "print is outside", "docs/compiler.md", "print(a)"),
    (unequal, (U,), "does not fit", "the same lengths", "a[1:]"),
    (index_array, (U, np.array([0, 1])), "something other than", "np.where", "i"),
    (far_row, (U,), "row 0 alone", "constant distance", "a[1:]"),
    (random_numbers, (U,), "outside the language", "list of functions", "np.random.rand()"),
    (truth, (U,), "truth of an array", "np.any", "a > 1"),
    (whole_in_place, (np.ones(3, np.int32),), "float64 in place into int32", "a[...]", "a += 0.5"),
    (unbound, (U, 3), "last may have no value", "give last a value", "last"),
    (two_types, (np.ones(4, np.float32), 200), "a float of Python", "np.float64", "a * error"),
    (negative_step, (U,), "negative step", "turned before the call", "a[::-1]"),
    (misspelt, (U,), "aa has no value", "assign to aa", "aa"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0].name)
def test_program_outside_the_language_is_refused_at_its_place(case: Any) -> None:
    program, arguments, problem, advice, marked = case
    with pytest.raises(ProgramError) as caught:
        program.lower(*arguments)
    message = str(caught.value)
    assert problem in message and advice in message, message
    assert __file__ in message and f":{caught.value.line}, in {program.name}" in message
    head, text, carets, *_ = message.splitlines()
    del head
    begin, end = carets.index("^"), carets.rindex("^") + 1
    assert text[begin:end] == marked, message
    with open(__file__) as file:
        assert file.readlines()[caught.value.line - 1].strip() == text.strip()


def test_names_that_would_share_storage_are_refused() -> None:
    with pytest.raises(ProgramError, match="b is the array of another name"):
        aliases.lower(U.copy(), U.copy(), 200)


def test_array_that_a_name_leaves_behind_is_kept() -> None:
    u = np.random.default_rng(1).random((5, 5))
    new, old = kept.interpret(u, 100)
    plain, _ = kept.function(u.copy(), 100)
    np.testing.assert_array_equal(new, plain)
    assert old is u


@pytest.mark.parametrize("bad", [np.ones(3, np.complex128), np.ma.array([1.0]), np.ones((0, 3))])
def test_arrays_that_cannot_be_used_are_refused_by_name(bad: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"\ba\b"):
        whole_in_place(bad)


def test_arrays_that_overlap_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="shares memory with"):
        transposed_copy(U, U[:])


def test_read_only_arrays_are_refused() -> None:
    a = np.ones(4)
    a.flags.writeable = False
    with pytest.raises(InvalidInputError, match="read-only"):
        whole_in_place(a)


@cpufree.program
def transposed_copy(a, b):
    a[...] = b


def test_wrong_number_of_arguments_is_refused_with_the_signature() -> None:
    with pytest.raises(InvalidInputError, match=r"far_row\(a\)"):
        far_row(U, U)
