"""How many GPUs a system deserves: a first, simple model of the time of an iteration.

On P GPUs an iteration takes the time in which one of them moves its share of the bytes, and a
latency for reductions and barriers that grows slowly with P. Halos are left out: they overlap the
interior rows, and their size is known only once the matrix is partitioned.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cpufree import machine
from cpufree.errors import OutOfMemoryError
from cpufree.text import counted

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Bytes:
    """Bytes of a system in one type of values."""

    moved_per_nonzero: float
    """Read in an iteration: a value and its column."""
    moved_per_row: int
    """Read and written in an iteration: the vectors of the method, and where the row begins."""
    stored_per_nonzero: int
    """Held in memory: a value, its column, and padding."""
    stored_per_row: int
    """Held in memory: 14 vectors, the most that a method and preconditioner need."""


@dataclass(frozen=True)
class Model:
    """The numbers of the model. To be measured anew whenever the kernels change."""

    bytes_of: dict[int, Bytes]
    """By the bytes of a value: 8 for float64, 4 for float32."""
    memory_bandwidth: float
    """Bytes per second from the memory of one GPU."""
    chip_bandwidth: float
    """Bytes per second from the on-chip memory of one GPU, its L2 included."""
    chip_bytes: float
    """Up to this many bytes, most of the share of a GPU stays on its chip across iterations."""
    latency: dict[int, float]
    """By the number of GPUs: seconds of an iteration in which nothing is to be moved."""
    gain: float
    """More GPUs are taken where they save at least this share of the time."""
    memory_share: float
    """At most this share of the free memory of a GPU is planned for."""


@functools.cache
def model_of(gpu: str) -> Model:
    """Return the model of machines with GPUs of this name; "": of the default machine."""
    known = machine.of_gpu(gpu)
    return Model(
        bytes_of={8: Bytes(12, 100, 14, 14 * 8), 4: Bytes(8, 60, 10, 14 * 4)},
        memory_bandwidth=known.number("solver.memory_bandwidth", "B/s"),
        chip_bandwidth=known.number("solver.chip_bandwidth", "B/s"),
        chip_bytes=known.number("solver.chip_bytes", "B"),
        latency=known.table("solver.latency", "s"),
        gain=0.15,
        memory_share=0.85,
    )


MODEL = model_of("")


@dataclass(frozen=True)
class Size:
    """What is to be placed: rows, stored entries, and the bytes of a value."""

    rows: int
    nnz: int
    value_bytes: int
    what: str = "system"
    """What errors call it."""


def predict(size: Size, gpus: int, model: Model = MODEL) -> float:
    """Return the seconds that an iteration is expected to take on so many GPUs."""
    each = model.bytes_of[size.value_bytes]
    share = (each.moved_per_nonzero * size.nnz + each.moved_per_row * size.rows) / gpus
    resident = share <= model.chip_bytes
    bandwidth = model.chip_bandwidth if resident else model.memory_bandwidth
    return share / bandwidth + latency(gpus, model)


def latency(gpus: int, model: Model = MODEL) -> float:
    """Return the latency on so many GPUs."""
    return interpolated(model.latency, gpus)


def interpolated(table: Mapping[int, float], gpus: int) -> float:
    """Return a value for so many GPUs: on the line through the nearest two of a table."""
    counts = sorted(table)
    above = min(max(bisect_left(counts, gpus), 1), len(counts) - 1)
    low, high = counts[above - 1], counts[above]
    slope = (table[high] - table[low]) / (high - low)
    return table[low] + slope * (gpus - low)


def memory_each(size: Size, gpus: int, model: Model = MODEL) -> float:
    """Return the bytes that each of so many GPUs has to hold."""
    each = model.bytes_of[size.value_bytes]
    return (each.stored_per_nonzero * size.nnz + each.stored_per_row * size.rows) / gpus


def fits(size: Size, gpus: int, free: int, model: Model = MODEL) -> bool:
    """Return whether the share of one of so many GPUs fits in so much free memory."""
    return memory_each(size, gpus, model) <= model.memory_share * free


def candidates(there: int) -> list[int]:
    """Return the numbers of GPUs that are compared: powers of 2, and all there are."""
    return [*(2**k for k in range(there.bit_length()) if 2**k < there), there]


def choose(
    size: Size,
    there: Sequence[T],
    free: Callable[[T], int],
    model: Model = MODEL,
    seconds: Callable[[int], float] | None = None,
) -> tuple[list[T], str]:
    """Return the GPUs to use and why.

    Their number is the smallest for which no other one saves `model.gain` of the time, or the next
    larger one for which enough GPUs have the memory.

    Args:
        size: of the system.
        there: the GPUs, in the order in which to take them.
        free: tells the free bytes of one. It is asked about as few as possible.
        model: the numbers to judge by.
        seconds: of an iteration on so many GPUs; None: as the model predicts.

    Raises:
        OutOfMemoryError: the system does not fit even on all of them.
    """
    counts = candidates(len(there))
    times = {
        count: predict(size, count, model) if seconds is None else seconds(count)
        for count in counts
    }
    best = min(times.values())
    fewest = next(count for count in counts if best > (1 - model.gain) * times[count])
    chosen = with_room(size, there, free, fewest, model)
    return chosen, _why(times, fewest, len(chosen))


def with_room(
    size: Size, there: Sequence[T], free: Callable[[T], int], fewest: int, model: Model = MODEL
) -> list[T]:
    """Return `fewest` GPUs whose memory holds their shares, or the next larger number of them.

    Args:
        size, there, free, model: as `choose` takes them.
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
            chosen += [gpu] if fits(size, count, free_bytes[gpu], model) else []
            if len(chosen) == count:
                return chosen
    raise OutOfMemoryError(too_large(size, list(free_bytes.values()), model))


def _why(times: dict[int, float], fewest: int, chosen: int) -> str:
    """Return why so many GPUs: the times, and that the system needs their memory if it does."""
    others = [f"{_time(times[count])} on {count}" for count in times if count != chosen]
    too_few = [count for count in times if fewest <= count < chosen]
    memory = [f"no room on {too_few[-1]}"] if too_few else []
    return ", ".join([f"predicted {_time(times[chosen])} per iteration", *others, *memory])


def too_large(size: Size, free: Sequence[int], model: Model = MODEL) -> str:
    """Return what to tell a user whose system does not fit."""
    need = _gib(memory_each(size, len(free), model))
    have = _gib(model.memory_share * min(free))
    each = "it" if len(free) == 1 else "each"
    return (
        f"the {size.what} needs about {need} on {'the' if len(free) == 1 else 'each of'} "
        f"{counted(len(free), 'GPU')}, which is more than the {have} that may be used of {each} "
        f"({model.memory_share:.0%} of what is free). Use more GPUs, float32, or "
        "engine 'cpu_threads'"
    )


def _time(value: float) -> str:
    return f"{value * 1e6:.3g} µs" if value < 1e-3 else f"{value * 1e3:.3g} ms"


def _gib(value: float) -> str:
    return f"{value / 2**30:.3g} GiB"
