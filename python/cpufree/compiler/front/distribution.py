"""Rows of the first axis are divided among PEs: what may be read for a row."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn, Protocol

from cpufree.compiler import ir
from cpufree.compiler.front.grids import Grids
from cpufree.compiler.front.operands import Fails
from cpufree.errors import ProgramError


@dataclass(frozen=True)
class Split:
    """Which axis of arrays is divided among PEs.

    Arrays of fewer than `dims` axes are on every PE. Of the others it is the first of the last
    `dims` axes (`is_last`), which are those of the grid, or the first of all.
    """

    dims: int
    is_last: bool = True

    def axis(self, dims: int) -> int | None:
        """Return the axis that is divided of an array of N axes; None: it has a copy."""
        if dims < self.dims:
            return None
        return dims - self.dims if self.is_last else 0


def splits(dims: int) -> Iterator[Split]:
    """Yield the ways to divide arrays of up to N axes, the usual one first."""
    yield Split(dims)
    for fewer in range(dims - 1, 0, -1):
        yield Split(fewer)
        yield Split(fewer, False)


class RankGrew(Exception):
    """A field has more dimensions than was assumed: lowering begins again with `rank`."""

    def __init__(self, rank: int) -> None:
        super().__init__(rank)
        self.rank = rank


class Divides(Fails, Protocol):
    """Knows the fields of a program, and refuses it."""

    fields: dict[str, ir.Field]
    grids: Grids
    everywhere: frozenset[str]


def check_distribution(
    b: Divides, node: ast.AST, f: ir.Field, box: tuple[ir.Span, ...], expr: ir.Expr
) -> None:
    """Refuse what would read rows that are not beside those that are written."""
    if f.distributed and box[0].index is not None:
        fail_moving(b, node)
    for read in ir.reads(expr):
        of = b.fields[read.field]
        if not of.distributed:
            continue
        if not f.distributed:
            problem = f"{f.name} has fewer dimensions than {of.name}, from which it is computed"
            advice = (
                f"make {f.name} an array of {len(of.shape)} dimensions (k : k + 1 keeps an "
                "axis where k does not), or reduce to a number"
            )
            if read.axes[0].dim <= ir.FOLDED or "_along" in f.name:  # of a reduction
                problem = f"each value has fewer dimensions than {of.name}, and needs all its rows"
                advice = (
                    "rows are divided among PEs: reduce to a number, or along another axis; of an "
                    "array that the program does not write every PE has a copy"
                )
            _fail(b, node, problem, advice, of.name if f.name in b.everywhere else "")
        if read.axes[0].index is not None:
            fail_moving(b, node)
        if _are_tied(b.grids, read.axes[0], of, box[0], f):
            continue
        why = far_rows(read.axes[0], box[0], of.shape[0])
        if why:
            _fail(
                b,
                node,
                f"{of.name} is read at {why}",
                "rows of the first axis are divided among PEs: read them at a constant "
                "distance from those that are written",
                of.name if read.axes[0].dim != 0 else "",
            )


def _are_tied(grids: Grids, axis: ir.Axis, of: ir.Field, rows: ir.Span, f: ir.Field) -> bool:
    """Note what a read says of two grids' rows; return whether it asks for other ones."""
    if axis.dim != 0:
        return False
    # Steps of slices, in rows that the program knows.
    ratio = Fraction(axis.step * f.apart, of.apart * rows.step)
    if rows.count == 1:
        grids.hint(f.name, of.name, ratio)
        return False
    return grids.tie(f.name, of.name, ratio) and axis.step != rows.step


def fail_moving(b: Fails, node: ast.AST) -> NoReturn:
    """Refuse an index of the run along the axis that is divided."""
    _fail(
        b,
        node,
        "this index moves with a value of the run: that is a sweep from row to row, one after the "
        "other",
        ALL_ROWS,
    )


ALL_ROWS = (
    "write the update of all rows in one statement (red points and black ones in turn, or from the "
    "values before); short loops over numbers known beforehand are written out, up to 128 turns in "
    "a program"
)


def _fail(b: Fails, node: ast.AST, problem: str, advice: str, far: str = "") -> NoReturn:
    try:
        b.fail(node, problem, advice)
    except ProgramError as error:
        error.by_rows, error.far = True, far
        raise


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
    if axis.wrap and (axis.wrap * axis.step != n or axis.start or axis.step != rows.step):
        return "rows of a part that is rolled along the first axis"
    if axis.wrap and rows.stop > n:
        return "rows of a shorter array that is rolled along the first axis"
    if not axis.wrap and axis.step != rows.step:
        return f"{_each(axis.step)} for {_each(rows.step)}"
    return ""


def _each(step: int) -> str:
    ends = {2: "nd", 3: "rd"}
    return "every row" if step == 1 else f"every {step}{ends.get(step, 'th')} row"
