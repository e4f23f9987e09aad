"""A function in the intermediate representation: along which axis its arrays are divided."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from cpufree.compiler import ir
from cpufree.compiler.front.builder import Builder
from cpufree.compiler.front.distribution import RankGrew, Split, splits
from cpufree.compiler.front.grids import Places, Regrid
from cpufree.compiler.front.lowered import Lowered
from cpufree.compiler.front.lowering import Lowering, is_array
from cpufree.compiler.front.text.source import Source
from cpufree.errors import ProgramError

_MOST_REGRIDS = 4


def lower(source: Source, arguments: Mapping[str, Any]) -> Lowered:
    """Return the representation of a function for these arguments, arrays and others.

    Raises:
        ProgramError: something is outside the language; the message shows where.
    """
    rank = max((a.ndim for a in arguments.values() if is_array(a)), default=1)
    at_end = False
    while True:
        try:
            return _divided(source, rank, arguments, at_end)
        except RankGrew as more:
            rank = more.rank
        except ProgramError as error:
            if at_end or not error.by_return:
                raise
            at_end = True


def _divided(source: Source, rank: int, arguments: Mapping[str, Any], at_end: bool) -> Lowered:
    """Return what lowers where arrays are divided along one axis or another; else the first error.

    What reads rows that lie far from those that are written may not along another axis, or where
    every PE has a copy of some arrays: then as many points as possible are divided.
    """

    def lowered(split: Split, everywhere: frozenset[str] = frozenset()) -> Lowered:
        return _gridded(source, split, rank, arguments, at_end, everywhere)

    first: ProgramError | None = None
    for split in splits(rank):
        try:
            return lowered(split)
        except ProgramError as error:
            if not error.by_rows:  # it is not for the axis
                raise
            first = first or error
    assert first is not None
    found = [one for split in splits(rank) if (one := _with_copies(partial(lowered, split)))]
    if not found:
        raise first
    return max(found, key=lambda one: _points_divided(one.program))


def _with_copies(lowered: Callable[[frozenset[str]], Lowered]) -> Lowered | None:
    """Return what lowers where every PE has a copy of what is read from far; None: nothing does.

    Such arrays are arguments that are not written, or are made of such.
    """
    everywhere: frozenset[str] = frozenset()
    while True:
        try:
            found = lowered(everywhere)
        except ProgramError as error:
            if not error.by_rows:
                raise
            if not error.far:
                return None
            everywhere |= {error.far}
            continue
        program = found.program
        given = {f.name for f in program.fields if f.role == "argument"}
        is_changed = bool(everywhere & given & program.written)
        return found if _points_divided(program) and not is_changed else None


def _points_divided(program: ir.Program) -> int:
    return sum(math.prod(f.shape) for f in program.fields if f.distributed)


def _gridded(
    source: Source,
    split: Split,
    rank: int,
    arguments: Mapping[str, Any],
    at_end: bool,
    everywhere: frozenset[str],
) -> Lowered:
    """Return what lowers with rows of coarse grids where their fine rows are."""
    grids: Places = {}
    for _ in range(_MOST_REGRIDS):
        try:
            builder = Builder(source, split, rank, grids, everywhere)
            return Lowering(builder, at_end).run(arguments)
        except Regrid as other:
            grids = other.places
    raise ProgramError(f"{source.name}: it is not clear which rows of arrays stand for others")
