"""Traces of programs: their lines are phases, and their halos are payload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cpufree
from cpufree.compiler.grid import grid_kernel
from cpufree.compiler.passes.barriers import add_barriers
from cpufree.compiler.passes.points import group_points
from cpufree.trace.critical import critical_path
from cpufree.trace.records import Trace
from cpufree.trace.report import report
from cpufree.trace.timeline import Timeline

PES, TURNS, COLUMNS = 3, 20, 40


@cpufree.program
def heat(u, v, turns):  # type: ignore[no-untyped-def]
    for _ in range(turns):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u[:, :], v[:, :] = v.copy(), u.copy()
    return np.sum(u)


@cpufree.program
def smooth(u, v, turns):  # type: ignore[no-untyped-def]
    w = np.zeros_like(u)
    for _ in range(turns):
        v[1:-1] = 0.5 * (u[:-2] + u[2:])
        w[1:-1] = v[1:-1] - u[1:-1]
        largest = np.max(w)
        u[1:-1] = v[1:-1] + 0.01 * largest


def fields(rows: int = 60) -> tuple[Any, Any]:
    u = np.random.default_rng(0).standard_normal((rows, COLUMNS))
    return u, u.copy()


@pytest.fixture(scope="module")
def trace() -> Trace:
    smooth.run((*fields(), TURNS), engine="cpu_threads", pes=PES, trace=True)
    assert smooth.trace is not None
    return smooth.trace


@pytest.mark.parametrize("pes", [1, 3])
def test_a_trace_costs_no_bit_of_the_result(pes: int) -> None:
    plain, found = fields(), fields()
    how: dict[str, Any] = {"engine": "cpu_threads", "pes": pes}
    one = heat.run((*plain, TURNS), **how)
    other = heat.run((*found, TURNS), **how, trace=True)
    assert one == other
    assert np.array_equal(plain, found)
    assert heat.trace is not None
    heat.run((*plain, TURNS), **how)
    assert heat.trace is None


def test_payload_is_that_of_the_halos(trace: Trace) -> None:
    row = 8 * COLUMNS * TURNS  # to each neighbour in a turn
    assert trace.bytes.tolist() == [[0, row, 0], [row, 0, row], [0, row, 0]]


def test_lines_are_phases(trace: Trace) -> None:
    line = Timeline(trace)
    assert len(line.slices.begin) > 0
    slices = line.slices
    named = {line.names.texts[k].split(": ", 1)[1] for k in slices.name[slices.section]}
    assert "v[1:-1] = 0.5 * (u[:-2] + u[2:]) …" in named
    assert "u[1:-1] = v[1:-1] + 0.01 * largest" in named
    assert trace.facts["iterations"] == TURNS


def test_waits_of_a_program_are_ended_by_messages_that_are_known(trace: Trace) -> None:
    line = Timeline(trace)
    assert len(line.messages.seen) > 0
    assert (line.waits.sent >= 0).all()
    assert trace.facts["early"] == 0


def test_the_critical_path_runs_through_lines(trace: Trace) -> None:
    path = critical_path(Timeline(trace))
    assert any(name.startswith("line") for name in path.seconds)
    assert set(path.seconds) & set(report(trace).phases)


def test_a_trace_of_a_program_is_written(tmp_path: Path) -> None:
    smooth.run((*fields(), 2), engine="cpu_threads", pes=2, trace=tmp_path / "p.pftrace")
    again = cpufree.trace.load(tmp_path / "p.pftrace")
    assert again.facts["what"] == "program smooth"


def test_the_text_for_gpus_is_traced_on_request() -> None:
    program = smooth.lower(*fields(), TURNS)
    text = grid_kernel(add_barriers(group_points(program)), 2, (), 8).text
    assert "run_traced(port, args.traces" in text.on_gpu(traced=True)
    assert "traced" not in text.on_gpu()
    assert "rt.section(" in text.on_gpu()
