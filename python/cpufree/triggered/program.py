"""Programs of kernels: what each block does, step by step, without leaving its kernel."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cpufree.errors import InvalidInputError
from cpufree.triggered.buffer import Buffer, Place, as_place

if TYPE_CHECKING:
    from cpufree._triggered import Domain, Step
    from cpufree._triggered_gpu import Domain as GpuDomain


class BlockProgram:
    """The steps of one block. Each method adds one and returns the program."""

    def __init__(self, program: Program, pe: int, block: int) -> None:
        self._program = program
        self._pe = pe
        self._who = f"block {block} of PE {pe}"
        self.steps: list[Step] = []

    def store(self, place: Buffer | Place, values: npt.ArrayLike) -> BlockProgram:
        """Write values to memory of the own PE; one value fills the place."""
        where = self._place(place, "store")
        array = np.asarray(values, np.float64)
        if array.ndim > 1 or array.size not in (1, where.count):
            raise InvalidInputError(
                f"{self._who}, store: {array.size} values do not fit {where}, {where.count}"
            )
        first = self._program.keep(np.broadcast_to(array.ravel(), where.count))
        return self._add("store", place=where.offset, first=first, count=where.count)

    def copy(self, source: Buffer | Place, target: Buffer | Place) -> BlockProgram:
        """Copy values within memory of the own PE."""
        return self._move("copy", source, target)

    def add(self, source: Buffer | Place, target: Buffer | Place) -> BlockProgram:
        """Add the values of `source` to those of `target`, in memory of the own PE."""
        return self._move("add", source, target)

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
        are for operations that leave them open; places are of the operation's size.

        Raises InvalidInputError where a place belongs to another domain or to a buffer that has
        been freed, or a PE does not exist. `Domain.run` compares places with the operation if that
        has been posted, `Domain.put` if it is posted later; the NIC compares the rest, and a
        TriggerError reports it when the domain ends.
        """
        who = f"trigger of tag {tag}, epoch {epoch}"
        places = [
            None if given is None else self._place(given, f"{who}, {name}")
            for name, given in (("source", source), ("target", target))
        ]
        to = None if pe is None else self._pe_there(pe, who)
        carrier = self._pe if nic is None else self._pe_there(nic, who)
        self._add("trigger", (tag, epoch), pe=carrier)
        for name, place in zip(("source", "target"), places, strict=True):
            if place is not None:
                self.steps[-1].supply(name, place.offset, place.bytes)
        if to is not None:
            self.steps[-1].supply("pe", to)
        return self

    def wait_done(self, tag: int, epoch: int = 0) -> BlockProgram:
        """Wait until the put's source may be written again; until the get's target is filled."""
        return self._add("wait_done", (tag, epoch))

    def wait_signal(self, signal: int, epoch: int = 0, *, origin: int = 0) -> BlockProgram:
        """Wait for the signal with which the NIC of PE `origin` ends epoch `epoch`."""
        there = self._pe_there(origin, "wait_signal")
        return self._add("wait_signal", (0, epoch), pe=there, number=signal)

    def next_arrival(self, origin: int) -> BlockProgram:
        """Wait for the next operation of PE `origin`'s NIC that reports here; one block does."""
        return self._add("next_arrival", pe=self._pe_there(origin, "next_arrival"))

    def _move(self, name: str, source: Buffer | Place, target: Buffer | Place) -> BlockProgram:
        first, to = self._place(source, f"{name}, source"), self._place(target, f"{name}, target")
        if first.count != to.count:
            raise InvalidInputError(
                f"{self._who}, {name}: {first.count} values do not fit {to}, {to.count}"
            )
        if first.start != to.start and first.overlaps(to):
            raise InvalidInputError(
                f"{self._who}, {name}: the source, {first}, overlaps the target, {to}"
            )
        return self._add(name, place=to.offset, source=first.offset, count=to.count)

    def _place(self, what: Buffer | Place, step: str) -> Place:
        return self._program.place(what, f"{self._who}, {step}")

    def _pe_there(self, pe: int, step: str) -> int:
        if not 0 <= pe < self._program.pes:
            raise InvalidInputError(
                f"{self._who}, {step}: there is no PE {pe}; there are {self._program.pes}"
            )
        return pe

    def _add(self, kind: str, tag: tuple[int, int] = (0, 0), **fields: int) -> BlockProgram:
        if min(tag) < 0 or max(tag) >= 1 << 32:
            raise InvalidInputError(f"tag {tag[0]}, epoch {tag[1]}: both are 0 to 4294967295")
        structs = self._program.structs
        step = structs.Step()
        step.kind = getattr(structs.StepKind, kind)
        step.tag = structs.Tag(*tag)
        for name, value in fields.items():
            setattr(step, name, value)
        self.steps.append(step)
        return self


class Program:
    """The steps of all blocks of all PEs, for `Domain.run`. Made by `Domain.program`."""

    def __init__(
        self, domain: Domain | GpuDomain, structs: ModuleType, pes: int, blocks: int
    ) -> None:
        self._domain = domain
        self.structs: Any = structs
        """The extension of the domain, whose `Step` its programs are made of."""
        self._buffers: dict[Buffer, str] = {}  # and who names each first
        self.pes = pes
        self.blocks = blocks
        self._values: list[npt.NDArray[np.float64]] = []
        self._count = 0
        self._blocks = [BlockProgram(self, pe, b) for pe in range(pes) for b in range(blocks)]

    def block(self, pe: int, block: int = 0) -> BlockProgram:
        """Return the program of one block, to which steps are added."""
        if not (0 <= pe < self.pes and 0 <= block < self.blocks):
            raise InvalidInputError(
                f"there is no block {block} of PE {pe}: {self.pes} PEs of {self.blocks}"
            )
        return self._blocks[pe * self.blocks + block]

    def place(self, what: Buffer | Place, who: str) -> Place:
        """Return a place that step `who` names; remember its buffer."""
        place = as_place(what, self._domain, who)
        self._buffers.setdefault(place.buffer, who)
        return place

    def require_runs_in(self, domain: Domain | GpuDomain) -> None:
        """Raise InvalidInputError where it is of another domain, or names a freed buffer."""
        if self._domain is not domain:
            raise InvalidInputError("the program was made by another domain")
        for buffer, who in self._buffers.items():
            buffer.require_usable(domain, who)

    def keep(self, values: npt.NDArray[np.float64]) -> int:
        """Keep values for a step; return the number of the first."""
        first = self._count
        self._values.append(values)
        self._count += values.size
        return first

    def steps(self) -> list[list[Step]]:
        """Return the steps of each block."""
        return [block.steps for block in self._blocks]

    def values(self) -> npt.NDArray[np.float64]:
        """Return all values that steps store."""
        return np.concatenate(self._values) if self._values else np.empty(0)
