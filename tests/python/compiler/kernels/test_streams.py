"""Kernels whose warps stream rows through registers: right on the CPU engine, and compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import edge_programs as edge
import grid_on_cpu
import numpy as np
import nvrtc
import pytest
from grid_programs import as_tuple, assert_same, case, copies, plainly
from random_programs import WriterOfSweeps, random_arguments, random_program

from cpufree.compiler import ir
from cpufree.compiler.emit.stream_plan import StreamPlan
from cpufree.compiler.grid import chosen_kernel, grid_groups, stream_kernel
from cpufree.compiler.passes.levels import chain_of
from cpufree.compiler.passes.rounds import rounds_of
from cpufree.compiler.passes.tiles import NotOnChip
from cpufree.errors import ProgramError

needs_nvrtc = pytest.mark.skipif(not nvrtc.find(), reason="NVRTC is not installed")
QUICK = ("jacobi_2d",)
STREAMED = (
    *("jacobi_2d", "fdtd_2d", "acoustic_2", "acoustic_4", "shallow_water", "gray_scott", "life"),
    "batch_of_waves",
)
EACH = [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in STREAMED]


def _groups(name: str, size: int = 40) -> ir.Program:
    program, arguments = case(name, size)
    return grid_groups(program.lower(*arguments), ())


@pytest.mark.parametrize("name", EACH)
@pytest.mark.timeout(600)
def test_streams_give_the_bits_of_plain_python(name: str) -> None:
    for size, pes, turns, strip, chunks in (
        *((23, 1, 1, 16, 3), (37, 2, 2, 16, 2), (40, 3, 1, 64, 1)),
    ):
        program, arguments = case(name, size)
        plain, ours = copies(arguments), copies(arguments)
        expected = as_tuple(plainly(program)(*plain))
        found, kernel = grid_on_cpu.call_streams(program, ours, pes, 2, turns, strip, chunks)
        assert kernel.text.on_chip.turns == turns
        assert_same(name, plain, ours)
        assert_same(name, expected, as_tuple(found))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", [0, 100])
def test_random_programs_in_streams_give_the_bits_of_plain_python(
    first: int, tmp_path: Path
) -> None:
    done = 0
    for seed in range(first, first + 25):
        program = random_program(seed, tmp_path, WriterOfSweeps)
        arguments, turns, pes = random_arguments(seed), 1 + seed % 3, 1 + seed // 3 % 2
        plain, ours = copies(arguments), copies(arguments)
        try:
            found, _ = grid_on_cpu.call_streams(
                program, (*ours[:-1], 7), pes, 3, turns, 16 + 8 * (seed % 3), 1 + seed % 3
            )
        except (ProgramError, NotOnChip):
            continue
        expected = as_tuple(plainly(program)(*plain[:-1], 7))
        assert_same(f"seed {seed}", plain, ours)
        assert_same(f"seed {seed}", expected, as_tuple(found))
        done += 1
    assert done > 10


@pytest.mark.parametrize(
    ("program", "shapes"),
    [
        (edge.swapped, [(31, 27)] * 2),
        (edge.three_in_turn, [(31, 27)] * 3),
        (edge.shifted_rows, [(35, 31), (33, 31)]),
        (edge.reads_others_aside, [(20, 50)] * 2),
        (edge.reads_others_further, [(20, 50)] * 2),
    ],
)
@pytest.mark.slow
def test_edges_give_the_bits_of_plain_python(program: Any, shapes: Any) -> None:
    random = np.random.default_rng(4)
    arrays = [random.random(shape) for shape in shapes]
    plain = copies(tuple(arrays))
    plainly(program)(*plain, 11)
    for turns in (1, 2, 3):
        ours = (*copies(tuple(arrays)), 11)
        grid_on_cpu.call_streams(program, ours, 2, 2, turns, 24, 2)
        assert_same(f"{turns} turns", (*plain, 11), ours)


@needs_nvrtc
@pytest.mark.parametrize("name", EACH)
@pytest.mark.few(1)
def test_every_kernel_of_streams_compiles_for_gpus(name: str) -> None:
    for pes in (1, 2):
        kernel = stream_kernel(_groups(name, 203), pes, (), 132, 2 if name != "acoustic_4" else 1)
        assert len(nvrtc.compile_text(kernel.text.on_gpu())) > 1000


def test_rows_that_pes_beside_keep_are_stored_by_the_text_for_edges_alone() -> None:
    one, two = (
        stream_kernel(_groups("jacobi_2d"), pes, (), 132, 2).text.on_gpu() for pes in (1, 2)
    )
    assert "store<kEdges, false>" in one and "_unsent" not in one
    assert "store<kEdges, kEdges>" in two and "store<kEdges, true>" not in two
    assert "rt.first_unsent(g_a) + " in two and "rt.end_of_unsent(g_a) + " in two


def test_levels_lag_behind_what_they_read() -> None:
    groups = _groups("jacobi_2d")
    rounds = rounds_of(groups)
    assert rounds is not None
    chain = chain_of(groups, rounds, 2, set())
    assert [level.makes.lag for level in chain.levels] == [1, 2, 3, 4]
    assert [v.rows for v in chain.versions if v.level in (0, 1, 2)] == [3, 3, 3]
    assert (chain.first, chain.last, chain.goes_round) == (-4, 4, True)
    assert [v.field for v in chain.at_rest] == ["b"]  # the points around those that are computed
    given = chain.inputs["a"]
    assert (given.before, given.behind, given.left, given.right) == (4, 4, 4, 4)


def test_strips_reach_as_far_as_arrays_that_the_loop_reads_alone() -> None:
    u = np.empty((40, 80))
    for program, reach in ((edge.reads_others_aside, 1), (edge.reads_others_further, 3)):
        groups = grid_groups(program.lower(u, u, 4), ())
        rounds = rounds_of(groups)
        assert rounds is not None
        chain = chain_of(groups, rounds, 2, set())
        assert (chain.left, chain.right) == (reach, {1: 1, 3: 2}[reach])


def test_names_that_change_places_an_odd_number_of_times_do_not_go_round() -> None:
    u = np.empty((40, 40))
    groups = grid_groups(edge.swapped.lower(u, u, 4), ())
    rounds = rounds_of(groups)
    assert rounds is not None
    found = [chain_of(groups, rounds, n, set()).goes_round for n in (1, 2, 3, 4)]
    assert found == [False, True, False, True]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("heat_3d", "rows of arrays of two dimensions alone are streamed"),
        ("until_still", "its loop has no rounds"),
        ("red_black", "does not compute rows and columns side by side"),
    ],
)
def test_other_programs_are_refused_with_a_reason(name: str, why: str) -> None:
    with pytest.raises(NotOnChip, match=why):
        stream_kernel(_groups(name), 1, (), 132)


def test_large_arrays_of_two_dimensions_are_streamed() -> None:
    program, (_, _, steps) = case("jacobi_2d", 40)
    large = np.empty((4096, 4096))
    groups = grid_groups(program.lower(large, large, steps), ())
    for pes in (1, 2):
        plan = chosen_kernel(groups, pes, (), 132).text.on_chip
        assert isinstance(plan, StreamPlan) and plan.turns > 1
    assert "through registers, for" in str(program.explain(large, large, steps))


# Which kind of kernel was the fastest of those that were measured, or the only one, by program,
# points a side and GPUs: programs-2x-2026-11-26-later.jsonl and others in bench/results.
FASTEST = {
    ("life", 4096, 1): "streams",
    ("life", 4096, 2): "streams",
    ("gray_scott", 4096, 1): "streams",
    ("gray_scott", 4096, 2): "streams",
    ("life", 4096, 4): "streams",
    ("gray_scott", 4096, 4): "streams",
    ("shallow_water", 4096, 2): "streams",
    ("fdtd_2d", 4096, 2): "streams",
    ("fdtd_2d", 256, 1): "chip",
    ("fdtd_2d", 256, 2): "chip",
    ("shallow_water", 256, 1): "chip",
    ("life", 256, 1): "chip",
    ("life", 1024, 1): "chip",
}


@pytest.mark.parametrize(("name", "side", "pes"), FASTEST)
def test_the_fastest_of_measured_kernels_is_chosen(name: str, side: int, pes: int) -> None:
    program, arguments = case(name, 40)
    most = max(a.shape[0] for a in arguments if isinstance(a, np.ndarray) and a.ndim == 2)
    large = [
        np.empty([side - most + n for n in a.shape], a.dtype)
        if isinstance(a, np.ndarray) and a.ndim == 2
        else a
        for a in arguments
    ]
    plan = chosen_kernel(grid_groups(program.lower(*large), ()), pes, (), 132).text.on_chip
    kind = "streams" if isinstance(plan, StreamPlan) else "chip" if plan and not plan.tile else ""
    assert kind == FASTEST[name, side, pes]
