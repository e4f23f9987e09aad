"""Calibration: what solves say of a machine, and what is chosen by it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cli_runner import Run, runner

from cpufree import machine
from cpufree.engines.expected import Expected
from cpufree.engines.gpu_choice import Size
from cpufree.engines.partition_gain import gain_on
from cpufree.engines.system_rule import Forecast, by_share, choose_place
from cpufree.errors import InvalidInputError
from cpufree.machine import Machine, files
from cpufree.model.calibrate import Solve, choices_of
from cpufree.partition.cost import Spread

run = pytest.fixture(runner)
SMALL, LARGE = Size(13_824, 93_312, 8), Size(4_096_000, 28_518_400, 8)
CORES = 8
Latency = Callable[[int], float]


def solves(
    gpu: float = 2e12,
    latency: Latency = lambda gpus: 5e-6 + 1e-6 * gpus,
    setup: Latency = lambda gpus: 0.02 * gpus,
    core: float = 1e10,
    counts: tuple[int, ...] = (1, 2, 4),
) -> list[Solve]:
    """Return what solves take on a machine of these bandwidths [B/s], latencies and set-ups [s]."""
    found = []
    for size in (SMALL, LARGE):
        for k in range(3):
            noise = 1.0 + 0.01 * (k - 1)
            iteration = noise * (2e-6 + size.moved / (CORES * core))
            found.append(Solve(0, size.nnz, size.moved, 5e-9 * size.nnz, 0.0, iteration))
    for gpus in counts:
        for size in (SMALL, LARGE):
            for k in range(3):
                noise = 1.0 + 0.01 * (k - 1)
                iteration = noise * (latency(gpus) + size.moved / gpus / gpu)
                start = 0.4 if size is SMALL and k == 0 else 0.0
                found.append(Solve(gpus, size.nnz, size.moved, setup(gpus), start, iteration))
    return found


def machine_of(tmp_path: Path, found: list[Solve]) -> Machine:
    """Return the machine of the file that a calibration writes."""
    path = tmp_path / "m.json"
    path.unlink(missing_ok=True)
    content = {"machine": "M", "gpu": "G", "like": "h200", "choices": choices_of(found, CORES)}
    files.write(path, content)
    return machine.load(str(path))


def chosen(known: Machine, size: Size, iterations: float, gpus: int = 4) -> int:
    """Return on how many GPUs a system goes, where CUDA runs; 0: on the CPU."""
    spread = Spread(size.rows, 0.0, 0.0, float(size.nnz))
    forecast = Forecast(Expected(iterations), spread, gain_on("cuda_p2p"))
    return choose_place(size, [True] * gpus, CORES, forecast, known).gpus


def test_numbers_of_the_machine_come_back_out_of_its_solves(tmp_path: Path) -> None:
    known = machine_of(tmp_path, solves())
    assert known.number("cpu.core_bandwidth", "B/s") == pytest.approx(1e10, rel=0.01)
    assert known.number("cpu.latency", "s") == pytest.approx(2e-6, rel=0.1)
    assert known.number("setup.cpu_nonzero", "s") == pytest.approx(5e-9 * CORES)
    assert known.number("solver.memory_bandwidth", "B/s") == pytest.approx(2e12, rel=0.01)
    assert known.table("setup.gpu", "s") == pytest.approx({1: 0.02, 2: 0.04, 4: 0.08})
    assert known.table("setup.context", "s") == pytest.approx({1: 0.4, 2: 0.8, 4: 1.2})
    one = known.entries["solver.memory_bandwidth"]
    assert one.low is not None and one.high is not None and one.low <= one.value <= one.high


def test_all_else_is_as_of_the_machine_it_is_like(tmp_path: Path) -> None:
    known, like = machine_of(tmp_path, solves()), machine.load("h200")
    assert known.number("order.rcm", "s") == like.number("order.rcm", "s")


def test_fewer_gpus_are_taken_where_the_link_is_slow(tmp_path: Path) -> None:
    fast = machine_of(tmp_path, solves())
    assert by_share(LARGE, 4, fast) == 4
    slow = machine_of(tmp_path, solves(latency=lambda gpus: 5e-6 if gpus == 1 else 5e-3))
    assert by_share(LARGE, 4, slow) == 1
    assert (chosen(fast, LARGE, 5000), chosen(slow, LARGE, 5000)) == (4, 1)


def test_the_cpu_is_taken_where_setting_gpus_up_is_slow(tmp_path: Path) -> None:
    fast = machine_of(tmp_path, solves())
    slow = machine_of(tmp_path, solves(setup=lambda gpus: 3.0 * gpus))
    assert (chosen(fast, LARGE, 50), chosen(slow, LARGE, 50)) == (1, 0)


def test_gpus_are_taken_sooner_where_cores_are_slow(tmp_path: Path) -> None:
    fast = machine_of(tmp_path, solves(core=1e12))
    slow = machine_of(tmp_path, solves(core=1e8))
    assert (chosen(fast, SMALL, 100), chosen(slow, SMALL, 100)) == (0, 1)


def test_machines_without_gpus_say_nothing_of_them(tmp_path: Path) -> None:
    assert not [name for name in choices_of(solves(counts=()), CORES) if "gpu" in name]


def test_solves_of_one_size_are_refused() -> None:
    few = [one for one in solves() if one.nnz == SMALL.nnz]
    with pytest.raises(InvalidInputError, match="solves of one size"):
        choices_of(few, CORES)


def test_the_command_writes_a_file_that_choices_go_by(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cpufree.cli.calibrate.measured_solves", solves)
    path = tmp_path / "m.json"
    done = run("model", "calibrate", "--out", str(path))
    assert done.code == 0 and "cpu.core_bandwidth" in done.out and str(path) in done.out
    monkeypatch.setenv("CPUFREE_MACHINE", str(path))
    assert machine.of_gpu("NVIDIA H200").table("setup.gpu", "s")[1] == pytest.approx(0.02)


def test_the_file_is_the_users_own_for_these_gpus_unless_it_is_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cpufree.cli.calibrate.measured_solves", solves)
    monkeypatch.setattr("cpufree.engines.gpus.usable", lambda there: [])
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert run("model", "calibrate", "-q").code == 0
    own = tmp_path / "cpufree" / "machines" / "none.json"
    assert own == machine.own_file("none") and own.exists()
    assert [one.origin for one in machine.possible()] == [str(own)]


@pytest.mark.slow
def test_solves_on_this_machine_tell_its_bandwidth(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    assert run("model", "calibrate", "--out", str(path)).code == 0
    assert 1e8 < machine.load(str(path)).number("cpu.core_bandwidth", "B/s") < 1e12
