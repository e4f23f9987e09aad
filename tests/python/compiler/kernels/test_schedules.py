"""Generated kernels under random schedules with late stores, and under ThreadSanitizer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import grid_on_cpu
import pytest
from generated_runs import UnderSchedules, UnderThreadSanitizer
from grid_programs import as_tuple, assert_same, case, copies, plainly

from cpufree.compiler import ir
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.emit import emit
from cpufree.compiler.emit.tiles import SweepOptions
from cpufree.compiler.grid import (
    grid_groups,
    grid_kernel,
    grid_passes,
    returned_fields,
    stream_kernel,
    tile_kernel,
)
from cpufree.compiler.launch import Kernel, passes
from cpufree.compiler.layout import Layout
from cpufree.cpu_kernels import Built

SEEDS = 25
PES, BLOCKS = 2, 2
SMALL = SweepOptions(threads=32, resident=1, lanes=8, rows=1)  # all blocks have tiles


def _without_barriers(body: tuple[ir.Statement, ...]) -> tuple[ir.Statement, ...]:
    left = (s for s in body if not isinstance(s, ir.Barrier))
    return tuple(ir.with_blocks(s, _without_barriers) for s in left)


def _kernel(way: str, lowered: Any) -> Any:
    kept = returned_fields(lowered.result)
    if way == "no barriers":
        made = grid_passes(lowered.program, kept)
        made = replace(made, body=_without_barriers(made.body))
        return grid_kernel(made, 1, kept, BLOCKS, SMALL)
    if way == "sweeps":
        made = grid_passes(lowered.program, kept)
        return grid_kernel(made, PES, kept, BLOCKS, SMALL)
    groups = grid_groups(lowered.program, kept)
    if way == "tiles":
        return tile_kernel(groups, PES, kept, 2 * BLOCKS, turns=0, tiles_in_heap=True)
    if way == "rounds":
        return tile_kernel(groups, PES, kept, 2 * BLOCKS, turns=2, tiles_in_heap=True)
    return stream_kernel(groups, PES, kept, BLOCKS, 2, 16, 2)


def _check(name: str, way: str, make_runner: Any) -> None:
    """Run a case by another runner; its bits are those of plain Python."""
    program, arguments = case(name, 13)
    plain, ours = copies(arguments), copies(arguments)
    expected = as_tuple(plainly(program)(*plain))
    given = Arguments.of(program.signature, program.name, ours, {})
    lowered = program._lowered(given)
    if way == "rows":
        made = passes(lowered.program)
        text = emit(made)
        runner = make_runner(made, len(text.numbers))
        engine = grid_on_cpu.BlocksOnThreads(Layout(made, PES), text.text, 1, runner)
        engine.numbers = Kernel(made, text, Built(0, Path(), False)).numbers(engine.layout)
        arrays, scalars = grid_on_cpu.run_by(engine, given, lowered)
    else:
        kernel = _kernel(way, lowered)
        runner = make_runner(kernel.program, 0)
        blocks = kernel.text.most_blocks if way in ("tiles", "rounds") else BLOCKS
        arrays, scalars = grid_on_cpu.run_kernel(kernel, given, lowered, blocks, runner)
    assert_same(name, plain, ours)
    assert_same(name, expected, as_tuple(given.returned(lowered, arrays, scalars)))


CASES = [
    ("fdtd_2d", "rows"),
    ("jacobi_2d", "rounds"),
    *(
        pytest.param(*one, marks=pytest.mark.slow)
        for one in (
            ("until_still", "rows"),
            ("gray_scott", "sweeps"),
            ("until_still", "sweeps"),
            ("shallow_water", "tiles"),
            ("jacobi_2d", "streams"),
            ("gray_scott", "streams"),
        )
    ),
]


@pytest.mark.parametrize(("name", "way"), CASES)
@pytest.mark.timeout(600)
def test_every_schedule_gives_the_bits_of_plain_python(name: str, way: str, tmp_path: Path) -> None:
    for seed in range(SEEDS):
        _check(name, way, lambda made, count, seed=seed: UnderSchedules(tmp_path, seed))


@pytest.mark.parametrize(
    ("name", "way"),
    [CASES[0], *(pytest.param("jacobi_2d", "rounds", marks=pytest.mark.slow),), *CASES[2:]],
)
@pytest.mark.timeout(600)
def test_threadsanitizer_finds_no_race(name: str, way: str, tmp_path: Path) -> None:
    _check(name, way, _sanitized(way, tmp_path))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_threadsanitizer_finds_a_race_where_barriers_are_missing(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="data race"):
        _check("jacobi_2d", "no barriers", _sanitized("sweeps", tmp_path))


def _sanitized(way: str, folder: Path) -> Any:
    def runner(made: Any, numbers: int) -> UnderThreadSanitizer:
        fields, variables = len(made.fields), len(made.variables)
        results = variables + (1 if way == "rows" else 2) * fields
        return UnderThreadSanitizer(folder, (numbers, max(1, len(made.scalars)), results))

    return runner
