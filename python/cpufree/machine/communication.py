"""Machine files of the communication model: what a message costs on each way, one JSON file each.

Every number has a unit; times become seconds and sizes bytes when the file is read. What others
have published lies in the folder `communication/` beside this file.

>>> from cpufree.machine.communication import load_published
>>> load_published("summit-2020").ways["host-put"].parameters["L"].value
5.3e-07
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cpufree.errors import FileFormatError, InvalidInputError, unreadable
from cpufree.output_file import write_text
from cpufree.text import meant

FORMAT = "cpufree communication"
VERSION = 1
PUBLISHED = Path(__file__).with_name("communication")
UNITS = {
    "s": ("s", 1.0),
    "ms": ("s", 1e3),
    "us": ("s", 1e6),
    "ns": ("s", 1e9),
    "s/B": ("s/B", 1.0),
    "ns/B": ("s/B", 1e9),
    "1/s": ("1/s", 1.0),
    "1": ("1", 1.0),
}
"""Unit in a file -> the unit it is turned into, and how many of it make one of those."""
PARAMETERS = {
    **{name: "s" for name in ("L", "o_send", "o_recv", "g", "S")},
    **{name: "s/B" for name in ("O", "G")},
}
CURVES = ("single", "pipelined", "send", "receive")
PLACES = ("host", "device")
FORMS = ("pieces", "power", "softplus")
PAYLOADS = ("once", "twice", "printed")

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Quantity:
    """A number with its unit and, where there is one, its 95 % interval.

    Of a growth that is linear in pieces, `pieces` are (first byte, slope), and `value` is the slope
    of the first one.
    """

    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    provenance: str = ""
    pieces: tuple[tuple[float, float], ...] = ()


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


def published() -> list[str]:
    """Return the names of the published files."""
    return sorted(file.stem for file in PUBLISHED.glob("*.json"))


def load_published(name: str) -> Communication:
    """Return a published file.

    Raises:
        InvalidInputError: there is none of that name.
    """
    if name not in published():
        known = published()
        raise InvalidInputError(
            f"no published machine '{name}'{meant(name, known)}: there are {', '.join(known)}"
        )
    return read_communication(PUBLISHED / f"{name}.json")


def find_communication(name: str) -> Communication:
    """Return the file of that name, or a published one."""
    return load_published(name) if name in published() else read_communication(name)


def read_communication(path: PathLike) -> Communication:
    """Read a machine file.

    Raises:
        FileFormatError: it is missing or damaged, a unit is missing, a time is negative, a key is
        not known, or its version is another one; the message names file and field.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise unreadable(f"{path}: cannot be read: {error.strerror}", path, error) from error
    except ValueError as error:
        raise FileFormatError(f"{path}: not JSON: {error}; was it cut short?", path) from error
    top = _Field(path, "", content)
    if top.optional("format") != FORMAT:
        raise top.error("no machine file of the communication model: 'format' is another one")
    if top.optional("version") != VERSION:
        raise top.error(
            f"'version' is {top.optional('version')!r}; this cpufree reads {VERSION}: fit again"
        )
    top.only("format", "version", "machine", "provenance", "ways", "constants")
    provenance = top.at("provenance")
    return Communication(
        machine=top.at("machine").text(),
        provenance={key: provenance.at(key).text() for key in provenance.names()},
        ways={name: _way(one) for name, one in top.at("ways").items()},
        constants={
            name: _quantity(one, None)
            for name, one in (top.at("constants").items() if "constants" in content else ())
        },
        origin=os.fspath(path),
    )


class _Field:
    """A place in a machine file, and errors that name it."""

    def __init__(self, path: PathLike, name: str, content: Any) -> None:
        self.path, self.name, self.content = path, name, content

    def error(self, what: str) -> FileFormatError:
        where = f"{self.path}: {self.name}: " if self.name else f"{self.path}: "
        return FileFormatError(where + what, self.path)

    def names(self) -> list[str]:
        if not isinstance(self.content, dict):
            raise self.error("it must be an object")
        return list(self.content)

    def optional(self, key: str) -> Any:
        self.names()
        return self.content.get(key)

    def at(self, key: str) -> _Field:
        name = f"{self.name}.{key}" if self.name else key
        if key not in self.names():
            raise _Field(self.path, name, None).error("it is missing")
        return _Field(self.path, name, self.content[key])

    def items(self) -> list[tuple[str, _Field]]:
        return [(key, self.at(key)) for key in self.names()]

    def only(self, *known: str) -> None:
        for key in self.names():
            if key not in known:
                raise self.error(f"'{key}' is not known{meant(key, known)}: it takes "
                                 f"{', '.join(known)}")  # fmt: skip

    def text(self) -> str:
        if not isinstance(self.content, str):
            raise self.error(f"it is {self.content!r}, and must be a text")
        return self.content

    def word(self, known: tuple[str, ...]) -> str:
        if self.text() not in known:
            raise self.error(f"it is '{self.content}', and must be one of {', '.join(known)}")
        return str(self.content)

    def number(self) -> float:
        value = self.content
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.error(f"it is {value!r}, and must be a number")
        if not math.isfinite(value):
            raise self.error(f"it is {value!r}, and must be finite")
        return float(value)

    def numbers(self) -> tuple[float, ...]:
        if not isinstance(self.content, list):
            raise self.error(f"it is {self.content!r}, and must be a list of numbers")
        return tuple(_Field(self.path, self.name, one).number() for one in self.content)


