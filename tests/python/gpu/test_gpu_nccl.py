"""The engine nccl on the GPUs of one machine: in one node, and in nodes that are made by
CPUFREE_NODE_SIZE, between which kernels call NCCL's device API over NVLink.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from gpu_rank_runs import PROBLEM, launched, why_not
from gpus_here import HERE, needs_gpu

import cpufree
from cpufree.engines import remote

pytestmark = [
    needs_gpu,
    pytest.mark.skipif(len(HERE) < 2, reason="needs two GPUs"),
    pytest.mark.skipif(bool(HERE and why_not(remote.NCCL)), reason="needs NCCL 2.28"),
]


@pytest.mark.parametrize("method", ["cg", "prcg", "pipecg"])
def test_ranks_of_one_node_find_the_bits_of_one_process(tmp_path: Path, method: str) -> None:
    out = ["--out", str(tmp_path / "x.npy")]
    words = ["solve", PROBLEM, "--engine", "nccl", "--rtol", "1e-9", "--method", method, *out]
    ended = launched(words, 2)
    assert ended.returncode == 0, ended.stderr
    A = cpufree.load_matrix(PROBLEM)
    one = cpufree.Solver(A, engine="cuda_p2p", pes=2).solve(
        np.ones(A.shape[0]), rtol=1e-9, method=method
    )
    assert np.load(tmp_path / "x.npy").tobytes() == one.x.tobytes()


@pytest.mark.skipif(
    bool(HERE) and not remote.NCCL.find_kernels(),
    reason="needs _nccl.fatbin: pip install nvidia-nccl-cu13, then tools/build_gpu.sh",
)
@pytest.mark.parametrize("method", ["cg", "prcg", "pipecg"])
def test_ranks_in_nodes_find_the_solution(tmp_path: Path, method: str) -> None:
    files = ["--out", str(tmp_path / "x.npy"), "--json", str(tmp_path / "report.json")]
    words = ["solve", PROBLEM, "--engine", "nccl", "--rtol", "1e-9", "--method", method, *files]
    ended = launched(words, 2, CPUFREE_NODE_SIZE="1")
    assert ended.returncode == 0, ended.stderr
    assert "2 nodes" in json.loads((tmp_path / "report.json").read_text())["why"]
    A = cpufree.load_matrix(PROBLEM)
    b = np.ones(A.shape[0])
    assert np.linalg.norm(b - A @ np.load(tmp_path / "x.npy")) <= 1.01e-9 * np.linalg.norm(b)
