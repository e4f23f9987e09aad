"""For GPUs: the turns of a round as a chain of levels, for kernels that stream rows.

A warp goes down the rows of a strip of columns. At row y it takes row y of the arrays in memory,
then does one level after another, each a stage of one turn of the loop: the level of lag L computes
its row y - L. What a level makes is a version of an array; of each version the last few rows are
kept. Let level l read version j at d rows ahead, and L(j) be the lag of j. Row y - L(l) + d must be
there: L(l) >= L(j) + d. It is the row L(l) - L(j) - d rows before the last one that j has made.

Points that a level does not compute keep what the storage has held before: the version before.
Where nothing else reads that version, it is needed at the edges alone (`Chain.at_rest`).

How far beyond the rows and columns that are stored a version is needed follows from its readers,
from the last level back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cpufree.compiler import ir
from cpufree.compiler.passes.rounds import Rounds
from cpufree.compiler.passes.tiles import NotOnChip, offsets


@dataclass
class Version:
    """An array as a level has made it, or (level -1) as it lies in memory when a round begins.

    `field`: whose values; `rows`: how many of its rows are kept. `before`, `behind`, `left`,
    `right`: how many rows and columns beyond those that are stored are needed.
    """

    field: str
    level: int = -1
    lag: int = 0
    rows: int = 1
    before: int = 0
    behind: int = 0
    left: int = 0
    right: int = 0

    def needs(self, other: Version, rows: int, columns: int) -> None:
        """Widen what is needed of `other`, which is read so far away."""
        other.before = max(other.before, self.before - rows)
        other.behind = max(other.behind, self.behind + rows)
        other.left = max(other.left, self.left - columns)
        other.right = max(other.right, self.right + columns)


@dataclass(frozen=True)
class Level:
    """A stage of a turn of the round.

    Attributes
    ----------
    turn : int
        Of the round.
    work : ir.Assign
        The stage.
    makes : Version
        What it computes.
    reads : dict
        For reads of what the loop changes: the version, rows and columns away. Others are loaded.
    kept : Version, optional
        What points beside the stage's box keep; None: they are not read.
    taps : tuple of int
        Columns away at which arrays are read that the loop does not change.
    """

    turn: int
    work: ir.Assign
    makes: Version
    reads: dict[ir.Read, tuple[Version, int, int]]
    kept: Version | None
    taps: tuple[int, ...] = ()


@dataclass
class Chain:
    """The levels of a round, and the versions that its end leaves, by the names of then."""

    levels: list[Level] = field(default_factory=list)
    inputs: dict[str, Version] = field(default_factory=dict)
    final: dict[str, Version] = field(default_factory=dict)
    goes_round: bool = True
    """Whether at the end each name stands for the storage that it had at the begin."""

    @property
    def versions(self) -> list[Version]:
        """All versions, those in memory first."""
        return [*self.inputs.values(), *(level.makes for level in self.levels)]

    @property
    def left(self) -> int:
        """Columns that are needed before those that are stored, of arrays that are loaded, too."""
        taps = [level.makes.left - c for level in self.levels for c in level.taps]
        return max([v.left for v in self.versions] + taps)

    @property
    def right(self) -> int:
        """Columns that are needed behind those that are stored."""
        taps = [level.makes.right + c for level in self.levels for c in level.taps]
        return max([v.right for v in self.versions] + taps)

    @property
    def at_rest(self) -> list[Version]:
        """What lies in memory and is read where points keep their values alone."""
        used = [v for level in self.levels for v, _, _ in level.reads.values()]
        used += self.final.values()
        used += [x.kept for x in self.levels if x.kept is not None and is_thin(x.work)]
        return [v for v in self.inputs.values() if not any(v is u for u in used)]

    @property
    def first(self) -> int:
        """The first y, from the first row that is stored."""
        return min(v.lag - v.before for v in self.versions)

    @property
    def last(self) -> int:
        """One behind the last y, from one behind the last row that is stored."""
        return max(v.lag + v.behind for v in self.versions)


def chain_of(program: ir.Program, rounds: Rounds, turns: int, in_registers: set[str]) -> Chain:
    """Return the levels of a round of N turns; `in_registers`: fields without memory.

    Raises
    ------
    NotOnChip
        A stage does not compute points of rows and columns that follow one another.
    """
    made = _Maker(program, rounds, in_registers)
    for turn in range(turns):
        made.turn(turn)
    return made.chain()


class _Maker:
    def __init__(self, program: ir.Program, rounds: Rounds, in_registers: set[str]) -> None:
        self.program, self.rounds, self.in_registers = program, rounds, in_registers
        self.changed = ir.touched_fields(program.body)
        self.holds = {f.name: f.name for f in program.fields}
        self.now: dict[str, Version] = {}
        self.found = Chain()

    def turn(self, turn: int) -> None:
        for s in self.rounds.loop.body:
            if isinstance(s, ir.Permute):
                moved = {f: self.holds[g] for f, g in zip(s.fields, s.sources, strict=True)}
                self.holds.update(moved)
            elif isinstance(s, ir.Group):
                for stage in s.stages:
                    assert isinstance(stage.work, ir.Assign)
                    self.stage(turn, stage.work)

    def stage(self, turn: int, work: ir.Assign) -> None:
        if len(work.box) != 2 or any(span.step != 1 for span in work.box):
            raise NotOnChip(f"line {work.line} does not compute rows and columns side by side")
        reads, taps = {}, []
        for read in ir.reads(work.value):
            f = self.program.field(read.field)
            if not f.distributed:
                self.check_factor(read, work)
                continue
            (rows, _), (columns, _) = offsets(self.program, read, work)
            if f.name in self.changed:
                reads[read] = self.version(f.name), rows, columns
            else:
                taps.append(columns)
        storage = self.holds[work.field]
        kept = None if storage in self.in_registers else self.version(work.field)
        made = Version(work.field, len(self.found.levels))
        self.now[storage] = made
        self.found.levels.append(Level(turn, work, made, reads, kept, tuple(taps)))

    def check_factor(self, read: ir.Read, work: ir.Assign) -> None:
        if any(a.wrap or a.dim not in (ir.FIXED, 0, 1) for a in read.axes):
            raise NotOnChip(f"line {work.line}: {read.field} is not read point by point")

    def version(self, name: str) -> Version:
        storage = self.holds[name]
        if storage not in self.now:
            self.now[storage] = self.found.inputs[storage] = Version(storage)
        return self.now[storage]

    def chain(self) -> Chain:
        """Return the chain, with what is kept and needed of each version."""
        found = self.found
        for name in self.changed - self.in_registers:
            found.final[name] = self.version(name)
        found.goes_round = all(a == b for a, b in self.holds.items())
        for level in found.levels:
            read = list(level.reads.values())
            read += [(level.kept, 0, 0)] if level.kept is not None else []
            level.makes.lag = max([0, *(v.lag + rows for v, rows, _ in read)])
            for version, rows, _ in read:
                version.rows = max(version.rows, level.makes.lag - version.lag - rows + 1)
        for level in reversed(found.levels):
            for version, rows, columns in level.reads.values():
                level.makes.needs(version, rows, columns)
            if level.kept is not None:
                level.makes.needs(level.kept, 0, 0)
        return found


def is_thin(work: ir.Assign) -> bool:
    """Return whether a stage computes a row or a column alone."""
    return any(span.count == 1 for span in work.box)
