"""What calls of the package get, report and warn of, on machines that a fake extension has."""

from __future__ import annotations

import numpy as np
import pytest
from fake_core import Machine

import cpufree
from cpufree.engines import system_rule
from cpufree.errors import UnsupportedError

POISSON = cpufree.generate.poisson2d(80, 80)  # 31 680 nonzeros


def test_solve_hands_the_gpus_to_the_extension_and_reports_them(machine: Machine) -> None:
    fake = machine(4)
    result = cpufree.solve(POISSON, np.ones(6400), gpus=[1, 3])
    system = fake.systems[0]
    assert (system.engine, system.pes, system.blocks) == ("cuda_p2p", 2, 0)
    assert system.gpus == [1, 3]
    assert (result.engine, result.gpus, result.device) == ("cuda_p2p", (1, 3), "2 × NVIDIA H200")
    for words in ("cuda_p2p: 4 × NVIDIA H200", "2 PEs on GPUs 1, 3", "132 blocks × 512 threads"):
        assert words in result.why
    assert "cuda_p2p, 2 PEs × 132 blocks, 2 × NVIDIA H200" in repr(result)
    assert result.to_dict()["gpus"] == [1, 3]


def test_auto_is_the_gpu_for_solve_too(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(1)
    monkeypatch.setattr(system_rule, "start_seconds", lambda *_: 0.0)
    result = cpufree.solve(POISSON, np.ones(6400))
    assert np.linalg.norm(POISSON @ result.x - 1.0) <= 1e-9
    assert result.engine == "cuda_p2p"


def test_solve_that_is_over_before_a_gpu_is_set_up_stays_on_the_cpu(machine: Machine) -> None:
    fake = machine(1)
    result = cpufree.solve(POISSON, np.ones(6400))
    assert result.engine == "cpu_threads"
    assert "of the CPU" in result.why
    assert "to set a GPU up" in result.why
    assert fake.started == []


def test_many_solves_with_one_set_up_pay_for_a_gpu(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(1)
    monkeypatch.setattr(system_rule, "start_seconds", lambda *_: 0.15)
    with cpufree.Solver(POISSON, solves=1_000_000) as solver:
        assert solver.engine == "cuda_p2p"
    with cpufree.Solver(POISSON, solves=1) as solver:
        assert solver.engine == "cpu_threads"


def test_cg_takes_gpus_too(machine: Machine) -> None:
    fake = machine(4)
    cpufree.cg(POISSON, np.ones(6400), gpus="2")
    assert fake.systems[0].gpus == [2]


def test_solve_on_gpus_gives_no_warning_about_threads(machine: Machine) -> None:
    machine(4)
    result = cpufree.solve(POISSON, np.ones(6400), gpus="all", blocks=512, partition="contiguous")
    assert result.warnings == ()


def test_warning_about_peers_reaches_the_result(machine: Machine) -> None:
    machine(2, peer="GPU 0 does not reach GPU 1")
    A = cpufree.generate.poisson1d(3_000_000)
    result = cpufree.solve(A, np.ones(3_000_000), check=False)
    assert result.warnings == ("one GPU is used: GPU 0 does not reach GPU 1",)


def test_environment_variable_names_the_gpus(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CPUFREE_ENGINE", "cuda_p2p")
    monkeypatch.setenv("CPUFREE_GPUS", "2-3")
    fake = machine(4)
    cpufree.solve(POISSON, np.ones(6400))
    assert fake.systems[0].gpus == [2, 3]


def test_engine_that_cannot_be_had_is_told_before_the_matrix_is_read(machine: Machine) -> None:
    machine(0, note="the driver is not installed")
    with pytest.raises(UnsupportedError, match="the driver is not installed"):
        cpufree.Solver("no-such-file.mtx", engine="cuda_p2p")
