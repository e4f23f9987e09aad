"""`cpufree bench triggered --gpus`: what is asked of the core, shown, drawn and written.

The core is a stand-in that answers at once; what it measures on GPUs is tested there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_runner import Run, runner

from cpufree import stencil
from cpufree.bench.triggered import measure, on_gpus, tables
from cpufree.errors import EngineError

SMALL = on_gpus.GpuPlan(
    gpus=(0, 1), sizes=(64, 1048576), vector_sizes=(8192, 1048576), grids=(64,), repeats=2
)


class Core:
    """Answers as the extension does, with times that say what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    def messages(self, *what: Any) -> Any:
        self.asked.append(("messages", what))
        _, path, back_end, _, rounds, _, before, after = what[:8]
        if back_end == "proxy":
            raise EngineError("no proxy today")
        ready = before + 5e-6
        ended = ready + after
        seen = ready + 4e-6 if path in ("triggered", "stores") else ended + 9e-6
        nan = float("nan")
        row = [5e-6, ready, ready, ended, ended + 2e-6, nan, nan, seen]
        return np.array([row] * rounds), 1e-6, 3e-7

    def overlap(self, *what: Any) -> Any:
        self.asked.append(("overlap", what))
        return np.array([[1e-3, 1.01e-3, 90e-6, 22e-6, 21.5e-6]] * 4)

    def allreduce(self, *what: Any) -> float:
        self.asked.append(("allreduce", what))
        return 5e-6

    def collective_allreduce(self, *what: Any) -> float:
        self.asked.append(("collective", what))
        return 12e-6

    def jacobi(self, u: Any, iterations: int, *what: Any) -> float:
        self.asked.append(("jacobi", what))
        u[:] = stencil.jacobi(u, iterations, engine="cpu_threads", pes=1).u
        return 1e-5 * iterations

    def soak(self, *what: Any) -> Any:
        return 1.0, 0, 5, 5

    def flood(self, *what: Any) -> float:
        return 0.1


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Core:
    stand_in = Core()
    monkeypatch.setattr(on_gpus, "load_gpu_extension", lambda: stand_in)
    return stand_in


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)


def test_each_way_of_a_message_is_measured_with_kernels_that_end_and_that_go_on(
    core: Core,
) -> None:
    measured = on_gpus.measure(SMALL)
    messages = [one for one in measured if one.study == "messages" and one.samples]
    assert len(messages) == 2 * 2 * 5  # sizes, ends, ways without the one that fails
    assert all(one.array().shape == (40, 8) for one in messages)
    large = [what for study, what in core.asked if study == "messages" and what[3] > 65536]
    assert {what[5] for what in large} == {32}


def test_a_way_that_fails_is_told_and_not_tried_again(core: Core) -> None:
    told: list[str] = []
    measured = on_gpus.measure(SMALL, told.append)
    failed = [one for one in measured if "error" in one.detail]
    assert {one.back_end for one in failed} == {"proxy"}
    assert sum("no proxy today" in text for text in told) == len(failed) == 4 + len(measure.ORDERS)


@pytest.mark.parametrize("broken", ["triggered", "at_end", "host"])
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_wrong_bits_of_a_way_of_jacobi_are_its_own_error(
    core: Core, broken: str, seed: int
) -> None:
    plan = on_gpus.GpuPlan(gpus=(0, 1), studies=("jacobi",), grids=(64,), repeats=1, seed=seed)
    right = core.jacobi

    def other(u: Any, iterations: int, *what: Any) -> float:
        seconds = right(u, iterations, *what)
        if broken in what:
            u[5, 7] += 1.0
        return seconds

    core.jacobi = other  # type: ignore[method-assign]
    measured = on_gpus.measure(plan)
    # Whichever way came first: the wrong have no times, and no other is blamed.
    assert {one.name.split(",")[0] for one in measured} == {"triggered", "at_end", "host"}
    for one in measured:
        wrong = one.name.startswith(broken)
        assert ("the bits differ" in one.detail.get("error", "")) == wrong
        assert bool(one.samples) != wrong


def test_nothing_is_measured_after_the_time_limit(core: Core) -> None:
    plan = on_gpus.GpuPlan(gpus=(0, 1), time_limit=-1.0, repeats=1)
    assert not any(one.samples for one in on_gpus.measure(plan))


def test_both_pes_on_one_gpu_leave_out_what_needs_two(core: Core) -> None:
    plan = on_gpus.GpuPlan(gpus=(0, 0), studies=("overlap", "allreduce"), repeats=1)
    on_gpus.measure(plan)
    assert {study for study, _ in core.asked} == {"allreduce"}


def test_rate_of_a_copy_is_that_of_a_plain_one_over_it(core: Core) -> None:
    plan = on_gpus.GpuPlan(gpus=(0, 1), studies=("overlap",), repeats=1)
    rows = tables.overlap_rows(on_gpus.measure(plan))
    assert [row[1] for row in rows] == ["copy_engine", "copy_engine", "block"]
    assert sorted({what[3:5] for _, what in core.asked}) == [(4, 1), (16, 4)]
    assert all(row[4] == "1.00 %" and row[7] == "97.7 %" for row in rows)


def test_command_writes_samples_and_picture(core: Core, run: Run, tmp_path: Path) -> None:
    out, plot = tmp_path / "out.json", tmp_path / "out.png"
    done = run("bench", "triggered", "--gpus", "0,1", "--quick", "--json", out, "--plot", plot)
    assert done.code == 0, done.err
    assert "Copies beside a computation" in done.out
    facts = json.loads(out.read_text())
    assert "gpus" in facts["machine"]
    studies = {one["study"] for one in facts["series"]}
    assert studies == set(on_gpus.STUDIES)
    first = next(one for one in facts["series"] if one["study"] == "messages" and one["samples"])
    assert first["columns"] == list(measure.TIMES)
    assert first["detail"]["clock_errors"][0] == {"host": 1e-6, "pair": 3e-7}
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_epochs_of_a_long_run_are_an_option(core: Core, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    studies = ("--gpus", "0,1", "--studies", "soak", "--quick", "--epochs", "4321")  # of 8 channels
    assert run("bench", "triggered", *studies, "--json", out).code == 0
    series = json.loads(out.read_text())["series"]
    assert {one["name"] for one in series} == {"4328 epochs"}
    assert {one["detail"]["epochs_of_each"] for one in series} == {541}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--gpus", "0"), "name two GPUs"),
        (("--gpus", "0,1", "--back-ends", "thread"), "choose from copy_engine"),
        (("--gpus", "0,1", "--studies", "songs"), "choose from messages"),
    ],
)
def test_mistakes_are_told(run: Run, words: tuple[str, ...], message: str) -> None:
    done = run("bench", "triggered", *words)
    assert done.code == 2
    assert message in " ".join(done.err.replace("│", " ").split())
