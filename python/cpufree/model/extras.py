"""What is measured beside messages: flags, sums, fences, contention, the rate of messages."""

from __future__ import annotations

import numpy as np

from cpufree.machine.communication import Array
from cpufree.machine.files import Quantity
from cpufree.model.samples import EXTRA_MODES, LAUNCH_MODES, Sample, Samples
from cpufree.text import counted

REPLICATES = 200
RATE_BYTES = 8


def constants(samples: Samples, seed: int = 0) -> dict[str, Quantity]:
    """Return the medians of all extras by name, with 95 % intervals of a bootstrap."""
    found = {}
    for row in samples.rows:
        if row.mode in EXTRA_MODES:
            values = medians(row, seed)
            found[f"{row.way}, {_name(row)}"] = _quantity(values, "s", row)
    for way in samples.ways():
        rate = _longest_window(samples, way)
        if rate is not None:
            values = rate.messages / medians(rate, seed)
            found[f"{way}, messages of {RATE_BYTES} B"] = _quantity(values, "1/s", rate)
    return found


def fence(samples: Samples, way: str, seed: int = 0) -> Array | None:
    """Return the time of a fence after the least that was stored, then replicates of it."""
    rows = [row for row in samples.rows if row.way == way and row.mode == "fence" and row.bytes]
    return medians(min(rows, key=lambda row: row.bytes), seed) if rows else None


def medians(row: Sample, seed: int = 0) -> Array:
    """Return the median of a row, then those of times drawn from it again."""
    random, times = np.random.default_rng(seed), np.array(row.seconds)
    drawn = random.choice(times, (REPLICATES, len(times)))
    return np.concatenate([[np.median(times)], np.median(drawn, axis=1)])


def _quantity(values: Array, unit: str, row: Sample) -> Quantity:
    low, high = np.quantile(values[1:], (0.025, 0.975))
    said = f"median of {counted(len(row.seconds), 'time')}"
    if row.mode == "window":
        said += f", windows of {row.messages}"
    return Quantity(float(values[0]), unit, float(low), float(high), said)


def _name(row: Sample) -> str:
    if row.mode == "flag":
        return "flag"
    if row.mode == "allreduce":
        return f"sum of {counted(row.bytes // 8, 'value')}"
    if row.mode == "fence":
        return f"fence after {row.bytes} B"
    if row.mode in LAUNCH_MODES:
        until = "launched" if row.mode == "launch" else "queued"
        return f"{counted(row.messages, 'kernel')} {until}"
    return f"{row.messages} {row.mode} at once, {row.bytes} B"


def _longest_window(samples: Samples, way: str) -> Sample | None:
    rows = [
        row
        for row in samples.rows
        if row.way == way and row.mode == "window" and row.bytes == RATE_BYTES
    ]
    return max(rows, key=lambda row: row.messages) if rows else None
