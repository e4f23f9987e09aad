"""Where systems go on machines with given numbers, and what is told of it."""

from __future__ import annotations

import dataclasses
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_core import FakeCore

from cpufree import machine
from cpufree.engines import gpus
from cpufree.engines.asked import Asked
from cpufree.engines.expected import Expected
from cpufree.engines.gpu_choice import Size
from cpufree.engines.partition_gain import gain_on
from cpufree.engines.place import place
from cpufree.engines.placement import Placement
from cpufree.engines.system_rule import (
    Forecast,
    choose_place,
    cpu_seconds,
    start_seconds,
)
from cpufree.env import Env
from cpufree.errors import CpufreeError
from cpufree.machine import Machine
from cpufree.partition.cost import Spread
from cpufree.solvers.work import SystemWork

POISSON_200 = Size(8_000_000, 55_760_000, 8)
SPREAD_200 = Spread(8_000_000, 40_000.0, 40_201.0, 55_760_000.0)
TINY = Size(1000, 25_000, 8)
# Round numbers, whatever the measured ones are: a core moves 1 GB/s, a GPU 1 TB/s.
GIVEN = {
    "cpu.core_bandwidth": 1e9, "cpu.most_cores": 16.0, "cpu.latency": 0.0,
    "setup.cpu_nonzero": 0.0, "setup.context": {1: 1.0, 2: 3.0, 4: 7.0},
    "setup.gpu": {1: 0.1, 2: 0.2, 4: 0.4},
}  # fmt: skip
EACH = POISSON_200.moved / 1e12
"""Seconds of an iteration on one GPU."""


def halved(gpus: int) -> float:
    """Return the seconds of an iteration where GPUs share all of it."""
    return EACH / gpus


def machine_with(**changed: float | dict[int, float]) -> Machine:
    """Return a machine of round numbers, some of them changed (setup__gpu is setup.gpu)."""
    values = GIVEN | {name.replace("__", "."): value for name, value in changed.items()}
    like = machine.load()
    entries = {
        name: dataclasses.replace(like.entries[name], table=value)
        if isinstance(value, dict)
        else dataclasses.replace(like.entries[name], value=value)
        for name, value in values.items()
    }
    return dataclasses.replace(like, entries={**like.entries, **entries})


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    """Put a machine with two GPUs in the place of this one."""
    fake = FakeCore(2)
    monkeypatch.setattr("cpufree._core", fake)
    return fake


def forecast(iterations: float, solves: int = 1, spread: Spread = SPREAD_200) -> Forecast:
    """Return what is known of a system with a number of iterations."""
    gain = gain_on("cuda_p2p", solves, iterations)
    return Forecast(Expected(iterations, solves), spread, gain)


def chosen(
    iterations: float,
    gpus: int = 4,
    running: int = 4,
    blocks: int | None = 16,
    known: Machine | None = None,
    size: Size = POISSON_200,
    iteration: Callable[[int], float] = halved,
) -> int:
    """Return the GPUs that are chosen, `running` of them with CUDA; 0: the CPU."""
    spread = Spread(size.rows, 0.0, 0.0, float(size.nnz))
    runs = [k < running for k in range(gpus)]
    known = known or machine_with()
    known_of = forecast(iterations, spread=spread)
    return choose_place(size, runs, blocks, known_of, known, iteration).gpus


def test_cpu_has_what_it_solves_before_a_gpu_is_set_up() -> None:
    each = POISSON_200.moved / 16e9  # seconds of an iteration
    assert chosen(0.09 / each) == 0 and chosen(0.11 / each) == 1
    assert chosen(1.09 / each, running=0) == 0 and chosen(1.11 / each, running=0) == 1


def test_cpu_is_not_taken_where_it_is_no_choice() -> None:
    assert chosen(0.0, blocks=None) == 1


def test_twice_as_many_gpus_are_taken_while_they_save_more_than_they_take() -> None:
    # Two save half of it, and take 0.1 s more; four save a quarter, and take 0.2 s more.
    assert [chosen(k / EACH) for k in (0.19, 0.21, 0.79, 0.81)] == [1, 2, 2, 4]


def test_gpus_that_have_to_be_started_must_save_more() -> None:
    assert [chosen(k / EACH, running=1) for k in (2.1, 2.3)] == [1, 2]


