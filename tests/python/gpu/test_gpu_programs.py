"""Compiled programs on real GPUs give the bits of plain Python, on one GPU and on several."""

from __future__ import annotations

from typing import Any

import edge_programs as edge
import numpy as np
import pytest
from gpus_here import COUNTS, NUMBERS, needs_gpu
from grid_programs import (
    CASES,
    as_tuple,
    assert_same,
    case,
    copies,
    grows_too_large,
    plainly,
    waves_without_end,
)
from kernel_ways import exchanges, in_memory, rounds, rounds_from_memory

from cpufree.compiler import decorated
from cpufree.compiler.hosted import HostedRun
from cpufree.errors import ProgramError, UnsupportedError
from cpufree.extension import load_for_programs


def _compiler() -> bool:
    try:
        load_for_programs()
    except UnsupportedError:
        return False
    return True


NOT_ON_CHIP = ("acoustic_16", "hdiff", "upwind_in_place")  # sweeps over memory take less time
IN_ROUNDS = (
    *("jacobi_1d", "jacobi_2d", "fdtd_2d", "acoustic_4", "shallow_water", "gray_scott", "life"),
    "points_27",
)
pytestmark = [needs_gpu, pytest.mark.skipif(not _compiler(), reason="the extension does not load")]


def _check(name: str, size: int, pes: int) -> Any:
    """Run a case and compare; return its kernel."""
    program, arguments = case(name, size)
    program._gpu_runs.clear()
    plain, ours = copies(arguments), copies(arguments)
    expected = as_tuple(plainly(program)(*plain))
    found = as_tuple(program.run(ours, engine="cuda_p2p", pes=pes, wait_limit=300))
    assert program.engine == "cuda_p2p"
    assert_same(name, plain, ours)
    assert_same(name, expected, found)
    return next(iter(program._gpu_runs)).engine.kernel


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("pes", COUNTS)
@pytest.mark.timeout(600)
def test_program_gives_the_bits_of_plain_python(name: str, pes: int) -> None:
    kernels = [_check(name, size, pes) for size in ((203,) if pes == 1 else (13, 203))]
    assert kernels[-1].layout.slabs.pes == pes
    assert kernels[-1].text.on_chip is not None or name in NOT_ON_CHIP, kernels[-1].why


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("pes", COUNTS)
@pytest.mark.timeout(600)
def test_values_in_memory_give_the_bits_of_plain_python(
    name: str, pes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decorated, "chosen_kernel", in_memory)
    kernel = _check(name, 203, pes)
    assert kernel.text.on_chip is None and kernel.layout.slabs.pes == pes


@pytest.mark.parametrize("way", [exchanges, rounds, rounds_from_memory])
@pytest.mark.parametrize("name", IN_ROUNDS)
@pytest.mark.parametrize("pes", COUNTS)
@pytest.mark.timeout(600)
def test_all_ways_on_chip_give_the_bits_of_plain_python(
    name: str, pes: int, way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decorated, "chosen_kernel", way)
    kernel = _check(name, 203, pes)
    assert kernel.text.on_chip is not None and kernel.layout.slabs.pes == pes


