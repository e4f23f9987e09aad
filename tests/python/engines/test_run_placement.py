"""Which engine and which GPUs a call gets, on machines that a fake extension describes."""

from __future__ import annotations

from typing import Any

import pytest
from fake_core import Machine, gpu

from cpufree.engines.asked import Asked
from cpufree.engines.gpu_choice import Size
from cpufree.engines.place import choose_engine, named_engine, place
from cpufree.engines.placement import Placement
from cpufree.env import Env
from cpufree.errors import (
    EngineError,
    InvalidInputError,
    NotEnoughGpusError,
    OutOfMemoryError,
    UnsupportedError,
)
from cpufree.machine import least
from cpufree.solvers.work import SYSTEM, SystemWork

LEAST_NONZEROS = least("setup.least_nonzeros")
SMALL = SystemWork(Size(1000, LEAST_NONZEROS - 1, 8))
MEDIUM = SystemWork(Size(3000, LEAST_NONZEROS, 8))
LARGE = SystemWork(Size(20_000_000, 140_000_000, 8))


def of_nonzeros(count: int) -> SystemWork:
    """Return a system with a number of nonzeros."""
    return SystemWork(Size(1000, count, 8))


def numbers(placement: Placement) -> list[int]:
    return [gpu.index for gpu in placement.gpus]


# The engine


def test_auto_takes_gpus_where_there_are_some_and_names_them(machine: Machine) -> None:
    machine(4)
    engine, why, notes = choose_engine(of_nonzeros(LEAST_NONZEROS), Asked(), Env())
    assert (engine, why, notes) == ("cuda_p2p", "4 × NVIDIA H200", [])


def test_auto_leaves_small_systems_to_the_cpu_and_looks_at_no_gpu(machine: Machine) -> None:
    fake = machine(4)
    engine, why, _ = choose_engine(of_nonzeros(LEAST_NONZEROS - 1), Asked(), Env())
    assert engine == "cpu_threads"
    assert why == "19 999 nonzeros: set-up of a GPU pays from 20 000 on"
    assert fake.looked_at_gpus == 0


def test_auto_takes_the_cpu_where_there_is_no_gpu_and_says_why(machine: Machine) -> None:
    machine(0, note="the driver is not installed")
    engine, why, _ = choose_engine(of_nonzeros(10**6), Asked(), Env())
    assert (engine, why) == ("cpu_threads", "no GPU can be used: the driver is not installed")


def test_auto_passes_over_gpus_that_are_too_old(machine: Machine) -> None:
    machine([gpu(0, "Tesla T4", capability=(7, 5)), gpu(1)])
    assert numbers(place(LARGE, Asked(), Env())) == [1]
    machine([gpu(0, "Tesla T4", capability=(7, 5))])
    engine, why, _ = choose_engine(of_nonzeros(10**6), Asked(), Env())
    assert engine == "cpu_threads"
    assert "8.0 or higher is needed, and GPU 0 (Tesla T4) has 7.5" in why


def test_auto_takes_the_cpu_for_more_pes_than_gpus_and_warns(machine: Machine) -> None:
    machine(2)
    placement = place(LARGE, Asked(pes=3), Env())
    assert (placement.engine, placement.pes) == ("cpu_threads", 3)
    assert "3 PEs are asked for, and there are 2 GPUs: solved on the CPU" in placement.warnings[0]


def test_engine_of_the_call_wins_over_that_of_the_environment(machine: Machine) -> None:
    machine(1)
    few = of_nonzeros(9)
    gpu_named, cpu_named = Env(engine="cuda_p2p"), Env(engine="cpu_threads")
    assert choose_engine(few, Asked(engine="cuda_p2p"), cpu_named)[0] == "cuda_p2p"
    assert choose_engine(few, Asked(engine="cpu_threads"), gpu_named)[0] == "cpu_threads"
    assert choose_engine(few, Asked(), gpu_named)[0] == "cuda_p2p"


