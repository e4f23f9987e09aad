"""Perfetto's own definitions read what is written. Skipped where its package is not installed."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

import cpufree

perfetto_trace = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


def test_perfetto_reads_nested_slices_and_whole_arrows(tmp_path: Path) -> None:
    A = cpufree.generate.poisson2d(20, 17)
    how = {"engine": "cpu_threads", "pes": 3, "blocks": 2}
    cpufree.solve(A, np.ones(A.shape[0]), trace=tmp_path / "t.pftrace", **how)
    read = perfetto_trace.Trace()
    read.ParseFromString((tmp_path / "t.pftrace").read_bytes())
    kinds: Counter[int] = Counter()
    depth: Counter[int] = Counter()
    last: defaultdict[int, int] = defaultdict(int)
    begun, ended = set(), set()
    for packet in read.packet:
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        kinds[event.type] += 1
        begun.update(event.flow_ids)
        ended.update(event.terminating_flow_ids)
        if event.type in (event.TYPE_SLICE_BEGIN, event.TYPE_SLICE_END):
            assert packet.timestamp >= last[event.track_uuid]
            last[event.track_uuid] = packet.timestamp
            depth[event.track_uuid] += 1 if event.type == event.TYPE_SLICE_BEGIN else -1
            assert depth[event.track_uuid] >= 0
    assert not any(depth.values())
    assert begun == ended and len(begun) > 0
    assert kinds[1] == kinds[2] > 0
