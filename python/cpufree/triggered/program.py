"""Programs of kernels: what each block does, step by step, without leaving its kernel."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cpufree.errors import InvalidInputError
from cpufree.triggered.buffer import Buffer, Place, as_place

# As in cpufree/systems/triggered/domain.hpp.
_STORE, _COPY, _ADD, _TRIGGER, _WAIT_DONE, _WAIT_SIGNAL, _NEXT_ARRIVAL = range(7)
_COLUMNS = 13
FIELDS = ("source", "target", "pe")  # that dynamic triggers supply


class BlockProgram:
    """The steps of one block. Each method adds one and returns the program."""

    def __init__(self, program: Program, pe: int) -> None:
        self._program = program
        self._pe = pe
        self._rows: list[list[int]] = []

    def store(self, place: Buffer | Place, values: npt.ArrayLike) -> BlockProgram:
        """Write values to memory of the own PE; one value fills the place."""
        where = as_place(place)
        array = np.asarray(values, np.float64)
        if array.ndim > 1 or array.size not in (1, where.count):
            raise InvalidInputError(f"{array.size} values do not fit a place of {where.count}")
        first = self._program.keep(np.broadcast_to(array.ravel(), where.count))
        return self._add(_STORE, place=where.offset, first=first, count=where.count)

    def copy(self, source: Buffer | Place, target: Buffer | Place) -> BlockProgram:
        """Copy values within memory of the own PE."""
        return self._move(_COPY, source, target)

    def add(self, source: Buffer | Place, target: Buffer | Place) -> BlockProgram:
        """Add the values of `source` to those of `target`, in memory of the own PE."""
        return self._move(_ADD, source, target)

    def trigger(
        self,
        tag: int,
        epoch: int = 0,
        *,
        nic: int | None = None,
        source: Place | None = None,
        target: Place | None = None,
        pe: int | None = None,
    ) -> BlockProgram:
        """Trigger a tag once, after all that the block has stored.

        `nic` is the PE whose NIC is triggered, the own one by default. `source`, `target` and `pe`
        are for operations that leave them open.
        """
        values = [0 if source is None else source.offset, 0 if target is None else target.offset]
        given = sum(1 << k for k, f in enumerate((source, target, pe)) if f is not None)
        return self._add(
            _TRIGGER,
            tag=(tag, epoch),
            fields=[given, *values, pe or 0],
            pe=self._pe if nic is None else nic,
        )

    def wait_done(self, tag: int, epoch: int = 0) -> BlockProgram:
        """Wait until the put's source may be written again; until the get's target is filled."""
        return self._add(_WAIT_DONE, tag=(tag, epoch))

    def wait_signal(self, signal: int, epoch: int = 0, *, origin: int = 0) -> BlockProgram:
        """Wait for the signal with which the NIC of PE `origin` ends epoch `epoch`."""
        return self._add(_WAIT_SIGNAL, tag=(0, epoch), pe=origin, number=signal)

    def next_arrival(self, origin: int) -> BlockProgram:
        """Wait for the next operation of PE `origin`'s NIC that reports here; one block does."""
        return self._add(_NEXT_ARRIVAL, pe=origin)

    def rows(self) -> npt.NDArray[np.int64]:
        """Return the steps as the core takes them."""
        return np.array(self._rows, np.int64).reshape(-1, _COLUMNS)

    def _move(self, kind: int, source: Buffer | Place, target: Buffer | Place) -> BlockProgram:
        first, to = as_place(source), as_place(target)
        if first.count != to.count:
            raise InvalidInputError(f"{first.count} values do not fit a place of {to.count}")
        return self._add(kind, place=to.offset, origin=first.offset, count=to.count)

    def _add(
        self,
        kind: int,
        *,
        tag: tuple[int, int] = (0, 0),
        fields: list[int] | None = None,
        pe: int = 0,
        number: int = 0,
        place: int = 0,
        origin: int = 0,
        first: int = 0,
        count: int = 0,
    ) -> BlockProgram:
        if min(tag) < 0 or max(tag) >= 1 << 32:
            raise InvalidInputError(f"tag {tag[0]}, epoch {tag[1]}: both are 0 to 4294967295")
        row = [kind, *tag, *(fields or [0, 0, 0, 0]), pe, number, place, origin, first, count]
        self._rows.append(row)
        return self


class Program:
    """The steps of all blocks of all PEs, for `Domain.run`. Made by `Domain.program`."""

    def __init__(self, pes: int, blocks: int) -> None:
        self.pes = pes
        self.blocks = blocks
        self._values: list[npt.NDArray[np.float64]] = []
        self._count = 0
        self._blocks = [BlockProgram(self, pe) for pe in range(pes) for _ in range(blocks)]

    def block(self, pe: int, block: int = 0) -> BlockProgram:
        """Return the program of one block, to which steps are added."""
        if not (0 <= pe < self.pes and 0 <= block < self.blocks):
            raise InvalidInputError(
                f"there is no block {block} of PE {pe}: {self.pes} PEs of {self.blocks}"
            )
        return self._blocks[pe * self.blocks + block]

    def keep(self, values: npt.NDArray[np.float64]) -> int:
        """Keep values for a step; return the number of the first."""
        first = self._count
        self._values.append(values)
        self._count += values.size
        return first

    def rows(self) -> list[npt.NDArray[np.int64]]:
        """Return the steps of each block."""
        return [block.rows() for block in self._blocks]

    def values(self) -> npt.NDArray[np.float64]:
        """Return all values that steps store."""
        return np.concatenate(self._values) if self._values else np.empty(0)