@pytest.mark.parametrize(
    ("fake", "message"),
    [
        (
            {"gpus": 0, "built": False, "note": "this build has no CUDA"},
            r"this build has no CUDA; .*rebuild.*CPUFREE_CUDA=ON; or leave the engine to 'auto'",
        ),
        (
            {"gpus": 0, "note": "the driver is too old for CUDA 13."},
            r"the driver is too old for CUDA 13; nvidia-smi shows.*; or leave the engine",
        ),
        (
            {"gpus": [gpu(0, "Tesla T4", capability=(7, 5))]},
            r"GPU 0 \(Tesla T4\) has 7.5; leave the engine to 'auto'",
        ),
    ],
    ids=["no CUDA", "no driver", "too old"],
)
def test_gpu_engine_that_cannot_be_had_says_why_and_what_to_do(
    machine: Machine, fake: dict[str, Any], message: str
) -> None:
    machine(**fake)
    with pytest.raises(UnsupportedError, match=message):
        place(LARGE, Asked(engine="cuda_p2p"), Env())


@pytest.mark.parametrize("engine", ["nvshmem", "cpu_processes"])
def test_engines_of_many_processes_take_no_vectors_of_gpus(machine: Machine, engine: str) -> None:
    machine(2)
    assert named_engine(SYSTEM, Asked(engine=engine), Env()) == engine
    with pytest.raises(InvalidInputError, match="takes vectors on the host"):
        named_engine(SYSTEM, Asked(engine=engine), Env(), on_gpu=True)


# Which GPUs


def test_gpus_asked_for_are_taken_in_their_order_whatever_the_size(machine: Machine) -> None:
    machine(4)
    placement = place(SMALL, Asked(gpus=[2, 0]), Env())
    assert (placement.engine, placement.pes, numbers(placement)) == ("cuda_p2p", 2, [2, 0])
    assert "2 PEs on GPUs 2, 0: asked for" in placement.why


def test_all_gpus_are_those_that_can_be_used(machine: Machine) -> None:
    machine([gpu(0), gpu(1, "Tesla T4", capability=(7, 5)), gpu(2)])
    assert numbers(place(SMALL, Asked(gpus="all"), Env())) == [0, 2]


def test_unknown_gpu_is_refused_with_those_there_are(machine: Machine) -> None:
    machine([gpu(0), gpu(1), gpu(3)])
    with pytest.raises(InvalidInputError, match=r"gpus names device 7.*GPUs 0-1, 3.*VISIBLE"):
        place(LARGE, Asked(gpus="0,7"), Env())


def test_gpu_that_is_too_old_is_refused_by_number(machine: Machine) -> None:
    machine([gpu(0), gpu(1, "Tesla T4", capability=(7, 5))])
    with pytest.raises(UnsupportedError, match=r"cannot use GPU 1.*Tesla T4\) has 7.5"):
        place(LARGE, Asked(gpus=[1]), Env())


@pytest.mark.parametrize(
    ("asked", "env", "message"),
    [
        ({"engine": "cpu_threads"}, {}, "engine 'cpu_threads' is asked for, which uses none"),
        ({}, {"engine": "cpu_threads"}, r"is asked for \(by CPUFREE_ENGINE\), which uses none"),
    ],
)
def test_gpus_contradict_the_cpu_engine(
    machine: Machine, asked: dict[str, Any], env: dict[str, Any], message: str
) -> None:
    machine(2)
    with pytest.raises(InvalidInputError, match=message):
        place(LARGE, Asked(gpus=[0], **asked), Env(**env))


def test_gpus_of_the_environment_leave_a_call_for_the_cpu_alone(machine: Machine) -> None:
    machine(2)
    placement = place(LARGE, Asked(engine="cpu_threads"), Env(gpus=(0, 1)))
    assert (placement.engine, placement.gpus) == ("cpu_threads", [])


def test_pes_must_be_as_many_as_gpus(machine: Machine) -> None:
    machine(4)
    assert place(LARGE, Asked(gpus=[0, 1], pes=2), Env()).pes == 2
    with pytest.raises(InvalidInputError, match="pes is 3, but gpus names 2 devices"):
        place(LARGE, Asked(gpus=[0, 1], pes=3), Env())


