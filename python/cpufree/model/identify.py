"""LogGOP parameters out of fitted curves: those that the samples identify, and why not the others.

Single messages alone give a sum of latency and overheads, and a sum of what grows with the size.
Windows give the gap; the times of the calls that send and receive give the overheads, and with them
the latency. How often the payload counts shows where single messages are held against windows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from cpufree.machine.communication import Array, Curve
from cpufree.machine.files import Quantity
from cpufree.model.loggop import COUNTS, Payload, Verb
from cpufree.model.samples import Kind

ANSWER_BYTES = 8
"""Of the message that ends a window."""
COUNTED: tuple[Payload, ...] = ("once", "twice")
"""How often the payload may count in what is measured."""
WORST_PAYLOAD = 0.5
"""Mean relative error above which neither way to count the payload is one."""


@dataclass(frozen=True)
class Fitted:
    """A curve with what is known of its fit."""

    curve: Curve
    replicates: list[Curve]
    """Of the bootstrap."""
    messages: int
    sizes: Array
    seconds: Array
    """The medians that it was fitted to."""
    spread: tuple[float, float]
    """95 % of the relative errors at sizes left out."""
    answered: bool = True
    """Whether a message ends each window; else the sender knows of the end."""


@dataclass(frozen=True)
class Identified:
    """The parameters of a way."""

    parameters: dict[str, Quantity]
    unknown: dict[str, str]
    payload: Payload | None


Curves = Mapping[str, Curve]
Measure = Callable[[Curves], float]


@dataclass(frozen=True)
class Synchronization:
    """S with its replicates, or why it is not known."""

    seconds: Array | None
    why: str = ""
    in_call: bool = False
    """Whether it is a part of what the call that sends takes, as a fence is."""


def identify(verb: str, fitted: Mapping[str, Fitted], sync: Synchronization) -> Identified:
    """Return what curves say of the parameters.

    Args:
        verb: message, put or get.
        fitted: by name; single must be there, pipelined, send and receive may be.
        sync: S, from `synchronization`.
    """
    found: dict[str, Array] = {}
    unknown: dict[str, str] = {}
    for name, curve in (("o_send", "send"), ("o_recv", "receive")):
        if curve in fitted:
            found[name] = _measure(fitted, _start_of(curve))
        else:
            unknown[name] = f"needs times of the call alone (mode {curve}); single messages give "
            unknown[name] += "its sum with the latency only"
    if sync.seconds is None:
        unknown["S"] = sync.why
    elif sync.in_call and "o_send" in found:
        call, fence = _of_same_length(found["o_send"], sync.seconds)
        found["S"] = np.minimum(fence, call)
        found["o_send"] = call - found["S"]
    else:
        found["S"] = sync.seconds
    _add_gaps(fitted, found, unknown)
    _add_latency(cast(Verb, verb), fitted, found, unknown)
    if "S" in found and "L" not in found and not sync.in_call and "o_recv" in found:
        # What the device takes longer is more than the calls leave: it is a part of them.
        del found["S"]
        unknown["S"] = "the calls, measured alone, have it inside"
        _add_latency(cast(Verb, verb), fitted, found, unknown)
    units = {"G": "s/B"}
    quantities = {name: _quantity(values, units.get(name, "s")) for name, values in found.items()}
    if "send" in fitted:
        quantities["O"] = _growth(fitted["send"])
    else:
        unknown["O"] = "needs times of the call that sends (mode send)"
    payload, why = _payload(fitted)
    if payload is None:
        unknown["payload"] = why
    return Identified(quantities, unknown, payload)


def _of_same_length(*values: Array) -> tuple[Array, ...]:
    count = min(map(len, values))
    return tuple(one[:count] for one in values)


def _start_of(name: str) -> Measure:
    """Return the measure of what a curve begins with."""
    return lambda curves: float(curves[name](0.0))


def _measure(fitted: Mapping[str, Fitted], measure: Measure) -> Array:
    """Return a number of the curves, then of each replicate of all of them."""
    values = [measure({name: one.curve for name, one in fitted.items()})]
    count = min(len(one.replicates) for one in fitted.values())
    for k in range(count):
        values.append(measure({name: one.replicates[k] for name, one in fitted.items()}))
    return np.array(values)


def _quantity(values: Array, unit: str) -> Quantity:
    """Return a quantity of its value and replicates; what is below zero is cut there."""
    low, high = np.quantile(values[1:], (0.025, 0.975))
    return Quantity(float(values[0]), unit, max(0.0, float(low)), max(0.0, float(high)))


def further_message(curves: Curves, window: Fitted, size: float) -> float:
    """Return what one more message of a window adds [s].

    A window takes the time of its first message, the gaps of the others, and an answer, if any.
    """
    single, pipelined = curves["single"], curves["pipelined"]
    ends = float(single(size)) + (float(single(ANSWER_BYTES)) if window.answered else 0.0)
    return (window.messages * float(pipelined(size)) - ends) / (window.messages - 1)


def byte_gap(curves: Curves, window: Fitted) -> float:
    """Return G [s/B], from the two largest sizes but for a factor of 4."""
    most = float(window.sizes[-1])
    far, near = (further_message(curves, window, m) for m in (most, most / 4))
    return (far - near) / (0.75 * most)


def small_gap(curves: Curves, window: Fitted) -> float:
    """Return g [s]: what one more of the smallest messages adds, without its payload."""
    least = float(window.sizes[0])
    return further_message(curves, window, least) - byte_gap(curves, window) * least


def _add_gaps(
    fitted: Mapping[str, Fitted], found: dict[str, Array], unknown: dict[str, str]
) -> None:
    """Add g and G, which are seen in windows alone."""
    if "pipelined" not in fitted:
        unknown["g"] = unknown["G"] = "needs windows of messages (mode window)"
        return
    window = fitted["pipelined"]
    for name, measure in (("g", small_gap), ("G", byte_gap)):
        values = _measure(fitted, partial(measure, window=window))
        if values[0] > 0:
            found[name] = values
        else:
            unknown[name] = f"a window of {window.messages} takes no longer than one message and "
            unknown[name] += "the answer: measure longer windows"


def _growth(send: Fitted) -> Quantity:
    """Return O(m), the growth of the call that sends."""
    slopes = np.array([one.values[1:] for one in send.replicates])
    low, high = np.quantile(slopes[:, 0], (0.025, 0.975))
    values = send.curve.values[1:]
    starts = (0.0, *send.curve.breaks)
    pieces = tuple(zip(starts, values, strict=True)) if len(values) > 1 else ()
    return Quantity(values[0], "s/B", float(low), float(high), pieces=pieces)


def _add_latency(
    verb: Verb,
    fitted: Mapping[str, Fitted],
    found: dict[str, Array],
    unknown: dict[str, str],
) -> None:
    """Add L, what is left of a small message without all else that the equation has."""
    counts = COUNTS[verb]
    needed = ["o_send", "o_recv", *(["g"] if counts.g else [])]
    lacking = [name for name in needed if name not in found]
    start = _measure(fitted, _start_of("single"))
    if lacking:
        unknown["L"] = f"{counts.L} L + {counts.o} (o_send + o_recv) + {counts.g} g is "
        unknown["L"] += f"{start[0] * 1e6:.3g} us; {', '.join(lacking)} would have to be known"
        return
    times = {"o_send": counts.o, "o_recv": counts.o, "g": counts.g, "S": counts.S}
    there = [name for name in times if name in found and times[name]]
    left, *taken = _of_same_length(start, *(found[name] for name in there))
    for name, values in zip(there, taken, strict=True):
        left = left - times[name] * values
    if left[0] > 0:
        found["L"] = left / counts.L
        unknown.pop("L", None)
    else:
        unknown["L"] = "the overheads, measured alone, take as long as a whole message"


def synchronization(
    kind: Kind,
    fitted: Mapping[str, Fitted],
    host: Mapping[str, Fitted] | None,
    fence: Array | None = None,
) -> Synchronization:
    """Return S with its replicates, or why it is not known.

    S is the time of the fence after a small message, where that was measured (`fence`, with
    replicates), else what a small message takes longer where the device initiates it (equations 1
    to 4).
    """
    if kind.initiated == "host":
        return Synchronization(None, "only messages that a device initiates have it")
    if fence is not None:
        return Synchronization(fence, in_call=True)
    if host is None:
        return Synchronization(None, "needs the same verb initiated by the host")
    pair = {"device": fitted["single"], "host": host["single"]}
    size = float(max(one.sizes[0] for one in pair.values()))
    counts = COUNTS[cast(Verb, kind.verb)]
    values = _measure(pair, lambda c: float(c["device"](size) - c["host"](size)) / counts.S)
    if values[0] <= 0:
        return Synchronization(None, "the device's messages take no longer than the host's")
    return Synchronization(values)


def payload_errors(fitted: Mapping[str, Fitted]) -> dict[Payload, float]:
    """Return the mean relative error of single messages out of the gap, for either count.

    A single message is a start that both have for themselves, and the gap of its payload, once or
    twice, out of the windows; the start is fitted with each size left out in turn.
    """
    single, window = fitted["single"], fitted["pipelined"]
    curves = {name: one.curve for name, one in fitted.items()}
    first = further_message(curves, window, float(window.sizes[0]))
    m, t = single.sizes, single.seconds
    further = np.array([further_message(curves, window, float(size)) for size in m])
    growth = np.maximum(further - first, 0.0)
    return {
        payload: float(np.mean(np.abs(_left_out_starts((k + 1) * growth, t))))
        for k, payload in enumerate(COUNTED)
    }


def _left_out_starts(growth: Array, t: Array) -> Array:
    errors = []
    for k in range(len(t)):
        x, y = np.delete(growth, k), np.delete(t, k)
        start = float(np.sum((y - x) / y**2) / np.sum(1.0 / y**2))
        errors.append((start + growth[k]) / t[k] - 1.0)
    return np.array(errors)


def _payload(fitted: Mapping[str, Fitted]) -> tuple[Payload | None, str]:
    if "pipelined" not in fitted:
        return None, "needs windows, whose gap single messages are held against"
    errors = payload_errors(fitted)
    said = ", ".join(f"{payload} {error:.0%}" for payload, error in errors.items())
    best = min(errors, key=lambda payload: errors[payload])
    if errors[best] > WORST_PAYLOAD:
        return None, f"single messages follow the gap of windows neither way: error {said}"
    return best, ""
