"""A program on several numbers of PEs, in several ways: time, efficiency, and which is best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cpufree.errors import InvalidInputError
from cpufree.machine.clusters import Cluster
from cpufree.simulate.halo import Shares, coarse_shares, shares_of
from cpufree.simulate.krylov import METHODS, Traffic, krylov
from cpufree.simulate.programs import Program, jacobi, one_message, vector_all_reduce
from cpufree.simulate.run import Run, run

if TYPE_CHECKING:
    from cpufree.matrix.problem import CsrMatrix

PROGRAMS = ("message", "jacobi", *METHODS, "allreduce", "training")
MOST_PES = 16384
LARGEST_PLAN = 4096
"""PEs up to which a matrix is partitioned; beyond, its shares are those of a coarse model."""
LEAST_ROWS = 50
"""Rows a PE that a partition must leave; else a coarse model stands in."""


@dataclass(frozen=True)
class Coarse:
    """A mesh in numbers, where there is no matrix."""

    rows: float
    entries: float
    dimensions: int


@dataclass
class Problem:
    """What a program works on. `points`: of the whole grid in a direction."""

    program: str
    points: int = 8192
    bytes: Sequence[float] = (8e6,)
    compute: float = 0.01
    matrix: CsrMatrix | None = None
    coarse: Coarse | None = None
    rounds: int = 10
    traffic: Traffic = field(default_factory=Traffic)
    _shares: dict[int, Shares] = field(default_factory=dict)

    def check(self, pes: int) -> None:
        """Refuse what cannot be, on N PEs.

        Raises:
            InvalidInputError: a message without a partner, fewer points than PEs, messages of less
            than a byte, or a mesh whose rows have no diagonal or more entries than columns.
        """
        if self.program == "message" and pes < 2:
            raise InvalidInputError("a message needs 2 PEs: give --pes 2")
        if self.program == "jacobi" and self.points**2 < pes:
            raise InvalidInputError(
                f"{self.points} x {self.points} points on {pes} PEs: give each PE a point at least"
            )
        if self.program not in ("jacobi", *METHODS) and min(self.bytes) < 1:
            raise InvalidInputError(f"{min(self.bytes):g} bytes: a message has at least 1")
        mesh = self.coarse
        if mesh is not None and not mesh.rows <= mesh.entries <= mesh.rows**2:
            raise InvalidInputError(
                f"{mesh.entries:g} entries in {mesh.rows:g} rows: a positive definite matrix has "
                "its diagonal, and no more entries in a row than columns"
            )

    def shares(self, pes: int) -> Shares:
        """Return the shares of the matrix, or of the mesh, for N PEs.

        Raises:
            InvalidInputError: there is neither, or there are more PEs than rows.
        """
        if pes not in self._shares:
            self._shares[pes] = self._find_shares(pes)
        return self._shares[pes]

    def _find_shares(self, pes: int) -> Shares:
        if self.coarse is not None:
            return coarse_shares(self.coarse.rows, self.coarse.entries, self.coarse.dimensions, pes)
        if self.matrix is None:
            raise InvalidInputError(f"{self.program} needs a matrix, or rows of a coarse model")
        rows, entries = len(self.matrix.indptr) - 1, len(self.matrix.indices)
        if (pes <= LARGEST_PLAN and rows >= LEAST_ROWS * pes) or pes == 1:
            return shares_of(self.matrix, pes)
        return coarse_shares(rows, entries, 3, pes)

    def model(self, pes: int) -> str:
        """Return where the halos come from."""
        return self.shares(pes).model if self.program in METHODS else "the program's own"

    def build(self, cluster: Cluster, way: str, pes: int) -> Program:
        """Return the program."""
        if self.program == "message":
            return one_message(cluster, way, int(self.bytes[0])).program
        if self.program == "jacobi":
            local = max(1, round(self.points / pes**0.5))
            return jacobi(cluster, way, pes, local, rounds=self.rounds)
        if self.program in METHODS:
            return krylov(cluster, way, self.shares(pes), self.program, self.rounds, self.traffic)
        return vector_all_reduce(cluster, way, pes, self.bytes[0])

    def seconds(self, cluster: Cluster, way: str, pes: int) -> tuple[float, Run]:
        """Return the seconds of an iteration, a message, an all-reduce or a training step."""
        if self.program == "training":
            runs = [run(vector_all_reduce(cluster, way, pes, size).graph) for size in self.bytes]
            return self.compute + sum(one.seconds for one in runs), runs[-1]
        found = run(self.build(cluster, way, pes).graph)
        return (found.per_round if self.program in ("jacobi", *METHODS) else found.seconds), found


@dataclass(frozen=True)
class Point:
    """One way on one number of PEs."""

    way: str
    pes: int
    seconds: float
    efficiency: float
    """Of the same way: against the smallest number of PEs. Of training: of computation alone."""
    operations: int
    spilled: int
    halo: str


def pes_of(text: str, most: int = MOST_PES) -> list[int]:
    """Return numbers of PEs: "2-16" is 2, 4, 8, 16; "3,5" is 3, 5.

    Raises:
        InvalidInputError: it is something else, or a number is not from 1 to `most`.
    """
    found: list[int] = []
    for word in text.split(","):
        ends = word.strip().split("-")
        if len(ends) > 2 or not all(end.isascii() and end.isdigit() for end in ends):
            raise InvalidInputError(f"'{word}' is no number of PEs: give 16, 2-64 or 2,4,12")
        first, last = int(ends[0]), int(ends[-1])
        if not 1 <= first <= last <= most:
            raise InvalidInputError(f"'{word}': numbers of PEs are 1 to {most}, rising")
        doubled = first
        while doubled < last:
            found.append(doubled)
            doubled *= 2
        found.append(last)
    return sorted(set(found))


def sweep(
    problem: Problem, cluster: Cluster, ways: Sequence[str], pes: Sequence[int],
    tell: Callable[[str], None] = lambda _: None,
) -> list[Point]:  # fmt: skip
    """Return all ways on all numbers of PEs; InvalidInputError for what cannot be."""
    for count in pes:
        problem.check(count)
    return [point for way in ways for point in _of_way(problem, cluster, way, pes, tell)]


def _of_way(
    problem: Problem, cluster: Cluster, way: str, pes: Sequence[int], tell: Callable[[str], None]
) -> Iterator[Point]:
    first: tuple[int, float] | None = None
    for count in pes:
        tell(f"{way} on {count} PEs")
        seconds, found = problem.seconds(cluster, way, count)
        first = first or (count, seconds)
        efficiency = first[0] * first[1] / (count * seconds)
        if problem.program == "training":
            efficiency = problem.compute / seconds
        elif problem.program in ("allreduce", "message"):
            efficiency = first[1] / seconds
        yield Point(
            way, count, seconds, efficiency, found.operations, found.spilled, problem.model(count)
        )


def answer(points: Sequence[Point], worth: float = 0.5) -> list[str]:
    """Return what the points say: the fastest, and how many PEs are worth it."""
    best = min(points, key=lambda point: point.seconds)
    said = [f"fastest: {best.way} on {best.pes} PEs, {best.seconds * 1e6:.4g} µs"]
    good = [point for point in points if point.efficiency >= worth]
    if good:
        most = max(good, key=lambda point: (point.pes, -point.seconds))
        said.append(
            f"most PEs with an efficiency of {worth:.0%} or more: {most.pes}, by {most.way} "
            f"({most.efficiency:.0%}, {most.seconds * 1e6:.4g} µs)"
        )
    for pes in sorted({point.pes for point in points}):
        there = sorted((p for p in points if p.pes == pes), key=lambda p: p.seconds)
        if len(there) > 1:
            gain = there[1].seconds / there[0].seconds
            said.append(f"{pes} PEs: {there[0].way}, {gain:.2f} times as fast as {there[1].way}")
    return said
