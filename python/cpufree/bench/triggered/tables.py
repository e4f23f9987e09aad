"""Tables and facts of measured triggered operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cpufree.bench.triggered.measure import OVERLAP_TIMES, TIMES, Series

MESSAGE_HEADS = (
    "bytes",
    "path",
    "NIC",
    "goes on",
    "data ready",
    "to seen",
    "kernel's end",
    "seen first",
)
OVERLAP_HEADS = ("bytes", "NIC", "kernel alone", "with copies", "loss", "a copy", "plain", "rate")
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
        if one.study != "messages" or not one.samples:
            continue
        median = dict(zip(TIMES, np.median(one.array(), axis=0), strict=True))
        rows.append(
            (
                str(one.size),
                one.name,
                one.back_end,
                _after(one),
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
        if one.study not in ("messages", "overlap") and one.samples
    ]


def _after(series: Series) -> str:
    """Return how long the kernel goes on computing once its data are ready."""
    return micros(series.detail["after"]) if "after" in series.detail else "as before"


def overlap_rows(measured: Iterable[Series]) -> list[tuple[str, ...]]:
    """Return a row for each back end whose copies were measured beside a computation: medians."""
    rows: list[tuple[str, ...]] = []
    for one in measured:
        if one.study != "overlap" or not one.samples:
            continue
        alone, beside, _, copy, plain = np.median(one.array(), axis=0)
        loss = float(np.median(one.array()[:, 1] / one.array()[:, 0])) - 1.0
        rows.append(
            (
                str(one.size),
                one.back_end,
                micros(alone),
                micros(beside),
                f"{100 * loss:.2f} %",
                micros(copy),
                micros(plain),
                f"{100 * plain / copy:.1f} %",
            )
        )
    return rows


def facts(measured: Iterable[Series]) -> list[dict[str, Any]]:
    """Return all samples, for JSON; a time that does not exist is None."""
    return [
        {
            "study": one.study,
            "name": one.name,
            "back_end": one.back_end,
            "size": one.size,
            "detail": one.detail,
            "columns": list(_columns(one.study)),
            "samples": _without_nan(one.samples),
        }
        for one in measured
    ]


def _columns(study: str) -> tuple[str, ...]:
    return {"messages": TIMES, "overlap": OVERLAP_TIMES}.get(study, ("seconds",))


def _without_nan(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if np.isnan(value) else value
