"""Ways in which the host takes part: what the core is asked for, and what is missing and why."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from fake_core import FakeCore

from cpufree.errors import EngineError, InvalidInputError, UnsupportedError
from cpufree.model.extras import constants
from cpufree.model.measure import Plan, measure, steps_of
from cpufree.model.samples import read_samples, write_samples
from cpufree.model.ways import host_ways, line_peers
from cpufree.model.ways.host_ways import HOST_WAYS, LAUNCHES


class FakeWay:
    """A way that takes a microsecond, and more for each kernel and byte."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def times(
        self, mode: str, size: int, messages: int, warm_ups: int, repeats: int, limit: float
    ) -> list[float]:
        assert size % 8 == 0 and size >= 8 and limit > 0
        return [1e-6 + 1e-9 * messages * size] * repeats


class Core(FakeCore):
    """A core with two GPUs and FakeWay, or with an error instead."""

    def __init__(self, error: Exception | None = None, gpus: int = 2) -> None:
        super().__init__(gpus)
        self.error = error
        self.made: list[FakeWay] = []

    def HostWay(self, *arguments: Any) -> FakeWay:
        if self.error:
            raise self.error
        self.made.append(FakeWay(*arguments))
        return self.made[-1]


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Core:
    return use(monkeypatch, Core())


def use(monkeypatch: pytest.MonkeyPatch, core: Core) -> Core:
    monkeypatch.setattr("cpufree._core", core)
    return core


DIRECT = [name for name in HOST_WAYS if name != "host-ipc"]


@pytest.mark.parametrize("name", DIRECT)
def test_all_modes_are_measured_and_written(core: Core, name: str, tmp_path: Any) -> None:
    way = HOST_WAYS[name]()
    assert way.lacking() == ""
    found = measure([way], Plan((8, 64, 24), (24,), (4,), rounds=1), "test")
    assert {row.mode for row in found.rows} >= {*way.modes}
    gpus = [0, 0] if name == "shared-copy" else [0, 1]
    assert core.made[0].arguments[:2] == (way.verb.core, gpus)
    assert len(core.made) == 1  # what was tried stays open
    write_samples(tmp_path / "s.jsonl", found)
    assert read_samples(tmp_path / "s.jsonl").rows == found.rows


def test_launches_are_measured_beside_copies_and_become_constants(core: Core) -> None:
    way = HOST_WAYS["host-copy"]()
    steps = [(mode, count) for _, mode, _, count in steps_of(way, Plan((8,), (), ()))]
    assert [count for mode, count in steps if mode == "launch"] == list(LAUNCHES)
    found = constants(measure([way], Plan((8,), (), (), rounds=1), "test"))
    assert found["host-copy, 1 kernel launched"].value == pytest.approx(1.008e-6)
    assert found["host-copy, 256 kernels queued"].value == pytest.approx(1e-6 + 2.048e-6)


def test_ways_without_windows_are_asked_for_none(core: Core) -> None:
    steps = steps_of(HOST_WAYS["device-proxy"](), Plan((8,), (), (16,)))
    assert {mode for _, mode, _, _ in steps} == {"single"}


@pytest.mark.parametrize("size", [0, 12, 1 << 24])
def test_sizes_that_cannot_be_sent_are_refused(core: Core, size: int) -> None:
    with pytest.raises(InvalidInputError, match=rf"host-copy cannot send messages of {size} B"):
        HOST_WAYS["host-copy"]().times("single", size, 1, 0, 3)


@pytest.mark.parametrize(
    ("count", "why"), [(0, "no NVIDIA"), (1, "two PEs need a GPU each, and there is one")]
)
def test_machines_with_too_few_gpus_lack_all_of_them(
    monkeypatch: pytest.MonkeyPatch, count: int, why: str
) -> None:
    fake = use(monkeypatch, Core(gpus=count))
    monkeypatch.setattr(fake, "gpu_note", lambda: "no NVIDIA driver")
    for name, make in HOST_WAYS.items():
        assert (why if name != "shared-copy" or count == 0 else "") in make().lacking()


def test_a_missing_library_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Core(UnsupportedError("NCCL was not found (no file)")))
    found = measure([HOST_WAYS["host-nccl"]()], Plan((8,), (), ()), "test")
    assert found.missing == {"host-nccl": "NCCL was not found (no file)"} and not found.rows


def test_what_breaks_names_the_way(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    way = HOST_WAYS["host-copy"]()
    way.open()

    def breaks(*_: Any) -> None:
        raise EngineError("the link is down")

    monkeypatch.setattr(core.made[0], "times", breaks)
    with pytest.raises(EngineError, match="way host-copy: the link is down"):
        way.times("single", 8, 1, 0, 3)


def test_the_process_that_lends_memory_says_what_it_lacks() -> None:
    program = [sys.executable, "-m", "cpufree.model.ways.ipc_peer", "17", "64"]
    ended = subprocess.run(program, text=True, capture_output=True, timeout=120, check=False)
    assert ended.returncode == 1 and ended.stdout.startswith('{"error": ')


def test_memory_of_a_process_that_cannot_lend_it_is_a_reason(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_ways.IpcProbe, "_gpus", staticmethod(lambda: [0, 17]))
    assert "way host-ipc: the other process says: " in HOST_WAYS["host-ipc"]().lacking()


def test_memory_of_another_process_is_mapped_by_its_handle(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    lender = "input(); print('{\"handle\": \"' + bytes(range(64)).hex() + '\"}', flush=True)"
    started = subprocess.Popen
    monkeypatch.setattr(
        line_peers.subprocess,
        "Popen",
        lambda program, **how: started([sys.executable, "-c", lender], **how),
    )
    way = HOST_WAYS["host-ipc"]()
    assert way.lacking() == ""
    assert core.made[0].arguments[-1] == bytes(range(64))
    way.close()
