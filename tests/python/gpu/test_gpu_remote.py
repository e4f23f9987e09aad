"""Kernels that call NVSHMEM, on the GPUs of one machine.

GPUs in several nodes are made by CPUFREE_NODE_SIZE: the calls that go over a network elsewhere go
over NVLink here. Skipped without GPUs,
NVSHMEM or its kernels.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_rank_runs import PROBLEM, launched, why_not
from gpus_here import HERE, needs_gpu

import cpufree
from cpufree.engines import remote

NODES = [(ranks, size) for ranks, size in ((2, 1), (4, 1), (4, 2), (4, 3)) if ranks <= len(HERE)]

pytestmark = [
    needs_gpu,
    pytest.mark.skipif(len(HERE) < 2, reason="needs two GPUs"),
    pytest.mark.skipif(bool(HERE and why_not()), reason="needs NVSHMEM"),
    pytest.mark.skipif(
        bool(HERE) and not remote.NVSHMEM.find_kernels(),
        reason="needs _nvshmem.fatbin: pip install nvidia-nvshmem-cu13, then tools/build_gpu.sh",
    ),
]


def solved(
    tmp_path: Path,
    ranks: int,
    size: int,
    *words: str,
    problem: str = PROBLEM,
    rtol: str = "1e-9",
    **more: str,
) -> tuple[Any, dict[str, Any]]:
    """Return x and the report of ranks in nodes of `size`, with more in the environment."""
    files = ["--out", str(tmp_path / "x.npy"), "--json", str(tmp_path / "report.json")]
    command = ["solve", problem, "--engine", "nvshmem", "--rtol", rtol, *words, *files]
    ended = launched(command, ranks, CPUFREE_NODE_SIZE=str(size), **more)
    assert ended.returncode == 0, ended.stderr
    return np.load(tmp_path / "x.npy"), json.loads((tmp_path / "report.json").read_text())


@pytest.mark.parametrize(("ranks", "size"), NODES or [(2, 1)])
@pytest.mark.parametrize("pc", ["jacobi", "chebyshev", "fsai"])
@pytest.mark.parametrize("method", ["cg", "prcg", "pipecg"])
def test_ranks_in_nodes_find_what_ranks_of_one_node_find(
    tmp_path: Path, ranks: int, size: int, method: str, pc: str
) -> None:
    one, expected = solved(tmp_path, ranks, ranks, "--method", method, "--pc", pc)
    x, report = solved(tmp_path, ranks, size, "--method", method, "--pc", pc)
    assert report["reason"] == expected["reason"] == "CONVERGED_RTOL"
    assert abs(report["iterations"] - expected["iterations"]) <= 2
    A = cpufree.load_matrix(PROBLEM)
    b = np.ones(A.shape[0])
    assert np.linalg.norm(b - A @ x) <= 1.01e-9 * np.linalg.norm(b)
    assert np.linalg.norm(x - one) <= 1e-6 * np.linalg.norm(one)


@pytest.mark.parametrize(("ranks", "size"), NODES or [(2, 1)])
def test_ranks_in_nodes_find_the_same_bits_each_time(tmp_path: Path, ranks: int, size: int) -> None:
    first, _ = solved(tmp_path, ranks, size)
    for _ in range(3):
        again, _ = solved(tmp_path, ranks, size)
        assert first.tobytes() == again.tobytes()


def test_ranks_in_nodes_solve_in_single_precision(tmp_path: Path) -> None:
    file = tmp_path / "A.npz"
    sp.save_npz(file, sp.csr_array(cpufree.load_matrix(PROBLEM), dtype=np.float32))
    x, report = solved(tmp_path, 2, 1, problem=str(file), rtol="1e-5")
    assert x.dtype == np.float32
    assert report["reason"] == "CONVERGED_RTOL"


def test_matrices_that_come_through_rings_are_solved_in_nodes(tmp_path: Path) -> None:
    large = "gen:poisson3d?nx=200,ny=200,nz=200"
    _, report = solved(tmp_path, 2, 1, problem=large, rtol="1e-6")
    assert report["reason"] == "CONVERGED_RTOL"
