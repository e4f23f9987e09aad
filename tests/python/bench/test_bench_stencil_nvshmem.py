"""The contender `nvshmem` of the stencils: its processes, with a stand-in for the extension."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from paths import SUPPORT

from cpufree.bench.contenders import nvshmem
from cpufree.bench.core import rank_processes
from cpufree.bench.core.entry import choose
from cpufree.bench.stencil import contenders, nvshmem_solver
from cpufree.bench.stencil.nvshmem_solver import NvshmemSolver
from cpufree.bench.stencil.problem import checksum, make_folder, read_folder
from cpufree.errors import EngineError, InvalidInputError, UnsupportedError

FAKE = str(SUPPORT / "ranks/fake_nvshmem_rank.py")
SOLVE = {"do": "solve", "iterations": 7, "check": True}


@pytest.fixture
def solver(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the contender with ranks that are stand-ins; end what a test leaves."""
    monkeypatch.setattr(nvshmem_solver, "RANK", (sys.executable, FAKE, "stencil"))
    monkeypatch.setattr(nvshmem, "find", lambda: "/where/it/is.so")
    monkeypatch.setattr(rank_processes, "GRACE_SECONDS", 0.5)
    solver = contenders.make("nvshmem")
    yield solver
    solver.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path, (8, 5), "single")


def options(**tuning: Any) -> dict[str, Any]:
    return {"pes": 3, "gpus": [4, 5, 6, 7], "boundary": "dirichlet", "tuning": tuning}


def test_stencil_ranks_write_their_planes_into_one_grid(
    solver: NvshmemSolver, folder: Path
) -> None:
    facts = solver.load(folder, options(exchange="signal"))
    assert (facts["rank"], facts["gpus"], facts["exchange"]) == (0, [4, 5, 6], "signal")
    assert facts["nvshmem_id"] == f"id of {facts['pid']}"
    assert facts["environment"]["NVSHMEM_DISABLE_NVLS"] == "1"
    expected = read_folder(folder)
    for rank, planes in enumerate(((1, 3), (3, 5), (5, 7))):
        expected[slice(*planes)] = 1.0 + rank
    answer = solver.solve(SOLVE)
    assert answer["checksum"] == checksum(expected)
    assert (answer["iterations"], answer["seconds"]) == (7, 0.25)
    assert solver.solve({**SOLVE, "check": False, "variant": "no-comm"})["checksum"] is None
    assert sorted(file.name for file in folder.iterdir()) == ["problem.json", "u0.npy"]


def test_stencil_rank_that_dies_ends_all_with_its_message(
    solver: NvshmemSolver, folder: Path
) -> None:
    solver.load(folder, options(at_solve=["hang", "crash", "hang"]))
    with pytest.raises(EngineError, match=r"PE 1: .*NVSHMEM: aborting"):  # others wait for it
        solver.solve(SOLVE)
    with pytest.raises(InvalidInputError, match="after a failure"):
        solver.solve(SOLVE)


def test_stencil_nvshmem_needs_a_gpu_for_each_pe(solver: NvshmemSolver, folder: Path) -> None:
    with pytest.raises(UnsupportedError, match="'nvshmem': 3 PEs need 3 GPUs"):
        solver.load(folder, {**options(), "gpus": [0]})
    with pytest.raises(UnsupportedError, match="needs GPUs"):
        solver.load(folder, {**options(), "gpus": None})


@pytest.mark.parametrize(("gpus", "why"), [(True, "no NVSHMEM"), (False, "there is no GPU")])
def test_stencil_nvshmem_is_refused_with_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, gpus: bool, why: str
) -> None:
    kind = {"name": "nvshmem", "available": gpus, "why_not": "" if gpus else "there is no GPU"}
    module = ModuleType("cpufree._baselines")
    module.stencil_kinds = lambda: [kind]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cpufree._baselines", module)
    monkeypatch.setattr(nvshmem, "problem", lambda: "no NVSHMEM")
    with pytest.raises(UnsupportedError, match=f"'nvshmem' is not available: {why}"):
        choose(contenders.find(), ["nvshmem"], True)
    monkeypatch.setattr(nvshmem, "problem", lambda: "")
    if gpus:
        assert choose(contenders.find(), ["nvshmem"], True)[0].name == "nvshmem"


@pytest.mark.parametrize("shape", [(8, 5), (9, 6, 33)])
def test_stencil_heap_suffices_for_the_largest_slab(shape: tuple[int, ...]) -> None:
    # Periodic, on 4 PEs: up to 3 planes of whole 128-byte lines and 2 ghosts, twice.
    rows = 1 if len(shape) == 2 else shape[1]
    planes = (2 if shape[0] == 8 else 3) + 2
    row = 128 if shape[-1] < 17 else 384
    needed = 2 * planes * rows * row
    assert nvshmem_solver.heap_bytes(shape, 8, 4) == needed + nvshmem.OWN_BYTES
