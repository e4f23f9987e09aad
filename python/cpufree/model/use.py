"""Times of messages out of a machine file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from cpufree.errors import InvalidInputError
from cpufree.machine.communication import Array, Communication, Curve, WayRecord
from cpufree.machine.files import Quantity
from cpufree.model.loggop import FREE, LogGOP, Payload, Verb
from cpufree.text import meant

NEEDED = ("L", "o_send", "o_recv")
OF_CORES = ("threads-", "processes-")
"""Ways between PEs that are threads, or processes, with a core each."""
FROM_RUN_TO_RUN = {"device": 0.054, "host": 0.38}
"""By who initiates: root mean square of the relative differences of medians between two runs, on
two H100 on two days and hosts (docs/model.md); ways of the CPU alone differ as the host's."""


@dataclass(frozen=True)
class Prediction:
    """Times of messages, each with its 95 % interval; None where none was given."""

    seconds: Array
    low: Array | None
    high: Array | None
    note: str
    """What the prediction rests on."""


def way_of(found: Communication, name: str) -> WayRecord:
    """Return a way by name.

    Raises:
        InvalidInputError: the machine has none of that name.
    """
    if name not in found.ways:
        ways = ", ".join(found.ways) or "none"
        raise InvalidInputError(
            f"{found.origin}: no way '{name}'{meant(name, found.ways)}: there are {ways}"
        )
    return found.ways[name]


def growth(quantity: Quantity | None) -> Curve:
    """Return a growth of a quantity; none is zero."""
    if quantity is None:
        return FREE
    pieces = quantity.pieces or ((0.0, quantity.value),)
    breaks = tuple(start for start, _ in pieces[1:])
    return Curve("pieces", (0.0, *(slope for _, slope in pieces)), breaks)


def parameters(way: WayRecord) -> LogGOP | None:
    """Return the LogGOP parameters of a way, None where latency or an overhead is not known."""
    if any(name not in way.parameters for name in NEEDED):
        return None

    there = way.parameters
    times = {
        name: there[name].value for name in ("L", "o_send", "o_recv", "g", "S") if name in there
    }
    return LogGOP(**times, O=growth(there.get("O")), G=growth(there.get("G")))


def single(way: WayRecord, size: ArrayLike) -> Array | None:
    """Return the time of single messages: by the curve, else by the equations, None: by neither."""
    if "single" in way.curves:
        return way.curves["single"].curve(size)
    return by_equation(way, size)


def by_equation(way: WayRecord, size: ArrayLike) -> Array | None:
    """Return the time of single messages by the parameters, None where they are not all known."""
    loggop = parameters(way)
    if loggop is None:
        return None
    payload = cast(Payload, way.payload or "once")
    return loggop.time(cast(Verb, way.verb), size, payload)


def pipelined(way: WayRecord, size: ArrayLike) -> Array | None:
    """Return the time of each of many messages in a row, None where there is no curve of it."""
    return way.curves["pipelined"].curve(size) if "pipelined" in way.curves else None


def predict(
    found: Communication,
    name: str,
    size: ArrayLike,
    is_pipelined: bool = False,
    same_run: bool = False,
) -> Prediction:
    """Predict the time of messages.

    Args:
        found: the machine. name: of the way. size: bytes of a message, 1 or more.
        is_pipelined: one of many messages in a row, instead of a single one.
        same_run: for the interval: of the run that was fitted, instead of another one.

    Raises:
        InvalidInputError: the way is not there, or the file does not say what it takes.
    """
    way = way_of(found, name)
    m = np.asarray(size, dtype=np.float64)
    if np.any(m < 1):
        raise InvalidInputError(f"{float(np.min(m)):g} bytes: a message has at least 1")
    seconds = pipelined(way, m) if is_pipelined else single(way, m)
    kind = "pipelined" if is_pipelined else "single"
    if seconds is None:
        raise InvalidInputError(
            f"{found.origin}: way {name}: nothing is known of {kind} messages; measure and fit them"
        )
    record = way.curves.get(kind)
    if record is None:
        return Prediction(seconds, None, None, "equation of the parameters; no interval is known")
    note = f"fitted curve ({record.form})"
    if record.messages > 1:
        note += f", windows of {record.messages}"
    wider = np.ones_like(m)
    if record.sizes and (np.any(m < record.sizes[0]) or np.any(m > record.sizes[1])):
        note += f"; beyond the sizes of the fit, {record.sizes[0]} to {record.sizes[1]} B, the "
        note += "interval is wider by itself for each factor of two"
        wider += np.log2(np.maximum(1.0, np.maximum(record.sizes[0] / m, m / record.sizes[1])))
    if "disturbed" in found.provenance and name.startswith(OF_CORES):
        note += f"; {found.provenance['disturbed']}"
    if record.spread is None:
        return Prediction(seconds, None, None, f"{note}; no interval is known")
    # The error is predicted over measured, less 1: what is measured is seconds / (1 + error).
    run = 0.0 if same_run else FROM_RUN_TO_RUN[way.initiated]
    half = math.hypot(record.spread[1], run)
    low, high = (seconds / np.maximum(1.0 + wider * error, 0.05) for error in (half, -half))
    return Prediction(seconds, low, high, note)
