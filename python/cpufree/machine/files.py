"""Machine files: one JSON file for each machine, in which all that is known of it has its section.

`choices` are the numbers that decisions and predictions of engines rest on, `ways` what messages
cost, with `constants` beside them, and `cluster` what the simulator needs. Every number has a unit
and says where it comes from; it is read in seconds, bytes, and bytes a second. Files that come
along lie beside this one. A machine `like` another has its choices, but for its own.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cpufree.errors import FileFormatError, InvalidInputError, unreadable
from cpufree.output_file import write_text
from cpufree.text import meant

FORMAT = "cpufree machine"
VERSION = 1
FOLDER = Path(__file__).parent
SECTIONS = ("choices", "ways", "constants", "cluster")
KEYS = ("format", "version", "machine", "gpu", "like", "provenance", *SECTIONS)
UNITS: Mapping[str, tuple[str, float, float]] = {
    "s": ("s", 1.0, 1.0),
    "ms": ("s", 1.0, 1e3),
    "us": ("s", 1.0, 1e6),
    "ns": ("s", 1.0, 1e9),
    "s/B": ("s/B", 1.0, 1.0),
    "ns/B": ("s/B", 1.0, 1e9),
    "B": ("B", 1.0, 1.0),
    "kB": ("B", 1e3, 1.0),
    "MB": ("B", 1e6, 1.0),
    "GB": ("B", 1e9, 1.0),
    "KiB": ("B", 2.0**10, 1.0),
    "MiB": ("B", 2.0**20, 1.0),
    "B/s": ("B/s", 1.0, 1.0),
    "GB/s": ("B/s", 1e9, 1.0),
    "TB/s": ("B/s", 1e12, 1.0),
    "Gbit/s": ("B/s", 125e6, 1.0),
    "1/s": ("1/s", 1.0, 1.0),
    "MHz": ("1/s", 1e6, 1.0),
    "GHz": ("1/s", 1e9, 1.0),
    "cycles": ("cycles", 1.0, 1.0),
    "1": ("1", 1.0, 1.0),
}
"""Unit in a file -> the unit that it is turned into, and by what: multiplied, then divided. All
of these numbers are exact, so a value is rounded once."""
PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Quantity:
    """A number with its unit and, where there is one, its 95 % interval.

    Of a growth that is linear in pieces, `pieces` are (first byte, slope), and `value` is the slope
    of the first one. Of a table by whole numbers, `table` has them, and `value` is the first one.
    """

    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    provenance: str = ""
    pieces: tuple[tuple[float, float], ...] = ()
    what: str = ""
    table: Mapping[int, float] | None = None


class Field:
    """A place in a machine file, and errors that name it."""

    def __init__(self, path: PathLike, name: str, content: Any) -> None:
        self.path, self.name, self.content = path, name, content

    def error(self, what: str) -> FileFormatError:
        """Return an error that names file and place."""
        where = f"{self.path}: {self.name}: " if self.name else f"{self.path}: "
        return FileFormatError(where + what, self.path)

    def names(self) -> list[str]:
        """Return the keys of an object."""
        if not isinstance(self.content, dict):
            raise self.error("it must be an object")
        return list(self.content)

    def optional(self, key: str) -> Any:
        """Return what a key has, None where it is not there."""
        self.names()
        return self.content.get(key)

    def at(self, key: str) -> Field:
        """Return the place of a key."""
        name = f"{self.name}.{key}" if self.name else key
        if key not in self.names():
            raise Field(self.path, name, None).error("it is missing")
        return Field(self.path, name, self.content[key])

    def items(self) -> list[tuple[str, Field]]:
        """Return all keys with their places."""
        return [(key, self.at(key)) for key in self.names()]

    def items_of(self, key: str) -> list[tuple[str, Field]]:
        """Return the same of a key, nothing where it is not there."""
        return self.at(key).items() if key in self.names() else []

    def only(self, known: Iterable[str]) -> None:
        """Refuse other keys."""
        takes = list(known)
        for key in self.names():
            if key not in takes:
                raise self.at(key).error(
                    f"it is not known{meant(key, takes)}"
                    + (f": give {', '.join(takes)}" if len(takes) < 20 else "")
                )

    def text(self) -> str:
        """Return a text that is not empty."""
        if not isinstance(self.content, str) or not self.content.strip():
            raise self.error(f"it is {self.content!r}, and must be a text")
        return self.content

    def word(self, known: Iterable[str]) -> str:
        """Return one of some words."""
        if self.text() not in known:
            raise self.error(f"it is '{self.content}', and must be one of {', '.join(known)}")
        return str(self.content)

    def number(self) -> float:
        """Return a finite number."""
        value = self.content
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.error(f"it is {value!r}, and must be a number")
        if not math.isfinite(value):
            raise self.error(f"it is {value!r}, and must be finite")
        return float(value)

    def numbers(self) -> tuple[float, ...]:
        """Return a list of them."""
        if not isinstance(self.content, list):
            raise self.error(f"it is {self.content!r}, and must be a list of numbers")
        return tuple(Field(self.path, self.name, one).number() for one in self.content)

    def count(self, least: int = 1) -> int:
        """Return a whole number."""
        value = self.content
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.error(f"it is {value!r}, and must be a whole number from {least}")
        return value

    def counts(self, least: int = 1) -> tuple[int, ...]:
        """Return a list of them."""
        if not isinstance(self.content, list):
            raise self.error(f"it is {self.content!r}, and must be a list")
        return tuple(Field(self.path, self.name, one).count(least) for one in self.content)

    def quantity(self, unit: str | None = None, sourced: bool = True) -> Quantity:
        """Return a number with its unit, a table or pieces of it.

        Args:
            unit: that it must be in once it is converted, None: in whichever; of "1" any sign.
            sourced: it must say where it comes from.
        """
        self.only(("value", "unit", "low", "high", "provenance", "from", "what"))
        written = self.at("unit").word(UNITS)
        found, factor, divisor = UNITS[written]
        if unit not in (None, found):
            units = [one for one, (kind, *_) in UNITS.items() if kind == unit]
            raise self.at("unit").error(f"it is '{written}', and must be one of {', '.join(units)}")

        def number(at: Field) -> float:
            value = at.number()
            if value < 0 and found != "1":
                raise at.error(f"it is {value:g}, and must not be negative")
            return value * factor / divisor

        place, table = self.at("value"), None
        pieces: tuple[tuple[float, float], ...] = ()
        if isinstance(place.content, dict):
            table = {int(key): number(at) for key, at in place.items() if _whole(key, at)}
        if self.optional("from") is not None:
            pieces = self._pieces(number)
        low, high = (
            number(self.at(key)) if self.optional(key) is not None else None
            for key in ("low", "high")
        )
        said = self.at("provenance").text() if sourced or self.optional("provenance") else ""
        value = pieces[0][1] if pieces else next(iter(table.values())) if table else number(place)
        return Quantity(
            value, found, low, high, said, pieces, str(self.optional("what") or ""), table
        )

    def _pieces(self, number: Any) -> tuple[tuple[float, float], ...]:
        starts, slopes = self.at("from").numbers(), self.at("value").content
        if not isinstance(slopes, list) or len(slopes) != len(starts) or starts[:1] != (0.0,):
            raise self.at("from").error("it needs as many numbers as 'value', the first one 0")
        if any(b <= a for a, b in itertools.pairwise(starts)):
            raise self.at("from").error("its numbers must rise")
        values = [number(Field(self.path, f"{self.name}.value", one)) for one in slopes]
        return tuple(zip(starts, values, strict=True))


def _whole(key: str, at: Field) -> bool:
    if not (key.isascii() and key.isdigit()):
        raise at.error("tables go by whole numbers")
    return True


def names(section: str) -> list[str]:
    """Return the names of the machines that come along and have a section."""
    return [*_names(section)]


@functools.cache
def _names(section: str) -> tuple[str, ...]:
    files = sorted(FOLDER.glob("*.json"))
    return tuple(file.stem for file in files if section in read(file).content)


def find(name: str, section: str) -> Field:
    """Return the content of a machine that comes along, or of a file, which has a section.

    Raises:
        InvalidInputError: neither is there. FileFormatError: it is damaged, or lacks the section.
    """
    shipped = FOLDER / f"{name}.json"
    if shipped.parent == FOLDER and shipped.exists() and section in read(shipped).content:
        return read(shipped)
    if not os.path.exists(name):
        known = names(section)
        raise InvalidInputError(
            f"no machine '{name}'{meant(name, known)}: give a file, or one of {', '.join(known)}"
        )
    found = read(name)
    found.at(section)
    return found


def read(path: PathLike) -> Field:
    """Return the content of a machine file; FileFormatError for another one."""
    shipped = Path(path).parent == FOLDER
    return _kept(Path(path)) if shipped else _read(path)


@functools.cache
def _kept(path: Path) -> Field:
    return _read(path)


def _read(path: PathLike) -> Field:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise unreadable(f"{path}: cannot be read: {error.strerror}", path, error) from error
    except ValueError as error:
        raise FileFormatError(f"{path}: not JSON: {error}; was it cut short?", path) from error
    top = Field(path, "", content)
    if top.optional("format") != FORMAT:
        raise top.error(f"no machine file: 'format' is not '{FORMAT}'")
    if top.optional("version") != VERSION:
        raise top.at("version").error(f"it is {content['version']!r}; this cpufree reads {VERSION}")
    top.only(KEYS)
    top.at("machine").text()
    return top


def write(path: PathLike, content: Mapping[str, Any]) -> None:
    """Write sections and what belongs to them; what the file says besides stays, its name, too."""
    before = _read(path).content if os.path.exists(path) else {}
    named = {key: before[key] for key in ("machine", "gpu") if key in before}
    head = {"format": FORMAT, "version": VERSION}
    write_text(path, text_of({**head, **before, **content, **named}) + "\n")


def plain(quantity: Quantity) -> dict[str, Any]:
    """Return a number as it is written, ready for JSON."""
    content: dict[str, Any] = {"value": quantity.value, "unit": quantity.unit}
    if quantity.table:
        content["value"] = {str(key): one for key, one in quantity.table.items()}
    if quantity.pieces:
        content["value"] = [slope for _, slope in quantity.pieces]
        content["from"] = [start for start, _ in quantity.pieces]
    for key in ("low", "high"):
        if getattr(quantity, key) is not None:
            content[key] = getattr(quantity, key)
    if quantity.provenance:
        content["provenance"] = quantity.provenance
    return content


def text_of(value: Any, indent: int = 0) -> str:
    """Return JSON with a line for each number, whatever it says of it."""
    nested = isinstance(value, dict) and any(isinstance(one, dict) for one in value.values())
    if not nested:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    space = " " * (indent + 1)
    lines = [
        f"{space}{json.dumps(key, ensure_ascii=False)}: {text_of(one, indent + 1)}"
        for key, one in value.items()
    ]
    return "{\n" + ",\n".join(lines) + f"\n{' ' * indent}}}"
