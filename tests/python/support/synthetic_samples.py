"""Samples of ways whose parameters are known."""

from __future__ import annotations

import numpy as np

from cpufree.model.loggop import LogGOP, Payload, Verb, linear
from cpufree.model.samples import Kind, Sample, Samples

LOGGOP = LogGOP(L=2e-6, o_send=1e-6, o_recv=0.5e-6, O=linear(0.2e-9), g=0.8e-6, G=linear(0.5e-9))
SIZES = tuple(2**k for k in range(3, 24))
HELD_OUT = tuple(3 * 2**k for k in range(3, 22, 2))
WINDOW = 16
REPEATS = 21
MODES = ("single", "window", "send", "receive")


def time_of(
    loggop: LogGOP, mode: str, size: int, verb: Verb = "message", payload: Payload = "once"
) -> float:
    """Return the time of an exchange by the parameters, without noise."""
    single = float(loggop.time(verb, size, payload))
    if mode == "window":
        gaps = (WINDOW - 1) * (loggop.g + float(loggop.G(size)))
        answer = 0.0 if verb == "put" else float(loggop.time(verb, 8, payload))
        return single + gaps + answer
    if mode == "send":
        return loggop.o_send + float(loggop.O(size))
    return loggop.o_recv if mode == "receive" else single


def rows_of(
    loggop: LogGOP,
    way: str = "w",
    *,
    noise: float = 0.0,
    seed: int = 0,
    modes: tuple[str, ...] = MODES,
    kind: Kind | None = None,
    payload: Payload = "once",
    sizes: tuple[int, ...] = (*SIZES, *HELD_OUT),
) -> list[Sample]:
    """Return samples of a way with noise that is lognormal."""
    random = np.random.default_rng(seed)
    kind = kind or Kind("host", "host", "host", "message")
    rows = []
    for mode in modes:
        for size in sizes:
            time = time_of(loggop, mode, size, kind.verb, payload)  # type: ignore[arg-type]
            seconds = time * np.exp(noise * random.standard_normal(REPEATS))
            messages = WINDOW if mode == "window" else 1
            rows.append(Sample(way, kind, mode, messages, size, tuple(map(float, seconds))))
    return rows


def samples_of(rows: list[Sample]) -> Samples:
    """Return a file's content of rows."""
    machine = {"cpu": "a test", "cores": 2}
    return Samples("2026-01-01T00:00:00+00:00", "a test", machine, HELD_OUT, tuple(rows))