@pytest.mark.parametrize(
    ("program", "shapes"),
    [
        (edge.swapped, [(301, 203)] * 2),
        (edge.three_in_turn, [(301, 203)] * 3),
        (edge.inner_copy, [(301,)]),
        (edge.layers, [(301, 203)] * 3),
        (edge.ring_of_columns, [(203, 7)]),
        (edge.shifted_rows, [(205, 31), (203, 31)]),
    ],
)
@pytest.mark.parametrize("way", [None, rounds_from_memory])
@pytest.mark.parametrize("pes", COUNTS)
def test_edges_give_the_bits_of_plain_python(
    program: Any, shapes: Any, way: Any, pes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way is not None and program in (edge.inner_copy,):
        pytest.skip("of one dimension")
    if way is not None:
        monkeypatch.setattr(decorated, "chosen_kernel", way)
    random = np.random.default_rng(4)
    ours = [random.random(shape) for shape in shapes]
    plain = copies(tuple(ours))
    program._gpu_runs.clear()
    program.run((*ours, 11), engine="cuda_p2p", pes=pes, wait_limit=300)
    plainly(program)(*plain, 11)
    for mine, other in zip(ours, plain, strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("shape", [(1021, 517), (67, 2047)])
@pytest.mark.parametrize("pes", COUNTS)
def test_large_tiles_give_the_bits_of_plain_python(shape: tuple[int, int], pes: int) -> None:
    program, _ = case("gray_scott", 20)
    random = np.random.default_rng(3)
    u, v = random.random(shape), random.random(shape)
    plain = u.copy(), v.copy()
    program.run((u, v, 0.06, 0.062, 21), engine="cuda_p2p", pes=pes, wait_limit=300)
    plainly(program)(*plain, 0.06, 0.062, 21)
    np.testing.assert_array_equal(u, plain[0])
    np.testing.assert_array_equal(v, plain[1])


@pytest.mark.parametrize("library", ["cupy", "torch"])
@pytest.mark.parametrize("pes", COUNTS)
def test_arrays_on_a_gpu_stay_there(library: str, pes: int) -> None:
    module: Any = pytest.importorskip(library)
    program, (u, v, f, k, steps) = case("gray_scott", 50)
    ours = [_on_gpu(module, library, x) for x in (u, v)]
    program.run((*ours, f, k, steps), engine="cuda_p2p", pes=pes, wait_limit=300)
    assert program.engine == "cuda_p2p" and program.pes == pes
    plainly(program)(u, v, f, k, steps)
    for mine, plain in zip(ours, (u, v), strict=True):
        np.testing.assert_array_equal(_from_gpu(library, mine), plain)


def test_parts_of_arrays_on_a_gpu_are_taken() -> None:
    cupy: Any = pytest.importorskip("cupy")
    program, (u, f, turns) = case("red_black", 41)
    wide = cupy.zeros((2 * u.shape[0], 3 * u.shape[1]))
    wide[::2, ::3] = cupy.asarray(u)
    parts = wide[::2, ::3], cupy.asarray(f), turns
    program.run(parts, engine="cuda_p2p", wait_limit=300)
    plainly(program)(u, f, turns)
    np.testing.assert_array_equal(wide[::2, ::3].get(), u)
    assert not wide[1::2].any()


@pytest.mark.parametrize("pes", COUNTS)
def test_new_arrays_are_beside_the_arguments(pes: int) -> None:
    cupy: Any = pytest.importorskip("cupy")
    program, (u, tol) = case("until_still", 60)
    found = program.run((cupy.asarray(u), tol), engine="cuda_p2p", pes=pes, wait_limit=300)
    expected = plainly(program)(u, tol)
    assert isinstance(found[0], cupy.ndarray)
    np.testing.assert_array_equal(found[0].get(), expected[0])
    assert found[1:] == expected[1:]


@pytest.mark.parametrize("pes", COUNTS)
@pytest.mark.timeout(600)
def test_progress_that_says_no_ends_the_kernels_and_leaves_the_arrays(pes: int) -> None:
    u = np.random.default_rng(1).random((300, 70))
    before, turns = u.copy(), list[int]()

    def follow(turn: int, _: float) -> bool:
        turns.append(turn)
        return turn == 0

    run = waves_without_end.run
    run((u, 10**12), engine="cuda_p2p", pes=pes, wait_limit=300, progress=follow)
    assert turns and turns[-1] > 0
    np.testing.assert_array_equal(u, before)


@pytest.mark.parametrize("pes", COUNTS)
def test_numbers_that_break_the_rules_of_python_raise_and_write_nothing(pes: int) -> None:
    u = np.zeros((40, 8))
    with pytest.raises(ProgramError, match="64 bits"):
        grows_too_large.run((u, 100), engine="cuda_p2p", pes=pes, wait_limit=300)
    assert not u.any()


def test_calls_of_one_shape_use_the_same_kernel_and_memory() -> None:
    program, arguments = case("jacobi_2d", 64)
    for _ in range(3):
        program.run(copies(arguments), engine="cuda_p2p", gpus=NUMBERS[:1], wait_limit=300)
    assert len(program._gpu_runs) <= 2
    assert program.timings["build"] < 0.05


def _on_gpu(module: Any, library: str, x: np.ndarray) -> Any:
    if library == "torch":
        if not module.cuda.is_available():
            pytest.skip("PyTorch finds no GPU")
        return module.from_numpy(x.copy()).to(f"cuda:{NUMBERS[0]}")
    with module.cuda.Device(NUMBERS[0]):
        return module.asarray(x)


def _from_gpu(library: str, x: Any) -> np.ndarray:
    return x.cpu().numpy() if library == "torch" else x.get()


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("channel_flow", "until_still")])
@pytest.mark.parametrize("pes", COUNTS[-1:])
@pytest.mark.timeout(600)
def test_host_driven_variant_gives_the_same_bits(name: str, pes: int) -> None:
    program, arguments = case(name, 61)
    plain, ours = copies(arguments), copies(arguments)
    plainly(program)(*plain)
    run = HostedRun(program, ours, NUMBERS[:pes])
    run.run(10.0)
    assert len(run.devices) == pes
    assert_same(name, plain, ours)


def test_host_driven_variant_repeats_a_graph() -> None:
    program, (a, b, _) = case("jacobi_2d", 61)
    plain = (a.copy(), b.copy(), 101)
    plainly(program)(*plain)
    run = HostedRun(program, (a, b, 101), NUMBERS[:1])
    run.run(10.0)
    np.testing.assert_array_equal(a, plain[0])
    np.testing.assert_array_equal(b, plain[1])
