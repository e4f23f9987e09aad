"""Arrays that are computed where they are read: same bits, and stored where something needs it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from interpreted import checked
from multigrid_programs import CASES, v_cycles

import cpufree
from cpufree.compiler import ir
from cpufree.compiler.grid import grid_groups, grid_passes


@cpufree.program
def averaged(u: Any, v: Any, n: int) -> None:
    for _ in range(n):
        r = np.zeros_like(u)
        r[1:-1] = u[:-2] - 2 * u[1:-1] + u[2:]
        v[2:-2:2] += 0.25 * (r[1:-3:2] + r[3:-1:2]) + r[2:-2:2]
        u *= 0.5


@cpufree.program
def shifted(u: Any, v: Any, n: int) -> None:
    for _ in range(n):
        r = np.roll(u, 1, axis=1) * 3.0
        v[:-1] = r[1:]


@cpufree.program
def overwritten(u: Any, v: Any, n: int) -> None:
    """What r is computed from is written before r is read."""
    for _ in range(n):
        r = 2.0 * u
        u += 1.0
        v[:-1] = r[1:]


@cpufree.program
def overtaken(u: Any, v: Any, n: int) -> None:
    """The reader writes what r is computed from."""
    for _ in range(n):
        r = u - v
        u[:-1] = r[1:]


@cpufree.program
def seen_twice(u: Any, v: Any, n: int) -> Any:
    for _ in range(n):
        r = u - v
        v[:-1] = r[1:]
        largest = np.max(r)
    return largest


@cpufree.program
def in_two_parts(u: Any, v: Any, n: int) -> None:
    """Some of what is read of r is written by one statement, some by another."""
    for _ in range(n):
        r = 2.0 * u
        r[:4] = v[:4]
        v[:-1] = r[1:]


@cpufree.program
def by_a_number(u: Any, v: Any, n: int) -> Any:
    """The number that r is computed with has another value when r is read."""
    s = 1.0
    for _ in range(n):
        r = s * u
        s = np.max(u)
        v[:-1] = r[1:]
    return s


@cpufree.program
def in_wide_sums(u: Any, v: Any, n: int) -> None:
    """Values would be computed four times."""
    for _ in range(n):
        r = np.sin(u)
        v[2:-2] = r[:-4] + r[1:-3] + r[3:-1] + r[4:]


@cpufree.program
def kept(u: Any, v: Any, n: int) -> Any:
    for _ in range(n):
        r = u - v
        v[:-1] = r[1:]
    return r


STORED = [
    *(overwritten, overtaken, seen_twice, in_two_parts),
    *(by_a_number, in_wide_sums, kept),
]


def _checked(program: Any, arguments: tuple[Any, ...]) -> ir.Program:
    return checked(program, arguments, grid_groups)


def _arrays() -> tuple[Any, ...]:
    numbers = np.random.default_rng(3)
    return numbers.standard_normal((13, 6)), numbers.standard_normal((13, 6)), 3


def _stores(made: ir.Program, name: str) -> bool:
    return any(isinstance(s, ir.Assign) and s.field == name for s in ir.walk(made.body))


@pytest.mark.parametrize("program", [averaged, shifted], ids=lambda p: p.name)
def test_what_one_stage_reads_is_computed_there(program: Any) -> None:
    made = _checked(program, _arrays())
    assert all(f.role == "argument" or not _stores(made, f.name) for f in made.fields)


@pytest.mark.parametrize("program", STORED, ids=lambda p: p.name)
def test_what_cannot_be_computed_later_is_stored(program: Any) -> None:
    made = _checked(program, _arrays())
    assert any(f.role == "local" and _stores(made, f.name) for f in made.fields)


@pytest.mark.parametrize("name", CASES)
def test_programs_on_several_grids_keep_their_bits(name: str) -> None:
    _checked(*CASES[name])


def test_residuals_of_v_cycles_are_not_stored() -> None:
    u = np.zeros((65, 65))
    lowered = v_cycles.lower(u, u.copy(), 1.0, 4, 2)
    made = grid_passes(lowered, ())
    cycle = next(s for s in made.body if isinstance(s, ir.For))
    waits = [s for s in ir.walk(cycle.body) if isinstance(s, ir.Barrier)]
    assert len(waits) == 10  # of each grid: before, to the coarse one, from there and behind
    full = [f for f in made.fields if f.shape == (65, 65) and f.role == "local"]
    assert {f.name for f in full if _stores(made, f.name)} <= {"made_16", full[-1].name}
