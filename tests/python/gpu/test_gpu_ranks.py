"""The engine nvshmem on GPUs, one process for each. Skipped without GPUs or without NVSHMEM."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from gpu_rank_runs import COUNTS, PROBLEM, PROGRAM, launched, solved, why_not
from gpus_here import HERE, needs_gpu, several, solve

import cpufree

pytestmark = [needs_gpu, pytest.mark.skipif(bool(HERE and why_not()), reason="needs NVSHMEM")]


@pytest.mark.parametrize("ranks", COUNTS)
@pytest.mark.parametrize("method", ["cg", "prcg", "pipecg"])
def test_processes_give_bitwise_what_one_process_gives(
    tmp_path: Path, ranks: int, method: str
) -> None:
    x, report = solved(tmp_path, ranks, "--method", method, "--rtol", "1e-9")
    A = cpufree.load_matrix(PROBLEM)
    one = solve(A, np.ones(A.shape[0]), pes=ranks, method=method, rtol=1e-9)
    assert (report["engine"], report["pes"]) == ("nvshmem", ranks)
    assert report["iterations"] == one.iterations
    assert x.tobytes() == one.x.tobytes()


@pytest.mark.parametrize("ranks", COUNTS)
@pytest.mark.parametrize("pc", ["jacobi", "chebyshev", "fsai"])
def test_own_rows_give_the_bits_of_the_whole_matrix(tmp_path: Path, ranks: int, pc: str) -> None:
    words = ["--rtol", "1e-9", "--pc", pc, "--rhs", "random"]
    x, report = solved(tmp_path, ranks, *words, "--input", "rows")
    A = cpufree.load_matrix(PROBLEM)
    b = np.random.default_rng(0).standard_normal(A.shape[0])
    one = solve(A, b, pes=ranks, rtol=1e-9, pc=pc, partition="contiguous", reorder="natural")
    assert report["iterations"] == one.iterations
    assert report["true_residual"] == one.true_residual
    assert x.tobytes() == one.x.tobytes()


@several
def test_ranks_make_a_large_matrix_by_rows(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    words = ["solve", "gen:poisson1d?n=20000000", "--maxiter", "10", "--json", str(file)]
    ended = launched(words, COUNTS[-1])
    assert ended.returncode == 10, ended.stderr  # not converged, as asked
    assert "own rows" in str(json.loads(file.read_text())["why"])


@several
def test_auto_takes_a_gpu_for_each_process(tmp_path: Path) -> None:
    ended = launched(["solve", PROBLEM, "--json", str(tmp_path / "report.json")], 2)
    assert ended.returncode == 0, ended.stderr
    assert json.loads((tmp_path / "report.json").read_text())["engine"] == "nvshmem"


@several
def test_systems_are_made_solved_and_freed_again_and_again() -> None:
    ended = launched([sys.executable, str(PROGRAM), "gpu_systems"], 2)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "solved\n" * 2


@several
def test_a_rank_killed_in_mid_solve_ends_all() -> None:
    ended = launched([sys.executable, str(PROGRAM), "gpu_killed"], 2)
    assert ended.returncode == 4
    assert "rank 1 (" in ended.stdout
    assert "has ended without a word" in ended.stdout


def test_two_ranks_on_one_gpu_are_refused_by_name() -> None:
    ended = launched(
        ["solve", PROBLEM, "--engine", "nvshmem"], 2, CUDA_VISIBLE_DEVICES=first_visible()
    )
    assert ended.returncode == 4
    assert ended.stderr.count("cpufree: error:") == 1
    assert "rank 1 has the same GPU as rank 0" in ended.stderr


def first_visible() -> str:
    """Return CUDA_VISIBLE_DEVICES that leaves one GPU."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"


@several
def test_a_heap_that_is_too_small_is_an_error_of_all_ranks() -> None:
    ended = launched([sys.executable, str(PROGRAM), "gpu_too_large"], 2)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count("refused: NVSHMEM has no room for") == 2
