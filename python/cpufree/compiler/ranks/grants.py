"""Where a rank grants the regions that it receives: as soon as the rank itself no longer uses them.

A put waits for the grant of its region. Granted where the receive is posted, it would travel while
the sender waits; granted behind the last use of the region, it is there before. So in a loop the
grant for the next turn stands behind the last use in this one, and one for the first turn before
the loop. With several blocks a barrier lies between the use and the grant.

After the loop a grant is left over: no rank sends any more, for the loops of both ends turn alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from cpufree.compiler import ir
from cpufree.compiler.passes.accesses import Access, accesses, region_access, scalar_accesses
from cpufree.errors import EngineError


def early_grants(program: ir.Program, behind_barriers: bool) -> ir.Program:
    """Return a program whose grants stand as early as they may, in loops that are done once.

    `behind_barriers`: a grant stands behind a barrier of the PE's blocks.
    """
    out: list[ir.Statement] = []
    for s in program.body:
        if isinstance(s, ir.For | ir.Loop):
            first, s = _loop(program, s, behind_barriers)
            out += first
        out.append(s)
    return replace(program, body=tuple(out))


def _loop(
    program: ir.Program, loop: ir.For | ir.Loop, behind_barriers: bool
) -> tuple[list[ir.Grant], ir.For | ir.Loop]:
    """Return the grants before a loop, and the loop."""
    body = loop.body
    moved: dict[int, list[ir.Grant]] = defaultdict(list)
    gone: set[int] = set()
    before: list[ir.Grant] = []
    again = any(isinstance(s, ir.Continue) for s in ir.walk(body))
    for k, s in enumerate(body):
        if not isinstance(s, ir.Grant) or again:
            continue
        place = _place(program, body, k, s, behind_barriers)
        if place is None:
            continue
        moved[place].append(s)
        gone.add(k)
        if place >= k:
            before.append(s)
    made: list[ir.Statement] = []
    for k, s in enumerate(body):
        if k not in gone:
            made.append(s)
        made += moved[k]
    return before, replace(loop, body=tuple(made))


def _place(
    program: ir.Program,
    body: tuple[ir.Statement, ...],
    at: int,
    grant: ir.Grant,
    behind_barriers: bool,
) -> int | None:
    """Return the statement behind which a grant may stand; None: it stays where it is."""
    end = next((k for k, s in enumerate(body) if _finishes(s, grant.exchange)), None)
    if end is None or end < at:
        return None
    regions = [region_access(m.region, True) for m in grant.receives]
    around = [*range(end + 1, len(body)), *range(at)]  # from the message to the next grant
    last, place = -1, end
    for n, k in enumerate(around):
        if any(a.conflicts(r) for a in touched(program, body[k]) for r in regions):
            last, place = n, k
    if behind_barriers:
        barriers = [k for k in around[last + 1 :] if isinstance(body[k], ir.Barrier)]
        if not barriers:
            return None
        place = barriers[0]
    return None if place == at - 1 else place


def _finishes(s: ir.Statement, exchange: int) -> bool:
    return isinstance(s, ir.Finish) and s.exchange == exchange


def touched(program: ir.Program, s: ir.Statement) -> Iterator[Access]:
    """Yield what a statement, and those in it, read and write of the rank's own memory."""
    for part in ir.walk((s,)):
        if isinstance(part, ir.Assign | ir.Reduce):
            yield from accesses(program, part)
        elif isinstance(part, ir.Grant):
            yield from (region_access(m.region, True) for m in part.receives)
        elif isinstance(part, ir.Start | ir.Finish):
            yield from (region_access(m.region, False) for m in part.sends)
        elif isinstance(part, ir.PutSignal | ir.Get) and part.region is not None:
            yield region_access(part.region, isinstance(part, ir.Get))
        else:
            yield from scalar_accesses(program, part)
        if isinstance(part, ir.Finish):
            yield from (region_access(m.region, True) for m in part.receives)


def check_grants(program: ir.Program) -> int:
    """Follow a program and refuse one that touches a region which others may write.

    Returns how many regions are granted. A region belongs to others from its grant to the end of
    its exchange. Each exchange ends with one grant given for it: not none, and not two.

    Raises
    ------
    EngineError
        The program is wrong, and must not run.
    """
    check = _Check(program)
    check.block(program.body)
    return check.grants


class _Check:
    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.given: dict[int, tuple[ir.Message, ...]] = {}
        """Grants whose messages have not arrived, by exchanges."""
        self.sending: dict[int, tuple[ir.Message, ...]] = {}
        """What is being sent, by exchanges."""
        self.grants = 0

    def block(self, body: tuple[ir.Statement, ...]) -> None:
        for s in body:
            if isinstance(s, ir.Grant):
                self.use(s)
                if s.exchange in self.given:
                    raise EngineError(f"exchange {s.exchange} is granted twice")
                self.given[s.exchange] = s.receives
                self.grants += len(s.receives)
            elif isinstance(s, ir.Start):
                self.use(s)
                self.sending[s.exchange] = s.sends
            elif isinstance(s, ir.Finish):
                self.end(s)
            elif isinstance(s, ir.If):
                self.branch(s)
            elif isinstance(s, ir.For | ir.Loop):
                self.loop(s)
            else:
                self.use(s)

    def end(self, s: ir.Finish) -> None:
        if s.receives and self.given.pop(s.exchange, None) is None:
            raise EngineError(f"exchange {s.exchange} is waited for, and not granted")
        self.use(replace(s, receives=()))
        self.sending.pop(s.exchange, None)

    def branch(self, s: ir.If) -> None:
        before = dict(self.given)
        self.block(s.then)
        then, self.given = self.given, before
        self.block(s.otherwise)
        if then != self.given:
            raise EngineError("a grant stands in one way of a branch")

    def loop(self, s: ir.For | ir.Loop) -> None:
        """Follow two turns: what one leaves, the next one finds."""
        before = dict(self.given)
        grants = self.grants
        for _ in range(2):
            self.grants = grants
            self.block(s.body)
            if self.given != before:
                raise EngineError("a turn of a loop leaves other grants than it finds")
        inside = {x.exchange for x in ir.walk(s.body) if isinstance(x, ir.Start)}
        # No rank sends for these any more.
        self.given = {k: v for k, v in self.given.items() if k not in inside}

    def use(self, s: ir.Statement) -> None:
        """Refuse a statement that touches what belongs to others, or changes what is sent."""
        writes = [a for a in touched(self.program, s) if a.writes]
        for exchange, messages in self.sending.items():
            for m in messages:
                if any(region_access(m.region, False).conflicts(w) for w in writes):
                    raise EngineError(
                        f"{m.region.field} is changed while it is sent (exchange {exchange})"
                    )
        for exchange, messages in self.given.items():
            for m in messages:
                region = region_access(m.region, True)
                if any(a.conflicts(region) for a in touched(self.program, s)):
                    raise EngineError(
                        f"{m.region.field} is touched while others may write it (exchange "
                        f"{exchange})"
                    )
