"""A check that no PE computes with a ghost that is stale, whatever way the program takes.

It runs the program as the back end does, with marks in place of values, and shares no rule with the
passes that it checks: of each row of ghosts it follows which points may differ from what their
owner has. A write makes points stale in all ghosts but those that the stage computes itself, from
ghosts that are fresh. A Wait brings what was sent. Where ways join, a point is stale that is stale
on one of them.

The border between two PEs may lie before any row, so the ghosts at a distance from it are followed
for all rows at once. Those around the ring are copies of certain rows, and no stage computes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cpufree.compiler import ir
from cpufree.compiler.passes.accesses import element_fields
from cpufree.compiler.passes.boxes import Box, Boxes, row_of, without
from cpufree.compiler.passes.rows import Work, is_by_rows, row_offset, rows_written
from cpufree.errors import EngineError

BELOW, ABOVE = -1, 1


@dataclass(frozen=True)
class Place:
    """A row of ghosts: `distance` rows from a PE's own; `ring`: beyond the ends of the field."""

    side: int
    distance: int
    ring: bool


Stale = dict[tuple[str, Place], Boxes]
"""Points of fields that may be stale in a row of ghosts; none are kept of rows that are fresh."""


@dataclass(frozen=True)
class State:
    """What may be stale, and the halos that have been sent and not been waited for."""

    stale: Stale
    sent: dict[int, tuple[ir.Halo, ...]]

    def joined(self, other: State) -> State:
        """Return what may be stale on either way, and what has been sent on both."""
        keys = self.stale.keys() | other.stale.keys()
        none: Boxes = frozenset()
        stale = {k: self.stale.get(k, none) | other.stale.get(k, none) for k in keys}
        sent = {c: h for c, h in self.sent.items() if other.sent.get(c) == h}
        return State(stale, sent)


def check_ghosts(program: ir.Program) -> int:
    """Return how many reads of ghosts a program has.

    Raises
    ------
    EngineError
        A PE computes its own rows from a stale ghost, or reads an element that it may not have:
        the program is wrong, and must not run.
    """
    divided = {f.name for f in program.fields if f.distributed}
    for name in sorted(element_fields(program) & divided):
        raise EngineError(f"elements of {name} are read, and no PE has all of its rows")
    check = _Check(program)
    check.block(program.body, State({}, {}))  # the load brings all ghosts
    return len(check.reads)


