"""Rows of the first axis: which ones a stage reads, and how far they are from those it writes."""

from __future__ import annotations

from dataclasses import dataclass

from cpufree.compiler import ir

Work = ir.Assign | ir.Reduce


@dataclass(frozen=True)
class RowRead:
    """A distributed field that a stage reads, `offset` rows behind those that it writes."""

    field: str
    offset: int
    periodic: bool


def row_offset(read: ir.Read, rows: ir.Span, n: int, size: int) -> tuple[int, bool]:
    """Return how many rows behind a stage's rows it reads, and whether it wraps around n rows.

    Single rows at opposite ends are neighbours in the ring of PEs, where the field that is read, of
    n rows, and the one that is written, of `size`, have the same ends.
    """
    axis = read.axes[0]
    if axis.wrap:
        shift = (axis.shift * axis.step - rows.start) % n
        offset = shift - n if shift > n // 2 else shift
        return offset, offset != 0
    offset = axis.start - rows.start
    if rows.count == 1 and size == n and abs(offset) > n // 2:
        return offset - n if offset > 0 else offset + n, True
    return offset, False


def row_reads(program: ir.Program, work: Work) -> list[RowRead]:
    """Return the distributed fields that a stage reads, each offset once."""
    fields = {f.name: f for f in program.fields}
    found: dict[RowRead, None] = {}
    for read in ir.reads(work.value):
        f = fields[read.field]
        if f.distributed and work.box:
            size = rows_written(program, work)
            offset, periodic = row_offset(read, work.box[0], f.shape[0], size)
            found[RowRead(f.name, offset, periodic)] = None
    return list(found)


def rows_written(program: ir.Program, work: Work) -> int:
    """Return the rows of the field whose points a stage goes over, 0 where there is none."""
    name = work.field if isinstance(work, ir.Assign) else work.over
    return program.field(name).shape[0] if name else 0


def written(work: Work) -> str:
    """Return the field that a stage writes, "" of a reduction."""
    return work.field if isinstance(work, ir.Assign) else ""


def is_by_rows(program: ir.Program, work: Work) -> bool:
    """Return whether a stage goes over rows that are divided among PEs."""
    name = work.field if isinstance(work, ir.Assign) else work.over
    return bool(name) and program.field(name).distributed


def scalars_of(work: Work) -> set[str]:
    """Return the names of the scalars that a stage reads, those of its places, too."""
    places = [span.index for span in work.box if span.index is not None]
    return {name for e in (work.value, *places) for name in scalars_read(e)}


def scalars_read(expr: ir.Expr) -> set[str]:
    """Return the names of the scalars in an expression."""
    found = {expr.name} if isinstance(expr, ir.Scalar) else set()
    for child in ir.children(expr):
        found |= scalars_read(child)
    return found


def is_accurate(work: ir.Reduce) -> bool:
    """Return whether a reduction keeps the rounding errors of its sum."""
    return work.op == "sum" and work.type.startswith("float")
