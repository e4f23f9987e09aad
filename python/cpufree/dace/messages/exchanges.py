"""From events to exchanges: messages that a rank has under way at the same time.

Sends and receives that follow one another with nothing between become one exchange: all regions are
granted, all puts begin, then all are awaited. Blocking ones are put together like that, and others
are: a message is done where its operation stands or earlier, if no rank can tell, for regions
that overlap begin a new exchange. Neighbours then do not wait for one another in a chain.

A program that ends where sends wait for their receives to be posted (MPI_Issend) ends here: of the
exchanges that are not done, take the one that was done first there. What it waits for overlapped it
in time there; the exchanges that these belong to have begun here, for all before them were done
earlier. An exchange that has begun has granted all its regions, and does its puts in any order,
also while the rank waits in another one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from cpufree.compiler import ir
from cpufree.compiler.passes.accesses import Points
from cpufree.dace.messages.events import Event
from cpufree.dace.messages.signals import OneSidedEvent, statement


@dataclass(frozen=True)
class End:
    """One end of messages: what the program says, and in which loops and branches it stands."""

    event: Event
    path: tuple[Any, ...]


@dataclass
class Ends:
    """The sites of a rank."""

    sends: list[End] = field(default_factory=list)
    receives: list[End] = field(default_factory=list)


@dataclass
class _Open:
    """An exchange that is being gathered, or is under way."""

    number: int
    is_nonblocking: bool
    sends: list[tuple[ir.Message, Event]] = field(default_factory=list)
    receives: list[tuple[ir.Message, Event]] = field(default_factory=list)
    waiting: set[tuple[str, int]] = field(default_factory=set)
    last: int = 0
    """How many sends there are since the last receive."""

    def without_last_sends(self) -> list[tuple[ir.Message, Event]]:
        """Take out the sends behind the last receive."""
        first = len(self.sends) - self.last
        taken, self.sends, self.last = self.sends[first:], self.sends[:first], 0
        return taken

    def events(self) -> list[Event]:
        return [e for _, e in (*self.sends, *self.receives)]


class Exchanges:
    """Makes exchanges of the events of one rank."""

    def __init__(self) -> None:
        self.ends = Ends()
        self.count = 0
        self.loops = 0
        self.under_way: list[_Open] = []
        """Exchanges that have begun, and are not finished."""

    def block(self, body: list[Any], path: tuple[Any, ...] = ()) -> list[ir.Statement]:
        """Return statements in which exchanges stand for events."""
        return _Block(self, path).run(body)


class _Block:
    def __init__(self, all_of: Exchanges, path: tuple[Any, ...]) -> None:
        self.all, self.path = all_of, path
        self.out: list[ir.Statement] = []
        self.gathered: _Open | None = None
        self.started: list[_Open] = []

    def run(self, body: list[Any]) -> list[ir.Statement]:
        for s in body:
            if isinstance(s, Event):
                self.event(s)
            elif isinstance(s, ir.Set):
                self.out.append(s)  # numbers of ranks and tags, which no message changes
            else:
                self.close()
                self.out.append(self.inner(s))
        self.close()
        for left in self.started:
            event = next(e for e in left.events() if e.requests & left.waiting)
            event.place.fail(
                "the message is not waited for in the block where it begins",
                "put Wait or Waitall into the same loop or branch",
            )
        return self.out

    def inner(self, s: Any) -> ir.Statement:
        if isinstance(s, ir.For | ir.Loop):
            self.all.loops += 1
            what = (s.start, s.stop, s.step) if isinstance(s, ir.For) else None
            step = (type(s).__name__, self.all.loops, what)
            return replace(s, body=tuple(self.all.block(list(s.body), (*self.path, step))))
        if isinstance(s, ir.If):
            self.all.loops += 1
            number = self.all.loops
            then, otherwise = (
                self.all.block(list(way), (*self.path, ("if", number, (s.condition, k))))
                for k, way in enumerate((s.then, s.otherwise))
            )
            return replace(s, then=tuple(then), otherwise=tuple(otherwise))
        made: ir.Statement = s
        return made

    # --- events ---

    def event(self, e: Event) -> None:
        if e.kind == "wait":
            self.wait(e)
            return
        if isinstance(e, OneSidedEvent):
            self.close()
            sends = self.all.ends.sends
            self.out.append(statement(e, len(sends)))
            if e.kind != "await":
                sends.append(End(e, self.path))
            return
        x = self.gathered
        carried: list[tuple[ir.Message, Event]] = []
        if x is not None and (
            bool(e.requests) != x.is_nonblocking
            or any(self._apart(e, other) for other in x.events())
        ):
            # Blocking sends behind the last receive may go with what comes: their receives may
            # stand behind that of this rank, which would wait for them in vain.
            if not e.requests and not x.is_nonblocking and x.receives:
                carried = x.without_last_sends()
            self.close()
            x = None
        if x is None:
            x = self.gathered = _Open(self.all.count, bool(e.requests), sends=carried)
            x.last = len(carried)
            self.all.count += 1
            if any(self._apart(e, other) for _, other in carried):
                self.close()  # this one must wait for them
                x = self.gathered = _Open(self.all.count, bool(e.requests))
                self.all.count += 1
        sites = self.all.ends.sends if e.kind == "send" else self.all.ends.receives
        assert e.region is not None
        message = ir.Message(len(sites), e.region, e.place.line)
        sites.append(End(e, self.path))
        (x.sends if e.kind == "send" else x.receives).append((message, e))
        x.last = x.last + 1 if e.kind == "send" else 0
        x.waiting |= e.requests

    def _apart(self, e: Event, other: Event) -> bool:
        """Return whether two messages use the same points, and one of them receives."""
        if e.kind == "send" and other.kind == "send":
            return False
        return e.region is not None and other.region is not None and meet(e.region, other.region)

    def wait(self, e: Event) -> None:
        x = self.gathered
        if x is not None and x.waiting & e.requests:
            x.waiting -= e.requests
            if not x.waiting:
                self.close()  # what comes next may use its regions
        if any(o.waiting & e.requests for o in self.started):
            self.close()  # what others wait for is granted before this rank waits
        for x in list(self.started):
            if not x.waiting & e.requests:
                continue
            x.waiting -= e.requests
            if x.waiting:
                e.place.fail(
                    "of messages that were begun together some are waited for, and others not",
                    "wait for all of them by one Waitall",
                )
            self.started.remove(x)
            self._finish(x)

    def close(self) -> None:
        """Begin the messages that have been gathered; end them, where the program has."""
        x, self.gathered = self.gathered, None
        if x is None:
            return
        sends, receives = (tuple(m for m, _ in part) for part in (x.sends, x.receives))
        if receives:
            self.out.append(ir.Grant(x.number, receives))
        self.out.append(ir.Start(x.number, sends))
        if not x.waiting:
            self._finish(x)
            return
        self.started.append(x)
        self.all.under_way.append(x)

    def _finish(self, x: _Open) -> None:
        sends, receives = (tuple(m for m, _ in part) for part in (x.sends, x.receives))
        if x in self.all.under_way:
            self.all.under_way.remove(x)
        others = tuple(o.number for o in self.all.under_way if o.sends)
        self.out.append(ir.Finish(x.number, sends, receives, others))


def meet(a: ir.Region, b: ir.Region) -> bool:
    """Return whether two regions may have a point in common."""
    if a.field != b.field:
        return False
    return all(_points(x).meets(_points(y)) for x, y in zip(a.box, b.box, strict=True))


def _points(s: ir.Span) -> Points:
    return Points(s.start, s.start + s.step * (s.count - 1), s.step)
