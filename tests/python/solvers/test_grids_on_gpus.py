"""Grids that GPUs make: on how many of them, which rows each makes, and what is told of it.

The GPUs are fakes; what they take is in the machine's file, or in one that a test makes up.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_runner import Run, runner
from fake_core import FakeCore, GivenSystem, gpu
from fake_gpu_arrays import CupyArray

from cpufree import Solver, machine
from cpufree.engines import answer_time, core, placement
from cpufree.engines.answer_time import Costs, on_cpu, on_gpus
from cpufree.engines.expected import Expected
from cpufree.engines.gpu_choice import Size, model_of, predict
from cpufree.matrix.gpu_csr import GridCsr
from cpufree.matrix.load import as_csr, grid_csr
from cpufree.partition import methods
from cpufree.solvers import gpu_layout
from cpufree.solvers.forecast import Goal, OneCall, forecast_of_grid
from cpufree.solvers.result import Result

LARGE = "gen:poisson3d?nx=200,ny=200,nz=200"
HUGE = "gen:poisson3d?nx=640,ny=640,nz=640"
FLAT = "gen:poisson2d?nx=3000000,ny=8"  # its first axis runs fastest: half a row of lines each
KNOWN = Costs.of(machine.load(), 16)
Machine = Callable[..., FakeCore]


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a function that puts a machine with so many GPUs in the place of this one."""
    for name in ("ENGINE", "GPUS", "PES", "BLOCKS"):
        monkeypatch.delenv(f"CPUFREE_{name}", raising=False)

    def put(count: int, running: int = 0, **named: Any) -> FakeCore:
        fake = FakeCore([gpu(k, **named) for k in range(count)])
        fake.started = list(range(running))
        monkeypatch.setattr(core, "load", lambda: fake)
        return fake

    return put


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)


def grid(spec: str) -> GridCsr:
    found = grid_csr(spec)
    assert found is not None
    return found


def made(fake: FakeCore) -> GivenSystem:
    """Return the only system of a machine, which its GPUs have made."""
    (system,) = fake.systems
    assert isinstance(system, GivenSystem)
    return system


def told(spec: str, **options: Any) -> tuple[int, str]:
    """Return on how many GPUs a grid is solved, and why so many."""
    with Solver(spec, **options) as solver:
        why = solver._matrix.why
        return len(solver.gpus), next(text for text in why if " on GPU" in text)


# What the set-up of a grid takes


def test_set_up_of_a_grid_is_predicted_as_it_was_measured() -> None:
    size = Size(8_000_000, 55_760_000, 8)
    for name, seconds in (("NVIDIA H100", {1: 0.042}), ("NVIDIA H200", {1: 0.053, 2: 0.070})):
        costs = Costs.of(machine.of_gpu(name), 16)
        found = [costs.setup_of_made(size, count) for count in seconds]
        assert found == pytest.approx([*seconds.values()], rel=0.05)
    assert KNOWN.setup_of_made(size, 1) < KNOWN.setup_on_gpus(size, 1)


# Seconds of 494 iterations of poisson3d 200³ by the number of GPUs, in bench/results.
MEASURED = {
    "NVIDIA H100 80GB HBM3": {1: 0.2315, 2: 0.1221},  # time-2x-2026-11-25/auto.jsonl
    "NVIDIA H200": {1: 0.182, 2: 0.100, 4: 0.046},  # time-4x-2026-11-26/auto.jsonl
}


@pytest.mark.parametrize("name", MEASURED)
def test_iterations_on_a_grid_are_predicted_as_they_were_measured(name: str) -> None:
    size, model = Size(8_000_000, 55_760_000, 8, coded=True), model_of(name)
    known = forecast_of_grid(grid(LARGE), Goal())
    for count, seconds in MEASURED[name].items():
        halo = known.halo_seconds(count) if count > 1 else 0.0
        found = 494 * (predict(size, count, model) + halo)
        assert found == pytest.approx(seconds, rel=0.18)


@pytest.mark.parametrize(("iterations", "count"), [(377, 1), (494, 1), (3000, 2)])
def test_h100s_are_chosen_by_what_was_measured_there(iterations: int, count: int) -> None:
    A, name = grid(LARGE), "NVIDIA H100 80GB HBM3"
    known = dataclasses.replace(forecast_of_grid(A, Goal()), expected=Expected(iterations))
    size, costs = Size(A.n, A.nnz, 8, coded=True), Costs.of(machine.of_gpu(name), 16)
    ways = answer_time.all_candidates(size, [False] * 2, 32, known, costs, model_of(name))
    assert answer_time.best(ways, known.expected).gpus == count


