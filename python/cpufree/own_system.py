"""What `cpufree solve` does in ranks that read or make their own rows alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidInputError
from .io import GENERATOR_PREFIX, load_rows_of_vector, open_rows
from .ranks import Team
from .rows import RowSource

INPUTS = ("auto", "whole", "rows")
# From so many rows on, "auto" has ranks make their own rows: below, a whole matrix is made within
# seconds, and shared out and ordered with care.
MANY_ROWS = 5_000_000
_PIECE = 1 << 20  # random numbers that are made at a time


def choose_rows(source: str, asked: str, team: Team | None) -> RowSource | None:
    """Return the matrix as one of which each rank has its own rows; None: each has all of it.

    Raises:
        InvalidInputError: rows are asked for, and cannot be had of this source, or by one process.
    """
    if asked == "whole" or (team is None and asked == "auto"):
        return None
    if team is None:
        raise InvalidInputError(
            "--input rows is for several processes: start them by 'cpufree run -n N solve ...', "
            "mpirun, srun or torchrun"
        )
    if asked == "rows":
        return open_rows(source)
    if not source.startswith(GENERATOR_PREFIX):
        return None
    from . import generate

    rows = generate.row_source(source.removeprefix(GENERATOR_PREFIX))
    return rows if rows is not None and rows.shape[0] >= MANY_ROWS else None


class OwnSystem:
    """A system of which this rank has its own rows: vectors are those of these."""

    def __init__(self, rows: RowSource, team: Team) -> None:
        self.rows, self.team = rows, team
        self.first, self.last = rows.range_of(team.rank, team.size)

    @property
    def range(self) -> slice:
        """The own rows among those of the matrix."""
        return slice(self.first, self.last)

    def right_hand_side(self, name: str) -> NDArray[Any]:
        """Return the own rows of b, as `commands.right_hand_side` makes all of it."""
        if name == "ones":
            return np.ones(self.last - self.first, dtype=self.rows.dtype)
        if name == "random":
            return standard_normal(self.first, self.last).astype(self.rows.dtype, copy=False)
        return self.vector(name)

    def vector(self, path: str) -> NDArray[Any]:
        """Return the own rows of a vector in a file."""
        own = load_rows_of_vector(path, self.rows.shape[0], self.first, self.last)
        return own.astype(self.rows.dtype, copy=False)

    def norm(self, v: NDArray[Any]) -> float:
        """Return ‖v‖₂ of all ranks' rows; all ranks call it together."""
        own = float(np.linalg.norm(v))
        told = self.team.tell_all("norm of b", {"norm": own})
        return float(np.linalg.norm([facts["norm"] for facts in told]))


def standard_normal(first: int, last: int) -> NDArray[np.float64]:
    """Return entries [first, last) of the random vector: those before are made, and forgotten."""
    stream = np.random.default_rng(0)
    for _ in range(first // _PIECE):
        stream.standard_normal(_PIECE)
    stream.standard_normal(first % _PIECE)
    return stream.standard_normal(last - first)
