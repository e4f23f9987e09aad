"""Traces of kernels on real GPUs. Skipped where there is none that can be used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpus_here import COUNTS, NUMBERS, needs_gpu, on_all_counts, solve
from reference_cg import rhs

import cpufree
from cpufree.trace import clocks
from cpufree.trace.records import Kind
from cpufree.trace.report import report
from cpufree.trace.timeline import Timeline

pytestmark = needs_gpu
A = cpufree.generate.poisson2d(256, 256)
KINDS = [("prcg", "jacobi"), ("cg", "none"), ("pipecg", "jacobi"), ("cg", "amg"), ("prcg", "fsai")]


def traced(pes: int, method: str = "prcg", pc: str = "jacobi", **more: Any) -> Any:
    how = {"gpus": NUMBERS[:pes], "method": method, "pc": pc, "rtol": 1e-6}
    return solve(A, rhs(A), trace=True, **how, **more)


@on_all_counts
@pytest.mark.parametrize(("method", "pc"), KINDS)
def test_a_trace_costs_no_bit_of_the_result(pes: int, method: str, pc: str) -> None:
    how = {"gpus": NUMBERS[:pes], "method": method, "pc": pc, "rtol": 1e-6}
    plain, found = solve(A, rhs(A), **how), traced(pes, method, pc)
    assert found.iterations == plain.iterations
    assert np.array_equal(found.x, plain.x)


@on_all_counts
def test_payload_is_that_of_the_halo_plan(pes: int) -> None:
    with cpufree.Solver(A, engine="cuda_p2p", gpus=NUMBERS[:pes]) as solver:
        result = solver.solve(rhs(A), rtol=1e-6, trace=True)
        plan = solver.plan["neighbours"]
    planned = np.zeros((pes, pes), np.int64)
    for pe, neighbours in enumerate(plan):
        for other, values in neighbours:
            planned[pe, other] = 8 * values * result.counts["exchanges"]
    assert np.array_equal(result.trace.bytes, planned)


@on_all_counts
def test_one_iteration_in_several_is_recorded(pes: int) -> None:
    whole = traced(pes)
    how = {"gpus": NUMBERS[:pes], "method": "prcg", "pc": "jacobi", "rtol": 1e-6}
    found = solve(A, rhs(A), trace=cpufree.trace.Recording(every=10), **how)
    assert np.array_equal(found.x, whole.x)
    assert np.array_equal(found.trace.bytes, whole.trace.bytes)
    assert 0.85 * whole.iterations < found.trace.left_out <= whole.iterations
    assert len(found.trace.kind) < 0.3 * len(whole.trace.kind)
    assert found.trace.facts["early"] == 0


@on_all_counts
def test_every_block_tells_what_it_did(pes: int) -> None:
    trace = traced(pes).trace
    leaders = trace.tracks[trace.tracks[:, 2] == 0]
    assert len(leaders) == pes * trace.facts["blocks"]
    assert trace.lost == 0
    assert set(trace.kind) >= {Kind.PHASE, Kind.REDUCE, Kind.PARTIAL}


@on_all_counts
def test_waits_are_ended_by_messages_that_were_sent_before(pes: int) -> None:
    trace = traced(pes).trace
    line = Timeline(trace)
    assert len(line.waits.begin) > 0
    assert (line.waits.sent >= 0).mean() > 0.9
    assert trace.facts["early"] == 0


@on_all_counts
def test_the_bound_of_the_clocks_is_stated(pes: int) -> None:
    trace = traced(pes).trace
    found = clocks.measure(trace)
    print(f"{pes} GPUs: offsets {trace.facts.get('clock_offsets')}, {found}")
    assert (found.bounds >= 0).all()
    assert trace.facts["clock_bound"] < 100_000


@on_all_counts
def test_a_trace_is_written_and_read(pes: int, tmp_path: Path) -> None:
    trace = traced(pes).trace
    cpufree.trace.save(trace, tmp_path / "t.pftrace")
    again = cpufree.trace.load(tmp_path / "t.pftrace")
    assert np.array_equal(again.words, trace.words)
    assert report(again).path.whole > 0.0


def test_levels_of_multigrid_are_phases() -> None:
    trace = traced(COUNTS[-1], "cg", "amg").trace
    line = Timeline(trace)
    _ = line.slices
    assert "level 1" in line.names.texts


SHAPES = [(512, 512), (96, 64, 64), (6000, 6000)]  # in registers, of planes too; in memory


@on_all_counts
@pytest.mark.parametrize("shape", SHAPES)
def test_a_stencil_is_traced_and_keeps_its_bits(pes: int, shape: tuple[int, ...]) -> None:
    u0 = np.random.default_rng(0).standard_normal(shape)
    how: Any = {"engine": "cuda_p2p", "gpus": NUMBERS[:pes]}
    plain = cpufree.stencil.jacobi(u0, 20, **how)
    found = cpufree.stencil.jacobi(u0, 20, trace=True, **how)
    assert np.array_equal(found.u, plain.u)
    assert found.trace is not None
    assert found.trace.facts["early"] == 0
    line = Timeline(found.trace)
    assert len(line.messages.seen) > 0
    assert (found.trace.bytes.sum() > 0) == (pes > 1)


@cpufree.program
def smooth(u, v, turns):  # type: ignore[no-untyped-def]
    for _ in range(turns):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u, v = v, u
    return np.max(u)


@on_all_counts
@pytest.mark.parametrize("size", [256, 3000])
def test_a_program_is_traced_and_keeps_its_bits(pes: int, size: int) -> None:
    u = np.random.default_rng(0).standard_normal((size, size))
    how: Any = {"engine": "cuda_p2p", "gpus": NUMBERS[:pes]}
    plain, found = u.copy(), u.copy()
    one = smooth.run((plain, plain.copy(), 50), **how)
    other = smooth.run((found, found.copy(), 50), trace=True, **how)
    assert one == other
    assert np.array_equal(plain, found)
    trace = smooth.trace
    assert trace is not None and trace.facts["early"] == 0
    slices = Timeline(trace).slices
    assert slices.section.any()
    assert (trace.bytes.sum() > 0) == (pes > 1)