def test_gpus_make_a_grid_without_partition_and_the_cpu_only_after_the_host_has() -> None:
    A = grid(LARGE)
    known, size = forecast_of_grid(A, Goal()), Size(A.n, A.nnz, 8)
    ready = dataclasses.replace(known, host_makes=None)
    two, from_host = (on_gpus(size, 2, 0, each, KNOWN) for each in (known, ready))
    assert two.setup == KNOWN.setup_of_made(size, 2)
    assert two.setup < from_host.setup
    assert two.iteration == from_host.iteration
    making = known.host_makes or 0.0
    assert making > 1.0
    ways = answer_time.all_candidates(size, [True], 2, known, KNOWN)
    assert ways[0].setup == pytest.approx(on_cpu(size, 2, KNOWN).setup + making)


def test_metis_of_a_grid_waits_for_the_host_to_make_it() -> None:
    A = grid(FLAT)
    size = Size(A.n, A.nnz, 8)
    few, many = (forecast_of_grid(A, Goal(solves)) for solves in (1, 1000))
    assert not few.searches(2)
    assert many.searches(2)
    searched = on_gpus(size, 2, 0, many, KNOWN)
    assert many.host_makes is not None
    least = many.host_makes + many.search_seconds
    assert searched.setup == pytest.approx(
        least + KNOWN.setup_on_gpus(size, 2) + KNOWN.report * size.nnz
    )
    assert searched.iteration < on_gpus(size, 2, 0, few, KNOWN).iteration
    saves_less = Expected((least - 0.5 * many.host_makes) / many.halo_seconds(2))
    between = dataclasses.replace(many, expected=saves_less)
    assert not between.searches(2)
    assert dataclasses.replace(between, host_makes=None).searches(2)  # from memory it pays


# Which GPUs are chosen


def test_small_grids_get_one_gpu_and_the_host_makes_them(gpus: Machine) -> None:
    fake = gpus(4)
    assert told("gen:poisson3d?nx=32,ny=32,nz=32", engine="cuda_p2p")[0] == 1
    assert not isinstance(fake.systems[-1], GivenSystem)


def test_one_gpu_is_chosen_where_the_start_of_another_takes_longer_than_it_saves(
    gpus: Machine,
) -> None:
    fake = gpus(2)
    count, why = told(LARGE)
    assert count == 1
    assert made(fake).given_as[-1] == [0, 8_000_000]
    assert fake.started == [0]
    assert "1 PE on GPU 0: predicted" in why


