"""Where programs run, on machines that a fake extension describes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_core import Machine
from fake_gpu_arrays import CupyArray

import cpufree
from cpufree import machine as machines
from cpufree.compiler import decorated, ir
from cpufree.compiler.work import ProgramWork, on_one_pe
from cpufree.engines.asked import Asked
from cpufree.engines.place import place
from cpufree.env import Env
from cpufree.errors import (
    InvalidInputError,
    NotEnoughGpusError,
    ProgramError,
    UnsupportedError,
)


def points(count: int) -> ProgramWork:
    """Return a program whose largest array has a number of points."""
    fields = [ir.Field("few", (1,), "float64", "argument")]
    fields.append(ir.Field("many", (count // 2, 2), "float64", "argument"))
    program = ir.Program("one", tuple(fields), (), (), ())
    return ProgramWork(program, lambda: program)


POINTS_OF_GPU = int(machines.load().number("program.points_of_gpu", "1"))
LEAST_POINTS = machines.least("setup.least_points")
SMALL, LARGE = points(LEAST_POINTS - 2), points(3 * POINTS_OF_GPU + 2)


def test_auto_takes_gpus_for_large_arrays_only(machine: Machine) -> None:
    fake = machine(8)
    placement = place(SMALL, Asked(), Env())
    assert (placement.engine, fake.looked_at_gpus) == ("cpu_threads", 0)
    assert "65 534 points: set-up of a GPU pays from 65 536 on" in placement.why[0]
    assert place(points(LEAST_POINTS), Asked(), Env()).own_devices == [0]


def test_each_gpu_gets_two_million_points(machine: Machine) -> None:
    machine(8)
    assert place(LARGE, Asked(), Env()).own_devices == [0, 1, 2]
    machine(2)
    assert place(LARGE, Asked(), Env()).own_devices == [0, 1]


def test_auto_takes_the_cpu_where_there_is_no_gpu(machine: Machine) -> None:
    machine(0, note="the driver is not installed")
    placement = place(LARGE, Asked(), Env())
    assert (placement.engine, placement.gpus) == ("cpu_threads", [])
    assert "the driver is not installed" in placement.why[0]


def test_gpu_of_an_array_is_the_first_to_be_taken(machine: Machine) -> None:
    machine(4)
    assert place(SMALL, Asked(), Env(), 2).own_devices == [2]
    assert place(points(2 * POINTS_OF_GPU), Asked(), Env(), 2).own_devices == [0, 2]


def test_gpus_and_pes_that_are_asked_for_are_taken(machine: Machine) -> None:
    machine(4)
    assert place(SMALL, Asked(gpus=[3, 1]), Env()).own_devices == [3, 1]
    assert place(SMALL, Asked(gpus="all"), Env()).own_devices == [0, 1, 2, 3]
    assert place(SMALL, Asked(engine="cuda_p2p", pes=2), Env()).own_devices == [0, 1]
    assert place(SMALL, Asked(engine="cuda_p2p"), Env(gpus=(3, 1))).own_devices == [3, 1]
    assert place(LARGE, Asked(pes=5), Env()).engine == "cpu_threads"
    with pytest.raises(NotEnoughGpusError, match="5 PEs are asked for, but there are 4 GPUs"):
        place(LARGE, Asked(engine="cuda_p2p", pes=5), Env())


def test_gpus_that_do_not_reach_one_another_are_not_combined(machine: Machine) -> None:
    machine(4, peer="GPU 0 does not reach the memory of GPU 1")
    placement = place(LARGE, Asked(), Env())
    assert placement.own_devices == [0]
    assert placement.warnings == ["one GPU is used: GPU 0 does not reach the memory of GPU 1"]
    with pytest.raises(UnsupportedError, match="cannot work together"):
        place(LARGE, Asked(gpus=[0, 1]), Env())


def test_nvshmem_is_refused_with_what_to_choose_instead(machine: Machine) -> None:
    machine(4)
    with pytest.raises(UnsupportedError, match="without its device library: choose cuda_p2p"):
        place(LARGE, Asked(engine="nvshmem"), Env())


@pytest.mark.parametrize("engine", ["cpu_threads", "cpu_processes"])
def test_gpus_contradict_engines_on_the_cpu(machine: Machine, engine: str) -> None:
    machine(2)
    with pytest.raises(InvalidInputError, match=f"engine '{engine}' is asked for, which uses none"):
        place(LARGE, Asked(engine=engine, gpus=[0]), Env())


@cpufree.program
def doubled(first, second):
    second[:] = 2.0 * first


def test_arrays_on_a_gpu_contradict_the_cpu_engine(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(2)
    first, second = np.ones(9), CupyArray(np.zeros(9))
    with pytest.raises(InvalidInputError, match=r"second lies on a GPU, but.*second\.get\(\) in"):
        doubled.run((first, second), engine="cpu_threads")
    monkeypatch.setenv("CPUFREE_ENGINE", "cpu_threads")
    with pytest.raises(InvalidInputError, match=r"is asked for \(by CPUFREE_ENGINE\): leave the"):
        doubled(first, second)


def test_processes_take_no_arrays_of_gpus(machine: Machine) -> None:
    machine(2)
    with pytest.raises(InvalidInputError, match="'cpu_processes' takes arrays on the host"):
        place(LARGE, Asked(engine="cpu_processes"), Env(), 0)


def test_rows_that_cannot_be_divided_take_one_gpu(machine: Machine) -> None:
    machine(4)
    for asked, devices in ((Asked(gpus="all"), [0]), (Asked(gpus=[2]), [2]), (Asked(pes=1), [0])):
        assert place(LARGE, on_one_pe("f", "no", asked, None), Env(pes=3)).own_devices == devices
    with pytest.raises(ProgramError, match="f runs on one PE, not on 2: no; rows of the first"):
        on_one_pe("f", "no", Asked(gpus=[0, 1]), None)


# --- PEs on the CPU ---


def test_the_cpu_has_as_many_pes_as_the_placement_says(machine: Machine) -> None:
    machine(0)
    for asked, env, pes, why in (
        (Asked(pes=3), Env(), 3, "3 PEs: asked for"),
        (Asked(), Env(pes=2), 2, "2 PEs: asked for by CPUFREE_PES"),
        (Asked(pes=9), Env(), 4, "4 PEs: for 9, as are asked for, there are too few rows"),
    ):
        placement = place(points(8), asked, env)
        assert (placement.pes, placement.why[1]) == (pes, why)
    assert place(points(8), Asked(), Env()).why[1].startswith("1 PE: one for each core, if")


@cpufree.program
def smoothed(u):
    u[1:-1] = 0.5 * (u[2:] + u[:-2])


@pytest.mark.parametrize("pes", [None, "2", "40"])
def test_what_is_explained_is_what_a_call_does(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, pes: str | None
) -> None:
    machine(0)
    if pes is not None:
        monkeypatch.setenv("CPUFREE_PES", pes)
    explained = smoothed.explain(np.ones(9)).pes
    smoothed(np.ones(9))
    assert smoothed.pes == explained == {None: 1, "2": 2, "40": 9}[pes]


def test_explained_are_the_gpus_that_a_call_takes(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(8)
    monkeypatch.setenv("CPUFREE_ENGINE", "cuda_p2p")
    monkeypatch.setenv("CPUFREE_GPUS", "1,3")
    explained = smoothed.explain(np.ones(9))
    assert explained.pes == 2
    assert explained.on_gpus[0].startswith("on 2 GPUs")


# --- what a user is told ---


def test_pes_that_are_on_the_cpu_for_want_of_gpus_are_told(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    machine(2)
    monkeypatch.setenv("CPUFREE_PES", "3")
    u = np.ones((LEAST_POINTS, 1))
    with caplog.at_level("INFO", "cpufree"):
        smoothed(u)
    assert smoothed.engine == "cpu_threads"
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert told[-2:] == [
        (
            "INFO",
            "smoothed: cpu_threads: 3 PEs are asked for, and there are 2 GPUs; 3 PEs: asked for "
            "by CPUFREE_PES",
        ),
        (
            "WARNING",
            "3 PEs are asked for, and there are 2 GPUs: run on the CPU; to use GPUs, ask for "
            "fewer, or leave pes to 'auto'",
        ),
    ]


def test_a_wrong_progress_is_refused_before_anything_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decorated, "kernel_of", lambda program: pytest.fail("compiled"))

    @cpufree.program
    def unseen(u):
        u += 12345.5

    wrong: Any = "yes"
    with pytest.raises(InvalidInputError, match="progress is 'yes'"):
        unseen.run((np.ones(3),), progress=wrong)
