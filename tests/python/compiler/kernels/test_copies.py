"""Copies that become changes of storage: programs stay what they were, and need fewer sweeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grid_programs import CASES, assert_same, case, copies, plainly
from random_programs import WriterOfCopies, random_arguments, random_program

import cpufree
from cpufree.compiler import ir
from cpufree.compiler.front.lower import lower
from cpufree.compiler.grid import grid_passes, returned_fields
from cpufree.compiler.interpret import interpret
from cpufree.compiler.passes import add_temporaries
from cpufree.compiler.passes.copies import swap_copies
from cpufree.errors import ProgramError


@cpufree.program
def smooth(u: Any, n: int) -> None:
    for _ in range(n):
        u[1:-1] = 0.5 * (u[2:] + u[:-2])


@cpufree.program
def seen(u: Any, n: int) -> Any:
    for _ in range(n):
        new = 0.5 * (u + np.roll(u, 1, 0))
        u[...] = new
    return new


@cpufree.program
def twice(u: Any, v: Any, n: int) -> None:
    for _ in range(n):
        new = 0.5 * (u + np.roll(u, 1, 0))
        u[...] = new
        v += new


@cpufree.program
def overtakes(u: Any, v: Any, n: int) -> None:
    for _ in range(n):
        v[1:-1] += u[2:] - u[:-2]
        u[...] = u * 1.5


def _interpreted(program: Any, arguments: tuple[Any, ...], change: Callable[..., Any]) -> Any:
    """Run a changed program in NumPy; its arguments are written."""
    bound = program.signature.bind(*arguments).arguments
    lowered = lower(program.source, bound)
    made = change(lowered.program, returned_fields(lowered.result))
    arrays = {k: v for k, v in bound.items() if isinstance(v, np.ndarray)}
    interpret(made, arrays, lowered)
    return made


def _count(program: ir.Program, kind: type) -> int:
    return sum(isinstance(s, kind) for s in ir.walk(program.body))


@pytest.mark.parametrize("name", CASES)
def test_programs_stay_what_they_were(name: str) -> None:
    program, arguments = case(name, 14)
    plain, ours = copies(arguments), copies(arguments)
    plainly(program)(*plain)
    _interpreted(program, ours, grid_passes)
    assert_same(name, plain, ours)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_programs_stay_what_they_were(seed: int, tmp_path: Path) -> None:
    done = swaps = 0
    for one in range(1000 * seed, 1000 * seed + 40):
        program, arguments = random_program(one, tmp_path), random_arguments(one)
        plain, ours = copies(arguments), copies(arguments)
        try:
            program.lower(*arguments)
        except ProgramError:
            continue
        plainly(program)(*plain)
        made = _interpreted(program, ours, grid_passes)
        swaps += sum(isinstance(s, ir.Permute) and s.values for s in ir.walk(made.body))
        assert_same(f"seed {one}", plain, ours)
        done += 1
    assert done > 25 and swaps > 5


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_copies_of_parts_stay_what_they_were(seed: int, tmp_path: Path) -> None:
    done = swaps = 0
    for one in range(1000 * seed, 1000 * seed + 60):
        program = random_program(one, tmp_path, WriterOfCopies)
        arguments = random_arguments(one)
        plain, ours = copies(arguments), copies(arguments)
        try:
            program.lower(*arguments)
        except ProgramError:
            continue
        plainly(program)(*plain)
        made = _interpreted(program, ours, grid_passes)
        swaps += sum(isinstance(s, ir.Permute) and s.values for s in ir.walk(made.body))
        assert_same(f"seed {one}", plain, ours)
        done += 1
    assert done > 35 and swaps > 5


@pytest.mark.parametrize(
    ("name", "groups"),
    [("gray_scott", 1), ("life", 1), ("points_27", 1), ("upwind_in_place", 2), ("heat_3d", 2)],
)
def test_updates_in_place_are_one_sweep(name: str, groups: int) -> None:
    program, arguments = case(name, 20)
    if name == "points_27":  # else most points are at the edges
        arguments = (np.zeros((20, 20, 20), np.float32), *arguments[1:])
    made = grid_passes(program.lower(*arguments), ())
    assert _count(made, ir.Group) == groups


def test_what_is_beside_the_box_goes_along() -> None:
    for n in (1, 2, 3):
        u = np.random.default_rng(n).random(11)
        plain = u.copy()
        plainly(smooth)(plain, n)
        made = _interpreted(smooth, (u, n), grid_passes)
        assert any(isinstance(s, ir.Permute) and s.values for s in ir.walk(made.body))
        np.testing.assert_array_equal(u, plain)


@pytest.mark.parametrize(("program", "count"), [(seen, 1), (twice, 2)])
def test_an_array_that_is_read_later_is_copied(program: Any, count: int) -> None:
    arrays = tuple(np.random.default_rng(k).random(9) for k in range(count))
    plain = copies(arrays)
    plainly(program)(*plain, 3)
    made = _interpreted(
        program, (*arrays, 3), lambda p, kept: swap_copies(add_temporaries(p), kept)
    )
    assert _count(made, ir.Permute) == 0
    for mine, other in zip(arrays, plain, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_an_update_that_overtakes_its_readers_gets_an_array() -> None:
    u, v = (np.random.default_rng(k).random(12) for k in (1, 2))
    plain = copies((u, v))
    plainly(overtakes)(*plain, 3)
    made = _interpreted(overtakes, (u, v, 3), grid_passes)
    assert _count(made, ir.Group) == 1
    np.testing.assert_array_equal(u, plain[0])
    np.testing.assert_array_equal(v, plain[1])
