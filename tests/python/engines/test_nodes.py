"""PEs in several nodes, made by CPUFREE_NODE_SIZE of what could reach one another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_core import FakeCore
from ranks_here import SMALL, Ended, cli, finish, start

import cpufree
from cpufree.engines import remote
from cpufree.engines.asked import Asked
from cpufree.engines.gpu_choice import Size
from cpufree.engines.place import in_nodes, place
from cpufree.env import Env
from cpufree.errors import InvalidInputError
from cpufree.solvers.work import SystemWork


def launched(ranks: int, words: list[str], **more: str) -> Ended:
    """Run `cpufree run` with an environment."""
    command = cli(["run", "-n", str(ranks), *words])
    return finish([start(command, 0, 1, "", CPUFREE_RANK="", **more)])[0]


def solved(tmp_path: Path, *words: str, **more: str) -> tuple[Any, dict[str, Any]]:
    """Return x and the report of a solve by four ranks."""
    files = ["--out", str(tmp_path / "x.npy"), "--json", str(tmp_path / "report.json")]
    ended = launched(4, ["solve", SMALL, "--rtol", "1e-9", *words, *files], **more)
    assert ended.code == 0, ended
    return np.load(tmp_path / "x.npy"), json.loads((tmp_path / "report.json").read_text())


@pytest.mark.parametrize("method", ["cg", "prcg", "pipecg"])
@pytest.mark.few(1)
def test_ranks_in_nodes_find_what_ranks_of_one_node_find(tmp_path: Path, method: str) -> None:
    expected, one = solved(tmp_path, "--method", method)
    x, report = solved(tmp_path, "--method", method, CPUFREE_NODE_SIZE="2")
    assert abs(report["iterations"] - one["iterations"]) <= 1
    assert report["reason"] == one["reason"] == "CONVERGED_RTOL"
    A = cpufree.load_matrix(SMALL)
    b = np.ones(A.shape[0])
    assert np.linalg.norm(b - A @ x) <= 1.01e-9 * np.linalg.norm(b)
    assert np.linalg.norm(x - expected) <= 1e-6 * np.linalg.norm(expected)


def test_ranks_in_nodes_find_the_same_bits_each_time(tmp_path: Path) -> None:
    first, _ = solved(tmp_path, CPUFREE_NODE_SIZE="3")
    again, _ = solved(tmp_path, CPUFREE_NODE_SIZE="3")
    assert first.tobytes() == again.tobytes()


def test_solve_tells_of_nodes_and_why(tmp_path: Path) -> None:
    _, report = solved(tmp_path, CPUFREE_NODE_SIZE="2")
    assert "2 nodes: CPUFREE_NODE_SIZE" in report["why"]


def test_ranks_with_nodes_of_other_sizes_are_told_so(place: str) -> None:
    words = cli(["solve", SMALL])
    ended = finish([start(words, k, 2, place, CPUFREE_NODE_SIZE=str(k + 1)) for k in range(2)])
    assert [end.code for end in ended] == [4, 4]
    said = "".join(end.err for end in ended)
    assert "rank 1 has another CPUFREE_NODE_SIZE than rank 0, 2 instead of 1" in said


def test_one_process_has_nodes_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    A = cpufree.load_matrix(SMALL)
    b = np.ones(A.shape[0])
    one = cpufree.Solver(A, pes=5, engine="cpu_threads").solve(b, rtol=1e-9)
    monkeypatch.setenv("CPUFREE_NODE_SIZE", "2")
    solver = cpufree.Solver(A, pes=5, engine="cpu_threads")
    result = solver.solve(b, rtol=1e-9)
    assert solver.plan["nodes"] == 3
    assert "3 nodes: CPUFREE_NODE_SIZE" in result.why
    assert abs(result.iterations - one.iterations) <= 1
    assert np.linalg.norm(result.x - one.x) <= 1e-6 * np.linalg.norm(one.x)


def test_a_node_of_all_pes_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    A = cpufree.load_matrix(SMALL)
    b = np.ones(A.shape[0])
    one = cpufree.Solver(A, pes=3, engine="cpu_threads").solve(b)
    monkeypatch.setenv("CPUFREE_NODE_SIZE", "3")
    assert cpufree.Solver(A, pes=3, engine="cpu_threads").solve(b).x.tobytes() == one.x.tobytes()


def test_nothing_is_made_into_nodes_unasked() -> None:
    assert in_nodes(Env(), 4) == ({}, [])


def test_gpus_of_one_process_are_refused_as_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpufree._core", FakeCore(1))
    with pytest.raises(InvalidInputError, match="CPUFREE_NODE_SIZE"):
        place(SystemWork(Size(10, 10, 8)), Asked(engine="cuda_p2p"), Env(node_size=1))


def test_kernels_for_several_nodes_lie_beside_the_extension(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("cpufree._core.__file__", str(tmp_path / "_core.so"))
    assert remote.NVSHMEM.find_kernels() == ""
    (tmp_path / "_nvshmem.fatbin").touch()
    assert remote.NVSHMEM.find_kernels() == str(tmp_path / "_nvshmem.fatbin")
