"""Where programs of ranks run, on machines that a fake extension describes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_core import Machine
from fake_gpu_arrays import CupyArray

from cpufree.compiler.arguments import Arguments
from cpufree.compiler.ranks.work import place_ranks
from cpufree.engines.placement import Placement
from cpufree.env import Env
from cpufree.errors import InvalidInputError, NotEnoughGpusError, UnsupportedError


def placed(
    ranks: int, engine: str = "auto", gpus: Any = "auto", env: Env | None = None, array: Any = None
) -> Placement:
    """Return where a number of ranks run that have an array each."""
    array = np.ones(3) if array is None else array
    given = [Arguments("f", {"u": array}) for _ in range(ranks)]
    return place_ranks(engine, gpus, given, env or Env())


def test_each_rank_has_a_gpu_where_there_are_enough(machine: Machine) -> None:
    machine(4)
    assert placed(3).own_devices == [0, 1, 2]
    assert placed(3, gpus="all").own_devices == [0, 1, 2]
    assert placed(3, "cpu_threads").engine == "cpu_threads"


def test_ranks_are_threads_where_there_are_too_few_gpus(machine: Machine) -> None:
    machine(2)
    placement = placed(3)
    assert (placement.engine, placement.pes) == ("cpu_threads", 3)
    assert placement.warnings == [
        "3 ranks are asked for, and there are 2 GPUs: run on the CPU; to use GPUs, name one for "
        "each, as gpus=[0, 0, 1, 1]"
    ]
    with pytest.raises(NotEnoughGpusError, match=r"3 ranks are.*there are 2 GPUs.*\[0, 0, 1, 1\]"):
        placed(3, "cuda_p2p")


def test_more_ranks_than_gpus_take_are_threads(machine: Machine) -> None:
    machine(20)
    assert "17 ranks, and 16 are the most" in placed(17).why[0]
    assert len(placed(16).gpus) == 16


@pytest.mark.parametrize("gpus", [[2, 3, 2], "2,3,2"])
def test_ranks_may_share_gpus_that_are_named(machine: Machine, gpus: Any) -> None:
    machine(4)
    placement = placed(3, gpus=gpus)
    assert placement.own_devices == [2, 3, 2]
    assert "2 share GPU 2" in placement.warnings[0]


@pytest.mark.parametrize("gpus", [[2, 3], "2,3"])
def test_a_gpu_is_named_for_each_rank(machine: Machine, gpus: Any) -> None:
    machine(4)
    with pytest.raises(InvalidInputError, match="gpus names 2 devices for 3 ranks: name one for"):
        placed(3, gpus=gpus)


def test_gpus_of_the_environment_are_those_of_ranks(machine: Machine) -> None:
    machine(4)
    env = Env(gpus=(3, 1))
    assert placed(2, env=env).own_devices == [1, 3]
    with pytest.raises(NotEnoughGpusError, match="in CPUFREE_GPUS"):
        placed(3, env=env)


def test_gpus_of_ranks_must_reach_one_another(machine: Machine) -> None:
    fake = machine(4, peer="GPU 0 does not reach the memory of GPU 1")
    with pytest.raises(UnsupportedError, match="cannot work together: GPU 0 does not reach"):
        placed(2)
    assert fake.asked_peers == [[0, 1]]


def test_arrays_of_ranks_on_a_gpu_contradict_the_cpu_engine(machine: Machine) -> None:
    machine(2)
    array = CupyArray(np.ones(3), 1)
    assert placed(1, array=array).own_devices == [1]
    with pytest.raises(InvalidInputError, match=r"u lies on a GPU, but engine 'cpu_threads' is"):
        placed(2, "cpu_threads", array=array)


@pytest.mark.parametrize("engine", ["nvshmem", "cpu_processes"])
def test_engines_of_processes_do_not_run_ranks(machine: Machine, engine: str) -> None:
    machine(2)
    with pytest.raises(UnsupportedError, match=f"do not run on engine '{engine}': choose cpu"):
        placed(2, engine)
