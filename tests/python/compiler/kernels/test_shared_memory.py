"""Memory that a written argument shares, with arrays that are no arguments or with itself."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import cpufree
from cpufree.compiler.arguments import overlaps_itself
from cpufree.errors import InvalidInputError

TABLE = np.array([1.0, 2.0, 3.0])


@cpufree.program
def add_global(u):
    u += TABLE


@cpufree.program
def add_of_object(u, state):
    u += state.u


@cpufree.program
def add_one(v):
    v += 1.0


def test_an_array_from_outside_that_shares_memory_with_a_written_one_is_refused() -> None:
    for u in (TABLE, TABLE[::-1]):
        with pytest.raises(
            InvalidInputError, match="writes into u, which shares memory with TABLE"
        ):
            add_global.interpret(u)
    state = SimpleNamespace(u=np.arange(3.0))
    with pytest.raises(InvalidInputError, match=r"shares memory with state\.u"):
        add_of_object(state.u, state)


@cpufree.program
def read_twice(u):
    return u + TABLE


@cpufree.program
def like_global(u):
    u += np.ones_like(TABLE)


def test_shared_memory_that_is_not_written_or_not_read_is_taken() -> None:
    np.testing.assert_array_equal(read_twice.interpret(TABLE), TABLE + TABLE)
    u = TABLE.copy()
    like_global.function.__globals__["TABLE"], kept = u, TABLE
    try:
        like_global.interpret(u)
    finally:
        like_global.function.__globals__["TABLE"] = kept
    np.testing.assert_array_equal(u, kept + 1.0)


def test_a_written_array_that_overlaps_itself_is_refused() -> None:
    wide = np.lib.stride_tricks.as_strided(np.zeros(8), (3, 4), (8, 8))
    row = np.lib.stride_tricks.as_strided(np.zeros(4), (3, 4), (0, 8))
    for u in (wide, row):
        with pytest.raises(InvalidInputError, match="writes into v, of which several points"):
            add_one.interpret(u)
    np.testing.assert_array_equal(read_twice.interpret(row[:, :3]), np.tile(TABLE, (3, 1)))


def test_arrays_that_do_not_overlap_themselves_are_told_from_others() -> None:
    base = np.zeros((4, 6, 2))
    strided = np.lib.stride_tricks.as_strided
    fine = [
        base,
        base.T,
        base[::-1, ::2],
        base[:1],
        base[:, :, None],
        strided(base, (2, 3), (24, 16)),
    ]
    assert not any(overlaps_itself(a) for a in fine)
    bad = [
        strided(base, (3, 3), (16, 16)),
        strided(base, (2,), (4,)),
        strided(base, (3, 2), (8, 16)),
    ]
    assert all(overlaps_itself(a) for a in bad)
