"""Sweeps over points between one another's: one thread does them, and the bits stay."""

from __future__ import annotations

from typing import Any

import grid_on_cpu
import numpy as np
import pytest
from grid_programs import as_tuple, assert_same, copies

import cpufree
from cpufree.compiler import ir
from cpufree.compiler.grid import grid_passes


@cpufree.program
def corrected(u: Any, e: Any, n: int) -> None:
    for _ in range(n):
        u[::2, ::2] += e
        u[1::2, ::2] += 0.5 * (e[1:] + e[:-1])
        u[::2, 1::2] += 0.5 * (e[:, 1:] + e[:, :-1])
        u[1::2, 1::2] += 0.25 * (e[1:, 1:] + e[:-1, 1:] + e[1:, :-1] + e[:-1, :-1])
        e[1:-1] = 0.25 * (u[1:-3:2, ::2] + u[3:-1:2, ::2])


@cpufree.program
def in_thirds(u: Any, e: Any, n: int) -> None:
    """Three rows, of which one is read where it was written, one written twice."""
    for _ in range(n):
        u[1::3] = 0.5 * u[1::3] + 1.0
        u[::3][:-1] *= 0.5
        u[2::3] += u[2::3] * 0.25
        u[1::3] += u[1::3] * 0.25
        e[:] = u[::2, ::2]


@cpufree.program
def red_and_black(u: Any, e: Any, n: int) -> None:
    """The second half reads what the first one writes: these do not share a thread."""
    for _ in range(n):
        u[1:-1:2] += 0.25 * (u[2::2] + u[:-2:2])
        u[2:-2:2] += 0.25 * (u[3:-1:2] + u[1:-3:2])


@cpufree.program
def of_two_arrays(u: Any, e: Any, n: int) -> Any:
    """An array of the program's own has even rows by one statement, odd ones by another."""
    for _ in range(n):
        new = np.zeros_like(u)
        new[::2] = 0.5 * u[::2]
        new[1::2] = u[1::2] + 1.0
        u[1:-1] = 0.5 * (new[2:] + new[:-2])
    return new


PROGRAMS = (corrected, in_thirds, red_and_black, of_two_arrays)


def _arguments() -> tuple[Any, ...]:
    numbers = np.random.default_rng(5)
    return numbers.standard_normal((25, 11)), numbers.standard_normal((13, 6)), 3


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
@pytest.mark.timeout(600)
def test_points_between_one_another_keep_their_bits(program: Any) -> None:
    for pes, blocks in ((1, 2), (3, 2)):
        plain, ours = copies(_arguments()), copies(_arguments())
        expected = as_tuple(program.function(*plain))
        found = as_tuple(grid_on_cpu.call(program, ours, pes, blocks))
        assert_same(program.name, plain, ours)
        assert_same(program.name, expected, found)


def _most_stages(program: Any) -> int:
    made = grid_passes(program.lower(*_arguments()), ())
    return max(len(s.stages) for s in ir.walk(made.body) if isinstance(s, ir.Group))


def test_what_lies_between_is_done_by_one_thread() -> None:
    assert _most_stages(corrected) == 4
    assert _most_stages(in_thirds) == 4
    assert _most_stages(red_and_black) == 1
