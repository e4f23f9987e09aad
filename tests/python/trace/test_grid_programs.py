"""Traces of the kernels that programs have on GPUs, on the CPU engine: several blocks a PE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from programs.faulty_on_gpu import ON_THREADS, Fault
from programs.grid_on_cpu import run_kernel, traced_kernel

import cpufree
from cpufree.compiler import build
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.grid import (
    GridKernel,
    grid_groups,
    grid_kernel,
    grid_passes,
    returned_fields,
    tile_kernel,
)
from cpufree.errors import WaitTimeoutError
from cpufree.trace import clocks
from cpufree.trace.asked import Recording
from cpufree.trace.hang import HangReport, diagnose_error
from cpufree.trace.messages import Messages
from cpufree.trace.records import Kind
from cpufree.trace.timeline import Timeline

BLOCKS, PES, TURNS = 4, 3, 100


@cpufree.program
def smooth(u, v, turns):  # type: ignore[no-untyped-def]
    for _ in range(turns):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u[1:-1, 1:-1] = 0.25 * (v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:])
    return np.max(u)


@cpufree.program
def sums(u, v, turns):  # type: ignore[no-untyped-def]
    largest = 0.0
    for _ in range(turns):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u[1:-1, 1:-1] = 0.25 * (v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:])
        largest = np.max(u)
    return largest


def in_memory(program: Any, kept: Any) -> GridKernel:
    return grid_kernel(grid_passes(program, kept), PES, kept, 1)


def on_chip(program: Any, kept: Any) -> GridKernel:
    return tile_kernel(grid_groups(program, kept), PES, kept, BLOCKS, turns=0, tiles_in_heap=True)


@pytest.mark.parametrize("way", [in_memory, on_chip])
def test_waits_are_ended_by_messages_that_were_sent_before(
    way: Callable[[Any, Any], GridKernel],
) -> None:
    u = np.random.default_rng(0).standard_normal((48, 40))
    arguments = Arguments.of(smooth.signature, smooth.name, (u, u.copy(), TURNS), {})
    lowered = smooth._lowered(arguments)
    kept = returned_fields(lowered.result)
    kernel = way(lowered.program, kept)
    plain, _ = run_kernel(kernel, arguments, lowered, BLOCKS)
    arrays, trace = traced_kernel(kernel, arguments, lowered, BLOCKS, 1 << 15)
    assert all(np.array_equal(plain[name], arrays[name]) for name in plain)
    line = Timeline(trace)
    messages = line.messages
    assert len(messages.seen) > TURNS
    assert (line.waits.sent >= 0).all()
    assert trace.facts["early"] == 0
    assert trace.bytes[0, 1] > 0
    # What first threads tell of packets that others have waited for: on GPUs it is all that is
    # known of some PEs, and aligns the clocks of all.
    ends = trace.select(Kind.WAIT_END)
    told = ends[(trace.kind[ends - 1] != Kind.WAIT) | (trace.track[ends - 1] != trace.track[ends])]
    assert np.isin(told, messages.seen).all()
    alone = np.isin(messages.seen, told)
    known = clocks.measure(trace, Messages(messages.sent[alone], messages.seen[alone]))
    assert (known.bounds >= 0).all()


@pytest.mark.parametrize(("kind", "cause"), [("dropped", "lost"), ("under-counted", "too low")])
@pytest.mark.parametrize(("block", "epoch"), [(0, 4), (3, 5)])
def test_a_fault_of_a_block_is_named(
    monkeypatch: pytest.MonkeyPatch, kind: str, cause: str, block: int, epoch: int
) -> None:
    u = np.random.default_rng(0).standard_normal((48, 40))
    arguments = Arguments.of(sums.signature, sums.name, (u, u.copy(), 20), {})
    lowered = sums._lowered(arguments)
    kernel = grid_kernel(grid_passes(lowered.program, ()), 1, (), 1)
    ports = Fault(kind, 0, block, epoch).ports
    text = replace(kernel.text, text=f"{kernel.text.text}\n#define __device__\n{ports}")
    monkeypatch.setattr(build, "_TRACED", ON_THREADS)
    live: list[HangReport] = []
    given = replace(kernel, text=text), arguments, lowered, BLOCKS, 1 << 10, 1.0
    with pytest.raises(WaitTimeoutError) as caught:
        traced_kernel(*given, Recording(on_wait=live.append, after=0.06))
    first = diagnose_error(caught.value).verdicts[0]
    assert (first.cause.value, first.culprit) == (cause, (0, block))
    waits = {(wait.block, wait.target) for wait in live[-1].waits if wait.waits}
    assert (first.waiter, first.culprit) in waits, live[-1].text
