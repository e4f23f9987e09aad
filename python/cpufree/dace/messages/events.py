"""MPI's library nodes as events of a rank: what it sends, what it receives, what it waits for.

Ranks, tags and requests are known when a rank's program is made: its symbols have values then.
Collective operations are events, too: a scatter is a message from the root to every rank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from cpufree.compiler import ir
from cpufree.dace.lowering.bodies import Body
from cpufree.dace.lowering.containers import Split
from cpufree.dace.lowering.protocols import Walks
from cpufree.dace.values import operators
from cpufree.dace.values.affine import Affine
from cpufree.dace.values.points import Output, Point, Range, with_params
from cpufree.dace.values.refusal import Place

Requests = frozenset[tuple[str, int]]
"""Elements of arrays of requests."""


@dataclass(frozen=True)
class Event:
    """A message of a rank's, or (kind "wait") that messages are to be done.

    `peer` is negative where there is none (MPI_PROC_NULL). `tag` tells messages between two ranks
    apart: a tag of MPI's as expression, or the name of a collective operation.
    """

    kind: str
    place: Place
    peer: int = -1
    tag: Any = None
    region: ir.Region | None = None
    requests: Requests = field(default_factory=frozenset)


_NODES = {
    "Send": "send", "Isend": "send", "Recv": "receive", "Irecv": "receive", "Wait": "wait",
    "Waitall": "wait", "Scatter": "scatter", "Gather": "gather", "Bcast": "bcast",
    "Allreduce": "allreduce", "Barrier": "barrier", "CommRank": "rank", "CommSize": "size",
}  # fmt: skip


def knows(node: Any) -> bool:
    """Return whether a library node is one of communication."""
    module = type(node).__module__
    return module.startswith("dace.libraries.comm")


def add(walk: Walks, child: Any) -> None:
    """Add the events of a node."""
    name = type(child.node).__name__
    if name not in _NODES:
        walk.place.fail(
            f"the communication {name} is not taken",
            f"use one of {', '.join(sorted(_NODES))}",
        )
    if not walk.ranks:
        walk.place.fail(
            f"{name} is for programs of several ranks",
            "call program.run_ranks(arguments_of_rank, ranks)",
        )
    if getattr(child.node, "grid", None):
        walk.place.fail("process grids are not taken", "compute ranks from pi and pj")
    _Adder(walk, child).add(_NODES[name])


class _Adder:
    def __init__(self, walk: Walks, child: Any) -> None:
        self.walk, self.child, self.place = walk, child, walk.place
        self.inputs, self.outputs = (_named(m) for m in (child.in_memlets, child.out_memlets))

    def add(self, kind: str) -> None:
        """Add the events of one node."""
        getattr(self, f"_{kind}")()

    def event(self, kind: str, peer: int, tag: Any, region: ir.Region, requests: Any = ()) -> None:
        """Add an event."""
        if peer >= self.walk.ranks:
            self.place.fail(
                f"rank {self.walk.rank} names rank {peer}, and there are {self.walk.ranks}",
                "correct the neighbours; those that are not there are MPI_PROC_NULL",
            )
        self.walk.out.append(Event(kind, self.place, peer, tag, region, frozenset(requests)))

    def number(self, connector: str) -> int:
        """Return a rank."""
        value = self.expression(connector)
        if not isinstance(value, ir.Literal):
            self.place.fail(
                "a rank is a value of the run",
                "compute ranks from symbols, whose values each rank's call gives",
            )
        assert isinstance(value, ir.Literal)
        return int(value.value)

    def expression(self, connector: str) -> Any:
        """Return what a connector gets, as an expression of the program."""
        memlet = self.inputs.get(connector)
        if memlet is None:
            return ir.Literal(0, "int64")
        value = Body(self.walk, {}, dict(self.walk.names), self.place).read(memlet)
        return operators.cast(value, "int64")

    def region(self, connector: str) -> ir.Region:
        """Return the region that a connector has."""
        memlet = self.inputs.get(connector) or self.outputs[connector]
        return region_of(self.walk, memlet.data, memlet.subset)

    def requests(self) -> list[tuple[str, int]]:
        """Return the requests that a node takes or gives."""
        memlet = self.outputs.get("_request") or self.inputs.get("_request")
        if memlet is None:
            return []
        (begin, step, count), *_ = self.walk.box(memlet.data, memlet.subset)
        return [(memlet.data, begin + step * k) for k in range(count)]

    # --- nodes ---

    def _send(self) -> None:
        region = self.region("_buffer")
        peer, tag = self.number("_dest"), self.expression("_tag")
        self.event("send", peer, tag, region, self.requests())

    def _receive(self) -> None:
        peer, tag = self.number("_src"), self.expression("_tag")
        self.event("receive", peer, tag, self.region("_buffer"), self.requests())

    def _wait(self) -> None:
        requests = frozenset(self.requests())
        self.walk.out.append(Event("wait", self.place, requests=requests))

    def _scatter(self) -> None:
        root = self.number("_root")
        whole, part = self.region("_inbuffer"), self.region("_outbuffer")
        if self.walk.rank == root:
            for rank, chunk in enumerate(self._chunks(whole)):
                self.event("send", rank, "scatter", chunk)
        self.event("receive", root, "scatter", part)

    def _gather(self) -> None:
        root = self.number("_root")
        part, whole = self.region("_inbuffer"), self.region("_outbuffer")
        self.event("send", root, "gather", part)
        if self.walk.rank == root:
            for rank, chunk in enumerate(self._chunks(whole)):
                self.event("receive", rank, "gather", chunk)

    def _bcast(self) -> None:
        root = self.number("_root")
        region = self.region("_outbuffer")
        if self.walk.rank != root:
            self.event("receive", root, "bcast", region)
            return
        for rank in range(self.walk.ranks):
            if rank != root:
                self.event("send", rank, "bcast", region)

    def _allreduce(self) -> None:
        """Send what is reduced to all; each joins all parts in the order of ranks."""
        walk, op = self.walk, str(self.child.node.op).rpartition("_")[2].lower()
        if op not in ("sum", "max", "min"):
            self.place.fail(
                f"the reduction {self.child.node.op}", "use MPI_SUM, MPI_MAX or MPI_MIN"
            )
        source = self.inputs.get("_inbuffer") or self.outputs["_outbuffer"]
        target = self.outputs["_outbuffer"]
        scalar = walk.containers.is_scalar(source.data)
        mine = self._scalar_field(source.data) if scalar else self.region("_inbuffer")
        counts = tuple(s.count for s in mine.box)
        f = walk.containers.fields[mine.field]
        walk.stages.made += 1
        name = f"parts_{walk.stages.made}"
        walk.containers.fields[name] = ir.Field(name, (walk.ranks, *counts), f.type, "local")
        for rank in range(walk.ranks):
            self.event("send", rank, "allreduce", mine)
        for rank in range(walk.ranks):
            spans = (ir.Span(rank, 1, 1), *(ir.Span(0, 1, n) for n in counts))
            self.event("receive", rank, "allreduce", ir.Region(name, spans))
        self._join_parts(name, f.type, op, target, None if not scalar else counts)

    def _scalar_field(self, name: str) -> ir.Region:
        walk = self.walk
        walk.stages.made += 1
        field_name = f"part_{walk.stages.made}"
        kind = walk.containers.kind(name)
        walk.containers.fields[field_name] = ir.Field(field_name, (1,), kind, "local")
        value = Body(walk, {}, dict(walk.names), self.place).value(name)
        walk.stages.add([Output(field_name, (Affine(0),), operators.cast(value, kind), self.place)])
        return ir.Region(field_name, (ir.Span(0, 1, 1),))

    def _join_parts(self, name: str, kind: str, op: str, target: Any, scalar: Any) -> None:
        walk = self.walk
        join = {"sum": "add", "max": "maximum", "min": "minimum"}[op]
        box = [(0, 1, 1)] if scalar else walk.box(target.data, target.subset)
        ranges = {f"c{k}": Range(0, 1, n) for k, (_, _, n) in enumerate(box)}
        index = tuple(Affine(0, ((p, 1),)) for p in ranges)
        value: Any = None
        for rank in range(walk.ranks):
            part: Any = Point(name, (Affine(rank), *index), kind)
            value = part if value is None else operators.apply(join, [value, part])
        if scalar:
            zeros: dict[str, Affine | int] = dict.fromkeys(ranges, 0)
            walk.set_scalar(target.data, with_params(value, zeros), self.place)
            return
        to = tuple(Affine(b, ((f"c{k}", s),)) for k, (b, s, _) in enumerate(box))
        at = walk.containers.point(target.data, to, ranges, self.place)
        value = operators.cast(value, at.type)
        walk.stages.add([Output(at.field, at.index, value, self.place, ranges=ranges)])

    def _barrier(self) -> None:
        """A barrier changes nothing that ranks can observe: messages order all that they see."""

    def _rank(self) -> None:
        (target,) = self.outputs.values()
        self.walk.set_scalar(target.data, ir.Literal(self.walk.rank, "int64"), self.place)

    def _size(self) -> None:
        (target,) = self.outputs.values()
        self.walk.set_scalar(target.data, ir.Literal(self.walk.ranks, "int64"), self.place)

    def _chunks(self, whole: ir.Region) -> list[ir.Region]:
        """Return the parts of a region, of equal size and one behind the other, for all ranks."""
        found = []
        for rank in range(self.walk.ranks):
            spans, parts, rest = [], self.walk.ranks, rank
            for span in whole.box:
                n = span.count
                if parts == 1 or n == 1:
                    spans.append(span)
                elif parts % n == 0:
                    parts //= n
                    spans.append(ir.Span(span.start + span.step * (rest // parts), 1, 1))
                    rest %= parts
                elif n % parts == 0:
                    n //= parts
                    spans.append(ir.Span(span.start + span.step * rest * n, span.step, n))
                    parts, rest = 1, 0
                else:
                    self.place.fail(
                        f"{whole.field} of {math.prod(s.count for s in whole.box)} points is to be "
                        f"divided among {self.walk.ranks} ranks",
                        "give it axes that the ranks divide evenly",
                    )
            if parts != 1:
                self.place.fail(
                    f"{whole.field} has fewer points than there are ranks", "use fewer ranks"
                )
            found.append(ir.Region(whole.field, tuple(spans)))
        return found


def _named(memlets: Any) -> dict[str, Any]:
    if isinstance(memlets, dict):
        return {k: m for k, m in memlets.items() if m.data is not None}
    found = list(memlets)
    return {"_request": found[0]} if found else {}


def region_of(walk: Walks, name: str, subset: Any) -> ir.Region:
    """Return the region of a field that a subset of a container is."""
    box = walk.box(name, subset)
    ranges = {f"c{k}": Range(0, 1, n) for k, (_, _, n) in enumerate(box)}
    index = tuple(Affine(b, ((f"c{k}", s),)) for k, (b, s, _) in enumerate(box))
    try:
        point = walk.containers.point(name, index, ranges, walk.place)
    except Split:
        walk.place.fail(f"{name} is a reshaped array", "send parts of the array itself")
    output = Output(point.field, point.index, point, walk.place, ranges=ranges)
    if any(len(a.params) > 1 for a in point.index):
        walk.place.fail(f"{name} is a reshaped array", "send parts of the array itself")
    spans, _ = walk.stages.boxes.box(output, "sent or received")
    return ir.Region(point.field, spans)
