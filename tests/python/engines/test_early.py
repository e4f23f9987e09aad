"""CUDA starts beside reading where GPUs are sure to be used, and nowhere else."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from fake_core import FakeCore

from cpufree.engines import early
from cpufree.engines.asked import Asked
from cpufree.env import Env
from cpufree.errors import UnsupportedError
from cpufree.solvers.solver import Solver

SMALL = "gen:poisson2d?nx=20,ny=20"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    """Return a machine with four GPUs, which remembers on which CUDA was started."""
    machine = FakeCore(4)
    monkeypatch.setattr("cpufree._core", machine)
    return machine


def started(fake: FakeCore, asked: Asked, env: Env | None = None, source: Any = SMALL) -> list[int]:
    """Return the GPUs on which CUDA was started early."""
    thread = early.start_gpus(asked, env or Env(), source)
    if thread is not None:
        thread.join(120)
        assert not thread.is_alive()
    return fake.started


@pytest.mark.parametrize(
    ("asked", "env", "numbers"),
    [
        (Asked("cuda_p2p"), Env(), [0]),
        (Asked(gpus="1,3"), Env(), [1, 3]),
        (Asked(gpus="all"), Env(), [0, 1, 2, 3]),
        (Asked("cuda_p2p", pes=2), Env(), [0, 1]),
        (Asked(), Env(engine="cuda_p2p"), [0]),
        (Asked("cuda_p2p"), Env(gpus=(2,)), [2]),
        (Asked(gpus="0,7"), Env(), [0]),  # which there is not: told later
    ],
)
def test_cuda_starts_on_gpus_that_are_asked_for(
    fake: FakeCore, asked: Asked, env: Env, numbers: list[int]
) -> None:
    assert started(fake, asked, env) == numbers


@pytest.mark.parametrize(
    ("asked", "env"),
    [
        (Asked(), Env()),
        (Asked("cpu_threads"), Env(engine="cuda_p2p")),
        (Asked(), Env(engine="cpu_threads")),
        (Asked("nvshmem"), Env()),
    ],
)
def test_nothing_starts_where_the_cpu_may_solve(fake: FakeCore, asked: Asked, env: Env) -> None:
    assert early.start_gpus(asked, env, SMALL) is None
    assert fake.looked_at_gpus == 0


@pytest.mark.parametrize(("size", "numbers"), [(100, []), (early.LARGE_FILE, [0])])
def test_a_large_file_is_sure_to_go_to_a_gpu(
    fake: FakeCore, tmp_path: Path, size: int, numbers: list[int]
) -> None:
    with open(tmp_path / "a.mtx", "wb") as file:
        file.truncate(size)
    assert started(fake, Asked(), source=tmp_path / "a.mtx") == numbers


def test_what_is_wrong_is_told_to_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpufree._core", FakeCore(0, note="the driver is not installed"))
    thread = early.start_gpus(Asked("cuda_p2p"), Env(), SMALL)
    assert thread is not None
    thread.join(120)  # an exception in a thread would fail the test
    with pytest.raises(UnsupportedError, match="the driver is not installed"):
        Solver(SMALL, engine="cuda_p2p")


def test_a_solver_that_reads_its_matrix_starts_cuda_beside(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    by: list[threading.Thread] = []
    plain = fake.gpu_free_bytes

    def watched(index: int) -> int:
        by.append(threading.current_thread())
        return plain(index)

    monkeypatch.setattr(fake, "gpu_free_bytes", watched)
    Solver(SMALL, engine="cuda_p2p", gpus=[1]).close()
    assert by
    assert by[0] is not threading.main_thread()


def test_nothing_heavy_is_imported_before_gpus_are_started() -> None:
    program = "import sys; import cpufree.engines.early; sys.exit('scipy.sparse' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
