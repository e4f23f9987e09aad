"""What each PE owns of a matrix, and what it sends: out of a real partition, or a coarse model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cpufree.errors import InvalidInputError
from cpufree.simulate.way import Messages

if TYPE_CHECKING:
    from cpufree.matrix.problem import CsrMatrix

VALUE = 8
"""Bytes of a value of a vector."""


@dataclass(frozen=True)
class Shares:
    """By PE: rows, entries, and entries in rows that need values of others. And the halo."""

    rows: npt.NDArray[np.float64]
    entries: npt.NDArray[np.float64]
    boundary_entries: npt.NDArray[np.float64]
    halo: Messages
    """Bytes of each exchange."""
    model: str
    """Where all this comes from: "halo plan", or the coarse model that was used."""


def shares_of(A: CsrMatrix, pes: int) -> Shares:
    """Return the shares of a matrix: its partition, and what each PE needs of each other one.

    The halo is that of the solvers' halo plan: a value goes once to each PE that owns a row with an
    entry in its column.

    Raises:
        InvalidInputError: there are more PEs than rows.
    """
    from cpufree.partition.methods import partition

    n = len(A.indptr) - 1
    if pes > n:
        raise InvalidInputError(f"{pes} PEs for {n} rows: give at most as many PEs as rows")
    part = partition(A, pes).part if pes > 1 else np.zeros(n, np.int32)
    return shares_of_parts(A, np.asarray(part), pes)


def shares_of_parts(A: CsrMatrix, part: npt.NDArray[Any], pes: int) -> Shares:
    """Return the shares for a part vector."""
    lengths = np.diff(A.indptr)
    owner_of_row = np.repeat(part, lengths)
    owner_of_column = part[A.indices]
    outside = owner_of_row != owner_of_column
    # A ghost: one value of one PE that another one needs. Unique pairs of (who needs it, column).
    ghosts = np.unique(owner_of_row[outside].astype(np.int64) * len(part) + A.indices[outside])
    needs, column = ghosts // len(part), ghosts % len(part)
    pairs, count = np.unique(part[column].astype(np.int64) * pes + needs, return_counts=True)
    row_is_boundary = np.zeros(len(part), bool)
    row_is_boundary[np.repeat(np.arange(len(part)), lengths)[outside]] = True
    return Shares(
        rows=np.bincount(part, minlength=pes).astype(np.float64),
        entries=np.bincount(part, weights=lengths, minlength=pes).astype(np.float64),
        boundary_entries=np.bincount(part, lengths * row_is_boundary, pes).astype(np.float64),
        halo=Messages(pairs // pes, pairs % pes, VALUE * count),
        model="halo plan",
    )


def coarse_shares(rows: float, entries: float, dimensions: int, pes: int) -> Shares:
    """Return the shares of a mesh that is too large to be partitioned: boxes of equal size.

    In d dimensions PEs are a closed grid of d directions, as near to a cube as their number allows,
    and a PE sends a layer of one point to each of its 2 d neighbours. Parts of unstructured meshes
    have more neighbours, and some more surface.

    Raises:
        InvalidInputError: another number of dimensions than 1 to 3, or more PEs than rows.
    """
    if dimensions not in (1, 2, 3):
        raise InvalidInputError(f"{dimensions} dimensions: give 1, 2 or 3")
    if pes > rows:
        raise InvalidInputError(f"{pes} PEs for {rows:.0f} rows: give at most as many PEs as rows")
    grid = box_of(pes, dimensions)
    side = (rows / pes) ** (1 / dimensions)
    layer = side ** (dimensions - 1)
    place = np.stack(np.unravel_index(np.arange(pes), grid))
    src, dst = [], []
    for axis in range(dimensions):
        for step in (1, -1):
            other = place.copy()
            other[axis] = (other[axis] + step) % grid[axis]
            number = np.ravel_multi_index(tuple(other), grid)
            there = number != np.arange(pes)
            src.append(np.arange(pes)[there])
            dst.append(number[there])
    whole = np.concatenate(src)
    inner = max(0.0, 1 - 2 / side) ** dimensions
    per_pe = entries / pes
    return Shares(
        rows=np.full(pes, rows / pes),
        entries=np.full(pes, per_pe),
        boundary_entries=np.full(pes, per_pe * (1 - inner) if pes > 1 else 0.0),
        halo=Messages(whole, np.concatenate(dst), np.full(len(whole), VALUE * layer)),
        model=f"coarse: boxes of equal size in {dimensions} dimensions",
    )


def box_of(pes: int, dimensions: int) -> tuple[int, ...]:
    """Return a grid of PEs as near to a cube as their number allows, the longest side first."""
    sides = []
    left = pes
    for k in range(dimensions, 1, -1):
        side = round(left ** (1 / k))
        below = max(d for d in range(1, max(side, 1) + 1) if left % d == 0)
        sides.append(below)
        left //= below
    return tuple(sorted([*sides, left], reverse=True))
