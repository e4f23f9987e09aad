"""Which way to the answer is chosen on machines with given numbers, and what is told of it."""

from __future__ import annotations

import dataclasses
import math
import sys
import threading
from pathlib import Path

import pytest
from fake_core import FakeCore

from cpufree import machine
from cpufree.engines import gpus
from cpufree.engines.answer_time import (
    LEAST_SAVING,
    Candidate,
    Costs,
    Forecast,
    all_candidates,
    best,
    comparison,
    on_cpu,
    on_gpus,
)
from cpufree.engines.asked import Asked
from cpufree.engines.expected import Expected
from cpufree.engines.gpu_choice import Size
from cpufree.engines.partition_gain import gain_on
from cpufree.engines.place import place
from cpufree.engines.placement import Placement
from cpufree.env import Env
from cpufree.errors import CpufreeError
from cpufree.partition.cost import Spread
from cpufree.solvers.work import SystemWork

KNOWN = Costs.of(machine.load(), 16)
# With a serial search for what consecutive rows exchange: two H100 took 2.4 s for the set-up of
# Poisson's equation on 200³ points, 1.0 s of it for the partition; the host laid it out.
SERIAL = dataclasses.replace(KNOWN, report=18e-9, there_least=math.inf)
POISSON_200 = Size(8_000_000, 55_760_000, 8)
SPREAD_200 = Spread(8_000_000, 40_000.0, 40_201.0, 55_760_000.0)
TINY = Size(1000, 25_000, 8)


def forecast(iterations: float, solves: int = 1, spread: Spread = SPREAD_200) -> Forecast:
    """Return what is known of a system with so many iterations."""
    gain = gain_on("cuda_p2p", solves, iterations)
    return Forecast(Expected(iterations, solves), spread, gain)


def chosen(
    size: Size,
    known: Forecast,
    gpus: int = 2,
    running: int = 0,
    costs: Costs = KNOWN,
) -> str:
    """Return what is chosen on a machine with 16 cores and GPUs, `running` of which have CUDA."""
    runs = [k < running for k in range(gpus)]
    return best(all_candidates(size, runs, 16, known, costs), known.expected).name


def test_set_up_is_predicted_as_it_was_measured() -> None:
    two = on_gpus(POISSON_200, 2, 2, forecast(494), SERIAL)
    assert two.start + two.setup == pytest.approx(2.4, rel=0.15)
    assert 494 * two.iteration == pytest.approx(0.122, rel=0.15)


@pytest.mark.parametrize(
    ("rows", "nnz", "one", "two"),
    [
        (8_000_000, 55_760_000, 0.127, 0.166),
        (1_569_924, 118_219_716, 0.127, 0.136),
        (4_139_856, 329_340_366, 0.267, 0.288),
    ],
)
def test_set_ups_by_gpus_are_predicted_as_they_were_measured(
    rows: int, nnz: int, one: float, two: float
) -> None:
    size = Size(rows, nnz, 8)
    found = [KNOWN.setup_on_gpus(size, count) for count in (1, 2)]
    assert found == pytest.approx([one, two], rel=0.2)
    small = Size(1000, int(KNOWN.there_least), 8)
    assert KNOWN.setup_on_gpus(small, 1) == pytest.approx(0.034 + 0.089, rel=0.01)


@pytest.mark.parametrize(("costs", "running"), [(KNOWN, 0), (SERIAL, 0), (SERIAL, 2)])
def test_poisson_200_gets_one_gpu_for_494_iterations(costs: Costs, running: int) -> None:
    assert chosen(POISSON_200, forecast(494), running=running, costs=costs) == "1 GPU"


def test_poisson_200_gets_two_gpus_for_494_iterations_where_cuda_runs() -> None:
    assert chosen(POISSON_200, forecast(494), running=2) == "2 GPUs"


def test_cores_share_the_search_for_what_rows_exchange() -> None:
    one, many = (Costs.of(machine.load(), cores).report for cores in (1, 1000))
    assert one / many == machine.load().number("partition.most_cores", "1")


@pytest.mark.parametrize("costs", [KNOWN, SERIAL])
@pytest.mark.parametrize("iterations", [60_000, 94_000])
def test_poisson_200_gets_two_gpus_for_many_iterations(costs: Costs, iterations: int) -> None:
    assert chosen(POISSON_200, forecast(iterations), costs=costs) == "2 GPUs"


