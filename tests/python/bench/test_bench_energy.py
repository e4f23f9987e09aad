"""Joules by NVML: counters that tick, that stand still, and that are not there."""

from __future__ import annotations

import ctypes
import runpy
from typing import Any

import pytest
from paths import ROOT

from cpufree.bench.core.entry import OURS, Entry
from cpufree.bench.declared import energy
from cpufree.bench.declared.energy import Meter
from cpufree.errors import UnsupportedError

HERE, ABSENT = "0123abcd456789abcdef0123456789ab", "f" * 32


class Nvml:
    """NVML's functions: each GPU takes 5 J every third look; the GPU ABSENT is not there."""

    def __init__(self, per_tick: int = 5000) -> None:
        self.per_tick, self.looks = per_tick, 0

    def nvmlInit_v2(self) -> int:  # NVML's name
        """Start."""
        return 0

    def nvmlDeviceGetHandleByUUID(self, name: bytes, handle: Any) -> int:
        """Give the handle of a GPU."""
        assert name == b"GPU-0123abcd-4567-89ab-cdef-0123456789ab" or b"ffff" in name
        handle._obj.value = 1
        return 6 if b"ffff" in name else 0

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any, found: Any) -> int:
        """Tell millijoules."""
        assert isinstance(handle, ctypes.c_void_p)
        self.looks += 1
        found._obj.value = self.per_tick * (self.looks // 3)
        return 0


def test_used_is_what_lies_between_two_ticks() -> None:
    nvml, done = Nvml(), []
    meter = Meter([HERE], nvml)
    used = meter.used(lambda: done.append(1), 0.0001)
    assert used.calls == len(done) > 0
    assert used.joules == 5.0  # no look while it works
    assert used.seconds > 0.0001


def test_what_cannot_be_measured_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsupportedError, match="NVML refuses GPU-ffffffff-"):
        Meter([ABSENT], Nvml())
    monkeypatch.setattr(energy, "LONGEST_TICK", 0.01)
    with pytest.raises(UnsupportedError, match="stands still"):
        Meter([HERE], Nvml(per_tick=0)).used(lambda: None, 0.0)
    monkeypatch.setattr(energy, "LIBRARY", "libnone.so.9")
    with pytest.raises(UnsupportedError, match="comes with the driver"):
        Meter([HERE])


def test_contenders_that_cannot_run_are_told_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    energy_bench = runpy.run_path(str(ROOT / "bench/machine/energy.py"))
    bench, wanted = energy_bench["BENCH"], energy_bench["wanted"]
    missing = dict.fromkeys(energy_bench["CONTENDERS"][1:], "not built")

    def case(*contenders: str) -> Any:
        return bench.cases(bench.chosen({}, on_gpus=True, quick=True), contenders)[0]

    def build(without: dict[str, str]) -> None:
        entries = {n: Entry(n, OURS, (), why_not=without.get(n, "")) for n in ("cpufree", *missing)}
        monkeypatch.setitem(wanted.__globals__, "find_contenders", lambda: entries)

    build(missing)
    with pytest.raises(UnsupportedError, match=r"single_gpu, .*: not built.*--contenders"):
        wanted(case())
    assert wanted(case("cpufree", "idle")) == ["cpufree"]
    build({"nccl": "no NCCL"})
    found = case()
    assert wanted(found) == ["cpufree", "single_gpu", "nccl_graph", "graph_while", "peer_copy"]
    assert found.facts["without"] == {"nccl": "no NCCL"}
    with pytest.raises(UnsupportedError, match="nccl: no NCCL"):
        wanted(case("cpufree", "nccl"))