def _quantity(place: _Field, unit: str | None) -> Quantity:
    """Read a quantity that is in `unit` once it is converted, None: in whichever."""
    place.only("value", "unit", "low", "high", "provenance", "from")
    written = place.at("unit").text()
    if written not in UNITS:
        raise place.at("unit").error(f"it is '{written}', and must be one of {', '.join(UNITS)}")
    found, divisor = UNITS[written]
    if unit not in (None, found):
        raise place.at("unit").error(f"it is '{written}', and must be one that is {unit}")

    def number(at: _Field) -> float:
        value = at.number()
        if value < 0 and found != "1":
            raise at.error(f"it is {value:g}: a time must not be negative")
        return value / divisor  # divisors are exact: the result is rounded once

    pieces: tuple[tuple[float, float], ...] = ()
    if place.optional("from") is not None:
        starts, slopes = place.at("from").numbers(), place.at("value").content
        if not isinstance(slopes, list) or len(slopes) != len(starts) or starts[:1] != (0.0,):
            raise place.at("from").error("it needs as many numbers as 'value', the first one 0")
        if any(b <= a for a, b in itertools.pairwise(starts)):
            raise place.at("from").error("its numbers must rise")
        values = [number(_Field(place.path, f"{place.name}.value", one)) for one in slopes]
        pieces = tuple(zip(starts, values, strict=True))
    low, high = (
        number(place.at(key)) if place.optional(key) is not None else None
        for key in ("low", "high")
    )
    value = pieces[0][1] if pieces else number(place.at("value"))
    said = place.at("provenance").text() if "provenance" in place.names() else ""
    return Quantity(value, found, low, high, said, pieces)


def _way(place: _Field) -> WayRecord:
    place.only(
        *("initiated", "triggered", "controlled", "verb", "payload"),
        *("parameters", "unknown", "curves"),
    )
    parameters = place.at("parameters")
    parameters.only(*PARAMETERS)
    unknown = place.at("unknown") if "unknown" in place.names() else None
    curves = place.at("curves") if "curves" in place.names() else None
    if curves is not None:
        curves.only(*CURVES)
    return WayRecord(
        initiated=place.at("initiated").word(PLACES),
        triggered=place.at("triggered").word(PLACES),
        controlled=place.at("controlled").word(PLACES),
        verb=place.at("verb").word(("message", "put", "get")),
        payload=place.at("payload").word(PAYLOADS) if place.optional("payload") else None,
        parameters={n: _quantity(one, PARAMETERS[n]) for n, one in parameters.items()},
        unknown={name: one.text() for name, one in unknown.items()} if unknown else {},
        curves={name: _curve(one) for name, one in curves.items()} if curves else {},
    )


def _curve(place: _Field) -> CurveRecord:
    place.only("form", "parameters", "breaks", "messages", "sizes", "spread", "errors")
    form = place.at("form").word(FORMS)
    breaks = place.at("breaks").numbers() if "breaks" in place.names() else ()
    expected = {
        "power": {"scale": "s/B", "exponent": "1", "G": "s/B"},
        "softplus": {"base": "s", "knee": "s", "G": "s/B"},
        "pieces": {"start": "s", **{f"slope{k}": "s/B" for k in range(len(breaks) + 1)}},
    }[form]
    parameters = place.at("parameters")
    parameters.only(*expected)
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
        parameters={name: _quantity(parameters.at(name), unit) for name, unit in expected.items()},
        breaks=breaks,
        messages=int(messages),
        sizes=(int(sizes[0]), int(sizes[1])) if sizes else None,
        spread=(spread[0], spread[1]) if spread else None,
        errors={n: one.number() for n, one in place.at("errors").items()}
        if "errors" in place.names()
        else {},
    )


def write_communication(path: PathLike, found: Communication) -> None:
    """Write a machine file; it appears under its name when it is complete."""
    write_text(path, json.dumps(to_dict(found), indent=2, allow_nan=False) + "\n")


def to_dict(found: Communication) -> dict[str, Any]:
    """Return what a machine file has, ready for JSON."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "machine": found.machine,
        "provenance": dict(found.provenance),
        "ways": {name: _plain_way(way) for name, way in found.ways.items()},
    }
    if found.constants:
        content["constants"] = {name: _plain(one) for name, one in found.constants.items()}
    return content


def _plain(quantity: Quantity) -> dict[str, Any]:
    content: dict[str, Any] = {"value": quantity.value, "unit": quantity.unit}
    if quantity.pieces:
        content["value"] = [slope for _, slope in quantity.pieces]
        content["from"] = [start for start, _ in quantity.pieces]
    for key in ("low", "high"):
        if getattr(quantity, key) is not None:
            content[key] = getattr(quantity, key)
    if quantity.provenance:
        content["provenance"] = quantity.provenance
    return content


def _plain_way(way: WayRecord) -> dict[str, Any]:
    content: dict[str, Any] = {
        "initiated": way.initiated,
        "triggered": way.triggered,
        "controlled": way.controlled,
        "verb": way.verb,
        "payload": way.payload,
        "parameters": {name: _plain(one) for name, one in way.parameters.items()},
        "unknown": dict(way.unknown),
        "curves": {name: _plain_curve(curve) for name, curve in way.curves.items()},
    }
    return content


def _plain_curve(curve: CurveRecord) -> dict[str, Any]:
    return {
        "form": curve.form,
        "breaks": list(curve.breaks),
        "parameters": {name: _plain(one) for name, one in curve.parameters.items()},
        "messages": curve.messages,
        **({"sizes": list(curve.sizes)} if curve.sizes else {}),
        **({"spread": list(curve.spread)} if curve.spread else {}),
        "errors": dict(curve.errors),
    }
