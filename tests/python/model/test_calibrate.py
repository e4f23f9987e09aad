"""Calibration: what solves say of a machine, and what is chosen by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli_runner import Run, runner
from paths import ROOT

from cpufree import machine
from cpufree.cli.model.calibrate import ROWS, SIDES, _grid, measured_solves
from cpufree.cli.model.system_facts import facts_of
from cpufree.compiler.emit.rates import Rates
from cpufree.engines.expected import Expected
from cpufree.engines.gpu_choice import Size
from cpufree.engines.partition_gain import gain_on
from cpufree.engines.system_rule import Forecast, choose_place
from cpufree.errors import CpufreeWarning, EngineError, InvalidInputError
from cpufree.machine import Machine, files
from cpufree.machine.files import Quantity
from cpufree.model.calibrate import LARGE, SMALL, THIN, Solve, choices_of
from cpufree.model.solve import SystemFacts, solve_seconds
from cpufree.model.stencils import facts_of as stencil_facts
from cpufree.model.stencils import stencil_seconds
from cpufree.partition.cost import Spread
from cpufree.solvers.work import iteration_on

run = pytest.fixture(runner)
CORES = 8
H200 = machine.load("h200")
REFERENCE = [name for name in H200.entries if name.startswith("calibrate.")]
LIKE = replace(H200, entries={k: v for k, v in H200.entries.items() if k not in REFERENCE})
"""Whose predictions are met by its solves."""
# Rows, entries, and values of a halo between two GPUs, of grids of these sides.
SYSTEMS = {
    SMALL: (13_824, 93_312, 576),
    LARGE: (300_000, 12_299_580, 20),
    THIN: (4_194_304, 27_246_592, 1_048_576),
}
LARGE_SIZE = Size(4_096_000, 28_518_400, 8)
SMALL_SIZE = Size(*SYSTEMS[SMALL][:2], 8)
Times = Callable[[int], float]


def changed(**factors: float) -> Machine:
    """Return a machine like H200 but for some numbers (link__store_rate is link.store_rate)."""
    entries = dict(LIKE.entries)
    for name, factor in factors.items():
        one = entries[name.replace("__", ".")]
        table = one.table and {key: factor * value for key, value in one.table.items()}
        entries[name.replace("__", ".")] = replace(one, value=factor * one.value, table=table)
    return replace(LIKE, entries=entries)


def facts(what: str, gpus: int) -> SystemFacts:
    """Return how a system lies on a number of GPUs, consecutive layers on each."""
    rows, nnz, layer = SYSTEMS[what]
    halo = 2 * layer * (gpus - 1)
    return SystemFacts(rows, nnz, gpus, (10 if what == LARGE else 2.4) * nnz, halo, layer < 16_384)


def solves(
    true: Machine = LIKE,
    late: Times = lambda gpus: 0.0,
    setup: Times = lambda gpus: 0.02 * gpus,
    core: float = 1e10,
    counts: tuple[int, ...] = (1, 2, 4),
) -> list[Solve]:
    """Return what solves take on a machine, iterations on a number of GPUs late by some seconds."""
    found = []
    for what, (rows, nnz, _) in SYSTEMS.items():
        size = Size(rows, nnz, 8)
        for noise in (0.99, 1.0, 1.01):
            iteration = noise * (2e-6 + size.moved / (CORES * core))
            took = 5e-9 * nnz, 0.0, iteration
            if what != THIN:
                found.append(Solve(what, 0, nnz, size.moved, *took))
            for gpus in counts:
                of = facts(what, gpus)
                told = solve_seconds(of, "prcg", true, 50).seconds / 50 + late(gpus)
                start = 0.4 if what == SMALL and noise < 1.0 else 0.0
                took = setup(gpus), start, noise * told
                found.append(Solve(what, gpus, nnz, size.moved, *took, 50, of))
    return found


def machine_of(tmp_path: Path, found: list[Solve]) -> Machine:
    """Return the machine of the file that a calibration writes."""
    path = tmp_path / "m.json"
    path.unlink(missing_ok=True)
    choices = {name: files.plain(one) for name, one in choices_of(found, CORES, LIKE).items()}
    content = {"machine": "M", "gpu": "G", "like": "h200", "choices": choices}
    files.write(path, content)
    return machine.load(str(path))


def chosen(known: Machine, size: Size, iterations: float, gpus: int = 4) -> int:
    """Return on how many GPUs a system goes, where CUDA runs; 0: on the CPU."""
    spread = Spread(size.rows, 0.0, 0.0, float(size.nnz))
    forecast = Forecast(Expected(iterations), spread, gain_on("cuda_p2p"))
    iteration = partial(iteration_on, size=size, known=known)
    return choose_place(size, [True] * gpus, CORES, forecast, known, iteration).gpus


def test_numbers_of_the_machine_come_back_out_of_its_solves(tmp_path: Path) -> None:
    known = machine_of(tmp_path, solves())
    assert known.number("cpu.core_bandwidth", "B/s") == pytest.approx(1e10, rel=0.01)
    assert known.number("cpu.latency", "s") == pytest.approx(2e-6, rel=0.1)
    assert known.number("setup.cpu_nonzero", "s") == pytest.approx(5e-9 * CORES)
    assert known.table("setup.gpu", "s") == pytest.approx({1: 0.02, 2: 0.04, 4: 0.08})
    assert known.table("setup.context", "s") == pytest.approx({1: 0.4, 2: 0.8, 4: 1.2})
    one = known.entries["cpu.core_bandwidth"]
    assert one.low is not None and one.high is not None and one.low <= one.value <= one.high


def test_solves_count_beside_those_of_the_like_machine(tmp_path: Path) -> None:
    # Where solves took there twice as long as predicted, twice as long is no difference.
    off = {name: Quantity(2.0, "1") for name in ("calibrate.small", "calibrate.large")}
    like = replace(LIKE, entries={**LIKE.entries, **off, "calibrate.thin": Quantity(2.0, "1")})
    twice = [replace(one, iteration=2.0 * one.iteration) for one in solves()]
    rate = "product.memory_rate"
    assert choices_of(twice, CORES, like)[rate].value == pytest.approx(
        choices_of(solves(), CORES, LIKE)[rate].value
    )
    assert choices_of(twice, CORES, LIKE)[rate].value < 0.7 * LIKE.entries[rate].value


def test_all_else_is_as_of_the_machine_it_is_like(tmp_path: Path) -> None:
    known, like = machine_of(tmp_path, solves()), machine.load("h200")
    assert known.number("order.rcm", "s") == like.number("order.rcm", "s")


def test_fewer_gpus_are_taken_where_the_link_is_slow(tmp_path: Path) -> None:
    fast = machine_of(tmp_path, solves())
    slow = machine_of(tmp_path, solves(late=lambda gpus: 5e-3 * (gpus > 1)))
    assert [chosen(known, LARGE_SIZE, 20_000) for known in (fast, slow)] == [4, 1]
    grid = (8192, 8192)

    def seconds(known: Machine, gpus: int) -> float:
        return stencil_seconds(
            stencil_facts(grid, 4, (False, False), False, gpus, 132), known
        ).seconds

    assert seconds(fast, 4) < 0.5 * seconds(fast, 1) and seconds(slow, 4) > seconds(slow, 1)
    step = [Rates.of(known, 2).exchange for known in (fast, slow)]
    assert step[0] < 3.0 and step[1] > 4000.0


@pytest.mark.parametrize(
    "truth",
    [
        {},
        {"link__store_rate": 0.06, "exchange__stores": 3.0, "exchange__packets": 3.0},  # PCIe
        {"product__memory_rate": 0.5, "loop__memory_rate": 0.5},
        {"exchange__stores": 10.5, "exchange__packets": 20.0},  # 38 us more each
        {"product__memory_rate": 2.0, "loop__memory_rate": 2.0},
        {"sum__one_gpu": 4.0, "sum__two_gpus": 4.0},
    ],
)
def test_predictions_on_the_machine_follow_from_its_solves(
    tmp_path: Path, truth: dict[str, float]
) -> None:
    true = changed(**truth)
    known = machine_of(tmp_path, solves(true))
    for gpus in (1, 2, 4):
        other = SystemFacts(2_000_000, 40_000_000, gpus, 1.2e8, 400_000 * (gpus - 1), False)
        for system in (other, facts(SMALL, gpus), facts(THIN, gpus)):
            told, is_so = (solve_seconds(system, "prcg", one, 500).seconds for one in (known, true))
            assert told == pytest.approx(is_so, rel=0.15)


def test_what_is_slow_is_told_by_its_name(tmp_path: Path) -> None:
    link = "link.store_rate", "B/s"
    slow = machine_of(tmp_path, solves(changed(link__store_rate=0.06)))
    assert slow.number(*link) == pytest.approx(0.06 * LIKE.number(*link), rel=0.1)
    rate = "loop.memory_rate", "B/s", 6
    half = machine_of(tmp_path, solves(changed(product__memory_rate=0.5, loop__memory_rate=0.5)))
    assert half.at(*rate) == pytest.approx(0.5 * LIKE.at(*rate), rel=0.1)
    assert half.number(*link) == pytest.approx(LIKE.number(*link), rel=0.5)


def test_a_link_that_solves_do_not_tell_is_left_to_the_like_machine() -> None:
    soon = [replace(x, iteration=0.5 * x.iteration) if x.what == THIN else x for x in solves()]
    assert "link.store_rate" not in choices_of(soon, CORES, LIKE)
    assert "link.store_rate" in choices_of(solves(), CORES, LIKE)


def test_the_reference_of_h200_is_that_of_its_record() -> None:
    of = facts_of(_grid(*SIDES[SMALL]), [1, 2], LIKE, ROWS)
    known = machine.load(str(ROOT / "bench/results/calibrate-2x-2026-11-29.json"))
    for one in of:
        met, told = (solve_seconds(one, "prcg", by, 50).seconds for by in (known, LIKE))
        assert H200.at("calibrate.small", "1", one.pes) == pytest.approx(met / told, abs=5e-4)


def test_the_cpu_is_taken_where_setting_gpus_up_is_slow(tmp_path: Path) -> None:
    fast = machine_of(tmp_path, solves())
    slow = machine_of(tmp_path, solves(setup=lambda gpus: 3.0 * gpus))
    assert [chosen(known, LARGE_SIZE, 50) for known in (fast, slow)] == [1, 0]


def test_gpus_are_taken_sooner_where_cores_are_slow(tmp_path: Path) -> None:
    fast = machine_of(tmp_path, solves(core=1e12))
    slow = machine_of(tmp_path, solves(core=1e8))
    assert [chosen(known, SMALL_SIZE, 100) for known in (fast, slow)] == [0, 1]


def test_machines_without_gpus_say_nothing_of_them(tmp_path: Path) -> None:
    assert {name.split(".")[0] for name in choices_of(solves(counts=()), CORES, LIKE)} == {
        "cpu",
        "setup",
    }


def test_a_latency_that_scatter_hides_is_that_of_the_like_machine() -> None:
    few = [one for one in solves(counts=())]
    assert "cpu.latency" in choices_of(few, CORES, LIKE)
    hidden = [
        replace(one, iteration=one.iteration - 3e-6) if one.what == SMALL else one for one in few
    ]
    assert "cpu.latency" not in choices_of(hidden, CORES, LIKE)


@pytest.mark.parametrize(("what", "least"), [(SMALL, 0), (LARGE, 1), (THIN, 2)])
def test_a_system_that_is_missing_is_named(what: str, least: int) -> None:
    few = [one for one in solves() if one.what != what or one.gpus < least]
    with pytest.raises(InvalidInputError, match=f"no solve of a {what} system"):
        choices_of(few, CORES, LIKE)


def test_the_command_writes_a_file_that_choices_go_by(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cpufree.cli.model.calibrate.measured_solves", lambda like: solves())
    path = tmp_path / "m.json"
    done = run("model", "calibrate", "--out", str(path))
    assert done.code == 0 and "cpu.core_bandwidth" in done.out and str(path) in done.out
    monkeypatch.setenv("CPUFREE_MACHINE", str(path))
    assert machine.of_gpu("NVIDIA H200").table("setup.gpu", "s")[1] == pytest.approx(0.02)


def test_the_file_is_the_users_own_for_these_gpus_unless_it_is_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cpufree.cli.model.calibrate.measured_solves", lambda like: solves())
    monkeypatch.setattr("cpufree.engines.gpus.usable", lambda there: [])
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert run("model", "calibrate", "-q").code == 0
    own = tmp_path / "cpufree" / "machines" / "none.json"
    assert own == machine.own_file("none") and own.exists()
    assert [one.origin for one in machine.possible()] == [str(own)]


class SolverThere:
    """Solver of a machine with four GPUs; `answer` says what a solve on so many of them does."""

    answer: Any = None

    def __init__(self, A: Any, *, engine: str, pes: int = 0, **how: Any) -> None:
        self.pes = pes

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def solve(self, b: Any, *, time_limit: float, wait_limit: float, **how: Any) -> Any:
        assert 0.0 < wait_limit <= time_limit <= 10.0
        iterations, seconds = type(self).answer(self.pes)
        timings = {"setup": 0.01, "setup_system_context": 0.0, "solve_kernel": seconds}
        return SimpleNamespace(iterations=iterations, timings=timings)


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> type[SolverThere]:
    monkeypatch.setattr("cpufree.Solver", SolverThere)
    monkeypatch.setattr("cpufree.cli.model.calibrate.candidates", lambda there: [1, 2, 4])
    monkeypatch.setattr("cpufree.cli.model.calibrate.gpus.usable", lambda there: [None] * 4)
    return SolverThere


def test_counts_of_gpus_that_fail_are_left_out(there: Any, monkeypatch: Any) -> None:
    def answer(pes: int) -> tuple[int, float]:
        if pes == 4:
            raise EngineError("no way from GPU 0 to GPU 3")
        return 50, 1e-3

    monkeypatch.setattr(there, "answer", staticmethod(answer))
    with pytest.warns(CpufreeWarning, match="solves on 4 GPUs failed.*no way from GPU 0"):
        found = measured_solves(LIKE)
    assert {one.gpus for one in found} == {0, 1, 2}
    assert choices_of(found, CORES, LIKE)["setup.gpu"].table == {1: 0.01, 2: 0.01}


@pytest.mark.parametrize(
    ("iterations", "seconds", "pes"),
    [(7, 1e-3, 1), (50, 0.0, 1), (50, float("nan"), 1), (50, 11.0, 1), (12, 10.0, 0)],
)
def test_solves_that_tell_nothing_are_refused(
    there: Any, monkeypatch: Any, iterations: int, seconds: float, pes: int
) -> None:
    def answer(count: int) -> tuple[int, float]:
        return (iterations, seconds) if count == pes else (50, 1e-3)

    monkeypatch.setattr(there, "answer", staticmethod(answer))
    with pytest.raises(EngineError, match=r"system on .* too busy, or does not work"):
        measured_solves(LIKE)


@pytest.mark.slow
def test_solves_on_this_machine_tell_its_bandwidth(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    assert run("model", "calibrate", "--out", str(path)).code == 0
    assert 1e8 < machine.load(str(path)).number("cpu.core_bandwidth", "B/s") < 1e12