@pytest.mark.parametrize("engine", ["auto", "cuda_p2p"])
def test_nothing_is_forecast_where_there_is_one_gpu(
    gpus: Machine, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    """It takes a quarter of a set-up, and the CPU is no choice: the host has to make the matrix."""
    fake = gpus(1)
    monkeypatch.setattr(gpu_layout, "forecast_of_grid", lambda *_: pytest.fail("forecast"))
    with Solver(LARGE, engine=engine) as solver:
        assert solver.gpus == (0,)
    assert made(fake).given_as[-1] == [0, 8_000_000]


def test_two_gpus_are_chosen_for_the_same_grid_where_cuda_runs_on_both(gpus: Machine) -> None:
    fake = gpus(2, running=2)
    count, why = told(LARGE)
    assert count == 2
    assert made(fake).given_as[-1] == [0, 4_000_000, 8_000_000]
    assert "CUDA's start" not in why


def test_huge_grids_get_all_gpus(gpus: Machine) -> None:
    fake = gpus(4)
    count, _ = told(HUGE)
    assert count == 4
    cuts = made(fake).given_as[-1]
    shares = np.diff([grid(HUGE).entries.entries_before(row) for row in cuts])
    assert cuts[0] == 0
    assert cuts[-1] == 640**3
    assert shares.max() - shares.min() <= 7  # nonzeros: those of one row
    assert made(fake).gpus == [0, 1, 2, 3]
    assert made(fake).tuning["inspect"] is True


def test_grids_that_do_not_fit_on_one_gpu_get_more(gpus: Machine) -> None:
    fake = gpus(4, free=30.0)
    count, why = told(HUGE, engine="cuda_p2p")
    assert count == 4
    assert len(made(fake).given_as[-1]) == 5
    gpus(4, free=4.0)
    count, why = told(LARGE, engine="cuda_p2p")
    assert count == 1
    gpus(4, free=1.5)
    count, why = told(LARGE, engine="cuda_p2p")
    assert count == 2
    assert "no room on 1" in why


def test_more_gpus_are_taken_from_fewer_iterations_on_where_more_solves_come(
    gpus: Machine,
) -> None:
    def counts(solves: int) -> int:
        gpus(2)
        return told(LARGE, solves=solves)[0]

    assert [counts(solves) for solves in (1, 10)] == [1, 2]


def test_why_tells_the_numbers_of_all_ways_that_were_compared(gpus: Machine) -> None:
    gpus(2)
    A = grid(LARGE)
    known, size = forecast_of_grid(A, Goal(solves=10)), Size(A.n, A.nnz, 8, coded=True)
    _, why = told(LARGE, solves=10)
    one, two = (on_gpus(size, count, count, known, KNOWN) for count in (1, 2))
    assert why == (
        f"2 PEs on GPUs 0-1: predicted {two.seconds(known.expected):.3g} s to the answer "
        f"(CUDA's start {KNOWN.context[2] * 1e3:.3g} ms, set-up {two.setup * 1e3:.3g} ms, "
        f"{known.expected.told} of {two.iteration * 1e6:.3g} µs, by parts of 250 and 2000 rows), "
        f"{_cpu_seconds(why)} s on {_cpu_name(why)}, {one.seconds(known.expected):.3g} s on 1 GPU"
    )
    assert float(_cpu_seconds(why)) > known.host_makes  # type: ignore[operator]


def _cpu_seconds(why: str) -> str:
    return why.split("rows), ")[1].split(" s on ")[0]


def _cpu_name(why: str) -> str:
    return why.split(" s on ")[1].split(",")[0]


def test_result_says_how_many_gpus_why_and_who_made_the_rows(gpus: Machine) -> None:
    gpus(2, running=2)
    with Solver(LARGE) as solver:
        result = solver.solve(np.ones(8_000_000))
        assert isinstance(result, Result)
        assert solver.plan["pes"] == result.pes == 2
    assert "to the answer" in result.why
    assert " on 1 GPU" in result.why
    assert "each GPU has made a block of consecutive rows of the grid" in result.why
    with Solver(LARGE, pes=1) as solver:
        assert "rows stay as the GPU has made them" in "; ".join(solver._matrix.why)


def test_choice_goes_by_the_machine_file(gpus: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = {1: 0.02, 2: 60.0}  # two GPUs make a grid as if by hand

    def costs(made_fixed: dict[int, float]) -> None:
        changed = dataclasses.replace(KNOWN, made_fixed=made_fixed)
        monkeypatch.setattr(placement.Costs, "of", lambda *_: changed)

    counts = []
    for fixed in (KNOWN.made_fixed, slow):
        gpus(2, running=2)
        costs(fixed)
        counts.append(told(LARGE)[0])
    assert counts == [2, 1]


def test_gpus_that_do_not_reach_one_another_are_not_combined(gpus: Machine) -> None:
    fake = gpus(2, running=2)
    fake.peer = "GPU 0 does not reach GPU 1"
    count, why = told(LARGE)
    assert count == 1
    assert "GPUs cannot be combined" in why
    assert made(fake).pes == 1


def test_right_hand_side_on_a_gpu_has_that_one_make_the_grid(gpus: Machine) -> None:
    fake = gpus(4)
    fake.most_nonzeros_by_host = 0
    right = CupyArray(np.ones(12), 3)
    with Solver("gen:poisson2d?nx=3,ny=4", _call=OneCall(Goal(), right)) as solver:
        assert solver.gpus == (3,)
    assert made(fake).gpus == [3]


# What is asked for


@pytest.mark.parametrize(
    ("options", "cuts", "devices"),
    [
        ({"pes": 2}, [0, 4_000_000, 8_000_000], [0, 1]),
        ({"gpus": [2, 0]}, [0, 4_000_000, 8_000_000], [2, 0]),
        ({"pes": 2, "partition": "contiguous"}, [0, 4_000_000, 8_000_000], [0, 1]),
        ({"pes": 1}, [0, 8_000_000], [0]),
        ({"pes": 1, "partition": "metis"}, [0, 8_000_000], [0]),
    ],
)
def test_gpus_that_are_asked_for_make_the_grid(
    gpus: Machine, options: dict[str, Any], cuts: list[int], devices: list[int]
) -> None:
    fake = gpus(4)
    with Solver(LARGE, **options) as solver:
        assert list(solver.gpus) == devices
    assert made(fake).given_as[-1] == cuts
    assert made(fake).gpus == devices


@pytest.mark.parametrize(
    "options", [{"partition": "metis"}, {"partition": [0] * 6 + [1] * 6}, {"pc": "fsai"}]
)
def test_partitions_and_factors_are_made_on_the_host(
    gpus: Machine, options: dict[str, Any]
) -> None:
    fake = gpus(2)
    fake.most_nonzeros_by_host = 0
    Solver("gen:poisson2d?nx=3,ny=4", pes=2, engine="cuda_p2p", **options).close()
    assert not isinstance(fake.systems[-1], GivenSystem)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what the host is asked to make, which it refuses to."""
    asked: list[str] = []

    def refuse(A: Any) -> Any:
        asked.append(A)
        raise NotImplementedError

    monkeypatch.setattr("cpufree.solvers.matrix_on_pes.canonical_csr", refuse)
    return asked


def test_slabs_whose_halos_cost_more_than_metis_are_left_to_the_host(
    gpus: Machine, host: list[str]
) -> None:
    fake = gpus(2)
    natural = {"pes": 2, "reorder": "natural"}
    Solver(FLAT, **natural).close()
    Solver(FLAT, **natural, solves=10_000, partition="contiguous").close()
    assert [system.pes for system in fake.systems] == [2, 2]
    with pytest.raises(NotImplementedError):
        Solver(FLAT, **natural, solves=10_000)
    assert host == [FLAT]


def test_metis_is_not_expected_where_blocks_are_asked_for(gpus: Machine, host: list[str]) -> None:
    gpus(2, running=2)
    options = {"reorder": "natural", "solves": 10_000}
    count, why = told(FLAT, partition="contiguous", **options)
    assert count == 1  # two would wait for halos of half a line each
    assert "on 2 GPUs" in why
    with pytest.raises(NotImplementedError):
        told(FLAT, **options)
    assert host == [FLAT]


def test_order_of_rows_is_left_to_the_host_only_where_another_one_may_pay(
    gpus: Machine, host: list[str]
) -> None:
    cube = grid("gen:poisson3d?nx=400,ny=400,nz=400")
    assert cube.mean_distance() > methods.NEAR_DIAGONAL
    gpus(1)
    Solver("gen:poisson3d?nx=400,ny=400,nz=400").close()  # no order of a cube is clearly better
    assert host == []
    with pytest.raises(NotImplementedError):
        Solver(FLAT, solves=1000)
    assert host == [FLAT]


def test_new_values_in_another_format_are_laid_out_for_the_same_blocks_of_rows(
    gpus: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = gpus(2)
    fake.most_nonzeros_by_host = 0
    spec = "gen:poisson2d?nx=9,ny=9"
    parts: list[Any] = []

    def keep(*arguments: Any, **named: Any) -> Any:
        parts.append(arguments[3])
        return original(*arguments, **named)

    with Solver(spec, pes=2, engine="cuda_p2p") as solver:
        cuts = made(fake).given_as[-1]
        original = core.make_system
        monkeypatch.setattr(core, "make_system", keep)
        monkeypatch.setattr(GivenSystem, "update", lambda *_: False)
        solver.update(2.0 * as_csr(spec).to_scipy())
    assert (parts[0] == np.repeat([0, 1], np.diff(cuts))).all()


def test_command_takes_several_gpus(gpus: Machine, tmp_path: Path, cli: Run) -> None:
    fake = gpus(2, running=2)
    out = tmp_path / "run.json"
    assert cli("solve", LARGE, "--no-check", "--json", out, "--quiet").code == 0
    assert made(fake).given_as[-1] == [0, 4_000_000, 8_000_000]
    assert json.loads(out.read_text())["pes"] == 2
