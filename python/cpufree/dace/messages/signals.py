"""One-sided communication of a program: puts, signals, waits and gets, as statements of a rank.

Signals are elements of arrays of whole numbers; each becomes a flag in symmetric memory, which
begins at 0 and grows. Waits compare by >=, so that a neighbour that is ahead is no hang.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cpufree.compiler import ir
from cpufree.dace.lowering.bodies import Body
from cpufree.dace.lowering.protocols import Walks
from cpufree.dace.messages.events import Event, region_of
from cpufree.dace.values import operators
from cpufree.dace.values.affine import Affine
from cpufree.dace.values.points import Output


@dataclass(frozen=True)
class OneSidedEvent(Event):
    """A put (kind "put"), a get ("get") or a wait ("await") with its signal.

    `region` is this rank's, `there` that of the peer.
    """

    there: ir.Region | None = None
    signal: int = -1
    value: Any = None


def knows(node: Any) -> bool:
    """Return whether a node is one of one-sided communication."""
    return type(node).__module__.startswith("cpufree.dace")


def add(walk: Walks, child: Any) -> None:
    """Add the statements of a node."""
    if not walk.ranks:
        walk.place.fail(
            f"{child.node.verb} is for programs of several ranks",
            "call program.run_ranks(arguments_of_rank, ranks)",
        )
    _Adder(walk, child).add()


class _Adder:
    def __init__(self, walk: Walks, child: Any) -> None:
        self.walk, self.verb, self.place = walk, str(child.node.verb), walk.place
        self.inputs = {k: m for k, m in dict(child.in_memlets).items() if m.data is not None}
        self.outputs = {k: m for k, m in dict(child.out_memlets).items() if m.data is not None}

    def add(self) -> None:
        """Add what the verb says."""
        if self.verb == "Quiet":
            return  # puts of a rank are ordered: one block does them, and publishes each
        if self.verb == "SignalWait":
            self.event("await", -1, None, None)
            return
        pe = self.expression("_pe")
        if not isinstance(pe, ir.Literal):
            self.place.fail(
                "a rank is a value of the run",
                "compute ranks from symbols, whose values each rank's call gives",
            )
        peer = int(pe.value)
        if peer >= self.walk.ranks:
            self.place.fail(
                f"rank {self.walk.rank} names rank {peer}, and there are {self.walk.ranks}",
                "correct the neighbours; those that are not there are negative",
            )
        if self.verb == "SignalOp":
            self.event("put", peer, None, None)
            return
        there, here = self.outputs["_dest"], self.inputs.get("_source")
        if self.verb == "Getmem":
            there, here = self.inputs["_source"], self.outputs["_dest"]
        own = self.number_field(there.data) if self.verb == "P" else self.region(here)
        other = self.region(there)
        if shape(own) != shape(other):
            self.place.fail(
                f"{list(shape(own))} points of {own.field} and {list(shape(other))} of "
                f"{other.field}",
                "put and fetch views of the same shape",
            )
        self.event("get" if self.verb == "Getmem" else "put", peer, own, other)

    def event(self, kind: str, peer: int, own: ir.Region | None, there: ir.Region | None) -> None:
        """Add an event."""
        signal, value = -1, None  # none
        if "_signal" in {**self.inputs, **self.outputs}:
            signal = self.signal()
            value = operators.cast(self.expression("_value"), "int64")
            self.walk.signals = max(self.walk.signals, signal + 1)
        value = ir.Literal(0, "int64") if value is None else value
        more: dict[str, Any] = {"there": there, "signal": signal, "value": value}
        self.walk.out.append(OneSidedEvent(kind, self.place, peer, None, own, **more))

    def signal(self) -> int:
        """Return the number of a signal: its array's first one, and its index."""
        memlet = self.inputs.get("_signal") or self.outputs["_signal"]
        (begin, _, count), *more = self.walk.box(memlet.data, memlet.subset)
        if more or count != 1:
            self.place.fail(
                f"{memlet.data}[{memlet.subset}] is no single signal",
                "give one element of an array of one axis, known before the run",
            )
        return self.walk.signal_base(memlet.data) + begin

    def expression(self, connector: str) -> Any:
        """Return what a connector gets."""
        body = Body(self.walk, {}, dict(self.walk.names), self.place)
        return body.read(self.inputs[connector])

    def region(self, memlet: Any) -> ir.Region:
        """Return the region of a memlet."""
        return region_of(self.walk, memlet.data, memlet.subset)

    def number_field(self, like: str) -> ir.Region:
        """Return a field of one point that holds a number."""
        walk = self.walk
        kind = walk.containers.kind(like)
        walk.stages.made += 1
        name = f"number_{walk.stages.made}"
        walk.containers.fields[name] = ir.Field(name, (1,), kind, "local")
        value = operators.cast(self.expression("_value"), kind)
        walk.stages.add([Output(name, (Affine(0),), value, self.place)])
        return ir.Region(name, (ir.Span(0, 1, 1),))


def shape(region: ir.Region) -> tuple[int, ...]:
    """Return the points along axes that have several."""
    return tuple(s.count for s in region.box if s.count != 1)


def statement(e: OneSidedEvent, site: int) -> ir.Statement:
    """Return the statement of an event, whose site of sending has a number."""
    if e.kind == "await":
        return ir.WaitSignal(e.signal, e.value)
    if e.kind == "get":
        assert e.region is not None
        return ir.Get(site, e.region)
    return ir.PutSignal(site, e.region, e.signal, e.value)
