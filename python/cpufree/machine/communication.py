"""What a message costs on each way: the sections `ways` and `constants` of machine files.

>>> from cpufree.machine.communication import load_ways
>>> load_ways("summit-2020").ways["host-put"].parameters["L"].value
5.3e-07
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cpufree.machine import files
from cpufree.machine.files import Field, PathLike, Quantity

PARAMETERS = {
    **{name: "s" for name in ("L", "o_send", "o_recv", "g", "S")},
    **{name: "s/B" for name in ("O", "G")},
}
CURVES = ("single", "pipelined", "send", "receive")
PLACES = ("host", "device")
FORMS = ("pieces", "power", "softplus")
PAYLOADS = ("once", "twice", "printed")


@dataclass(frozen=True)
class CurveRecord:
    """A curve of time over size, as a file has it."""

    form: str
    parameters: Mapping[str, Quantity]
    breaks: tuple[float, ...] = ()
    messages: int = 1
    """Of the window in which the messages went."""
    sizes: tuple[int, int] | None = None
    """The least and the largest size of the fit."""
    spread: tuple[float, float] | None = None
    """95 % of the relative errors at sizes that a fit had not seen."""
    errors: Mapping[str, float] = field(default_factory=dict)
    """Mean relative error of each form at sizes left out in turn."""


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
    section = "ways" if name not in files.names("constants") else "constants"
    top = files.find(name, section)
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
    place.only(("form", "parameters", "breaks", "messages", "sizes", "spread", "errors"))
    form = place.at("form").word(FORMS)
    breaks = place.at("breaks").numbers() if "breaks" in place.names() else ()
    expected = {
        "power": {"scale": "s/B", "exponent": "1", "G": "s/B"},
        "softplus": {"base": "s", "knee": "s", "G": "s/B"},
        "pieces": {"start": "s", **{f"slope{k}": "s/B" for k in range(len(breaks) + 1)}},
    }[form]
    parameters = place.at("parameters")
    parameters.only(expected)
    if form == "softplus" and parameters.at("knee").at("value").number() <= 0:
        raise parameters.at("knee").at("value").error("it must be more than 0")
    messages = place.at("messages").number() if "messages" in place.names() else 1.0
    if messages < 1 or messages != int(messages):
        raise place.at("messages").error("it must be a whole number from 1")
    pairs = {
        key: place.at(key).numbers() if place.optional(key) is not None else None
        for key in ("sizes", "spread")
    }
    for key, pair in pairs.items():
        if pair is not None and len(pair) != 2:
            raise place.at(key).error("it must be two numbers")
    sizes, spread = pairs["sizes"], pairs["spread"]
    return CurveRecord(
        form=form,
        parameters={
            name: parameters.at(name).quantity(unit, False) for name, unit in expected.items()
        },
        breaks=breaks,
        messages=int(messages),
        sizes=(int(sizes[0]), int(sizes[1])) if sizes else None,
        spread=(spread[0], spread[1]) if spread else None,
        errors={name: one.number() for name, one in place.items_of("errors")},
    )


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
    content: dict[str, Any] = {
        "initiated": way.initiated,
        "triggered": way.triggered,
        "controlled": way.controlled,
        "verb": way.verb,
        "payload": way.payload,
        "parameters": {name: files.plain(one) for name, one in way.parameters.items()},
        "unknown": dict(way.unknown),
        "curves": {name: _plain_curve(curve) for name, curve in way.curves.items()},
    }
    return content


def _plain_curve(curve: CurveRecord) -> dict[str, Any]:
    return {
        "form": curve.form,
        "breaks": list(curve.breaks),
        "parameters": {name: files.plain(one) for name, one in curve.parameters.items()},
        "messages": curve.messages,
        **({"sizes": list(curve.sizes)} if curve.sizes else {}),
        **({"spread": list(curve.spread)} if curve.spread else {}),
        "errors": dict(curve.errors),
    }
