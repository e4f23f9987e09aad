"""Where halos are exchanged: before a group that reads rows of other PEs, where these are stale.

Ghosts of a field are valid when the program begins (they are loaded), after an exchange, and as far
as a group computes its rows beyond the border. A stage that writes a field makes its other ghosts
stale. At the head of a loop that is valid which is valid before the loop and after its body.

Ghosts around the ring, of the PEs that own a field's first and last rows, are another matter: no
group computes them, as a stage's box ends where the field ends. Only an exchange around the ring
brings them up to date.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cpufree.compiler import ir
from cpufree.compiler.passes.fusion import Reach, is_full, reaches_of
from cpufree.compiler.passes.rows import Work, row_reads, written

NONE = Reach()


@dataclass(frozen=True)
class Ghosts:
    """Ghosts of a field: of the PEs beside, and around the ring."""

    inner: Reach = NONE
    ring: Reach = NONE

    def common(self, other: Ghosts) -> Ghosts:
        """Return those that are in both."""
        return Ghosts(_common(self.inner, other.inner), _common(self.ring, other.ring))

    def holds(self, needed: Ghosts) -> bool:
        """Return whether all that are needed are among these."""
        return _common(self.inner, needed.inner) == needed.inner and (
            _common(self.ring, needed.ring) == needed.ring
        )

    def after(self, program: ir.Program, work: ir.Assign, computed: Reach) -> Ghosts:
        """Return those that are valid after a stage has written the field, and computed some.

        Outside its box a row keeps what it had: there the ghosts are as valid as before.
        """
        full = is_full(program, work)
        return Ghosts(computed if full else _common(self.inner, computed))


def _common(a: Reach, b: Reach) -> Reach:
    return Reach(min(a.below, b.below), min(a.above, b.above))


Valid = dict[str, Ghosts]


def exchange(program: ir.Program) -> ir.Program:
    """Return a program with Put and Wait where they are needed and nowhere else."""
    return _Halos(program).run()


def widths(program: ir.Program) -> dict[str, Reach]:
    """Return the widest ghosts of each distributed field that a program uses."""
    found = {f.name: Reach() for f in program.fields if f.distributed}
    for s in _groups(program.body):
        works = [stage.work for stage in s.stages]
        reaches, needs = reaches_of(program, works)
        for name, reach in needs.items():
            if name in found:
                found[name] = found[name].joined(reach)
        for work, reach in zip(works, reaches, strict=True):
            if written(work) in found:
                found[written(work)] = found[written(work)].joined(reach)
    # Fields that change their storage have the same layout.
    changed = True
    while changed:
        changed = False
        for p in ir.walk(program.body):
            if isinstance(p, ir.Permute):
                widest = Reach()
                for name in p.fields:
                    widest = widest.joined(found.get(name, Reach()))
                for name in p.fields:
                    if name in found and found[name] != widest:
                        found[name], changed = widest, True
    return found


def _groups(body: tuple[ir.Statement, ...]) -> list[ir.Group]:
    return [s for s in ir.walk(body) if isinstance(s, ir.Group)]


class _Halos:
    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.channel = 0
        self.widths = widths(program)
        self.periodic = {
            r.field
            for group in _groups(program.body)
            for stage in group.stages
            for r in row_reads(program, stage.work)
            if r.periodic
        }
        # Storage goes round: what is periodic of one is of all that change places with it.
        for s in ir.walk(program.body):
            if isinstance(s, ir.Permute) and self.periodic & set(s.fields):
                self.periodic |= set(s.fields)

    def run(self) -> ir.Program:
        # The load brings all ghosts, those around the ring too.
        valid = {name: Ghosts(wide, wide) for name, wide in self.widths.items()}
        body, _ = self.block(self.program.body, valid)
        return replace(self.program, body=body)

    def block(
        self, body: tuple[ir.Statement, ...], valid: Valid
    ) -> tuple[tuple[ir.Statement, ...], Valid]:
        out: list[ir.Statement] = []
        for s in body:
            if isinstance(s, ir.Group):
                out += self.group(s, valid)
            elif isinstance(s, ir.Permute):
                permute(s, valid)
                out.append(s)
            elif isinstance(s, ir.For | ir.Loop):
                made, after = self.loop(s, valid)
                out.append(made)
                valid = after
            elif isinstance(s, ir.If):
                then, one = self.block(s.then, dict(valid))
                otherwise, other = self.block(s.otherwise, dict(valid))
                out.append(replace(s, then=then, otherwise=otherwise))
                valid = both(one, other)
            else:
                out.append(s)
        return tuple(out), valid

    def loop(self, s: ir.For | ir.Loop, valid: Valid) -> tuple[ir.Statement, Valid]:
        """Insert exchanges into a loop; valid at its head is what each turn leaves valid, too."""
        # A break or continue leaves with what was valid there: anything may be stale.
        has_exits = any(isinstance(x, ir.Break | ir.Continue) for x in ir.walk(s.body))
        head = dict(valid)
        if has_exits:
            touched = ir.touched_fields(s.body)
            head = {n: Ghosts() if n in touched else g for n, g in head.items()}
        first = self.channel
        while True:
            self.channel = first
            body, after = self.block(s.body, dict(head))
            joined = both(head, after)
            if joined == head:
                return replace(s, body=body), joined
            head = joined

    def group(self, s: ir.Group, valid: Valid) -> list[ir.Statement]:
        """Return a group with the exchange that it needs before."""
        works = [stage.work for stage in s.stages]
        reaches, needs = reaches_of(self.program, works)
        around = ring_needs(self.program, works)
        halos = []
        for name, need in needs.items():
            if not valid[name].holds(Ghosts(need, around.get(name, Reach()))):
                wide, periodic = self.widths[name], name in self.periodic
                halos.append(ir.Halo(name, wide.below, wide.above, periodic))
                valid[name] = Ghosts(wide, wide if periodic else Reach())
        for work, reach in zip(works, reaches, strict=True):
            if isinstance(work, ir.Assign):
                valid[work.field] = valid[work.field].after(self.program, work, reach)
        if not halos:
            return [s]
        self.channel += 1
        channel = self.channel - 1
        return [ir.Put(channel, tuple(halos)), ir.Wait(channel, tuple(halos)), s]


def ring_needs(program: ir.Program, works: list[Work]) -> dict[str, Reach]:
    """Return the ghosts around the ring that a group needs: of what it reads periodically."""
    needs: dict[str, Reach] = {}
    for work in works:
        for r in row_reads(program, work):
            if r.periodic:
                needs[r.field] = needs.get(r.field, Reach()).joined(Reach().moved(r.offset))
    return needs


def permute(s: ir.Permute, valid: Valid) -> None:
    """Let what is valid go with the storage."""
    moved = {f: valid[g] for f, g in zip(s.fields, s.sources, strict=True) if g in valid}
    valid.update(moved)


def both(a: Valid, b: Valid) -> Valid:
    """Return what is valid on either way."""
    return {name: ghosts.common(b[name]) for name, ghosts in a.items()}
