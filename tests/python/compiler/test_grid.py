"""Kernels for GPUs: NVRTC compiles them, and over the port of the CPU engine they are right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grid_on_cpu
import numpy as np
import nvrtc
import pytest
from field_programs import lattice_boltzmann_pulled
from grid_programs import (
    CASES,
    as_tuple,
    assert_same,
    case,
    copies,
    grows_too_large,
    plainly,
)
from random_programs import random_arguments, random_program

from cpufree.compiler import ir
from cpufree.compiler.emit.choice import sweep_options
from cpufree.compiler.emit.hosted import emit_hosted
from cpufree.compiler.emit.tiles import CROWDED, SweepOptions
from cpufree.compiler.grid import grid_groups, grid_kernel, grid_passes, returned_fields
from cpufree.compiler.layout import GridLayout
from cpufree.compiler.passes.accesses import Points
from cpufree.compiler.passes.barriers import add_barriers, check_barriers
from cpufree.errors import EngineError, ProgramError

needs_nvrtc = pytest.mark.skipif(not nvrtc.find(), reason="NVRTC is not installed")
# A C++ compiler takes seconds for each size and number of PEs, which are in the text.
QUICK = ("fdtd_2d", "until_still")
EACH = [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in CASES]


@needs_nvrtc
@pytest.mark.parametrize("name", CASES)
@pytest.mark.few(3)
def test_every_kernel_compiles_for_gpus(name: str) -> None:
    program, arguments = case(name, 37)
    for pes in (1, 2):
        _, _, kernel = grid_on_cpu.kernel_for(program, arguments, pes)
        assert len(nvrtc.compile_text(kernel.text.on_gpu())) > 1000


@needs_nvrtc
def test_host_driven_kernels_compile_for_gpus() -> None:
    program, arguments = case("cavity_flow", 37)
    _, lowered, _ = grid_on_cpu.kernel_for(program, arguments, 2)
    made = grid_groups(lowered.program, ())
    text = emit_hosted(made, GridLayout(made, 2), returned_fields(lowered.result), 132)
    assert text.text.count("__global__") == len(text.kernels)
    assert len(nvrtc.compile_text(text.text)) > 1000


@pytest.mark.parametrize("name", EACH)
@pytest.mark.timeout(600)
def test_kernels_of_many_blocks_give_the_bits_of_plain_python(name: str) -> None:
    for size, pes, blocks in ((13, 1, 2), (20, 2, 2), (37, 3, 3)):
        program, arguments = case(name, size)
        plain, ours = copies(arguments), copies(arguments)
        expected = as_tuple(plainly(program)(*plain))
        found = as_tuple(grid_on_cpu.call(program, ours, pes, blocks))
        assert_same(name, plain, ours)
        assert_same(name, expected, found)


@pytest.mark.parametrize(
    "options",
    [
        SweepOptions(order="queue", threads=16, lanes=4, rows=2),
        SweepOptions(order="chunks", threads=16, lanes=8, rows=1),
        SweepOptions(order="down", threads=8, lanes=4, rows=3),
        SweepOptions(threads=16, lanes=4, rows=2, aligned=False),
    ],
)
@pytest.mark.parametrize("name", ["jacobi_2d", "life"])
def test_ways_of_sweeps_give_the_bits_of_plain_python(name: str, options: SweepOptions) -> None:
    program, arguments = case(name, 37)
    plain, ours = copies(arguments), copies(arguments)
    plainly(program)(*plain)
    grid_on_cpu.call(program, ours, 2, 3, options)
    assert_same(name, plain, ours)


def test_errors_of_numbers_end_all_blocks() -> None:
    with pytest.raises(ProgramError, match="64 bits"):
        grid_on_cpu.call(grows_too_large, (np.zeros((40, 3)), 100), 2, 2)


def _grids(name: str, size: int = 40) -> ir.Program:
    program, arguments = case(name, size)
    return grid_passes(program.lower(*arguments), ())


def _count(program: ir.Program, kind: type) -> int:
    return sum(isinstance(s, kind) for s in ir.walk(program.body))


@pytest.mark.parametrize(
    ("name", "groups", "barriers"),
    [("jacobi_2d", 2, 2), ("acoustic_8", 1, 1), ("shallow_water", 2, 2), ("until_still", 2, 1)],
)
def test_groups_and_barriers_are_where_they_are_needed(
    name: str, groups: int, barriers: int
) -> None:
    made = _grids(name)
    assert (_count(made, ir.Group), _count(made, ir.Barrier)) == (groups, barriers)


def test_points_of_a_thread_stay_in_registers() -> None:
    program, arguments = case("gray_scott", 40)
    _, _, kernel = grid_on_cpu.kernel_for(program, arguments, 1)
    assert "result" in kernel.text.in_registers
    program, arguments = case("until_still", 40)
    _, _, kernel = grid_on_cpu.kernel_for(program, arguments, 1)
    assert not kernel.text.in_registers


@needs_nvrtc
def test_threads_with_many_values_spill_none() -> None:
    g = np.ones((9, 256, 256))
    lowered = lattice_boltzmann_pulled.lower(g, g.copy(), 0.6, 3)
    groups = grid_passes(lowered, ())
    options = sweep_options(groups, 1, ())
    assert options == CROWDED
    text = grid_kernel(groups, 1, (), 132, options).text.on_gpu()
    nvrtc.compile_text(text, options=(*nvrtc.OPTIONS, "--ptxas-options=-v"))
    of_kernel = nvrtc.messages[-1].partition("properties for run_on_gpu")[2]
    assert " 0 bytes spill stores" in of_kernel.partition("registers")[0]


@pytest.mark.parametrize("name", CASES)
def test_a_barrier_that_is_missing_is_found(name: str) -> None:
    made = _grids(name)
    check_barriers(made)
    found = 0
    for barrier in range(_count(made, ir.Barrier)):
        with pytest.raises(EngineError, match="missing"):
            check_barriers(replace(made, body=_without(made.body, [barrier])))
        found += 1
    assert found > 0


def _without(body: tuple[ir.Statement, ...], left: list[int]) -> tuple[ir.Statement, ...]:
    """Return statements without the barrier that is the left[0]th."""
    out = []
    for s in body:
        if isinstance(s, ir.Barrier):
            left[0] -= 1
            if left[0] == -1:
                continue
        out.append(ir.with_blocks(s, lambda inner: _without(inner, left)))
    return tuple(out)


def test_barriers_with_neighbours_are_for_rows_of_others_alone() -> None:
    made = _grids("cavity_flow")
    kinds = [s.neighbours for s in ir.walk(made.body) if isinstance(s, ir.Barrier)]
    assert True in kinds and False in kinds


def test_points_meet_only_where_strides_allow_it() -> None:
    assert not Points(1, 9, 2).meets(Points(2, 8, 2))
    assert Points(1, 9, 2).meets(Points(4, 10, 3))
    assert not Points(0, 3).meets(Points(4, 9))


def _random_cases(folder: Path, first: int, count: int) -> Iterator[tuple[int, Any, Any]]:
    """Yield seeds, programs and arguments; those outside the language are left out."""
    for seed in range(first, first + count):
        program, arguments = random_program(seed, folder), random_arguments(seed)
        try:
            program.lower(*arguments)
        except ProgramError:
            continue
        yield seed, program, arguments


def test_barriers_of_random_programs_pass_the_check(tmp_path: Path) -> None:
    barriers = 0
    for _, program, arguments in _random_cases(tmp_path, 0, 150):
        made = add_barriers(grid_groups(program.lower(*arguments), ()))
        check_barriers(made)
        barriers += _count(made, ir.Barrier)
    assert barriers > 150


@needs_nvrtc
@pytest.mark.thorough
def test_random_programs_compile_for_gpus(tmp_path: Path) -> None:
    compiled = 0
    for _, program, arguments in _random_cases(tmp_path, 0, 12):
        _, _, kernel = grid_on_cpu.kernel_for(program, arguments, 2)
        compiled += len(nvrtc.compile_text(kernel.text.on_gpu())) > 0
    assert compiled > 8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.timeout(900)
def test_random_programs_on_many_blocks_give_the_bits_of_plain_python(tmp_path: Path) -> None:
    done = 0
    for seed, program, arguments in _random_cases(tmp_path, 2000, 40):
        plain, ours = copies(arguments), copies(arguments)
        expected = as_tuple(plainly(program)(*plain))
        found = as_tuple(grid_on_cpu.call(program, ours, 1 + seed % 3, 1 + seed % 4))
        assert_same(f"seed {seed}", plain, ours)
        assert_same(f"seed {seed}", expected, found)
        done += 1
    assert done > 30
