"""Clusters: every constant that the simulator needs, the section `cluster` of machine files.

>>> from cpufree.machine.clusters import load_cluster
>>> load_cluster("gpu-tn-2017")["gpu.launch"]
1.5e-06
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cpufree.errors import InvalidInputError
from cpufree.machine import files
from cpufree.machine.cluster_fields import FIELDS, TOPOLOGIES
from cpufree.machine.files import Field
from cpufree.text import meant


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
    return files.names("cluster")


def load_cluster(machine: str) -> Cluster:
    """Return the machine of that name, or of that file.

    Raises:
        InvalidInputError: neither is there. FileFormatError: the file is damaged, a field is
        missing, has no unit, another kind of unit or a negative value; the message names it.
    """
    return parse_cluster(files.find(machine, "cluster"))


def has_cluster(machine: str) -> bool:
    """Return whether the machine of that name, or that file, has the section."""
    return machine in names() or (
        os.path.exists(machine) and "cluster" in files.read(machine).content
    )


def parse_cluster(top: Field) -> Cluster:
    """Return the machine that the content of a file describes; FileFormatError as above."""
    section = top.at("cluster")
    section.only(("machine", "source", "topology", "fields"))
    topology = section.at("topology").word(TOPOLOGIES)
    given = section.at("fields")
    given.only(FIELDS)
    for name, known in FIELDS.items():
        if known.needed and known.topology in (None, topology) and name not in given.names():
            raise Field(top.path, f"{given.name}.{name}", None).error(
                f"it is missing: {known.what}"
            )
    described = section if section.optional("machine") else top
    return Cluster(
        Path(top.path).stem,
        described.at("machine").text(),
        section.at("source").text(),
        topology,
        {name: _constant(name, place) for name, place in given.items()},
    )


def _constant(name: str, place: Field) -> Constant:
    known = FIELDS[name]
    found = place.quantity(known.unit)
    if found.value < 0:
        raise place.at("value").error(f"it is {found.value:g}, and must not be negative")
    if known.positive and found.value == 0:
        raise place.at("value").error("it is 0, and must be more")
    if known.unit == "1" and found.value != int(found.value):
        raise place.at("value").error(f"it is {found.value:g}, and must be a whole number")
    return Constant(found.value, found.provenance)
