"""A check that each read of a ghost comes after the wait for it, whatever way the program takes.

It follows the program as the back end runs it, and trusts no other pass: ghosts are fresh from the
load, from a Wait whose Put was done since the field was last written, or from a group that computes
them; a stage's write makes them stale.
"""

from __future__ import annotations

from cpufree.compiler import ir
from cpufree.compiler.passes.fusion import Reach, covers, left_valid, reaches_of
from cpufree.compiler.passes.halos import Valid, both, permute, widths
from cpufree.compiler.passes.rows import row_reads, written
from cpufree.errors import EngineError


def check_ghosts(program: ir.Program) -> int:
    """Return how many reads of ghosts a program has.

    Raises
    ------
    EngineError
        A read of a ghost is not dominated by its wait: the program is wrong, and must not run.
    """
    check = _Check(program)
    check.block(program.body, widths(program), {})
    return check.reads


class _Check:
    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.reads = 0

    def block(
        self, body: tuple[ir.Statement, ...], fresh: Valid, sent: dict[int, set[str]]
    ) -> Valid:
        for s in body:
            if isinstance(s, ir.Put):
                sent[s.channel] = {h.field for h in s.halos}
            elif isinstance(s, ir.Wait):
                for h in s.halos:
                    if h.field not in sent.get(s.channel, set()):
                        raise EngineError(f"halo of {h.field} is waited for, but not sent since")
                    fresh[h.field] = Reach(h.below, h.above)
                sent.pop(s.channel)
            elif isinstance(s, ir.Group):
                self.group(s, fresh, sent)
            elif isinstance(s, ir.Permute):
                permute(s, fresh)
                for names in sent.values():
                    names -= set(s.fields)
            elif isinstance(s, ir.If):
                one = self.block(s.then, dict(fresh), {})
                fresh = both(one, self.block(s.otherwise, dict(fresh), {}))
            elif isinstance(s, ir.For | ir.Loop):
                fresh = self.loop(s, fresh)
        return fresh

    def loop(self, s: ir.For | ir.Loop, fresh: Valid) -> Valid:
        """Follow a loop: its head is reached from before, from its end, and by continue."""
        touched = ir.touched_fields(s.body)
        exits = any(isinstance(x, ir.Break | ir.Continue) for x in ir.walk(s.body))
        reads = self.reads
        head = {n: Reach() if exits and n in touched else r for n, r in fresh.items()}
        for _ in range(len(fresh) * 64 + 2):
            self.reads = reads
            after = self.block(s.body, dict(head), {})
            joined = both(head, after)
            if joined == head:
                return joined
            head = joined
        raise EngineError("the check of halos does not settle")

    def group(self, s: ir.Group, fresh: Valid, sent: dict[int, set[str]]) -> None:
        works = [stage.work for stage in s.stages]
        reaches, _ = reaches_of(self.program, works)
        inside = dict(fresh)  # for the reads of the group: of a field what they read of it
        for k, (work, reach) in enumerate(zip(works, reaches, strict=True)):
            for r in row_reads(self.program, work):
                need = reach.moved(r.offset)
                have = inside[r.field]
                self.reads += bool(need.below or need.above)
                if need.below > have.below or need.above > have.above:
                    raise EngineError(
                        f"line {work.line} reads ghosts of {r.field}, {need} rows, where only "
                        f"{have} are there: an exchange is missing"
                    )
            name = written(work)
            if name:
                all_read = covers(self.program, work, works[k + 1 :])
                left = left_valid(self.program, work, reach, inside[name])
                inside[name] = reach if all_read else left
                fresh[name] = left_valid(self.program, work, reach, fresh[name])
                for names in sent.values():
                    names.discard(name)
