"""Stages that follow one another go over a PE's rows together, some a few rows behind others.

What one stage has written is then still in the cache when the next one reads it. A stage that
reads rows ahead of those it writes lags by those rows behind the stage that wrote them; one that
overwrites rows that another stage still reads lags behind that one.

Stages that read rows which other stages of their group have written across the border of a PE do
not wait for an exchange: the earlier stage computes these rows, too, as far as needed (`reach`).
Neighbours compute the same bits there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cpufree.compiler import ir
from cpufree.compiler.passes.rows import Work, is_by_rows, row_reads, scalars_of, written

MOST_ROWS = 8
"""Of a halo that lets stages go together; computing rows twice must stay cheap."""
MOST_LAG = 24
MOST_STAGES = 24


@dataclass(frozen=True)
class Reach:
    """Rows beyond those of a PE, before them and behind them."""

    below: int = 0
    above: int = 0

    def joined(self, other: Reach) -> Reach:
        """Return the larger of both on either side."""
        return Reach(max(self.below, other.below), max(self.above, other.above))

    def moved(self, offset: int) -> Reach:
        """Return the rows that are read at an offset."""
        return Reach(max(0, self.below - offset), max(0, self.above + offset))


def fuse(program: ir.Program) -> ir.Program:
    """Return a program whose stages over rows are in groups."""
    return replace(program, body=_block(program, program.body))


def _block(program: ir.Program, body: tuple[ir.Statement, ...]) -> tuple[ir.Statement, ...]:
    out: list[ir.Statement] = []
    open_group: list[Work] = []

    def close() -> None:
        if open_group:
            lags = lags_of(program, open_group)
            assert lags is not None
            reaches, _ = reaches_of(program, open_group)
            stages = zip(open_group, lags, reaches, strict=True)
            out.append(ir.Group(tuple(ir.Stage(w, k, r.below, r.above) for w, k, r in stages)))
            open_group.clear()

    for s in body:
        if isinstance(s, ir.Assign | ir.Reduce) and is_by_rows(program, s):
            if open_group and not fits(program, [*open_group, s]):
                close()
            open_group.append(s)
        else:
            close()
            out.append(ir.with_blocks(s, lambda inner: _block(program, inner)))
    close()
    return tuple(out)


def fits(program: ir.Program, works: list[Work]) -> bool:
    """Return whether stages can go over the rows of a PE together."""
    *before, last = works
    if len(works) > MOST_STAGES:
        return False
    if any(isinstance(w, ir.Reduce) and w.name in scalars_of(last) for w in before):
        return False
    lags = lags_of(program, works)
    if lags is None:
        return False
    # Rows around the ring are computed by their owner only: with them nothing is computed twice.
    periodic = any(r.periodic for w in works for r in row_reads(program, w))
    reaches, needs = reaches_of(program, works)
    crosses = any(r.below or r.above for r in reaches)
    return not crosses or (
        not periodic
        and all(r.below <= MOST_ROWS and r.above <= MOST_ROWS for r in (*reaches, *needs.values()))
    )


def lags_of(program: ir.Program, works: list[Work]) -> list[int] | None:
    """Return how many rows behind the first each stage goes; None: too many."""
    lags: list[int] = []
    for k, work in enumerate(works):
        lag = 0
        for earlier, its in zip(works[:k], lags, strict=True):
            for r in row_reads(program, work):
                if r.field == written(earlier):
                    lag = max(lag, its + r.offset)
            if written(work):
                for r in row_reads(program, earlier):
                    if r.field == written(work):
                        lag = max(lag, its - r.offset)
                if written(work) == written(earlier):
                    lag = max(lag, its)
        lags.append(lag)
    # Rows around the ring are ghosts: they are what they were when the group began.
    for k, work in enumerate(works):
        if any(
            r.periodic and written(w) == r.field
            for r in row_reads(program, work)
            for w in works[:k]
        ):
            return None
    return lags if max(lags) <= MOST_LAG else None


def reaches_of(program: ir.Program, works: list[Work]) -> tuple[list[Reach], dict[str, Reach]]:
    """Return how far beyond a PE's rows each stage computes, and the ghosts that a group needs.

    From the last stage to the first: what a stage writes is needed as far as later ones read it.
    """
    needs: dict[str, Reach] = {}
    reaches: list[Reach] = []
    for k in range(len(works) - 1, -1, -1):
        work = works[k]
        reach = Reach()
        name = written(work)
        if name:
            reach = needs.get(name, Reach())
            # Where it writes all that is read later, older values are not needed.
            if covers(program, works[k], works[k + 1 :]):
                needs[name] = Reach()
        reaches.insert(0, reach)
        for r in row_reads(program, work):
            needs[r.field] = needs.get(r.field, Reach()).joined(reach.moved(r.offset))
    return reaches, needs


def is_full(program: ir.Program, work: ir.Assign) -> bool:
    """Return whether a stage writes all points of its field."""
    return work.box == program.field(work.field).whole


def covers(program: ir.Program, work: Work, later: list[Work]) -> bool:
    """Return whether what later stages of a group read of a field is all written by this one."""
    assert isinstance(work, ir.Assign)
    if is_full(program, work):
        return True
    for other in later:
        for read in ir.reads(other.value):
            if read.field != work.field:
                continue
            for axis, span in zip(read.axes, work.box, strict=True):
                if not _is_within(axis, axis.values(other.box), span):
                    return False
    return True


def _is_within(axis: ir.Axis, count: int, span: ir.Span) -> bool:
    """Return whether all points that an axis of a read takes are among those of a span."""
    last = axis.start + axis.step * (count - 1)
    if span.index is not None or axis.wrap or axis.start < span.start or last >= span.stop:
        return False
    alike = count == 1 or axis.step % span.step == 0
    return alike and (axis.start - span.start) % span.step == 0