class _Check:
    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.rows = {f.name: f.shape[0] for f in program.fields if f.distributed}
        self.reads: set[tuple[ir.Stage, ir.Read]] = set()
        self.breaks: list[list[State]] = []
        self.continues: list[list[State]] = []
        groups = [s for s in ir.walk(program.body) if isinstance(s, ir.Group)]
        stages = [stage for group in groups for stage in group.stages]
        self.farthest = max((self._farthest(stage) for stage in stages), default=0)

    def _farthest(self, stage: ir.Stage) -> int:
        """Return the distance of the farthest ghosts that a stage reads or computes."""
        away = [abs(offset) for _, offset in self._reads_of(stage.work)]
        return max(away, default=0) + max(stage.below, stage.above)

    # --- control flow ---

    def block(self, body: tuple[ir.Statement, ...], state: State | None) -> State | None:
        """Return the state after statements; None: that place is never reached."""
        for s in body:
            if state is None:
                return None
            if isinstance(s, ir.Break | ir.Continue):
                (self.breaks if isinstance(s, ir.Break) else self.continues)[-1].append(state)
                return None
            if isinstance(s, ir.If):
                state = _joined([self.block(s.then, state), self.block(s.otherwise, state)])
            elif isinstance(s, ir.For | ir.Loop):
                state = self.loop(s, state)
            else:
                state = self.statement(s, state)
        return state

    def loop(self, s: ir.For | ir.Loop, state: State) -> State | None:
        """Follow a loop: its head is reached from before, from its end, and by continue."""
        head = state
        while True:
            self.breaks.append([])
            self.continues.append([])
            end = self.block(s.body, head)
            breaks, continues = self.breaks.pop(), self.continues.pop()
            joined = _joined([head, end, *continues])
            assert joined is not None
            if joined == head:
                return _joined([head, *breaks] if isinstance(s, ir.For) else breaks)
            head = joined

    def statement(self, s: ir.Statement, state: State) -> State:
        if isinstance(s, ir.Put):
            return replace(state, sent={**state.sent, s.channel: s.halos})
        if isinstance(s, ir.Wait):
            return self.wait(s, state)
        if isinstance(s, ir.Permute):
            return _permuted(s, state)
        if isinstance(s, ir.Group):
            for stage in s.stages:
                state = self.stage(stage, state)
        return state

    # --- halos ---

    def wait(self, s: ir.Wait, state: State) -> State:
        """Follow the arrival of halos, which nothing may have changed since they were sent."""
        if state.sent.get(s.channel) != s.halos:
            names = ", ".join(h.field for h in s.halos)
            raise EngineError(f"halo of {names} is waited for, but not sent since")
        brought = {
            (h.field, Place(side, distance, ring))
            for h in s.halos
            for side, rows in ((BELOW, h.below), (ABOVE, h.above))
            for distance in range(1, rows + 1)
            # An exchange goes around the ring where one of its halos has to.
            for ring in (False, any(other.periodic for other in s.halos))
        }
        stale = {key: boxes for key, boxes in state.stale.items() if key not in brought}
        return State(stale, {c: h for c, h in state.sent.items() if c != s.channel})

    # --- stages ---

    def stage(self, stage: ir.Stage, state: State) -> State:
        """Follow a stage: what it reads for a PE's own rows, and the ghosts that it computes."""
        work = stage.work
        if not is_by_rows(self.program, work) or any(span.count == 0 for span in work.box):
            return state
        self._check_own(stage, state)
        if not isinstance(work, ir.Assign):
            return state
        stale, box = dict(state.stale), Box.of_spans(work.box)
        for place in self._places():
            key = (work.field, place)
            before = stale.get(key, frozenset())
            if place.ring:
                row = row_of(place.side, place.distance, self.rows[work.field])
                after = before | box.at_row(row)
            elif self._computes(stage, place, state):
                moves = any(span.index is not None for span in work.box)  # any point may be meant
                after = before if moves else without(before, box)
            else:
                after = before | {box}
            if after:
                stale[key] = after
            else:
                stale.pop(key, None)
        sent = {
            c: halos for c, halos in state.sent.items() if all(h.field != work.field for h in halos)
        }
        return State(stale, sent)

    def _places(self) -> Iterator[Place]:
        for side in (BELOW, ABOVE):
            for distance in range(1, self.farthest + 1):
                yield Place(side, distance, False)
                yield Place(side, distance, True)

    def _computes(self, stage: ir.Stage, place: Place, state: State) -> bool:
        """Return whether a stage computes a row of ghosts, and from values that are fresh."""
        if place.distance > (stage.below if place.side == BELOW else stage.above):
            return False
        for read, offset in self._reads_of(stage.work):
            box = self._points(read, stage.work, offset)
            n = self.rows[read.field]
            if box.first_row < 0 or box.last_row >= n:
                return False  # beyond the ring's end lies nothing that its neighbour knows
            away = place.distance + place.side * offset
            if away > 0 and self._stale(state, read.field, replace(place, distance=away), box):
                return False
        return True

    def _check_own(self, stage: ir.Stage, state: State) -> None:
        """Refuse a stage that reads a stale ghost for a row that the PE owns."""
        work = stage.work
        for read, offset in self._reads_of(work):
            box, n = self._points(read, work, offset), self.rows[read.field]
            inside = box.rows_within(0, n - 1)
            side = ABOVE if offset > 0 else BELOW
            places = [Place(side, d, False) for d in range(1, abs(offset) + 1)]
            found = [(place, inside) for place in places if inside is not None]
            beyond = [(BELOW, d) for d in range(1, -box.first_row + 1)]
            beyond += [(ABOVE, d) for d in range(1, box.last_row - n + 2)]
            for end, distance in beyond:
                row = row_of(end, distance, n)
                around = replace(box, axes=((row, row, 1), *box.axes[1:]))
                found.append((Place(end, distance, True), around))
            if found:
                self.reads.add((stage, read))
            for place, points in found:
                if self._stale(state, read.field, place, points):
                    raise EngineError(_message(work, read, place))

    def _stale(self, state: State, field: str, place: Place, box: Box) -> bool:
        return any(box.meets(other) for other in state.stale.get((field, place), ()))

    def _reads_of(self, work: Work) -> list[tuple[ir.Read, int]]:
        """Return what a stage reads of divided fields, and how many rows behind its own."""
        found = []
        for read in dict.fromkeys(ir.reads(work.value)):
            if read.field in self.rows and work.box:
                n, size = self.rows[read.field], rows_written(self.program, work)
                found.append((read, row_offset(read, work.box[0], n, size)[0]))
        return found

    def _points(self, read: ir.Read, work: Work, offset: int) -> Box:
        """Return the points of a read; rows beyond the field's ends are those around the ring."""
        shape = self.program.field(read.field).shape
        rows = work.box[0]
        box = Box.of_read(read, work.box, shape)
        first = rows.start + offset
        taken = (first, first + rows.step * (rows.count - 1), rows.step)
        return replace(box, axes=(taken, *box.axes[1:]))


def _message(work: Work, read: ir.Read, place: Place) -> str:
    where = "around the ring" if place.ring else "of the PE beside"
    ghosts = f"ghosts of {read.field}, {place.distance} rows away, {where}"
    return f"line {work.line} reads stale {ghosts}: an exchange is missing"


def _joined(states: Sequence[State | None]) -> State | None:
    """Return the state where several ways join; None where none leads there."""
    result: State | None = None
    for state in states:
        if state is not None:
            result = state if result is None else result.joined(state)
    return result


def _permuted(s: ir.Permute, state: State) -> State:
    """Let ghosts go with the storage; a halo that is under way would arrive in another one."""
    names: dict[str, list[str]] = {}
    for name, source in zip(s.fields, s.sources, strict=True):
        names.setdefault(source, []).append(name)
    stale = {key: boxes for key, boxes in state.stale.items() if key[0] not in s.fields}
    for (field, place), boxes in state.stale.items():
        stale.update({(name, place): boxes for name in names.get(field, ())})
    sent = {
        c: halos for c, halos in state.sent.items() if all(h.field not in s.fields for h in halos)
    }
    return State(stale, sent)
