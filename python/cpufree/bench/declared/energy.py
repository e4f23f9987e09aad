"""Joules that GPUs have taken, as NVML counts them (nvmlDeviceGetTotalEnergyConsumption)."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from cpufree.errors import UnsupportedError

LIBRARY = "libnvidia-ml.so.1"
LONGEST_TICK = 2.0
"""Seconds within which a counter of a busy GPU goes on; they do every 20 to 100 ms."""


@dataclass(frozen=True)
class Used:
    """What was used between two ticks of the counters."""

    joules: float
    seconds: float
    calls: int


class Meter:
    """The counters of some GPUs, each named by its UUID in hexadecimal, as `Gpu.uuid` has it.

    NVML's numbers of GPUs are not CUDA's where CUDA_VISIBLE_DEVICES or CUDA_DEVICE_ORDER is set.
    Raises UnsupportedError where NVML is missing or a GPU has no counter.
    """

    def __init__(self, uuids: Sequence[str], library: Any = None) -> None:
        try:
            self._nvml = ctypes.CDLL(LIBRARY) if library is None else library
        except OSError as error:
            raise UnsupportedError(
                f"energy cannot be measured: {LIBRARY} does not load ({error}); it comes with the "
                "driver of NVIDIA's GPUs"
            ) from None
        self._expect(self._nvml.nvmlInit_v2(), "nvmlInit_v2")
        self._gpus = []
        for uuid in uuids:
            handle, name = ctypes.c_void_p(), f"GPU-{UUID(hex=uuid)}"
            status = self._nvml.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle))
            self._expect(status, name)
            self._gpus.append(handle)
        self.joules()

    def joules(self) -> float:
        """Return the sum of the counters since the driver was loaded."""
        total = 0.0
        for handle in self._gpus:
            millijoules = ctypes.c_ulonglong()
            status = self._nvml.nvmlDeviceGetTotalEnergyConsumption(
                handle, ctypes.byref(millijoules)
            )
            self._expect(status, "the counter of energy")
            total += 1e-3 * millijoules.value
        return total

    def used(self, work: Callable[[], object], seconds: float) -> Used:
        """Call `work` for at least so many seconds, from one tick of the counters to another.

        Raises UnsupportedError where the counters stand still.
        """
        first = self._next_tick()
        begin, calls = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            work()
            calls += 1
        last = self._next_tick()
        return Used(last - first, time.perf_counter() - begin, calls)

    def _next_tick(self) -> float:
        begin, before = time.perf_counter(), self.joules()
        while (now := self.joules()) == before:
            if time.perf_counter() - begin > LONGEST_TICK:
                raise UnsupportedError(
                    f"energy cannot be measured: the counter stands still for {LONGEST_TICK:g} s"
                )
        return now

    def _expect(self, status: int, what: str) -> None:
        if status != 0:
            raise UnsupportedError(
                f"energy cannot be measured: NVML refuses {what} (status {status})"
            )
