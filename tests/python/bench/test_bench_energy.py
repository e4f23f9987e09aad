"""Joules by NVML: counters that tick, that stand still, and that are not there."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from cpufree.bench.declared import energy
from cpufree.bench.declared.energy import Meter
from cpufree.errors import UnsupportedError


class Nvml:
    """NVML's functions: each GPU takes 5 J every third look; GPU 7 is not there."""

    def __init__(self, per_tick: int = 5000) -> None:
        self.per_tick, self.looks = per_tick, 0

    def nvmlInit_v2(self) -> int:  # NVML's name
        """Start."""
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, gpu: int, handle: Any) -> int:
        """Give the handle of a GPU."""
        handle._obj.value = gpu + 1
        return 0 if gpu < 7 else 6

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any, found: Any) -> int:
        """Tell millijoules."""
        assert isinstance(handle, ctypes.c_void_p)
        self.looks += 1
        found._obj.value = self.per_tick * (self.looks // 3)
        return 0


def test_used_is_what_lies_between_two_ticks() -> None:
    nvml, done = Nvml(), []
    meter = Meter([0], nvml)
    used = meter.used(lambda: done.append(1), 0.0001)
    assert used.calls == len(done) > 0
    assert used.joules == 5.0  # no look while it works
    assert used.seconds > 0.0001


def test_what_cannot_be_measured_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsupportedError, match="NVML refuses GPU 7"):
        Meter([7], Nvml())
    monkeypatch.setattr(energy, "LONGEST_TICK", 0.01)
    with pytest.raises(UnsupportedError, match="stands still"):
        Meter([0], Nvml(per_tick=0)).used(lambda: None, 0.0)
    monkeypatch.setattr(energy, "LIBRARY", "libnone.so.9")
    with pytest.raises(UnsupportedError, match="comes with the driver"):
        Meter([0])
