"""What is measured beside messages: flags, sums, fences, contention."""

from __future__ import annotations

import numpy as np

from cpufree.machine.communication import Array
from cpufree.machine.files import Quantity
from cpufree.model.samples import EXTRA_MODES, LAUNCH_MODES, Sample, Samples
from cpufree.text import counted

REPLICATES = 200


def constants(samples: Samples, seed: int = 0) -> dict[str, Quantity]:
    """Return the medians of all extras by name, with 95 % intervals of a bootstrap."""
    found = {}
    for row in samples.rows:
        if row.mode in EXTRA_MODES:
            values = medians(row, seed)
            found[f"{row.way}, {_name(row)}"] = _quantity(values, row)
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


def _quantity(values: Array, row: Sample) -> Quantity:
    low, high = np.quantile(values[1:], (0.025, 0.975))
    said = f"median of {counted(len(row.seconds), 'time')}"
    return Quantity(float(values[0]), "s", float(low), float(high), said)


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
