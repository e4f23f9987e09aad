"""Clusters: every constant that the simulator needs of a machine, one JSON file each.

Every number has a unit and says where it comes from; times become seconds, sizes bytes, rates
bytes a second when the file is read. Some machines lie in the folder `clusters/` beside this file.

>>> from cpufree.machine.clusters import load_cluster
>>> load_cluster("gpu-tn-2017")["gpu.launch"]
1.5e-06
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cpufree.errors import FileFormatError, InvalidInputError, unreadable
from cpufree.machine.cluster_fields import FIELDS, TOPOLOGIES, UNITS
from cpufree.text import meant

FORMAT = "cpufree cluster"
VERSION = 1
FOLDER = Path(__file__).with_name("clusters")
KEYS = ("format", "version", "machine", "source", "topology", "fields")

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Constant:
    """A number of a machine, in the unit of its field (seconds, bytes, bytes a second, ...)."""

    value: float
    provenance: str


@dataclass(frozen=True)
class Cluster:
    """A machine as the simulator sees it; `cluster["gpu.launch"]` is a number in SI units."""

    name: str
    machine: str
    source: str
    topology: str
    fields: Mapping[str, Constant]

    def __getitem__(self, field: str) -> float:
        return self.fields[field].value

    def count(self, field: str) -> int:
        """Return a field that is a whole number."""
        return int(self[field])

    def with_values(self, **values: float) -> Cluster:
        """Return the machine with other values, in SI units; `gpu__launch` stands for gpu.launch.

        Raises:
            InvalidInputError: there is no such field.
        """
        changed = dict(self.fields)
        for key, value in values.items():
            field = key.replace("__", ".")
            if field not in FIELDS:
                raise InvalidInputError(f"no field '{field}'{meant(field, FIELDS)}")
            changed[field] = Constant(value, "changed by the caller")
        return replace(self, fields=changed)


def names() -> list[str]:
    """Return the names of the machines that come with cpufree."""
    return sorted(file.stem for file in FOLDER.glob("*.json"))


def load_cluster(machine: str) -> Cluster:
    """Return the machine of that name, or of that file.

    Raises:
        InvalidInputError: neither is there. FileFormatError: the file is damaged, a field is
        missing, has no unit, another kind of unit or a negative value; the message names it.
    """
    if machine in names():
        return read_cluster(FOLDER / f"{machine}.json")
    if not os.path.exists(machine):
        raise InvalidInputError(
            f"no machine '{machine}'{meant(machine, names())}: give a file, or one of "
            f"{', '.join(names())}"
        )
    return read_cluster(machine)


def read_cluster(path: PathLike) -> Cluster:
    """Read a machine file; raises as `load_cluster` does."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise unreadable(f"{path}: cannot be read: {error.strerror}", path, error) from error
    except ValueError as error:
        raise FileFormatError(f"{path}: not JSON: {error}; was it cut short?", path) from error
    return parse_cluster(content, path)


def parse_cluster(content: Any, path: PathLike) -> Cluster:
    """Return the machine that the content of a file describes; raises as `load_cluster` does."""

    def error(where: str, what: str) -> FileFormatError:
        return FileFormatError(f"{path}: {where}: {what}", path)

    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FileFormatError(f"{path}: no machine file of the simulator: 'format' is not "
                              f"'{FORMAT}'", path)  # fmt: skip
    if content.get("version") != VERSION:
        raise error("version", f"it is {content.get('version')!r}; this cpufree reads {VERSION}")
    for key in KEYS:
        if key not in content:
            raise error(key, "it is missing")
    for key in content:
        if key not in KEYS:
            raise error(key, f"it is not known{meant(key, KEYS)}")
    if content["topology"] not in TOPOLOGIES:
        raise error("topology", f"it is {content['topology']!r}, and must be one of "
                                f"{', '.join(TOPOLOGIES)}")  # fmt: skip
    given = content["fields"]
    if not isinstance(given, dict):
        raise error("fields", "it must be an object")
    for key in given:
        if key not in FIELDS:
            raise error(f"fields.{key}", f"it is not known{meant(key, FIELDS)}")
    needed = {
        name
        for name, field in FIELDS.items()
        if field.needed and field.topology in (None, content["topology"])
    }
    for name in FIELDS:
        if name in needed and name not in given:
            raise error(f"fields.{name}", f"it is missing: {FIELDS[name].what}")
    constants = {name: _constant(name, one, error) for name, one in given.items()}
    return Cluster(
        Path(path).stem, str(content["machine"]), str(content["source"]), content["topology"],
        constants,
    )  # fmt: skip


def _constant(name: str, given: Any, error: Any) -> Constant:
    where, field = f"fields.{name}", FIELDS[name]
    if not isinstance(given, dict) or set(given) - {"value", "unit", "provenance"}:
        raise error(where, "it must be an object of value, unit and provenance")
    for key in ("value", "unit", "provenance"):
        if key not in given:
            raise error(f"{where}.{key}", "it is missing")
    if not isinstance(given["provenance"], str) or not given["provenance"].strip():
        raise error(f"{where}.provenance", "it must say where the number comes from")
    units = [unit for unit, (kind, *_) in UNITS.items() if kind == field.unit]
    if given["unit"] not in units:
        raise error(f"{where}.unit", f"it is {given['unit']!r}, and must be one of "
                                     f"{', '.join(units)}")  # fmt: skip
    value = given["value"]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise error(f"{where}.value", f"it is {value!r}, and must be a finite number")
    if value < 0:
        raise error(f"{where}.value", f"it is {value:g}, and must not be negative")
    if field.positive and value == 0:
        raise error(f"{where}.value", "it is 0, and must be more")
    if field.unit == "1" and value != int(value):
        raise error(f"{where}.value", f"it is {value:g}, and must be a whole number")
    _, factor, divisor = UNITS[given["unit"]]
    return Constant(value * factor / divisor, given["provenance"])
