"""Arrays of a few planes as an array for each: what is computed stays, and needs fewer sweeps."""

from __future__ import annotations

from typing import Any

import field_programs as programs
import numpy as np
import pytest
from grid_programs import copies, plainly

import cpufree
from cpufree.compiler import ir
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.grid import grid_groups, returned_fields
from cpufree.compiler.interpret import interpret


def _groups(program: Any, arguments: tuple[Any, ...]) -> Any:
    given = Arguments.of(program.signature, program.name, arguments, {})
    lowered = program._lowered(given)
    made = grid_groups(lowered.program, returned_fields(lowered.result))
    return given, lowered, made


def _sweeps(made: ir.Program) -> int:
    return sum(isinstance(s, ir.Group) for s in ir.walk(made.body))


@pytest.mark.parametrize(
    ("name", "sweeps"), [("lattice_boltzmann", 2), ("lattice_boltzmann_pulled", 1), ("planes", 6)]
)
def test_planes_are_computed_together_and_stay_what_they_were(name: str, sweeps: int) -> None:
    program, arguments = programs.CASES[name]
    plain, ours = copies(arguments), copies(arguments)
    plainly(program)(*plain)
    given, lowered, made = _groups(program, ours)
    assert any(f.plane for f in made.fields) and _sweeps(made) <= sweeps
    interpret(made, given.in_planes(made.fields).arrays, lowered)
    for one, other in zip(plain, ours, strict=True):
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)


@cpufree.program
def returns_planes(g: Any, u: Any, n: int) -> Any:
    for _ in range(n):
        u += g[0] - g[1]
        g[1] = u
    return g


@cpufree.program
def plane_of_the_turn(g: Any, u: Any, n: int) -> None:
    for t in range(n):
        u += g[0]
        g[t] = u


@cpufree.program
def no_plane_alone(g: Any, u: Any, n: int) -> None:
    for _ in range(n):
        g += u
        u *= 0.5


@pytest.mark.parametrize("program", [returns_planes, plane_of_the_turn, no_plane_alone])
def test_array_that_is_needed_as_a_whole_stays_one(program: Any) -> None:
    _, _, made = _groups(program, (np.ones((3, 8, 7)), np.ones((8, 7)), 2))
    assert not any(f.plane for f in made.fields)