def test_solves_count_as_iterations() -> None:
    assert chosen(POISSON_200, forecast(494, solves=150)) == "2 GPUs"


def test_tiny_system_stays_on_the_cpu_even_where_cuda_runs() -> None:
    known = forecast(100, spread=Spread(1000, 10.0, 10.0, 25_000.0))
    assert chosen(TINY, known) == "the CPU with 16 blocks"
    assert chosen(TINY, known, running=2) == "the CPU with 16 blocks"


def test_start_of_cuda_counts_only_where_it_does_not_run() -> None:
    known = forecast(500)
    starts = [on_gpus(POISSON_200, 2, idle, known, KNOWN).start for idle in (0, 1, 2)]
    assert starts == [0.0, KNOWN.context[1], KNOWN.context[2]]


def test_start_of_cuda_decides_between_cpu_and_gpu() -> None:
    known = forecast(100)
    size = Size(1_000_000, 6_940_000, 8)
    free = dataclasses.replace(KNOWN, gpu_fixed={1: 0.0, 2: 0.0}, gpu_nonzero=0.0, gpu_row=0.0)
    assert chosen(size, known, gpus=1, costs=free) == "the CPU with 16 blocks"
    assert chosen(size, known, gpus=1, running=1, costs=free) == "1 GPU"


def test_metis_is_part_of_the_set_up_only_where_it_will_run() -> None:
    scattered = Spread(8_000_000, 3e6, 2e13, 55_760_000.0)
    few, many = forecast(10, spread=scattered), forecast(100_000, spread=scattered)
    one_cut = on_gpus(POISSON_200, 2, 0, few, KNOWN)
    searched = on_gpus(POISSON_200, 2, 0, many, KNOWN)
    assert searched.setup - one_cut.setup == pytest.approx(many.search_seconds)
    assert one_cut.iteration > searched.iteration  # of consecutive rows, with their halo


def test_more_cores_than_memory_serves_do_not_count() -> None:
    most = int(KNOWN.cpu_most_cores)
    one, all_of_them = (on_cpu(POISSON_200, blocks, KNOWN) for blocks in (1, most))
    assert one.iteration > 0.9 * most * all_of_them.iteration
    assert on_cpu(POISSON_200, 8 * most, KNOWN).iteration == all_of_them.iteration


def way(name: str, setup: float, iteration: float) -> Candidate:
    return Candidate(name, 1, 0.0, setup, iteration)


@pytest.mark.parametrize(
    ("saved", "name"), [(LEAST_SAVING - 0.001, "few"), (LEAST_SAVING + 0.001, "many")]
)
def test_fewer_resources_are_taken_unless_more_save_clearly(saved: float, name: str) -> None:
    ways = [way("few", 1.0, 0.0), way("many", 1.0 - saved, 0.0)]
    assert best(ways, Expected(100)).name == name


def test_report_tells_the_numbers_that_were_compared() -> None:
    ways = [way("the CPU with 2 blocks", 0.5, 0.01), way("1 GPU", 0.25, 5e-4)]
    text = comparison(ways, ways[1], Expected(500, 3, "by parts"))
    assert text == (
        "predicted 1 s to the answer (set-up 250 ms, 3 × 500 iterations of 500 µs, by parts), "
        "15.5 s on the CPU with 2 blocks"
    )


# Through the placement


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    """Put a machine with two GPUs in the place of this one."""
    fake = FakeCore(2)
    monkeypatch.setattr("cpufree._core", fake)
    return fake


def placed(known: Forecast, asked: Asked | None = None, near: int | None = None) -> Placement:
    return place(SystemWork(POISSON_200, lambda: known), asked or Asked(), Env(), near)


def test_placement_goes_by_the_time_to_the_answer_and_says_so(two_gpus: FakeCore) -> None:
    one, two = placed(forecast(494)), placed(forecast(94_000))
    assert [gpu.index for gpu in one.gpus] == [0]
    assert [gpu.index for gpu in two.gpus] == [0, 1]
    assert "to the answer (CUDA's start 390 ms, set-up" in one.why[1]
    assert " on 2 GPUs" in one.why[1]
    assert one.expected == Expected(494)


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
