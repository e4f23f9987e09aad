"""How many GPUs have the memory for some work, and how many of those are worth it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cpufree.errors import OutOfMemoryError
from cpufree.text import counted, time_text

T = TypeVar("T", bound=Hashable)
GAIN = 0.15
"""More GPUs are taken where they save at least this share of the time of an iteration."""
MEMORY_SHARE = 0.85
"""At most this share of the free memory of a GPU is planned for."""


@dataclass(frozen=True)
class Size:
    """What is to be placed: rows, stored entries, and the bytes of a value."""

    rows: int
    nnz: int
    value_bytes: int
    what: str = "system"
    """What errors call it."""
    vectors: int = 14
    """Held for each row: of a system the most that a method and preconditioner need."""

    @property
    def stored(self) -> float:
        """Bytes in memory: values with their columns and padding, and vectors.

        A choice is made before the matrix is looked at, so rows and entries are all there is to go
        by. `Solver.estimate` lays the matrix out, which takes as long as a set-up on the CPU, and
        set-ups check what that gives. Of a 7-point grid of 110³ rows a solve keeps 143 MB, its
        set-up takes 559 MB at most, and this is 278 MB.
        """
        return (self.value_bytes + 6) * self.nnz + self.vectors * self.value_bytes * self.rows

    @property
    def moved(self) -> float:
        """Bytes that an iteration of a solver reads and writes, at about 12 passes over vectors."""
        return (self.value_bytes + 4) * self.nnz + (12 * self.value_bytes + 4) * self.rows


def fits(size: Size, gpus: int, free: int) -> bool:
    """Return whether the share of one of N GPUs fits in the given free memory."""
    return size.stored / gpus <= MEMORY_SHARE * free


def candidates(there: int) -> list[int]:
    """Return the numbers of GPUs that are compared: powers of 2, and all there are."""
    return [*(2**k for k in range(there.bit_length()) if 2**k < there), there]


def choose(
    size: Size, there: Sequence[T], free: Callable[[T], int], seconds: Callable[[int], float]
) -> tuple[list[T], str]:
    """Return the GPUs to use and why.

    Their number is the smallest for which no other one saves GAIN of the time, or the next
    larger one for which enough GPUs have the memory.

    Args:
        size: of the work.
        there: the GPUs, in the order in which to take them.
        free: tells the free bytes of one. It is asked about as few as possible.
        seconds: of an iteration on N GPUs.

    Raises:
        OutOfMemoryError: the work does not fit even on all of them.
    """
    times = {count: seconds(count) for count in candidates(len(there))}
    best = min(times.values())
    fewest = next(count for count in times if best > (1 - GAIN) * times[count])
    chosen = with_room(size, there, free, fewest)
    others = [f"{time_text(times[count])} on {count}" for count in times if count != len(chosen)]
    why = [f"predicted {time_text(times[len(chosen)])} per iteration", *others]
    return chosen, ", ".join(why) + no_room(fewest, len(chosen), len(there))


def no_room(fewest: int, chosen: int, there: int) -> str:
    """Return what to add to a reason where memory asked for more GPUs."""
    too_few = [count for count in candidates(there) if fewest <= count < chosen]
    return f", no room on {too_few[-1]}" if too_few else ""


def with_room(size: Size, there: Sequence[T], free: Callable[[T], int], fewest: int) -> list[T]:
    """Return `fewest` GPUs whose memory holds their shares, or the next larger number of them.

    Args:
        size, there, free: as `choose` takes them.
        fewest: one of the `candidates`.

    Raises:
        OutOfMemoryError: the system does not fit even on all of them.
    """
    counts = candidates(len(there))
    free_bytes: dict[T, int] = {}
    for count in counts[counts.index(fewest) :]:
        chosen: list[T] = []
        for gpu in there:
            if gpu not in free_bytes:
                free_bytes[gpu] = free(gpu)
            chosen += [gpu] if fits(size, count, free_bytes[gpu]) else []
            if len(chosen) == count:
                return chosen
    raise OutOfMemoryError(too_large(size, list(free_bytes.values())))


def too_large(size: Size, free: Sequence[int]) -> str:
    """Return what to tell a user whose system does not fit."""
    need, have = _gib(size.stored / len(free)), _gib(MEMORY_SHARE * min(free))
    each = "it" if len(free) == 1 else "each"
    return (
        f"the {size.what} needs about {need} on {'the' if len(free) == 1 else 'each of'} "
        f"{counted(len(free), 'GPU')}, which is more than the {have} that may be used of {each} "
        f"({MEMORY_SHARE:.0%} of what is free). Use more GPUs, float32, or "
        "engine 'cpu_threads'"
    )


def _gib(value: float) -> str:
    return f"{value / 2**30:.3g} GiB"
