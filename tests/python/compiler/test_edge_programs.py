"""Kernels for GPUs on the CPU engine: copies, rings, sizes and places that were once wrong."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import edge_programs as edge
import grid_on_cpu
import numpy as np
import pytest
from grid_programs import as_tuple, assert_same, case, copies, life, plainly

from cpufree.compiler import decorated, ir
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.front.lower import lower
from cpufree.compiler.grid import chosen_kernel, grid_groups, returned_fields
from cpufree.compiler.interpret import interpret
from cpufree.compiler.passes.tiles import NotOnChip
from cpufree.errors import OutOfMemoryError, ProgramError

THOROUGH = pytest.mark.thorough


def _random(*shapes: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(np.random.default_rng(k).random(shape) for k, shape in enumerate(shapes))


def _on_chip(program: Any, args: tuple[Any, ...], **how: Any) -> Any:
    """Compare a program on chip with plain Python; return its kernel."""
    plain, ours = copies(args), copies(args)
    expected = as_tuple(plainly(program)(*plain))
    given = {"pes": 1, "blocks": 4, **how}
    found, kernel = grid_on_cpu.call_on_chip(program, ours, **given)
    assert_same(program.name, plain, ours)
    assert_same(program.name, expected, as_tuple(found))
    return kernel


def _in_memory(program: Any, args: tuple[Any, ...], pes: int = 1) -> None:
    plain, ours = copies(args), copies(args)
    expected = as_tuple(plainly(program)(*plain))
    found = as_tuple(grid_on_cpu.call(program, ours, pes, 2))
    assert_same(program.name, plain, ours)
    assert_same(program.name, expected, found)


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        (edge.inner_copy, (*_random((11,)), 3)),
        (edge.two_writes, (*_random((11,)), 3)),
        (edge.other_edge, (*_random((11,)), 3)),
        (edge.sums_and_breaks, (*_random((11,), (11,)), 3)),
    ],
)
def test_a_copy_of_an_inner_box_leaves_the_edges(program: Any, arguments: Any) -> None:
    plain, ours = copies(arguments), copies(arguments)
    plainly(program)(*plain)
    bound = program.signature.bind(*ours).arguments
    lowered = lower(program.source, bound)
    made = grid_groups(lowered.program, returned_fields(lowered.result))
    arrays = {k: v for k, v in bound.items() if isinstance(v, np.ndarray)}
    interpret(made, arrays, lowered)
    assert_same(program.name, plain, ours)


def _ring(program: Any, *shape: int, steps: int = 13) -> tuple[Any, tuple[Any, ...]]:
    (u,) = _random(shape)
    return program, ((u < 0.5).astype(np.int32) if program is life else u, steps)


RINGS = [
    _ring(life, 5, 6),
    _ring(life, 3, 3),
    _ring(edge.ring_of_rows, 5, 6),
    _ring(edge.ring_of_columns, 6, 7),
]


@pytest.mark.parametrize(("program", "arguments"), RINGS)
def test_short_rings_are_not_gone_around_twice(program: Any, arguments: Any) -> None:
    groups = grid_groups(program.lower(*arguments), ())
    plan = chosen_kernel(groups, 1, (), 132).text.on_chip
    if plan is not None and plan.rounds is not None:
        for f in groups.fields:
            for axis in (0, 1):
                if plan.rounds.ring[axis]:
                    assert plan.turns * plan.rounds.reach[axis] <= f.shape[axis]
    with pytest.raises(NotOnChip, match="twice"):
        grid_on_cpu.call_on_chip(program, copies(arguments), 1, 4, turns=8)


@pytest.mark.parametrize(("program", "arguments"), RINGS[1:])
def test_short_rings_in_rounds_are_right(program: Any, arguments: Any) -> None:
    _on_chip(program, arguments, turns=3)
    _on_chip(program, arguments, turns=3, tile=(3, 3))


@pytest.mark.parametrize(
    ("program", "arguments", "turns"),
    [
        (edge.swapped, (*_random((17, 15), (17, 15)), 8), 3),
        (edge.three_places, (*_random(*[(17, 15)] * 3), 11), 2),
        (edge.three_in_turn, (*_random(*[(17, 15)] * 3), 8), 3),
        *(
            pytest.param(program, (*_random(*[(17, 15)] * fields), steps), turns, marks=THOROUGH)
            for program, fields, steps, turns in (
                *((edge.swapped, 2, 8, turns) for turns in (1, 2)),
                (edge.three_places, 3, 11, 1),
                *((edge.three_in_turn, 3, 8, turns) for turns in (1, 2)),
            )
        ),
    ],
)
def test_places_that_change_in_rounds_from_memory(program: Any, arguments: Any, turns: int) -> None:
    _on_chip(program, arguments, turns=turns, tile=(5, 5))
    _on_chip(program, arguments, turns=turns)


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        (edge.spread, (*_random((6, 9), (9,)), 7)),
        (edge.spread_rows, (*_random((9, 6), (9,)), 7)),
    ],
)
def test_factors_along_a_ring_have_no_rounds(program: Any, arguments: Any) -> None:
    _on_chip(program, arguments, turns=0)
    with pytest.raises(NotOnChip, match="no rounds"):
        grid_on_cpu.call_on_chip(program, copies(arguments), 1, 4, turns=3)


@pytest.mark.parametrize(
    ("program", "shapes"),
    [(edge.longer_rows, ((14, 5), (10, 5))), (edge.longer_columns, ((5, 14), (5, 10)))],
)
def test_single_rows_of_longer_fields_are_no_neighbours(program: Any, shapes: Any) -> None:
    _on_chip(program, (*_random(*shapes), 3), turns=0)
    _in_memory(program, (*_random(*shapes), 3))
    _in_memory(program, (*_random(*shapes), 3), pes=2)


@pytest.mark.parametrize(
    ("program", "shapes", "tile"),
    [
        (edge.shifted_rows, ((12, 5), (10, 5)), (11, 8)),
        (edge.shifted_columns, ((5, 12), (5, 10)), (8, 11)),
    ],
)
def test_tiles_beyond_the_end_of_a_shorter_field(program: Any, shapes: Any, tile: Any) -> None:
    _on_chip(program, (*_random(*shapes), 3), turns=1, tile=tile)


def test_points_of_several_stages_are_those_of_the_last_that_has_them() -> None:
    arguments = (*_random(*[(17, 15)] * 3), 3)
    _in_memory(edge.layers, arguments)
    _in_memory(edge.layers, arguments, pes=2)
    _on_chip(edge.layers, arguments, turns=0)
    _on_chip(edge.layers, arguments, turns=2, tile=(6, 7))


def test_a_shorter_array_that_is_rolled_is_divided_along_the_other_axis() -> None:
    arguments = (*_random((12, 5), (10, 5)), 3)
    assert [f.axis for f in edge.rolled_into_longer.lower(*arguments).fields[:2]] == [1, 1]
    _in_memory(edge.rolled_into_longer, arguments, pes=2)


def test_rolled_columns_that_begin_at_a_later_one_are_found() -> None:
    _in_memory(edge.rolled_columns_beside, (*_random((5, 12), (5, 10)), 3))


def test_a_shorter_array_that_is_rolled_along_the_only_axis_is_refused() -> None:
    with pytest.raises(ProgramError, match="shorter array that is rolled"):
        edge.rolled_into_longer_line.lower(*_random((12,), (10,)), 3)


def test_four_dimensions_lie_in_memory() -> None:
    arguments = (*_random((5, 6, 7, 8)), 3)
    groups = grid_groups(edge.four_dimensions.lower(*arguments), ())
    assert "three dimensions" in chosen_kernel(groups, 1, (), 132).why
    assert "three dimensions" in str(edge.four_dimensions.explain(*arguments))
    _in_memory(edge.four_dimensions, arguments)


def test_edges_of_the_last_axis_stay_on_chip() -> None:
    _on_chip(edge.last_axis_edges, (*_random((6, 5, 7)), 3), turns=0)


def test_errors_of_scalars_end_rounds_from_memory_at_once() -> None:
    u, v = _random((9, 5), (9, 5))
    with pytest.raises(ProgramError, match="by zero"):  # not a wait that was given up
        how = {"turns": 1, "tile": (4, 8)}
        grid_on_cpu.call_on_chip(edge.may_divide_by_zero, (u, v, 8, 3), 2, 2, **how)
    _on_chip(edge.may_divide_by_zero, (u, v, 5, 9), pes=2, turns=2, tile=(4, 8))


def test_programs_that_find_no_memory_are_swept_without_buffers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []

    def take(kernel: Any, devices: Any, kept: Any, traced: bool) -> Any:
        made.append(kernel)
        if len(made) == 1:
            raise OutOfMemoryError("too little")
        return kernel

    monkeypatch.setattr(decorated, "gpu_runner", take)
    monkeypatch.setattr(decorated, "multiprocessors_of", lambda devices: 132)
    monkeypatch.setattr(decorated, "tile_memory_of", lambda devices: 1 << 17)
    program, arguments = case("life", 40)
    given = Arguments.of(program.signature, program.name, arguments, {})
    where = SimpleNamespace(own_devices=[0])
    assert program._gpu_runner(program._lowered(given), where, False) is made[1]
    program._gpu_runs.clear()
    assert made[0].text.on_chip is not None and made[1].text.on_chip is None
    assert made[1].layout.size < made[0].layout.size


def test_every_block_of_rounds_from_memory_has_a_tile() -> None:
    program, arguments = case("jacobi_2d", 41)
    groups = grid_groups(program.lower(*arguments), ())
    for pes in (1, 2, 3):
        kernel = grid_on_cpu.round_kernel(groups, pes, (), 132, tile=(6, 7), turns=2)
        slabs, plan = kernel.layout.slabs, kernel.text.on_chip
        least = min(slabs.bounds(pe)[1] - slabs.bounds(pe)[0] for pe in range(pes))
        assert plan.blocks <= -(-least // 6) * -(-plan.width // 7)
    assert isinstance(groups, ir.Program)