def test_more_gpus_shorten_an_iteration_noticeably() -> None:
    for last, taken in ((0.43, 2), (0.42, 4)):
        assert chosen(1e9, iteration={1: 1.0, 2: 0.5, 4: last}.__getitem__) == taken


def test_solves_count_as_iterations() -> None:
    runs, known = [True] * 2, machine_with()
    few, many = (
        choose_place(POISSON_200, runs, None, forecast(60, solves), known, halved).gpus
        for solves in (1, 1000)
    )
    assert (few, many) == (1, 2)


def test_halos_count_against_more_gpus() -> None:
    scattered = Spread(8_000_000, 4e6, 2e13, 55_760_000.0)
    runs, known = [True] * 2, machine_with()
    near, far = forecast(0.3 / EACH), forecast(0.3 / EACH, spread=scattered)
    assert choose_place(POISSON_200, runs, None, near, known, halved).gpus == 2
    assert choose_place(POISSON_200, runs, None, far, known, halved).gpus == 1


@pytest.mark.parametrize(
    ("changed", "more"),
    [
        ({"setup__gpu": {1: 0.1, 2: 9.0, 4: 20.0}}, 1),  # slow set-up of several
        ({}, 4),
    ],
)
def test_decisions_come_from_the_numbers_of_the_machine(
    changed: dict[str, float], more: int
) -> None:
    assert chosen(1.0 / EACH, known=machine_with(**changed)) == more


def test_more_cores_than_memory_serves_do_not_count() -> None:
    one, most, many = (
        cpu_seconds(POISSON_200, blocks, Expected(100), machine_with()) for blocks in (1, 16, 128)
    )
    assert one == pytest.approx(16 * most) and many == most


def test_start_of_cuda_counts_on_gpus_where_it_does_not_run() -> None:
    assert [start_seconds(2, idle, machine_with()) for idle in (0, 1, 2)] == [0.2, 1.2, 3.2]


def test_iterations_that_are_not_known_leave_the_choice_to_what_one_takes(
    two_gpus: FakeCore,
) -> None:
    small, large = (SystemWork(size).best_gpus(gpus.find(), 4) for size in (TINY, POISSON_200))
    assert [len(small.gpus), len(large.gpus)] == [1, 2]
    assert large.why.startswith("predicted ") and "per iteration" in large.why


def test_three_gpus_are_taken_by_steps() -> None:
    assert [chosen(k / EACH, gpus=3) for k in (0.21, 2.0)] == [2, 3]


def test_report_tells_what_was_compared() -> None:
    one = choose_place(POISSON_200, [True] * 2, 16, forecast(10), machine_with(), halved)
    assert one.why.startswith("10 iterations: 2 GPUs save ") and "and take 100 ms" in one.why
    few = forecast(10, spread=SPREAD_200)
    cpu = choose_place(TINY, [False], 16, few, machine_with(), halved)
    assert cpu.why.startswith("10 iterations: 250 µs on 16 blocks of the CPU, 1.1 s to set")


def placed(known: Forecast, asked: Asked | None = None, near: int | None = None) -> Placement:
    return place(SystemWork(POISSON_200, lambda: known), asked or Asked(), Env(), near)


def test_placement_goes_by_the_time_to_the_answer_and_says_so(two_gpus: FakeCore) -> None:
    one, two = placed(forecast(494)), placed(forecast(94_000))
    assert [gpu.index for gpu in one.gpus] == [0]
    assert [gpu.index for gpu in two.gpus] == [0, 1]
    assert "494 iterations: 2 GPUs save" in one.why[1]
    assert one.expected == Expected(494)


