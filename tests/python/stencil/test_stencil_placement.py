"""Where iterations on grids are done, on machines that a fake extension describes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_core import Machine, gpu
from fake_gpu_arrays import CupyArray, OtherArray, TorchTensor

from cpufree import device_arrays
from cpufree.engines.asked import Asked
from cpufree.engines.place import named_engine, place
from cpufree.engines.placement import Placement
from cpufree.env import Env
from cpufree.errors import InvalidInputError, NotEnoughGpusError, OutOfMemoryError, UnsupportedError
from cpufree.machine import files, least
from cpufree.model.stencils import facts_of
from cpufree.stencil import jacobi
from cpufree.stencil.work import GRID, GridWork


def work(*shape: int, value_bytes: int = 4, updates: int = 10**12) -> GridWork:
    """Return iterations on a grid."""
    return GridWork(shape, (False,) * len(shape), value_bytes, updates)


LARGE = work(8192, 8192, updates=8192**2 * 100)
LEAST_UPDATES = least("setup.least_updates")
SMALL = work(256, 256, updates=LEAST_UPDATES - 1)


def numbers(placement: Placement) -> list[int]:
    return [gpu.index for gpu in placement.gpus]


def test_auto_takes_gpus_for_large_work_only(machine: Machine) -> None:
    fake = machine(1)
    assert place(SMALL, Asked(), Env()).engine == "cpu_threads"
    assert fake.looked_at_gpus == 0
    placement = place(LARGE, Asked(), Env())
    assert (placement.engine, placement.pes, numbers(placement)) == ("cuda_p2p", 1, [0])


def test_large_grids_get_all_gpus_and_small_ones_a_single_one(machine: Machine) -> None:
    machine(8)
    assert place(LARGE, Asked(), Env()).pes == 8
    assert place(work(256, 256, updates=LEAST_UPDATES), Asked(), Env()).pes == 1


def box(n: int, value_bytes: int = 4) -> GridWork:
    """Return many iterations on n³ points."""
    return work(n, n, n, value_bytes=value_bytes)


def on_chip(of: GridWork, gpus: int) -> bool | None:
    """Return whether a grid stays in registers of a number of GPUs."""
    return facts_of(of.shape, of.value_bytes, of.periodic, of.source, gpus, 132).on_chip


def test_gpus_whose_registers_hold_a_box_are_worth_their_number(machine: Machine) -> None:
    machine(8)
    assert [on_chip(box(256), gpus) for gpus in (2, 4, 8)] == [False, True, True]
    assert not on_chip(box(256, 8), 4)
    assert place(box(256), Asked(), Env()).pes == 8


def test_a_box_that_the_registers_of_one_gpu_hold_gets_few(machine: Machine) -> None:
    machine(8)
    assert on_chip(box(128), 1) and place(box(128), Asked(), Env()).pes < 8


def test_a_box_that_no_registers_hold_is_judged_by_its_bytes(machine: Machine) -> None:
    machine(8)
    assert not on_chip(box(768), 8) and place(box(768), Asked(), Env()).pes == 8


def test_slow_exchanges_between_gpus_leave_a_grid_on_one(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine(8)
    slow = {"stencil.exchange_between": {"value": 1.0, "unit": "s", "provenance": "a test"}}
    files.write(tmp_path / "m.json", {"machine": "M", "gpu": "G", "like": "h200", "choices": slow})
    monkeypatch.setenv("CPUFREE_MACHINE", str(tmp_path / "m.json"))
    assert place(LARGE, Asked(), Env()).pes == 1


def test_planners_get_the_numbers_of_the_machine(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(1)
    usual = place(LARGE, Asked(), Env()).tuning["machine"]
    monkeypatch.setenv("CPUFREE_MACHINE", "h100")
    assert place(LARGE, Asked(), Env()).tuning["machine"]["gpu.memory_rate"] == 2.94e12
    assert usual["gpu.memory_rate"] == 4.2e12


def test_auto_takes_the_cpu_where_there_is_no_gpu(machine: Machine) -> None:
    machine(0, built=False)
    placement = place(LARGE, Asked(), Env())
    assert (placement.engine, placement.pes, placement.blocks) == ("cpu_threads", 1, 0)
    assert placement.warnings == []


def test_gpus_and_pes_that_are_asked_for_are_taken(machine: Machine) -> None:
    machine(4)
    assert numbers(place(SMALL, Asked(gpus=[3, 1]), Env())) == [3, 1]
    assert numbers(place(SMALL, Asked(gpus="all"), Env())) == [0, 1, 2, 3]
    assert numbers(place(SMALL, Asked(engine="cuda_p2p", pes=2), Env())) == [0, 1]
    assert numbers(place(SMALL, Asked(engine="cuda_p2p"), Env(gpus=(2,)))) == [2]


def test_blocks_of_the_environment_are_for_the_engine_it_names(machine: Machine) -> None:
    machine(1)
    assert place(LARGE, Asked(), Env(blocks=3)).blocks == 0
    assert place(LARGE, Asked(engine="cuda_p2p"), Env(blocks=3)).blocks == 3
    assert place(LARGE, Asked(blocks=7), Env()).blocks == 7
    assert place(SMALL, Asked(), Env(blocks=3)).blocks == 3


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"gpus": [4]}, InvalidInputError, "names device 4, but this machine shows CUDA GPU"),
        ({"gpus": "one"}, InvalidInputError, "gpus is 'one'"),
        ({"gpus": 1}, InvalidInputError, "ambiguous"),
        ({"gpus": [0], "pes": 2}, InvalidInputError, "pes is 2, but gpus names 1 device"),
        ({"gpus": [0], "engine": "cpu_threads"}, InvalidInputError, "which uses none"),
        ({"engine": "cuda_p2p", "pes": 9}, NotEnoughGpusError, "9 PEs are asked for"),
    ],
)
def test_what_cannot_be_had_is_refused(
    machine: Machine, asked: dict[str, Any], error: type[Exception], message: str
) -> None:
    machine(4)
    with pytest.raises(error, match=message):
        place(LARGE, Asked(**asked), Env())


def test_pes_share_a_gpu_that_is_named_several_times(machine: Machine) -> None:
    machine(2)
    placement = place(LARGE, Asked(gpus=[0, 0, 1, 1]), Env())
    assert placement.own_devices == [0, 0, 1, 1] and placement.pes == 4
    assert any("2 share GPU 0" in warning for warning in placement.warnings)


def test_gpus_without_cuda_in_the_build_are_refused_with_what_to_do(machine: Machine) -> None:
    machine(0, built=False)
    for asked in (Asked(engine="cuda_p2p"), Asked(gpus=[0])):
        with pytest.raises(UnsupportedError, match=r"this build has no CUDA; .*CPUFREE_CUDA=ON"):
            place(SMALL, asked, Env())


def test_grids_too_large_for_the_gpus_go_to_the_cpu_or_are_refused(machine: Machine) -> None:
    machine([gpu(0, free=1.0)])
    grid = work(1024, 1024, 1024, value_bytes=8)
    fallen_back = place(grid, Asked(), Env())
    assert fallen_back.engine == "cpu_threads"
    assert "done on the CPU: the grid needs about 32 GiB" in fallen_back.warnings[0]
    with pytest.raises(OutOfMemoryError, match="Use more GPUs, float32, or engine 'cpu_threads'"):
        place(grid, Asked(engine="cuda_p2p"), Env())


@pytest.mark.parametrize(
    ("asked", "near", "message"),
    [
        ({"engine": "nvshmem"}, 0, "u0 lies on a GPU, but engine 'nvshmem' takes values on the"),
        ({"engine": "cpu_processes", "gpus": [0]}, None, "'cpu_processes' is asked for, which use"),
    ],
)
def test_what_several_processes_cannot_have_is_refused(
    asked: dict[str, Any], near: int | None, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        named_engine(GRID, Asked(**asked), Env(), near is not None)


def test_several_nodes_are_refused() -> None:
    team: Any = SimpleNamespace(size=4)
    with pytest.raises(InvalidInputError, match="CPUFREE_NODE_SIZE is 2, but grids work on one"):
        place(LARGE, Asked(engine="cpu_processes"), Env(node_size=2), team=team)


def test_jacobi_hands_its_gpus_to_the_engine(machine: Machine) -> None:
    fake = machine(4)
    result = jacobi(np.zeros((50, 40), np.float32), 5, gpus=[2, 0])
    assert (fake.stencils[0]["engine"], fake.stencils[0]["gpus"]) == ("cuda_p2p", [2, 0])
    assert (result.engine, result.pes, result.plan["gpus"]) == ("cuda_p2p", 2, [2, 0])


# --- arrays on GPUs ------------------------------------------------------------------------------


def test_arrays_on_a_gpu_are_copied_there_and_back(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = machine(4)
    monkeypatch.setattr(device_arrays, "copy_beside", lambda like, u: CupyArray(u, like.number))
    u0 = CupyArray(np.ones((20, 30), np.float32), device=3)
    result = jacobi(u0, 5)
    assert (fake.stencils[0]["engine"], fake.stencils[0]["gpus"]) == ("cuda_p2p", [3])
    assert isinstance(result.u, CupyArray)
    assert result.to_dict()["dtype"] == "float32"


def test_arrays_on_a_gpu_contradict_the_cpu_engine(machine: Machine) -> None:
    machine(4)
    with pytest.raises(InvalidInputError, match="u0 lies on a GPU, but engine 'cpu_threads'"):
        jacobi(CupyArray(np.ones((20, 30))), 5, engine="cpu_threads")


def test_arrays_of_other_libraries_and_sparse_ones_are_refused(machine: Machine) -> None:
    machine(4)
    with pytest.raises(InvalidInputError, match="arrays of CuPy and PyTorch are taken"):
        jacobi(OtherArray(), 5)
    with pytest.raises(InvalidInputError, match="u0 is sparse"):
        jacobi(TorchTensor(np.ones((4, 4)), layout="sparse_coo"), 5)
