"""Traces of PEs in several processes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from ranks_here import PATIENCE, SMALL, clean

import cpufree
from cpufree.trace.timeline import Timeline

RANKS = 2


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> cpufree.trace.Trace:
    path = tmp_path_factory.mktemp("trace") / "t.pftrace"
    words = [sys.executable, "-m", "cpufree", "run", "-n", str(RANKS), "solve", SMALL, "--quiet"]
    subprocess.run([*words, "--trace", path], env=clean(), check=True, timeout=3 * PATIENCE)
    return cpufree.trace.load(path)


def test_one_file_has_the_blocks_of_all_processes(trace: cpufree.trace.Trace) -> None:
    assert trace.facts["engine"] == "cpu_processes"
    assert sorted(set(trace.tracks[:, 0].tolist())) == [*range(RANKS)]


def test_messages_between_processes_are_seen_after_they_are_sent(
    trace: cpufree.trace.Trace,
) -> None:
    messages = Timeline(trace).messages
    between = trace.pe[messages.sent] != trace.pe[messages.seen]
    assert between.any()
    assert (trace.time[messages.seen] > trace.time[messages.sent]).all()


def test_payload_of_processes_is_that_of_the_halo(trace: cpufree.trace.Trace) -> None:
    assert np.array_equal(trace.bytes, trace.bytes.T)
    assert trace.bytes[0, 1] % (8 * trace.facts["exchanges"]) == 0
    assert trace.bytes[0, 1] > 0
