"""What `cpufree solve` does in ranks that read or make their own rows alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpufree.cli.rank_commands import can_write_together
from cpufree.distributed import Team
from cpufree.errors import InvalidInputError
from cpufree.matrix.io.vectors import as_numbered, load_rows_of_vector
from cpufree.matrix.load import GENERATOR_PREFIX, open_rows
from cpufree.matrix.rows import RowSource, rows_of_rank
from cpufree.matrix.vector import as_vector

MADE_VECTORS = ("ones", "random")  # names of right-hand sides that are no files
# From this many rows on, "auto" has ranks make their own rows: below, a whole matrix is made within
# seconds, and shared out and ordered with care.
MANY_ROWS = 5_000_000
_PIECE = 1 << 20  # random numbers that are made at a time


@dataclass(frozen=True)
class DistributedInputOptions:
    """The options of a command that decide whether ranks can have their own rows alone."""

    team: Team | None
    engine: str
    """As it is asked for."""
    out: str | None
    vectors: tuple[str | None, ...]
    """--rhs and --x0."""
    partition: str = "auto"

    def need_of_whole(self) -> str | None:
        """Return which option rules own rows out; None: no one."""
        assert self.team is not None
        if self.partition not in ("auto", "contiguous"):
            return (
                f"--partition {self.partition} is for matrices that each process has as a whole, "
                "for ranks keep the rows that they are given"
            )
        if not can_write_together(self.out, self.team):
            return (
                f"cannot write '{self.out}': ranks that have own rows alone write x together, into "
                "a .npy file, on one machine"
            )
        for vector in self.vectors:
            if vector not in (None, *MADE_VECTORS) and not vector.lower().endswith(".npy"):
                return f"{vector}: ranks that have own rows alone read vectors from .npy files"
        return None


def choose_rows(source: str, asked: str, options: DistributedInputOptions) -> RowSource | None:
    """Return the matrix as one of which each rank has its own rows; None: each has all of it.

    Raises:
        InvalidInputError: rows are asked for, and this source cannot give them, with the other
            options, or by one process.
    """
    if asked == "whole" or (options.team is None and asked == "auto"):
        return None
    if options.team is None:
        raise InvalidInputError(
            f"--input rows is for several processes{_why_alone(options.engine)}"
        )
    need = options.need_of_whole()
    if asked == "rows":
        if need is not None:
            raise InvalidInputError(f"{need}; or use --input whole")
        return open_rows(source)
    if need is not None or not source.startswith(GENERATOR_PREFIX):
        return None
    from cpufree import generate

    rows = generate.row_source(source.removeprefix(GENERATOR_PREFIX))
    return rows if rows is not None and rows.shape[0] >= MANY_ROWS else None


def _why_alone(engine: str) -> str:
    """Return why this process works alone, and what to do, as the end of a sentence."""
    if engine != "auto":
        return (
            f", and engine '{engine}' is one of a single process: leave --engine out, or choose "
            "nvshmem, nccl or cpu_processes"
        )
    return ": start them by 'cpufree run -n N solve ...', mpirun, srun or torchrun"


class DistributedInput:
    """The rows of a system that this rank has, and its entries of vectors."""

    def __init__(self, rows: RowSource, team: Team, dtype: np.dtype[Any] | None = None) -> None:
        """`dtype`: of vectors; None: that of the matrix."""
        self.rows, self.team = rows, team
        self.dtype = np.dtype(rows.dtype) if dtype is None else dtype
        self.first, self.last = rows_of_rank(rows, team.rank, team.size)
        self._numbers = rows.numbers(self.first, self.last)

    def places(self, v: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
        """Return where entries of a vector of the own rows belong in that of all rows, and they."""
        if self._numbers is None:
            return slice(self.first, self.last), v
        rising = np.argsort(self._numbers)  # each page of a file is written once
        return self._numbers[rising], v[rising]

    def right_hand_side(self, name: str) -> NDArray[Any]:
        """Return the own rows of b, as `commands.right_hand_side` makes all of it."""
        if name == "ones":
            return np.ones(self.last - self.first, dtype=self.dtype)
        if name == "random":
            return self._standard_normal().astype(self.dtype, copy=False)
        return self.vector(name)

    def vector(self, path: str) -> NDArray[Any]:
        """Return the own rows of a vector in a file."""
        own = load_rows_of_vector(path, self.rows.shape[0], self.first, self.last, self._numbers)
        if self._numbers is not None:
            return as_numbered(own, self._numbers, self.dtype, path)
        return as_vector(own, self.last - self.first, self.dtype, path, self.first)

    def _standard_normal(self) -> NDArray[np.float64]:
        if self._numbers is None:
            return standard_normal(self.first, self.last)
        rising = np.argsort(self._numbers)
        own = np.empty(rising.size)
        own[rising] = standard_normal_at(self._numbers[rising])
        return own

    def norm(self, v: NDArray[Any]) -> float:
        """Return ‖v‖₂ of all ranks' rows; all ranks call it together."""
        own = float(np.linalg.norm(v))
        norms = self.team.tell_all("norm of b", {"norm": own})
        return float(np.linalg.norm([facts["norm"] for facts in norms]))


def standard_normal(first: int, last: int) -> NDArray[np.float64]:
    """Return entries [first, last) of the random vector: those before are made, and forgotten."""
    stream = np.random.default_rng(0)
    for _ in range(first // _PIECE):
        stream.standard_normal(_PIECE)
    stream.standard_normal(first % _PIECE)
    return stream.standard_normal(last - first)


def standard_normal_at(numbers: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return these entries of the random vector; their numbers rise."""
    stream, taken = np.random.default_rng(0), []
    last = int(numbers[-1]) + 1 if numbers.size else 0
    for begin in range(0, last, _PIECE):
        piece = stream.standard_normal(_PIECE)
        first, end = np.searchsorted(numbers, (begin, begin + _PIECE))
        taken.append(piece[numbers[first:end] - begin])
    return np.concatenate(taken) if taken else np.empty(0)
