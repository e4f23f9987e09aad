"""Traces of triggered operations: blocks, the NICs that they trigger, and who waits for these."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cpufree
from cpufree.errors import InvalidInputError
from cpufree.trace.records import Kind, Trace
from cpufree.trace.timeline import Timeline, track_name
from cpufree.triggered import Domain

EPOCHS, VALUES = 5, 16


@pytest.fixture(scope="module")
def trace() -> Trace:
    """Return the trace of a ping-pong: each of two PEs puts when the other one's put has come."""
    with Domain(pes=2, blocks=1, trace=True) as domain:
        source, target = domain.buffer("source", VALUES), domain.buffer("target", VALUES)
        for pe in range(2):
            domain.put(3 + pe, source, target, pe=pe, to=1 - pe, epochs=EPOCHS, signal=pe)
        for first in range(0, EPOCHS, EPOCHS):  # several launches add to one trace
            program = domain.program()
            for epoch in range(first, EPOCHS):
                program.block(0).trigger(3, epoch=epoch).wait_signal(1, epoch=epoch, origin=1)
                program.block(1).wait_signal(0, epoch=epoch, origin=0).trigger(4, epoch=epoch)
            domain.run(program)
    assert domain.trace is not None
    return domain.trace


def test_nics_have_tracks_of_their_own(trace: Trace) -> None:
    names = [track_name(trace, block, thread) for _, block, thread, *_ in trace.tracks.tolist()]
    assert sorted(names) == ["NIC", "NIC", "block 0", "block 0"]


def test_each_firing_is_a_slice(trace: Trace) -> None:
    line = Timeline(trace)
    slices = line.slices
    for tag in (3, 4):
        number = line.names.numbers[f"fires operation {tag}"]
        assert (slices.name == number).sum() == EPOCHS


def test_a_trigger_is_found_by_its_nic(trace: Trace) -> None:
    arrows = Timeline(trace).arrows
    to_nic = trace.tracks[trace.track[arrows.seen], 1] == 1
    assert to_nic.sum() == 2 * EPOCHS
    assert (trace.kind[arrows.sent[to_nic]] == Kind.PACKET).all()


def test_waits_are_ended_by_signals_of_nics(trace: Trace) -> None:
    line = Timeline(trace)
    seen = np.isin(trace.kind, (Kind.WAIT_END, Kind.FOUND)) & (trace.tracks[trace.track, 1] == 0)
    assert seen.sum() == 2 * EPOCHS
    blocks = trace.tracks[trace.track[line.messages.seen], 1] == 0
    assert blocks.sum() == 2 * EPOCHS
    assert (trace.tracks[trace.track[line.messages.sent[blocks]], 1] == 1).all()
    assert trace.facts["early"] == 0


def test_payload_is_what_was_put(trace: Trace) -> None:
    assert trace.bytes.tolist() == [[0, 8 * VALUES * EPOCHS], [8 * VALUES * EPOCHS, 0]]


def test_a_file_is_written_when_a_domain_ends(tmp_path: Path) -> None:
    with Domain(pes=1, trace=tmp_path / "t.pftrace") as domain:
        one = domain.buffer("one", 1)
        domain.put(0, one.at(0, 1), domain.buffer("two", 1), pe=0, to=0)
        program = domain.program()
        program.block(0).trigger(0).wait_done(0)
        domain.run(program)
    assert cpufree.trace.load(tmp_path / "t.pftrace").facts["what"] == "triggered operations"


def test_a_bad_name_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="must end in one of"):
        Domain(pes=1, trace="t.txt")
