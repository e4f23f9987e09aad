"""Programs of ranks, and where their messages go.

Each PE runs the program of one rank, on arrays of its own. Ranks whose programs are the same share
a variant. A program knows its sites of sending and of receiving by their numbers; which site of
which rank is at the other end stands beside the programs, in the routes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from cpufree.compiler import ir, saved


@dataclass(frozen=True)
class SendRoute:
    """Where a site of sending sends to: the rank (negative: none), its site, its region.

    Site -1: no site receives, the program's own signals say when (ir.PutSignal).
    """

    peer: int
    site: int = -1
    region: ir.Region | None = None


@dataclass(frozen=True)
class ReceiveRoute:
    """From where a site of receiving gets its messages."""

    peer: int
    site: int = -1


@dataclass(frozen=True)
class Ranks:
    """The programs of all ranks. All have the same fields, scalars and variables."""

    name: str
    variants: tuple[ir.Program, ...]
    variant_of: tuple[int, ...]
    """Of each rank."""
    sends: tuple[tuple[SendRoute, ...], ...]
    """Of each rank, by sites."""
    receives: tuple[tuple[ReceiveRoute, ...], ...]
    signals: int = 0
    """How many signals the program has of its own."""

    @property
    def count(self) -> int:
        """How many ranks there are."""
        return len(self.variant_of)

    def written(self, program: ir.Program) -> set[str]:
        """Return the fields that ranks with this program write, or that others write."""
        found = {r.region.field for of in self.sends for r in of if r.region is not None}
        found |= {s.region.field for s in ir.walk(program.body) if isinstance(s, ir.Get)}
        return found | program.written

    @property
    def returned(self) -> set[str]:
        """The fields that programs return."""
        return {f.name for f in self.fields if f.name.startswith("__return")}

    @property
    def fields(self) -> tuple[ir.Field, ...]:
        """The fields, the same of all variants."""
        return self.variants[0].fields


_CLASSES = {kind.__name__: kind for kind in (SendRoute, ReceiveRoute, Ranks)}


def to_json(ranks: Ranks) -> str:
    """Return programs of ranks as JSON."""
    return json.dumps(saved.plain(ranks))


def from_json(text: str) -> Ranks:
    """Return the programs of ranks of a JSON text."""
    made = saved.made(json.loads(text), dict(_CLASSES))
    assert isinstance(made, Ranks)
    return made


def with_same_fields(programs: list[ir.Program]) -> list[ir.Program]:
    """Return programs that all have the fields and variables of all."""
    from dataclasses import replace

    fields: dict[str, ir.Field] = {}
    scalars: dict[str, str] = {}
    variables: dict[str, str] = {}
    for p in programs:
        for f in p.fields:
            known = fields.setdefault(f.name, f)
            if (known.shape, known.type) != (f.shape, f.type):
                raise ValueError(f.name)
            if known.distributed and not f.distributed:
                fields[f.name] = f
        scalars.update(p.scalars)
        variables.update(p.variables)
    return [
        replace(
            p,
            fields=tuple(fields.values()),
            scalars=tuple(scalars.items()),
            variables=tuple(variables.items()),
        )
        for p in programs
    ]
