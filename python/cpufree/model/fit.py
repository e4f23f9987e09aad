"""From samples to curves and LogGOP parameters of each way.

Of each size the median counts. Curves are lines in pieces, fitted by least squares on the relative
error. Intervals are those of a bootstrap of the relative residuals (Efron 1979, Bootstrap Methods:
Another Look at the Jackknife), for the breakpoints chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from cpufree.errors import InvalidInputError
from cpufree.machine.communication import Array, Communication, Curve, CurveRecord, WayRecord
from cpufree.machine.files import Quantity
from cpufree.model import extras
from cpufree.model.curves import fit_best_pieces, fit_pieces, relative_errors
from cpufree.model.identify import Fitted, Synchronization, identify, synchronization
from cpufree.model.samples import Kind, Samples
from cpufree.text import counted

LEAST_SIZES = 5
NORMAL = 1.96
"""The 97.5 % quantile of the normal distribution."""
MODE_OF = {"single": "single", "pipelined": "window", "send": "send", "receive": "receive"}


@dataclass(frozen=True)
class Medians:
    """The median time of each size, of one way and mode."""

    sizes: Array
    seconds: Array
    """Of one message: of a window, its time over the number of its messages."""
    messages: int


def medians(
    samples: Samples, way: str, mode: str, held_out: bool | None = False, messages: int = 0
) -> Medians | None:
    """Return the medians over the sizes; None where nothing was measured.

    Args:
        held_out: of the sizes that are held out (True), of the others (False), of all (None).
        messages: of a window; 0: of the smallest windows that there are.
    """
    rows = [row for row in samples.rows if row.way == way and row.mode == mode]
    if mode == "window" and not messages and rows:
        messages = min(row.messages for row in rows)
    if mode == "window":
        rows = [row for row in rows if row.messages == messages]
    pooled: dict[int, list[float]] = {}
    for row in rows:
        if held_out is None or (row.bytes in samples.held_out) == held_out:
            pooled.setdefault(row.bytes, []).extend(row.seconds)
    if not pooled:
        return None
    count = messages if mode == "window" else 1
    sizes = sorted(pooled)
    seconds = [float(np.median(pooled[size])) / count for size in sizes]
    return Medians(np.array(sizes, dtype=np.float64), np.array(seconds), count)


def left_out_errors(m: Array, t: Array) -> Array:
    """Return the relative error at each size but the ends, fitted to all others."""
    errors = []
    for k in range(1, len(m) - 1):
        curve = fit_best_pieces(np.delete(m, k), np.delete(t, k))
        errors.append(float(relative_errors(curve, m[k : k + 1], t[k : k + 1])[0]))
    return np.array(errors)


def fit_curve(found: Medians, what: str, seed: int = 0) -> Fitted:
    """Fit a curve to medians, with replicates for intervals.

    Args:
        what: what errors call it. seed: of the bootstrap.

    Raises:
        InvalidInputError: there are too few sizes.
    """
    m, t = found.sizes, found.seconds
    if len(m) < LEAST_SIZES:
        raise InvalidInputError(
            f"{what}: {counted(len(m), 'size')} beside those held out, and a fit needs "
            f"{LEAST_SIZES}: measure more sizes"
        )
    curve = fit_best_pieces(m, t)
    replicates = bootstrap(curve, m, t, seed)
    return Fitted(curve, replicates, found.messages, m, t, spread_of(left_out_errors(m, t)))


def spread_of(errors: Array) -> tuple[float, float]:
    """Return the ends of 95 % of further errors, by N that are normal around zero.

    Few errors say little of their own spread: Student's prediction interval, which is wider than
    their own quantiles.
    """
    n = len(errors)
    half = float(stdtrit(n, 0.975)) * math.sqrt(float(np.mean(errors**2)) * (1.0 + 1.0 / n))
    return -half, half


def bootstrap(curve: Curve, m: Array, t: Array, seed: int = 0) -> list[Curve]:
    """Return curves with the same breaks, fitted to the curve with residuals drawn again."""
    n, random = len(m), np.random.default_rng(seed)
    residuals = t / curve(m) - 1.0
    # Least squares makes residuals too small, by the number of parameters that follow them, and
    # few residuals say little of their own spread: Student's quantiles instead of the normal's.
    free = max(n - len(curve.values), 1)
    residuals = residuals * math.sqrt(n / free) * float(stdtrit(free, 0.975)) / NORMAL
    made = []
    for _ in range(extras.REPLICATES):
        drawn = curve(m) * np.maximum(1.0 + random.choice(residuals, n), 0.05)
        made.append(fit_pieces(m, drawn, curve.breaks))
    return made


def fit(
    samples: Samples, seed: int = 0, progress: Callable[[int, int], None] = lambda done, ways: None
) -> Communication:
    """Return curves and parameters of all ways.

    Args:
        samples: as `read_samples` or a measurement gives them; sizes held out are not used.
        seed: of the bootstrap. progress: is told ways done, and all ways.

    Raises:
        InvalidInputError: there is no way, or there are too few sizes of one.
    """
    if not samples.rows:
        raise InvalidInputError(f"{samples.origin or 'samples'}: no way was measured")
    curves = {}
    for done, way in enumerate(samples.ways()):
        progress(done, len(samples.ways()))
        curves[way] = fit_way(samples, way, seed)
    kinds = {row.way: row.kind for row in samples.rows}
    pairs = pairs_of_device_and_host(kinds)
    ways = {}
    for way, fitted in curves.items():
        host = curves.get(pairs.get(way, ""))
        sync = synchronization(kinds[way], fitted, host, extras.fence(samples, way, seed))
        ways[way] = _record(kinds[way], fitted, sync)
    provenance = {
        "samples": samples.origin or "in memory",
        "date": samples.date,
        "command": samples.command,
    }
    if samples.digest:
        provenance["sha256"] = samples.digest
    if samples.disturbed:
        provenance["disturbed"] = samples.disturbed
    return Communication(_machine_name(samples), provenance, ways, extras.constants(samples, seed))


def _machine_name(samples: Samples) -> str:
    cpu, cores = samples.machine.get("cpu"), samples.machine.get("cores")
    gpus = samples.machine.get("gpus")
    name = f"{cpu or 'unknown machine'}" + (f", {counted(cores, 'core')}" if cores else "")
    return f"{gpus}; {name}" if gpus else name


def fit_way(samples: Samples, way: str, seed: int = 0) -> dict[str, Fitted]:
    """Return the curves of a way by name: those for which there are samples.

    Raises:
        InvalidInputError: there are no single messages, or too few sizes.
    """
    fitted = {}
    verb = next((row.kind.verb for row in samples.rows if row.way == way), "message")
    for name, mode in MODE_OF.items():
        found = medians(samples, way, mode)
        if found is not None:
            what = f"{samples.origin or 'samples'}: way {way}, mode {mode}"
            fitted[name] = fit_curve(found, what, seed)
            if name == "pipelined":
                fitted[name] = replace(fitted[name], answered=verb != "put")
    if "single" not in fitted:
        raise InvalidInputError(
            f"{samples.origin or 'samples'}: way {way}: no single messages, which all else rests on"
        )
    return fitted


def pairs_of_device_and_host(kinds: dict[str, Kind]) -> dict[str, str]:
    """Return for each way that a device initiates the one by the host with the same verb.

    Names must differ in that word alone: device-put and host-put.
    """
    return {
        way: way.replace("device", "host")
        for way, kind in kinds.items()
        if kind.initiated == "device"
        and "device" in way
        and way.replace("device", "host") in kinds
        and kinds[way.replace("device", "host")].verb == kind.verb
    }


def _record(kind: Kind, fitted: dict[str, Fitted], sync: Synchronization) -> WayRecord:
    found = identify(kind.verb, fitted, sync)
    return WayRecord(
        kind.initiated,
        kind.triggered,
        kind.controlled,
        kind.verb,
        found.payload,
        found.parameters,
        found.unknown,
        {name: _curve_record(one) for name, one in fitted.items()},
    )


def _curve_record(one: Fitted) -> CurveRecord:
    values: Sequence[tuple[float, ...]] = [curve.values for curve in one.replicates]
    low, high = np.quantile(np.array(values), (0.025, 0.975), axis=0)
    parameters = {
        name: Quantity(value, unit, float(low[k]), float(high[k]))
        for k, ((name, unit), value) in enumerate(
            zip(one.curve.units.items(), one.curve.values, strict=True)
        )
    }
    return CurveRecord(
        one.curve.form,
        parameters,
        one.curve.breaks,
        one.messages,
        (int(one.sizes[0]), int(one.sizes[-1])),
        one.spread,
    )