def test_pes_take_the_first_of_all_gpus(machine: Machine) -> None:
    machine(4)
    assert numbers(place(LARGE, Asked(gpus="all", pes=2), Env(gpus=(3,)))) == [0, 1]
    assert numbers(place(LARGE, Asked(gpus="all", pes=2), Env(), 3)) == [0, 3]
    assert numbers(place(LARGE, Asked(gpus="all"), Env(pes=2))) == [0, 1, 2, 3]
    with pytest.raises(NotEnoughGpusError, match="5 PEs are asked for, but there are 4 GPUs for"):
        place(LARGE, Asked(gpus="all", pes=5), Env())


def test_pes_take_the_first_gpus_of_an_idle_machine(machine: Machine) -> None:
    machine(4)
    placement = place(SMALL, Asked(engine="cuda_p2p", pes=3), Env())
    assert numbers(placement) == [0, 1, 2]
    assert "3 PEs on GPUs 0-2: asked for" in placement.why


def test_gpus_asked_for_are_not_started_to_look_at_their_memory(machine: Machine) -> None:
    fake = machine(4)
    place(SMALL, Asked(engine="cuda_p2p", pes=3), Env())
    place(SMALL, Asked(gpus="all"), Env())
    assert fake.started == []


def test_auto_passes_over_gpus_that_are_full(machine: Machine) -> None:
    machine([gpu(0, free=0.0005), gpu(1), gpu(2)])
    assert numbers(place(MEDIUM, Asked(), Env())) == [1]


def test_more_pes_than_gpus_are_refused_with_both_numbers(machine: Machine) -> None:
    machine(2)
    with pytest.raises(NotEnoughGpusError, match="5 PEs are asked for, but there are 2 GPUs"):
        place(LARGE, Asked(engine="cuda_p2p", pes=5), Env())


def test_environment_names_the_gpus_that_may_be_used(machine: Machine) -> None:
    machine(4)
    env = Env(engine="cuda_p2p", gpus=(3, 1))
    placement = place(SMALL, Asked(), env)
    assert numbers(placement) == [3, 1]
    assert "2 PEs on GPUs 3, 1: asked for by CPUFREE_GPUS" in placement.why
    assert numbers(place(SMALL, Asked(pes=1), env)) == [1]
    assert numbers(place(SMALL, Asked(gpus=[0]), env)) == [0]
    with pytest.raises(NotEnoughGpusError, match="2 GPUs for them in CPUFREE_GPUS"):
        place(SMALL, Asked(pes=3), env)


def test_gpu_of_the_environment_that_is_repeated_is_refused(machine: Machine) -> None:
    machine(4)
    with pytest.raises(InvalidInputError, match="CPUFREE_GPUS names device 1 2 times"):
        place(SMALL, Asked(), Env(engine="cuda_p2p", gpus=(1, 1)))


def test_pes_share_a_gpu_that_is_named_several_times(machine: Machine) -> None:
    machine(2)
    placement = place(SMALL, Asked(gpus=[0, 0, 1, 1]), Env())
    assert numbers(placement) == [0, 0, 1, 1]
    assert placement.pes == 4
    assert "4 PEs on GPUs 0 (shared by 2), 1 (shared by 2): asked for" in placement.why
    assert placement.warnings == [
        "of the PEs, 2 share GPU 0, 2 share GPU 1: each has a part of the multiprocessors, which "
        "is for tests, models and simulation, not for speed"
    ]


@pytest.mark.parametrize("pes", ["auto", 2, 3, 4, 8])
def test_pes_never_share_gpus_unasked(machine: Machine, pes: int | str) -> None:
    machine(2)
    asked = Asked(engine="cuda_p2p", pes=pes)
    if pes not in ("auto", 2):
        with pytest.raises(NotEnoughGpusError):
            place(LARGE, asked, Env())
        return
    assert numbers(place(LARGE, asked, Env())) == [0, 1]


# How many


