"""The engine of GPUs, with a stand-in for the extension's programs: heaps on the host, threads."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import fake_gpu_arrays as fakes
import numpy as np
import pytest
from dace_cases import arguments, constants, load, path
from dace_grids import CASES as RANKS
from dace_grids import whole_of
from grid_on_cpu import BlocksOnThreads
from grid_programs import as_tuple, assert_same, case, copies, grows_too_large, plainly
from kernel_ways import WAYS

from cpufree.compiler import decorated, gpu_run
from cpufree.compiler.emit.grid import GridText
from cpufree.compiler.grid import grid_kernel
from cpufree.compiler.passes.barriers import add_barriers
from cpufree.compiler.ranks import on_gpu
from cpufree.engines.gpus import Gpu
from cpufree.engines.placement import Placement
from cpufree.engines.watch import Watch
from cpufree.errors import ProgramError
from cpufree.laps import Laps

BLOCKS = 2


class ProgramHere:
    """GpuProgram of the extension: its copies, and runs by threads of the CPU."""

    blocks = BLOCKS

    def __init__(
        self, text: str, devices: list[int], size: int, *_: int, traced: bool = False
    ) -> None:
        assert not traced, "runs of this stand-in have no trace"
        layout: Any = SimpleNamespace(size=size, pes=len(devices))
        self.engine = BlocksOnThreads(layout, text, BLOCKS)

    def load(self, copied: list[list[int]]) -> None:
        self.engine.load([], [])
        for in_heap, in_array, width in self._rows(copied):
            ctypes.memmove(in_heap, in_array, width)

    def store(self, copied: list[list[int]]) -> None:
        for in_heap, in_array, width in self._rows(copied):
            ctypes.memmove(in_array, in_heap, width)

    def _rows(self, copied: list[list[int]]) -> Any:
        for pe, offset, pitch, address, array_pitch, width, rows in copied:
            first = self.engine.heaps[pe].ctypes.data + offset
            yield from ((first + r * pitch, address + r * array_pitch, width) for r in range(rows))

    def run(
        self, scalars: list[int], results: int, wait_limit: float, watch: Any, trace: Any
    ) -> Any:
        left = self.engine.launch(np.array(scalars), results, wait_limit, watch)
        words = left.results.tolist(), left.faults[:2].tolist()
        return left.seconds, left.stopped, *words, None


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_memory(groups: Any, pes: int, kept: Any, *_: int) -> Any:
        return grid_kernel(add_barriers(groups), pes, kept, BLOCKS)

    core = SimpleNamespace(make_gpu_program=ProgramHere)
    monkeypatch.setattr(gpu_run, "load_for_programs", lambda: core)
    monkeypatch.setattr(GridText, "on_gpu", lambda self, _: self.text)
    monkeypatch.setattr(decorated, "chosen_kernel", in_memory)
    for module, name in ((decorated, "multiprocessors_of"), (on_gpu, "multiprocessors_of_rank")):
        monkeypatch.setattr(module, name, lambda devices: BLOCKS)
    monkeypatch.setattr(decorated, "tile_memory_of", lambda devices: 1 << 17)


def _place(monkeypatch: pytest.MonkeyPatch, pes: int) -> None:
    chosen = [Gpu(k, "NVIDIA H200", 0, (9, 0)) for k in range(pes)]
    where = Placement("cuda_p2p", pes, 0, gpus=chosen)
    monkeypatch.setattr(decorated, "place", lambda *_: where)


@pytest.mark.parametrize("way", WAYS)
def test_ways_of_tests_on_gpus_take_what_the_compiler_gives(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decorated, "chosen_kernel", WAYS[way])
    monkeypatch.setattr(decorated, "gpu_runner", lambda kernel, *_: kernel)
    where = Placement("cuda_p2p", 1, 0, gpus=[Gpu(0, "NVIDIA H200", 0, (9, 0))])
    program, given = case("jacobi_2d", 61)
    lowered = program._lowered(program._arguments(given, {}))
    kernel = program._gpu_runner(lowered, where, False)
    assert (kernel.text.on_chip is None) == (way == "in memory")


@pytest.mark.parametrize(
    ("name", "pes"), [("life", 1), ("fdtd_2d", 2), ("until_still", 2), ("points_27", 3)]
)
def test_arrays_go_to_gpus_and_come_back(
    name: str, pes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _place(monkeypatch, pes)
    program, arguments = case(name, 23)
    program._gpu_runs.clear()
    for _ in range(2):  # by the same kernel, in the same memory
        plain, ours = copies(arguments), copies(arguments)
        expected = as_tuple(plainly(program)(*plain))
        found = as_tuple(program.run(ours, wait_limit=300))
        assert_same(name, plain, ours)
        assert_same(name, expected, found)
    assert (program.engine, program.pes) == ("cuda_p2p", pes)
    assert program.devices == list(range(pes)) and len(program._gpu_runs) == 1
    assert list(program.timings) == ["lower", "build", "load", "run", "store", "kernel"]


def test_parts_of_arrays_are_written_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    _place(monkeypatch, 2)
    program, arguments = case("jacobi_2d", 23)
    wide = [np.zeros((2 * a.shape[0], 3 * a.shape[1])) for a in arguments[:2]]
    parts = [w[::2, ::3] for w in wide]
    for part, values in zip(parts, arguments, strict=False):
        part[...] = values
    plain = copies(arguments)
    plainly(program)(*plain)
    program.run((*parts, arguments[2]), wait_limit=300)
    for part, whole, values in zip(parts, wide, plain, strict=False):
        np.testing.assert_array_equal(part, values)
        assert not whole[1::2].any()


def test_faults_leave_the_arrays_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    _place(monkeypatch, 2)
    u = np.zeros((40, 8))
    with pytest.raises(ProgramError, match="64 bits"):
        grows_too_large.run((u, 100), wait_limit=300)
    assert not u.any()


def test_arrays_of_cupy_are_not_brought_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    _place(monkeypatch, 2)
    fakes.install(monkeypatch, [])
    program, (u, tol) = case("until_still", 24)
    wide = np.zeros((2 * u.shape[0], 3 * u.shape[1]))
    wide[::2, ::3] = u
    with fakes.nothing_downloaded():
        found = program.run((fakes.CupyArray(wide[::2, ::3]), tol), wait_limit=300)
    expected = plainly(program)(u, tol)
    assert isinstance(found[0], fakes.CupyArray)
    np.testing.assert_array_equal(found[0].values, expected[0])
    assert found[1:] == expected[1:]
    np.testing.assert_array_equal(wide[::2, ::3], u)
    assert not wide[1::2].any()


def test_fields_stay_on_the_gpu_between_calls_of_some_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _place(monkeypatch, 1)
    fakes.install(monkeypatch, [])
    program, (u, v, steps) = case("jacobi_2d", 23)
    ours = fakes.CupyArray(u.copy()), fakes.CupyArray(v.copy())
    with fakes.nothing_downloaded():
        for _ in range(3):
            program.run((*ours, steps), wait_limit=300)
    for _ in range(3):
        plainly(program)(u, v, steps)
    np.testing.assert_array_equal(ours[0].values, u)
    np.testing.assert_array_equal(ours[1].values, v)


@pytest.mark.parametrize(("name", "ranks"), [("jacobi_2d", 4), ("heat_3d", 2)])
def test_arrays_of_ranks_go_to_gpus_and_come_back(name: str, ranks: int) -> None:
    program, (_, plain, points, grids) = load(path(name, ranks)), RANKS[name]
    given = arguments(name, ranks, 7)
    runner = on_gpu.gpu_runner_of_ranks(program, [0] * ranks)
    runner.run(given, constants(program), {"TSTEPS": 7}, 300.0, Watch(None), Laps())
    for key, wanted in zip(("lA", "lB"), plain(points, 7, ranks), strict=True):
        found = whole_of([a.arrays[key] for a in given], grids[ranks])
        np.testing.assert_array_equal(found, wanted)
