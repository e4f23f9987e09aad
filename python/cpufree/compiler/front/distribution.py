"""Rows of the first axis are divided among PEs: what may be read for a row."""

from __future__ import annotations

import ast
from typing import NoReturn, Protocol

from cpufree.compiler import ir


class Fails(Protocol):
    """Knows the fields of a program, and refuses it."""

    fields: dict[str, ir.Field]

    def fail(self, node: ast.AST, problem: str, advice: str) -> NoReturn:
        """Raise ProgramError at a node."""
        ...


def check_distribution(
    b: Fails, node: ast.AST, f: ir.Field, box: tuple[ir.Span, ...], expr: ir.Expr
) -> None:
    """Refuse what would read rows that are not beside those that are written."""
    for read in ir.reads(expr):
        of = b.fields[read.field]
        if not of.distributed:
            continue
        if not f.distributed:
            b.fail(
                node,
                f"{f.name} has fewer dimensions than {of.name}, from which it is computed",
                f"make {f.name} an array of {len(of.shape)} dimensions (k : k + 1 keeps an "
                "axis where k does not), or reduce to a number",
            )
        why = far_rows(read.axes[0], box[0], of.shape[0])
        if why:
            b.fail(
                node,
                f"{of.name} is read at {why}",
                "rows of the first axis are divided among PEs: read them at a constant "
                "distance from those that are written",
            )


def far_rows(axis: ir.Axis, rows: ir.Span, n: int) -> str:
    """Return why rows are not at a constant distance from others; "" where they are."""
    if axis.dim <= ir.FOLDED:
        return "all rows for each of its rows"
    if axis.dim not in (ir.FIXED, 0):
        return "rows that stand for another axis (a transposed array)"
    if rows.count == 1:
        return ""
    if axis.dim == ir.FIXED:
        return f"row {axis.start} alone for many rows"
    if axis.wrap and (axis.wrap != n or axis.start or axis.step != 1 or rows.step != 1):
        return "rows of a part that is rolled along the first axis"
    if axis.wrap and rows.stop > n:
        return "rows of a shorter array that is rolled along the first axis"
    if not axis.wrap and axis.step != rows.step:
        return f"every {axis.step}th row for every {rows.step}th"
    return ""
