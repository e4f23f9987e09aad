"""Buffers in symmetric memory: the same place on every PE."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cpufree.errors import InvalidInputError

if TYPE_CHECKING:
    from cpufree._triggered import Domain
    from cpufree._triggered_gpu import Domain as GpuDomain

BYTES = 8  # of a value


@dataclass(frozen=True)
class Place:
    """`count` values of a buffer from value `start` on.

    Raises InvalidInputError where they are not all in the buffer.
    """

    buffer: Buffer
    start: int
    count: int

    def __post_init__(self) -> None:
        for name in ("start", "count"):
            try:
                whole = index(getattr(self, name))
            except TypeError:
                raise InvalidInputError(
                    f"{name} is {getattr(self, name)!r}; places are given in whole numbers"
                ) from None
            object.__setattr__(self, name, whole)
        start, count, size = self.start, self.count, self.buffer.size
        if start < 0 or count < 0 or start + count > size:
            raise InvalidInputError(
                f"values {start} to {start + count} lie outside of buffer '{self.buffer.name}', "
                f"which has {size}"
            )

    @property
    def offset(self) -> int:
        """Where it begins in symmetric memory, in bytes."""
        return self.buffer.offset + self.start * BYTES

    @property
    def bytes(self) -> int:
        """How many it has."""
        return self.count * BYTES

    def overlaps(self, other: Place) -> bool:
        """Return whether the two have values in common, on the same PE."""
        return (
            self.buffer is other.buffer
            and self.start < other.start + other.count
            and other.start < self.start + self.count
        )

    def __str__(self) -> str:
        return f"values {self.start} to {self.start + self.count} of buffer '{self.buffer.name}'"

    def on(self, pe: int) -> npt.NDArray[np.float64]:
        """Return the values on PE `pe`: a view, which kernels and NICs write to; on GPUs a copy."""
        return self.buffer.on(pe)[self.start : self.start + self.count]


class Buffer:
    """`size` float64 values on every PE, zeros at first. Made by `Domain.buffer`."""

    def __init__(self, domain: Domain | GpuDomain, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self.freed = False
        self._domain = domain
        self._offset: int = domain.add_buffer(name, size * BYTES)

    @property
    def offset(self) -> int:
        """Where it begins in symmetric memory, in bytes."""
        if self.freed:
            raise InvalidInputError(f"buffer '{self.name}' has been freed")
        return self._offset

    def on(self, pe: int) -> npt.NDArray[np.float64]:
        """Return the values on PE `pe`: a view, which kernels and NICs write to; on GPUs a copy."""
        view = self._domain.view(pe, self.offset, self.size * BYTES)
        values: npt.NDArray[np.float64] = view.view(np.float64)
        return values

    def fill(self, pe: int, values: npt.ArrayLike) -> None:
        """Write all values on PE `pe`, while no program runs; one value fills the buffer."""
        array = np.asarray(values, np.float64)
        if array.ndim > 1 or array.size not in (1, self.size):
            raise InvalidInputError(
                f"{array.size} values do not fit buffer '{self.name}', which has {self.size}"
            )
        whole = np.ascontiguousarray(np.broadcast_to(array.ravel(), self.size))
        write = getattr(self._domain, "write", None)
        if write is not None:
            write(pe, self.offset, whole)
        else:
            self.on(pe)[:] = whole

    def at(self, start: int, count: int) -> Place:
        """Return `count` values from value `start` on."""
        return Place(self, start, count)

    def free(self) -> None:
        """Give the buffer's memory back to the domain: later buffers may lie there.

        What comes later must not name it. Arrays that `on` has returned are not to be used any
        more: they show what lies there now.

        Raises InvalidInputError where an operation that has not fired names it, or a trigger of
        one.
        """
        if not self.freed:
            self._domain.remove_buffer(self.name)
        self.freed = True

    def require_usable(self, domain: Domain | GpuDomain, who: str) -> None:
        """Raise InvalidInputError where it belongs to another domain, or has been freed."""
        if self._domain is not domain:
            raise InvalidInputError(f"{who}: buffer '{self.name}' belongs to another domain")
        if self.freed:
            raise InvalidInputError(f"{who}: buffer '{self.name}' has been freed")

    def __repr__(self) -> str:
        return f"Buffer({self.name!r}, {self.size} values)"


def as_place(what: Any, domain: Domain | GpuDomain, who: str) -> Place:
    """Return a buffer or a place of `domain` as a place; `who` begins what errors say."""
    if isinstance(what, Buffer):
        what = what.at(0, what.size)
    if not isinstance(what, Place):
        raise InvalidInputError(
            f"{who}: a buffer or a part of one is needed, not {type(what).__name__}"
        )
    what.buffer.require_usable(domain, who)
    return what
