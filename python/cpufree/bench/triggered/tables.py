"""Tables and facts of measured triggered operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cpufree.bench.triggered.measure import TIMES, Series

MESSAGE_HEADS = ("bytes", "path", "NIC", "data ready", "to seen", "kernel's end", "seen first")
OTHER_HEADS = ("study", "size", "way", "NIC", "median", "fastest")


def micros(value: float) -> str:
    """Return seconds as microseconds."""
    return "–" if np.isnan(value) else f"{1e6 * value:.1f} µs"


def to_seen(series: Series) -> Any:
    """Return the time of each message from data ready to seen at the target."""
    times = series.array()
    return times[:, TIMES.index("seen")] - times[:, TIMES.index("ready")]


def seen_first(series: Series) -> float:
    """Return the share of messages that were seen before the initiator's kernel had ended."""
    times = series.array()
    return float(np.mean(times[:, TIMES.index("seen")] < times[:, TIMES.index("ended")]))


def message_rows(measured: Iterable[Series]) -> list[tuple[str, ...]]:
    """Return a row for each path, NIC and size of messages: medians."""
    rows: list[tuple[str, ...]] = []
    for one in measured:
        if one.study != "messages":
            continue
        median = dict(zip(TIMES, np.median(one.array(), axis=0), strict=True))
        rows.append(
            (
                str(one.size),
                one.name,
                one.back_end,
                micros(median["ready"]),
                micros(float(np.median(to_seen(one)))),
                micros(median["ended"]),
                f"{100 * seen_first(one):.0f} %",
            )
        )
    return rows


def other_rows(measured: Iterable[Series]) -> list[tuple[str, ...]]:
    """Return a row for each Jacobi iteration and all-reduce."""
    return [
        (
            one.study,
            f"{one.size}²" if one.study == "jacobi" else f"{one.size} B",
            one.name,
            one.back_end,
            micros(float(np.median(one.array()))),
            micros(float(np.min(one.array()))),
        )
        for one in measured
        if one.study != "messages"
    ]


def facts(measured: Iterable[Series]) -> list[dict[str, Any]]:
    """Return all samples, for JSON; a time that does not exist is None."""
    return [
        {
            "study": one.study,
            "name": one.name,
            "back_end": one.back_end,
            "size": one.size,
            "columns": list(TIMES) if one.study == "messages" else ["seconds"],
            "samples": _without_nan(one.samples),
        }
        for one in measured
    ]


def _without_nan(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if np.isnan(value) else value
