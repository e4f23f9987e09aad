"""Ways of NVSHMEM: two processes that answer, that do not, and what is missing and why."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from fake_core import FakeCore

from cpufree.errors import EngineError, InvalidInputError, UnsupportedError
from cpufree.model.measure import Plan, measure
from cpufree.model.ways import nvshmem_ways
from cpufree.model.ways.catalog import find_ways
from cpufree.model.ways.nvshmem_ways import PROBE, SHMEM_VERBS, SHMEM_WAYS, ShmemWay

# Answers as the real one does, with a time that names its rank, and says something besides.
PEER = """
import json, sys
rank = None
print("NVSHMEM says hello", flush=True)
for line in sys.stdin:
    given = json.loads(line)
    answer = {}
    if "identify" in given: answer["identity"] = "ab" * 64
    elif "rank" in given:
        assert given["identity"] == "ab" * 64 and given["library"] == "libnvshmem"
        rank = given["rank"]
    else:
        answer["seconds"] = [1e-6 * (1 + rank) + 1e-9 * given["order"][1]] * given["order"][4]
        AT_ORDER
    print(json.dumps(answer), flush=True)
"""


def way_of(monkeypatch: pytest.MonkeyPatch, name: str, at_order: str = "pass") -> ShmemWay:
    monkeypatch.setattr("cpufree._core", FakeCore(2))
    monkeypatch.setattr(nvshmem_ways.remote.Library, "find", lambda _: "libnvshmem")
    monkeypatch.setattr(nvshmem_ways.remote.Library, "version", lambda _: "3.4.5")
    monkeypatch.setattr(nvshmem_ways.remote, "find_kernels", lambda name: f"/kernels/{name}")
    way = SHMEM_WAYS[name]()
    way.program = (sys.executable, "-c", PEER.replace("AT_ORDER", at_order))
    return way


@pytest.mark.parametrize("name", SHMEM_VERBS)
def test_all_modes_are_measured_and_rank_0_keeps_the_time(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    way = way_of(monkeypatch, name)
    found = measure([way], Plan((8, 64), (), (4,), rounds=1), "test")
    assert not found.missing
    assert {row.mode for row in found.rows} == {*way.modes}
    assert all(
        t == pytest.approx(1e-6 + 1e-9 * row.bytes) for row in found.rows for t in row.seconds
    )


def test_a_process_that_is_gone_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    way = way_of(monkeypatch, "nvshmem-p", "sys.exit(3)")
    assert "a process of NVSHMEM is gone" in way.lacking()


def test_a_process_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    way = way_of(monkeypatch, "nvshmem-p", "import time; time.sleep(600)")
    way.open()
    way._peers.limit = 0.5
    with pytest.raises(EngineError, match=r"took longer than 0\.5 s"):
        way.times("single", 8, 1, 0, 1)
    way.close()


def test_what_a_process_says_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    says = "print(json.dumps({'error': 'says: no memory'}), flush=True); sys.exit(1)"
    assert way_of(monkeypatch, "nvshmem-get", says).lacking().endswith("NVSHMEM says: no memory")


def test_sizes_that_the_way_cannot_send_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    way = way_of(monkeypatch, "nvshmem-get-stream")
    for size in (0, 12, way.most_bytes + 8):
        with pytest.raises(InvalidInputError, match=f"messages of {size} B"):
            way.times("single", size, 1, 0, 1)


def test_what_a_machine_lacks_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    way = way_of(monkeypatch, "nvshmem-p")
    monkeypatch.setattr(nvshmem_ways.remote, "find_kernels", lambda name: "")
    assert PROBE in way.lacking() and "nvidia-nvshmem-cu13" in way.lacking()

    def no_library(_: Any) -> Any:
        raise UnsupportedError("libnvshmem_host.so.3 does not load")

    monkeypatch.setattr(nvshmem_ways.remote.Library, "version", no_library)
    assert way.lacking() == "libnvshmem_host.so.3 does not load"
    monkeypatch.setattr("cpufree._core", FakeCore(1))
    assert "a GPU each" in way.lacking()


def test_ways_are_found_by_name() -> None:
    assert [way.name for way in find_ways(("nvshmem-put-block",))] == ["nvshmem-put-block"]