def test_gpus_without_measurements_are_named(
    two_gpus: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "was not measured" not in placed(forecast(494)).why[1]
    monkeypatch.setattr(machine, "like", lambda gpu: "h100")
    why = placed(forecast(494)).why[1]
    assert why.endswith("NVIDIA H200 was not measured: by NVIDIA H100 (cpufree model calibrate)")


def test_only_gpus_that_are_used_are_started(two_gpus: FakeCore) -> None:
    placed(forecast(494))
    assert two_gpus.started == [0]


def test_gpu_engine_by_name_leaves_the_number_of_gpus_to_choose(two_gpus: FakeCore) -> None:
    asked = Asked(engine="cuda_p2p")
    assert [placed(forecast(k), asked).pes for k in (1, 94_000)] == [1, 2]


def test_number_of_gpus_that_is_asked_for_is_not_looked_into(two_gpus: FakeCore) -> None:
    def never() -> Forecast:
        raise AssertionError("nothing is to be chosen")

    assert place(SystemWork(POISSON_200, never), Asked(pes=2), Env()).pes == 2
    assert place(SystemWork(POISSON_200, never), Asked(gpus=[1]), Env()).pes == 1
    assert place(SystemWork(POISSON_200, never), Asked(engine="cpu_threads"), Env()).gpus == []


SMALL = Size(200_000, 1_400_000, 8)
SPREAD_SMALL = Spread(200_000, 450.0, 450.0, 1_400_000.0)


@pytest.mark.parametrize("ahead", [True, False])
def test_small_system_does_not_wait_for_a_driver_that_does_not_run(
    two_gpus: FakeCore, monkeypatch: pytest.MonkeyPatch, ahead: bool
) -> None:
    monkeypatch.setattr(gpus, "driver_is_ahead", lambda: ahead)
    known = forecast(100, spread=SPREAD_SMALL)
    placement = place(SystemWork(SMALL, lambda: known), Asked(), Env())
    assert placement.engine == "cpu_threads"
    assert placement.expected == known.expected
    assert (two_gpus.looked_at_gpus == 0) == ahead
    assert ("where CUDA alone takes 290 ms to start" in placement.why[0]) == ahead


@pytest.mark.parametrize(("size", "iterations"), [(SMALL, 100_000), (POISSON_200, 1)])
def test_system_that_takes_longer_than_the_start_of_cuda_is_compared(
    two_gpus: FakeCore, monkeypatch: pytest.MonkeyPatch, size: Size, iterations: int
) -> None:
    monkeypatch.setattr(gpus, "driver_is_ahead", lambda: True)
    known = forecast(iterations, spread=SPREAD_SMALL)
    placement = place(SystemWork(size, lambda: known), Asked(), Env())
    assert placement.engine == "cuda_p2p"
    assert two_gpus.looked_at_gpus > 0


@pytest.mark.parametrize("env", [Env(node_size=1), Env(pes=1), Env(gpus=(1,))])
def test_what_the_environment_says_holds_whether_the_driver_runs_or_not(
    two_gpus: FakeCore, monkeypatch: pytest.MonkeyPatch, env: Env
) -> None:
    found: list[str] = []
    for ahead in (True, False):
        monkeypatch.setattr(gpus, "driver_is_ahead", lambda ahead=ahead: ahead)
        try:
            found.append(
                place(
                    SystemWork(SMALL, lambda: forecast(1, spread=SPREAD_SMALL)), Asked(), env
                ).why[0]
            )
        except CpufreeError as error:
            found.append(str(error))
    assert found[0] == found[1]


def test_entries_are_looked_at_once_for_both_comparisons(
    two_gpus: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpus, "driver_is_ahead", lambda: True)
    calls: list[Forecast] = []

    def known() -> Forecast:
        calls.append(forecast(100_000, spread=SPREAD_SMALL))
        return calls[-1]

    place(SystemWork(SMALL, known), Asked(), Env())
    assert len(calls) == 1


def test_driver_is_ahead_where_it_is_loaded_and_nobody_has_started_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gpus, "_asked", threading.Event())
    monkeypatch.setattr(gpus, "OTHERS_ON_GPUS", ("of_another_package",))
    monkeypatch.setattr(gpus, "DRIVERS", (str(tmp_path / "driver"),))
    assert not gpus.driver_is_ahead()  # there is none
    (tmp_path / "driver").touch()
    assert gpus.driver_is_ahead()
    with monkeypatch.context() as loaded:
        loaded.setitem(sys.modules, "of_another_package", machine)
        assert not gpus.driver_is_ahead()
    gpus.find()
    assert not gpus.driver_is_ahead()


def test_b_on_a_gpu_keeps_the_system_off_the_cpu(two_gpus: FakeCore) -> None:
    known = forecast(1, spread=Spread(1000, 10.0, 10.0, 25_000.0))
    placement = place(SystemWork(TINY, lambda: known), Asked(), Env(), 1)
    assert [gpu.index for gpu in placement.gpus] == [1]
