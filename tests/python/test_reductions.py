"""CPUFREE_REDUCE=library: sums over PEs by NVSHMEM, which solves by engine nvshmem alone have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ranks_here import SMALL, Ended, cli, finish, start

import cpufree
from cpufree.env import Env
from cpufree.errors import InvalidInputError
from cpufree.run import in_processes, nvshmem
from cpufree.run.gpu_choice import Size
from cpufree.run.gpus import Gpu
from cpufree.run.placement import Asked, Placement, place

SIZE = Size(1600, 7840, 8)


def launched(*words: str) -> Ended:
    """Run `cpufree run -n 2` with sums by the library."""
    command = cli(["run", "-n", "2", *words])
    more = {"CPUFREE_RANK": "", "CPUFREE_REDUCE": "library"}
    return finish([start(command, 0, 1, "", **more)])[0]


def placed(monkeypatch: pytest.MonkeyPatch, env: Env) -> Placement:
    """Return where a rank of two places a system on GPUs."""
    gpu = Gpu(0, "GPU", 1 << 36, (9, 0), "uuid")
    monkeypatch.setattr(in_processes, "choose_gpu", lambda *_: (gpu, [gpu, gpu]))
    monkeypatch.setattr(nvshmem, "prepare", lambda _: "library.so")
    monkeypatch.setattr(nvshmem, "find_kernels", lambda: "kernels.fatbin")
    team: Any = SimpleNamespace(size=2, size_here=2, agree=lambda *_: None)
    return in_processes.place(team, Asked(engine="nvshmem"), env, SIZE)


def test_the_engine_is_told_of_sums_by_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    placement = placed(monkeypatch, Env(reduce="library"))
    assert placement.tuning["reduce"] == "library"
    assert "sums over PEs by NVSHMEM: CPUFREE_REDUCE" in placement.why


def test_sums_are_our_own_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "reduce" not in placed(monkeypatch, Env()).tuning


def test_sums_may_be_asked_to_be_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "reduce" not in placed(monkeypatch, Env(reduce="packets")).tuning


def test_an_engine_of_one_process_refuses_the_library() -> None:
    with pytest.raises(InvalidInputError, match=r"CPUFREE_REDUCE is library.*engine 'cpu_threads'"):
        place(Asked(engine="cpu_threads"), Env(reduce="library"), SIZE)


def test_gpus_of_one_process_refuse_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "cpufree.run.placement.choose_engine", lambda *_: ("cuda_p2p", "asked for", [])
    )
    with pytest.raises(InvalidInputError, match=r"CPUFREE_REDUCE is library.*engine 'cuda_p2p'"):
        place(Asked(), Env(reduce="library"), SIZE)


def test_ranks_on_cores_refuse_the_library() -> None:
    ended = launched("solve", SMALL, "--engine", "cpu_processes")
    assert ended.code == 3
    assert ended.err.count("cpufree: error:") == 1
    assert "CPUFREE_REDUCE is library" in ended.err


def test_stencils_of_ranks_refuse_the_library() -> None:
    words = ["stencil", "jacobi2d", "--grid", "64x64", "--iters", "3"]
    ended = launched(*words, "--engine", "cpu_processes")
    assert ended.code == 3
    assert "not for stencils" in ended.err


def test_ranks_with_other_sums_are_told_so(place: str) -> None:
    words = cli(["solve", SMALL])
    asked = ("packets", "library")
    ended = finish([start(words, k, 2, place, CPUFREE_REDUCE=asked[k]) for k in range(2)])
    assert [end.code for end in ended] == [4, 4]
    said = "".join(end.err for end in ended)
    assert "rank 1 has another CPUFREE_REDUCE than rank 0, 'library' instead of 'packets'" in said


def test_a_plan_tells_how_pes_sum() -> None:
    A = cpufree.load_matrix(SMALL)
    assert cpufree.Solver(A, pes=2, engine="cpu_threads").plan["reduce"] == "packets"


def test_the_core_refuses_the_library_without_nvshmem() -> None:
    from cpufree.run import core

    A = cpufree.load_matrix(SMALL)
    matrix = cpufree.problem.as_csr(A)  # type: ignore[attr-defined]
    arrays = (matrix.indptr, matrix.indices, matrix.data, None, None)
    with pytest.raises(InvalidInputError, match="use the engine nvshmem"):
        core.make_system(
            *arrays, pes=2, blocks=1, engine="cpu_threads", gpus=(), tuning={"reduce": "library"}
        )
