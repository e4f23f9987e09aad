"""Iterations on grids by the engine nvshmem, one process for each GPU. Skipped without either."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from gpu_rank_runs import COUNTS, launched, why_not
from gpus_here import HERE, needs_gpu, several
from paths import SUPPORT

from cpufree.stencil import jacobi

PROGRAM = SUPPORT / "ranks/rank_stencil_program.py"

pytestmark = [needs_gpu, pytest.mark.skipif(bool(HERE and why_not()), reason="needs NVSHMEM")]


def run(what: str, ranks: int) -> str:
    """Return what the ranks of the program say."""
    ended = launched([sys.executable, str(PROGRAM), what], ranks, CPUFREE_TEST_RANKS="nvshmem")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.parametrize("ranks", [count for count in COUNTS if count > 1] or [1])
@pytest.mark.parametrize("what", ["boundaries", "steps", "tolerance"])
def test_processes_have_the_bits_of_one_process(what: str, ranks: int) -> None:
    assert run(what, ranks) == "the same\n" * ranks


@several
@pytest.mark.parametrize("what", ["own_parts", "by_function", "again"])
def test_processes_have_the_bits_of_one_process_in_parts(what: str) -> None:
    assert run(what, 2) == "the same\n" * 2


@several
def test_a_time_limit_ends_all_processes_at_one_iteration() -> None:
    assert run("time_limit", 2) == "TIME_LIMIT True\n" * 2


# Tiles in registers, and passes over memory.
@several
@pytest.mark.parametrize(
    ("kind", "grid", "sweep"),
    [
        ("jacobi2d", "500x700", "time_tiles"),
        ("jacobi3d", "100x90x120", "registers_3d"),
        ("jacobi2d", "5000x3000", "time_tiles"),
        ("jacobi3d", "300x280x300", "time_tiles"),
    ],
)
@pytest.mark.parametrize("ranks", [count for count in COUNTS if count > 1])
def test_the_command_writes_the_bits_of_the_cpu_engine(
    tmp_path: Path, ranks: int, kind: str, grid: str, sweep: str
) -> None:
    file, report = tmp_path / "u.npy", tmp_path / "report.json"
    words = ["stencil", kind, "--grid", grid, "--iters", "60", "--precision", "single"]
    words += ["--init", "random:5", "--out", str(file), "--json", str(report)]
    ended = launched(words, ranks)
    assert ended.returncode == 0, ended.stderr
    facts = json.loads(report.read_text())
    assert (facts["engine"], facts["pes"], facts["plan"]["sweep"]) == ("nvshmem", ranks, sweep)
    shape = [int(n) for n in grid.split("x")]
    u0 = np.random.default_rng(5).random(shape, dtype=np.float32)
    assert np.load(file).tobytes() == jacobi(u0, 60, engine="cpu_threads").u.tobytes()


@several
def test_a_rank_killed_in_mid_run_ends_all() -> None:
    ended = launched([sys.executable, str(PROGRAM), "killed"], 2, CPUFREE_TEST_RANKS="nvshmem")
    assert ended.returncode == 4
    assert "rank 1 (" in ended.stdout
