"""What a message costs on each way: the sections `ways` and `constants` of machine files.

>>> from cpufree.machine.communication import load_ways
>>> load_ways("summit-2020").ways["host-put"].parameters["L"].value
5.3e-07
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cpufree.machine import files
from cpufree.machine.files import Field, PathLike, Quantity

Array = NDArray[np.float64]
PARAMETERS = {
    **{name: "s" for name in ("L", "o_send", "o_recv", "g", "S")},
    **{name: "s/B" for name in ("O", "G")},
}
CURVES = ("single", "pipelined", "send", "receive")
PLACES = ("host", "device")
FORMS = ("pieces", "power")
PAYLOADS = ("once", "twice", "printed")


@dataclass(frozen=True)
class Curve:
    """A time [s] over the size of a message [B]; `values` are in the order of `units`.

    Forms: `pieces`, a start and slopes of lines that meet at `breaks`; `power`, a power law up to
    where the gap takes over, max(scale m^(1 + exponent), G m) (Groves et al. 2020, table II).
    """

    form: str
    values: tuple[float, ...]
    breaks: tuple[float, ...] = ()

    @property
    def units(self) -> dict[str, str]:
        """The unit of each parameter by its name."""
        if self.form == "power":
            return {"scale": "s/B", "exponent": "1", "G": "s/B"}
        return {"start": "s", **{f"slope{k}": "s/B" for k in range(len(self.breaks) + 1)}}

    def __call__(self, size: ArrayLike) -> Array:
        """Return the time for messages of a number of bytes, 0 included."""
        m = np.asarray(size, dtype=np.float64)
        if self.form == "power":
            scale, exponent, gap = self.values
            return np.maximum(scale * m ** (1.0 + exponent), gap * m)
        return np.asarray(columns_of(m, self.breaks) @ np.asarray(self.values))


def columns_of(m: Array, breaks: Sequence[float]) -> Array:
    """Return what multiplies start and slopes of pieces, as the last axis."""
    starts, ends = (0.0, *breaks), (*breaks, math.inf)
    pieces = [np.clip(m - a, 0.0, b - a) for a, b in zip(starts, ends, strict=True)]
    return np.stack([np.ones_like(m), *pieces], axis=-1)


@dataclass(frozen=True)
class CurveRecord:
    """A curve as a file has it."""

    form: str
    parameters: Mapping[str, Quantity]
    breaks: tuple[float, ...] = ()
    messages: int = 1
    """Of the window in which the messages went."""
    sizes: tuple[int, int] | None = None
    """The least and the largest size of the fit."""
    spread: tuple[float, float] | None = None
    """95 % of the relative errors at sizes that a fit had not seen."""

    @property
    def curve(self) -> Curve:
        """The curve itself."""
        values = tuple(one.value for one in self.parameters.values())
        return Curve(self.form, values, self.breaks)


@dataclass(frozen=True)
class WayRecord:
    """One way."""

    initiated: str
    triggered: str
    controlled: str
    verb: str
    payload: str | None
    """How often the gap of the payload counts: once, twice, or as the equations are `printed`; None
    where it is not known."""
    parameters: Mapping[str, Quantity]
    unknown: Mapping[str, str] = field(default_factory=dict)
    """Parameters that the samples do not identify, and why."""
    curves: Mapping[str, CurveRecord] = field(default_factory=dict)


@dataclass(frozen=True)
class Communication:
    """What a file says of a machine."""

    machine: str
    provenance: Mapping[str, str]
    """Source, or file of samples with its digest, date and command."""
    ways: Mapping[str, WayRecord]
    constants: Mapping[str, Quantity] = field(default_factory=dict)
    """Numbers that are no parameters of LogGOP: published, or measured beside messages."""
    origin: str = ""


def load_ways(name: str) -> Communication:
    """Return what the machine of that name, or that file, says of messages.

    Raises:
        InvalidInputError: there is none. FileFormatError: it is missing or damaged, a unit is
        missing, a time is negative, a key is not known, or its version is another one; the message
        names file and field.
    """
    top = files.find(name, "ways")
    provenance = {key: place.text() for key, place in top.items_of("provenance")}
    return Communication(
        machine=provenance.pop("measured on", "") or top.at("machine").text(),
        provenance=provenance,
        ways={name: _way(one) for name, one in top.items_of("ways")},
        constants={name: one.quantity(sourced=False) for name, one in top.items_of("constants")},
        origin=str(top.path) if top.path != files.FOLDER / f"{name}.json" else name,
    )


def _way(place: Field) -> WayRecord:
    place.only(
        (
            "initiated",
            "triggered",
            "controlled",
            "verb",
            "payload",
            "parameters",
            "unknown",
            "curves",
        )
    )
    parameters = place.at("parameters")
    parameters.only(PARAMETERS)
    if "curves" in place.names():
        place.at("curves").only(CURVES)
    return WayRecord(
        initiated=place.at("initiated").word(PLACES),
        triggered=place.at("triggered").word(PLACES),
        controlled=place.at("controlled").word(PLACES),
        verb=place.at("verb").word(("message", "put", "get")),
        payload=place.at("payload").word(PAYLOADS) if place.optional("payload") else None,
        parameters={n: one.quantity(PARAMETERS[n], False) for n, one in parameters.items()},
        unknown={name: one.text() for name, one in place.items_of("unknown")},
        curves={name: _curve(one) for name, one in place.items_of("curves")},
    )


def _curve(place: Field) -> CurveRecord:
    place.only(("form", "parameters", "breaks", "messages", "sizes", "spread"))
    form = place.at("form").word(FORMS)
    breaks = place.at("breaks").numbers() if "breaks" in place.names() else ()
    units = Curve(form, (), breaks).units
    parameters = place.at("parameters")
    parameters.only(units)
    sizes = _pair(place, "sizes")
    return CurveRecord(
        form=form,
        parameters={n: parameters.at(n).quantity(unit, False) for n, unit in units.items()},
        breaks=breaks,
        messages=place.at("messages").count() if "messages" in place.names() else 1,
        sizes=(int(sizes[0]), int(sizes[1])) if sizes else None,
        spread=_pair(place, "spread"),
    )


def _pair(place: Field, key: str) -> tuple[float, float] | None:
    if place.optional(key) is None:
        return None
    pair = place.at(key).numbers()
    if len(pair) != 2:
        raise place.at(key).error("it must be two numbers")
    return pair[0], pair[1]


def write_ways(path: PathLike, found: Communication) -> None:
    """Write them into a machine file, whose other sections stay; it appears when it is complete."""
    files.write(path, to_dict(found))


def to_dict(found: Communication) -> dict[str, Any]:
    """Return the sections of a machine file, ready for JSON."""
    return {
        "machine": found.machine,
        "provenance": {"measured on": found.machine, **found.provenance},
        "ways": {name: _plain_way(way) for name, way in found.ways.items()},
        "constants": {name: files.plain(one) for name, one in found.constants.items()},
    }


def _plain_way(way: WayRecord) -> dict[str, Any]:
    return {
        **{key: getattr(way, key) for key in ("initiated", "triggered", "controlled", "verb")},
        "payload": way.payload,
        "parameters": {name: files.plain(one) for name, one in way.parameters.items()},
        "unknown": dict(way.unknown),
        "curves": {name: _plain_curve(curve) for name, curve in way.curves.items()},
    }


def _plain_curve(curve: CurveRecord) -> dict[str, Any]:
    return {
        "form": curve.form,
        "breaks": list(curve.breaks),
        "parameters": {name: files.plain(one) for name, one in curve.parameters.items()},
        "messages": curve.messages,
        **({"sizes": list(curve.sizes)} if curve.sizes else {}),
        **({"spread": list(curve.spread)} if curve.spread else {}),
    }
