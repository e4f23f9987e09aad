"""Kernels whose values stay on chip: right on the CPU engine, as far as programs qualify."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import grid_on_cpu
import numpy as np
import nvrtc
import pytest
from grid_programs import CASES, as_tuple, assert_same, case, copies, plainly
from random_programs import WriterOfSweeps, random_arguments, random_program

import cpufree
from cpufree.compiler import ir
from cpufree.compiler.emit.blocks import THREADS, BlockPlan, choose_threads
from cpufree.compiler.emit.choice import sweep_options, tile_plan
from cpufree.compiler.emit.tiles import LARGE, STANDARD, inner_tiles, rows_of_tile
from cpufree.compiler.emit.work import GroupWork
from cpufree.compiler.grid import (
    chosen_kernel,
    grid_groups,
    returned_fields,
    round_kernel,
    tile_kernel,
)
from cpufree.compiler.layout import Slabs, distributed_rows
from cpufree.compiler.passes.rounds import rounds_of
from cpufree.compiler.passes.tiles import NotOnChip, add_exchanges, check_exchanges, ghosts_of
from cpufree.errors import EngineError, ProgramError

needs_nvrtc = pytest.mark.skipif(not nvrtc.find(), reason="NVRTC is not installed")
QUICK = ("jacobi_2d", "until_still")
REFUSED = ("batch_of_waves",)
ROUNDS = [
    pytest.param(n, marks=() if n in QUICK else pytest.mark.slow)
    for n in (
        *("jacobi_1d", "jacobi_2d", "heat_3d", "fdtd_2d", "acoustic_2", "acoustic_4"),
        *("shallow_water", "gray_scott", "life", "points_27", "red_black"),
    )
]
EACH = [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in CASES]


def _groups(name: str, size: int = 40) -> ir.Program:
    program, arguments = case(name, size)
    return grid_groups(program.lower(*arguments), ())


@pytest.mark.parametrize("name", EACH)
@pytest.mark.timeout(600)
def test_tiles_of_many_blocks_give_the_bits_of_plain_python(name: str) -> None:
    on_chip = 0
    for size, pes, blocks in ((13, 1, 6), (21, 2, 4), (37, 3, 6)):
        program, arguments = case(name, size)
        plain, ours = copies(arguments), copies(arguments)
        expected = as_tuple(plainly(program)(*plain))
        try:
            found, kernel = grid_on_cpu.call_on_chip(program, ours, pes, blocks)
        except NotOnChip:
            continue
        assert kernel.text.on_chip is not None
        on_chip += kernel.text.on_chip.blocks > 1
        assert_same(name, plain, ours)
        assert_same(name, expected, as_tuple(found))
    assert on_chip > 0


@pytest.mark.parametrize("name", ROUNDS)
@pytest.mark.timeout(600)
def test_rounds_of_turns_give_the_bits_of_plain_python(name: str) -> None:
    for size, pes, blocks, turns in ((23, 1, 6, 2), (37, 2, 4, 3), (40, 3, 6, 1)):
        program, arguments = case(name, size)
        plain, ours = copies(arguments), copies(arguments)
        expected = as_tuple(plainly(program)(*plain))
        found, kernel = grid_on_cpu.call_on_chip(program, ours, pes, blocks, turns)
        assert kernel.text.on_chip.turns == turns and kernel.text.on_chip.blocks > 1
        assert_same(name, plain, ours)
        assert_same(name, expected, as_tuple(found))


@pytest.mark.parametrize("name", [p for p in ROUNDS if "red_black" not in p.values])
@pytest.mark.timeout(600)
def test_rounds_from_memory_give_the_bits_of_plain_python(name: str) -> None:
    for size, pes, turns, tile in ((23, 1, 2, (6, 5)), (37, 2, 3, (7, 20)), (40, 3, 1, (50, 9))):
        program, arguments = case(name, size)
        plain, ours = copies(arguments), copies(arguments)
        expected = as_tuple(plainly(program)(*plain))
        found, kernel = grid_on_cpu.call_on_chip(program, ours, pes, 2, turns, tile)
        assert kernel.text.on_chip.tile == tile and kernel.layout.slabs.pes == pes
        assert_same(name, plain, ours)
        assert_same(name, expected, as_tuple(found))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.timeout(900)
def test_random_programs_in_tiles_give_the_bits_of_plain_python(tmp_path: Path) -> None:
    done = 0
    for seed in range(4000, 4040):
        program, arguments = random_program(seed, tmp_path), random_arguments(seed)
        plain, ours = copies(arguments), copies(arguments)
        try:
            found, _ = grid_on_cpu.call_on_chip(program, ours, 1 + seed % 3, 1 + seed % 7)
        except (ProgramError, NotOnChip):
            continue
        expected = as_tuple(plainly(program)(*plain))
        assert_same(f"seed {seed}", plain, ours)
        assert_same(f"seed {seed}", expected, as_tuple(found))
        done += 1
    assert done > 25


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", [0, 100])
def test_random_programs_in_rounds_give_the_bits_of_plain_python(
    first: int, tmp_path: Path
) -> None:
    done = 0
    for seed in range(first, first + 20):
        program = random_program(seed, tmp_path, WriterOfSweeps)
        arguments, turns, pes = random_arguments(seed), 1 + seed % 3, 1 + seed // 3 % 2
        for tile in (None, (5 + seed % 4, 4 + seed % 5)):
            plain, ours = copies(arguments), copies(arguments)
            try:
                found, _ = grid_on_cpu.call_on_chip(program, (*ours[:-1], 7), pes, 4, turns, tile)
            except (ProgramError, NotOnChip):
                continue
            expected = as_tuple(plainly(program)(*plain[:-1], 7))
            assert_same(f"seed {seed}, tile {tile}", plain, ours)
            assert_same(f"seed {seed}, tile {tile}", expected, as_tuple(found))
            done += 1
    assert done > 15


@needs_nvrtc
@pytest.mark.parametrize("name", CASES)
@pytest.mark.few(2)
def test_every_kernel_of_tiles_compiles_for_gpus(name: str) -> None:
    program, arguments = case(name, 203)
    lowered = program.lower(*arguments)
    for pes in (1, 2):
        kernel = tile_kernel(grid_groups(lowered, ()), pes, (), 132, turns=0)
        assert len(nvrtc.compile_text(kernel.text.on_gpu())) > 1000


@pytest.mark.parametrize("name", CASES)
def test_an_exchange_that_is_missing_is_found(name: str) -> None:
    made = add_exchanges(_groups(name))
    check_exchanges(made)
    exchanges = [s for s in ir.walk(made.body) if isinstance(s, ir.Exchange)]
    for k in range(len(exchanges)):
        with pytest.raises(EngineError, match="missing"):
            check_exchanges(replace(made, body=_without(made.body, [k])))


def _without(body: tuple[ir.Statement, ...], left: list[int]) -> tuple[ir.Statement, ...]:
    """Return statements without the exchange that is the left[0]th."""
    out = []
    for s in body:
        if isinstance(s, ir.Exchange):
            left[0] -= 1
            if left[0] == -1:
                continue
        out.append(ir.with_blocks(s, lambda inner: _without(inner, left)))
    return tuple(out)


@pytest.mark.parametrize(
    ("name", "exchanges"), [("jacobi_2d", 2), ("life", 1), ("gray_scott", 1), ("fdtd_2d", 2)]
)
def test_exchanges_are_where_they_are_needed(name: str, exchanges: int) -> None:
    made = add_exchanges(_groups(name))
    assert sum(isinstance(s, ir.Exchange) for s in ir.walk(made.body)) == exchanges


def test_ghosts_are_what_is_read() -> None:
    ghosts = ghosts_of(_groups("acoustic_8"))
    assert (ghosts["u"].around, ghosts["u"].beside, ghosts["u"].corners) == (4, 4, False)
    assert ghosts["before"] == ghosts["u"]  # they change places
    assert (ghosts["c"].around, ghosts["c"].beside) == (0, 0)
    life = ghosts_of(_groups("life"))["z"]
    assert life.corners and life.ring0 and life.ring1


@cpufree.program
def across(u: Any, v: Any) -> None:
    v[:, 1:] = u[:, :1] + v[:, 1:]


@cpufree.program
def mixed(u: Any, w: Any) -> None:
    u[1:-1, :] += w[2:, None] - w[:-2, None]


@pytest.mark.parametrize(
    ("program", "shapes", "why"),
    [(across, ((9, 8), (9, 8)), "constant distance")],
)
def test_programs_that_do_not_qualify_say_why(program: Any, shapes: Any, why: str) -> None:
    arguments = [np.ones(shape) for shape in shapes]
    groups = grid_groups(program.lower(*arguments), ())
    kernel = chosen_kernel(groups, 1, (), 132)
    assert kernel.text.on_chip is None and why in kernel.why
    assert why in str(program.explain(*arguments))


def test_values_that_do_not_fit_lie_in_memory() -> None:
    program, (_, _, steps) = case("heat_3d", 40)
    large = np.empty((256, 256, 256))
    groups = grid_groups(program.lower(large, large, steps), ())
    assert "KB" in chosen_kernel(groups, 1, (), 132).why
    assert chosen_kernel(groups, 1, (), 132, memory=1 << 30).text.on_chip is not None


def test_values_that_do_not_fit_come_on_chip_for_rounds() -> None:
    program, (_, _, steps) = case("jacobi_1d", 40)
    large = np.empty(1 << 24)
    groups = grid_groups(program.lower(large, large, steps), ())
    plan = chosen_kernel(groups, 1, (), 132).text.on_chip
    assert isinstance(plan, BlockPlan) and plan.tile is not None and plan.turns > 1
    assert "turns at a time are done on chip, in tiles" in str(program.explain(large, large, steps))


def test_returned_fields_are_brought_back() -> None:
    program, arguments = case("until_still", 30)
    lowered = program._lowered(grid_on_cpu.Arguments.of(program.signature, "p", arguments, {}))
    kept = returned_fields(lowered.result)
    kernel = tile_kernel(grid_groups(lowered.program, kept), 1, kept, 8)
    assert all(f"rt.store(f_{name}" in kernel.text.text for name in kept)


@pytest.mark.parametrize("extents", [(64, 128), (86, 94), (7, 1030), (10, 13, 128), (500,), (1, 1)])
def test_threads_go_over_all_points(extents: tuple[int, ...]) -> None:
    """With the formulas of the text, each point has one thread."""
    tile = choose_threads(extents, GroupWork())
    assert tile.threads <= THREADS
    rows = rows_of_tile(len(extents), tile)
    turns = [-(-extents[0] // rows), *inner_tiles(extents, tile)]
    covered = [turns[0] * rows]
    if len(extents) > 1:
        covered.append(turns[-1] * tile.lanes)
    if len(extents) > 2:
        covered.insert(1, turns[1] * tile.others)
    assert all(c >= n for c, n in zip(covered, extents, strict=True))
    assert np.prod(covered) < 4 * np.prod(extents) + 4 * THREADS


@pytest.mark.parametrize(
    ("name", "reach", "exchanged"),
    [
        ("jacobi_2d", (2, 2), ("a",)),  # b is computed before it is read
        ("acoustic_8", (4, 4), ("before", "u")),
        ("shallow_water", (2, 2), ("h", "u", "v")),
        ("life", (1, 1), ("z",)),
    ],
)
def test_rounds_exchange_what_they_read_before_they_compute_it(
    name: str, reach: tuple[int, int], exchanged: tuple[str, ...]
) -> None:
    found = rounds_of(_groups(name))
    assert found is not None
    assert (found.reach, found.exchanged) == (reach, exchanged)


@pytest.mark.parametrize("name", ["upwind_in_place", "until_still", "cavity_flow", "hdiff"])
def test_loops_of_more_than_sweeps_have_no_rounds(name: str) -> None:
    assert rounds_of(_groups(name)) is None


def test_rounds_are_for_programs_that_have_them() -> None:
    with pytest.raises(NotOnChip, match="no rounds"):
        tile_kernel(_groups("until_still"), 1, (), 132, turns=2)
    with pytest.raises(NotOnChip, match="no rounds"):
        round_kernel(_groups("hdiff"), 1, (), 132)


@cpufree.program
def _sums_of_no_array(u, n):
    for _t in range(n):
        u[1:-1] = 0.5 * (u[2:] + u[:-2])
        u[0] = np.sum(np.full(5000, 2.0))


@pytest.mark.parametrize("pes", [1, 3])
def test_sums_over_no_array_are_right_and_not_on_chip(pes: int) -> None:
    u = np.linspace(0.0, 1.0, 1000)
    groups = grid_groups(_sums_of_no_array.lower(u, 5), ())
    with pytest.raises(NotOnChip, match="with no array"):
        tile_kernel(groups, pes, (), 132)
    plain, ours = u.copy(), u.copy()
    _sums_of_no_array.__wrapped__(plain, 5)
    grid_on_cpu.call(_sums_of_no_array, (ours, 5), pes, 2)
    assert np.array_equal(ours, plain)


def test_blocks_each_have_points_of_every_field() -> None:
    groups = _groups("hdiff", 203)
    for pes in (1, 2, 3):
        plan = tile_plan(groups, pes, (), 132, turns=0)
        slabs = Slabs(distributed_rows(groups), pes)
        for f in (f for f in groups.fields if f.name in plan.offsets):
            assert plan.width * (plan.columns - 1) // plan.columns < f.shape[1]
            lo, hi = slabs.bounds(pes - 1)
            assert lo + (hi - lo) * (plan.rows - 1) // plan.rows < f.shape[0]


def test_few_turns_of_large_parts_and_many_of_small_ones_are_chosen() -> None:
    program, (_, _, steps) = case("jacobi_2d", 20)
    turns = {}
    for n in (128, 1024):
        u = np.empty((n, n))
        plan = tile_plan(grid_groups(program.lower(u, u, steps), ()), 1, (), 132)
        turns[n] = plan.turns
    assert turns[128] > turns[1024] > 0


def test_arrays_that_no_cache_holds_are_swept_by_two_rows() -> None:
    program, (_, _, steps) = case("heat_3d", 20)
    for n, options in ((64, STANDARD), (256, LARGE)):
        u = np.empty((n, n, n))
        assert sweep_options(grid_groups(program.lower(u, u, steps), ()), 1, ()) == options