def test_auto_takes_one_gpu_for_a_medium_system_and_all_for_a_large_one(machine: Machine) -> None:
    machine(4)
    assert numbers(place(MEDIUM, Asked(), Env())) == [0]
    placement = place(LARGE, Asked(), Env())
    assert numbers(placement) == [0, 1, 2, 3]
    assert any(why.startswith("4 PEs on GPUs 0-3: predicted ") for why in placement.why)


def test_one_gpu_is_that_on_which_b_lies(machine: Machine) -> None:
    machine(4)
    assert numbers(place(SMALL, Asked(), Env(), 2)) == [2]


def test_system_too_large_for_all_gpus_is_refused_with_numbers(machine: Machine) -> None:
    machine([gpu(0, free=10), gpu(1, free=10)])
    with pytest.raises(OutOfMemoryError, match=r"about .* GiB on each of 2 GPUs"):
        place(SystemWork(Size(10**9, 7 * 10**9, 8)), Asked(engine="cuda_p2p"), Env())


def test_system_too_large_for_all_gpus_goes_to_the_cpu_where_no_engine_is_named(
    machine: Machine,
) -> None:
    machine([gpu(0, free=10), gpu(1, free=10)])
    placement = place(SystemWork(Size(10**9, 7 * 10**9, 8)), Asked(), Env())
    assert placement.engine == "cpu_threads"
    assert "GiB on each of 2 GPUs" in placement.warnings[0]


def test_gpu_that_lets_nobody_in_is_passed_over(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = machine(2)
    free = fake.gpu_free_bytes

    def taken(index: int) -> int:
        if index == 0:
            raise EngineError("cudaMemGetInfo: the device is busy")
        return free(index)

    monkeypatch.setattr(fake, "gpu_free_bytes", taken)
    assert numbers(place(SMALL, Asked(engine="cuda_p2p"), Env())) == [1]


def test_auto_falls_back_to_one_gpu_where_they_cannot_be_combined(machine: Machine) -> None:
    fake = machine(2, peer="GPU 0 does not reach the memory of GPU 1")
    placement = place(LARGE, Asked(), Env())
    assert numbers(placement) == [0]
    assert placement.warnings == ["one GPU is used: GPU 0 does not reach the memory of GPU 1"]
    assert fake.asked_peers == [[0, 1]]


def test_one_gpu_that_is_too_small_without_the_others_is_out_of_memory(machine: Machine) -> None:
    machine([gpu(0, free=15), gpu(1, free=15)], peer="GPU 0 does not reach GPU 1")
    with pytest.raises(OutOfMemoryError, match=r"not fit on one GPU.*GPU 0 does not reach GPU 1"):
        place(SystemWork(Size(10**8, 7 * 10**8, 8)), Asked(engine="cuda_p2p"), Env())


@pytest.mark.parametrize(
    "asked", [{"gpus": [0, 1]}, {"gpus": "all"}, {"engine": "cuda_p2p", "pes": 2}]
)
def test_gpus_asked_for_that_cannot_be_combined_are_refused(
    machine: Machine, asked: dict[str, Any]
) -> None:
    machine(2, peer="GPU 0 does not reach the memory of GPU 1")
    with pytest.raises(UnsupportedError, match="cannot work together: GPU 0 does not reach"):
        place(LARGE, Asked(**asked), Env())


def test_a_single_gpu_has_no_peers_to_ask_about(machine: Machine) -> None:
    fake = machine(2, peer="GPU 0 does not reach GPU 1")
    assert numbers(place(LARGE, Asked(gpus=[1]), Env())) == [1]
    assert fake.asked_peers == []


# Blocks


def test_blocks_of_a_gpu_are_left_to_the_engine_unless_asked_for(machine: Machine) -> None:
    machine(1)
    assert place(LARGE, Asked(), Env()).blocks == 0
    assert place(LARGE, Asked(blocks=64), Env(blocks=32)).blocks == 64
    assert place(LARGE, Asked(engine="cuda_p2p"), Env(blocks=32)).blocks == 32
    assert place(LARGE, Asked(), Env(blocks=32)).blocks == 0  # meant for threads
