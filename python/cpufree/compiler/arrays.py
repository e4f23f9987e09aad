"""Arrays of the caller: which of their rows lie where in the heaps of PEs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.compiler import ir
from cpufree.compiler.layout import Layout

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Part:
    """What a PE has of an array: rows of a field in its heap."""

    pe: int
    field: ir.Field
    array: Any
    rows: list[tuple[int, int, int]]
    """The first one in the heap, that of the array, and how many."""


def divided_first(array: Array, axis: int) -> Array:
    """Return an array of the caller with the axis first that is divided: it shares memory."""
    return np.moveaxis(array, axis, 0) if axis else array


def as_given(array: Array, axis: int) -> Array:
    """Return a new array of a field with its axes as the caller knows them, without gaps."""
    return np.ascontiguousarray(np.moveaxis(array, 0, axis)) if axis else array


def scatter(layout: Layout, owner: int, f: ir.Field, array: Any) -> list[Part]:
    """Return what brings a field's values to the PEs of an owner, those of ghosts too."""
    return _parts(layout, owner, f, array, layout.keeps_ghosts(f))


def gather(layout: Layout, owner: int, f: ir.Field, array: Any) -> list[Part]:
    """Return what brings the own rows of an owner's PEs to an array."""
    found = _parts(layout, owner, f, array, False)
    return found if f.distributed else found[:1]  # all have the same


def _parts(layout: Layout, owner: int, f: ir.Field, array: Any, ghosts: bool) -> list[Part]:
    reach, n, apart = layout.reach(f), f.shape[0], f.apart
    found = []
    for k in range(layout.slabs.pes):
        lo, hi = layout.own_rows(f, k)
        if lo >= hi:
            continue
        rows = [(reach.below, lo, hi - lo)]
        if ghosts:
            behind = reach.below + hi - lo
            rows += [(g, (lo - reach.below + g) % n, 1) for g in range(reach.below)]
            rows += [(behind + g, (hi + g) % n, 1) for g in range(reach.above)]
        if not f.is_dense:  # rows between and before belong to no array
            rows = [
                (to + d, (first + d - f.first) // apart, 1)
                for to, first, count in rows
                for d in range((f.first - first) % apart, count, apart)
                if first + d >= f.first
            ]
        found.append(Part(owner + k, f, array, rows))
    return found


def in_heap(layout: Layout, part: Part, heap: Array) -> Iterator[tuple[Array, Array]]:
    """Yield rows of a part in a heap, and in the array; both lie in the host's memory."""
    f = part.field
    at, shape = layout.offsets[f.name], (layout.rows(f), *layout.inner(f))
    values = heap[at : at + layout.bytes_of(f)].view(f.type).reshape(shape)
    if len(f.shape) > 1:
        values = values[..., : f.shape[-1]]
    for to, first, count in part.rows:
        yield values[to : to + count], part.array[first : first + count]
