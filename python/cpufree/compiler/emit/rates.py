"""What a GPU does in a microsecond, by the machine file: what kernels of programs are chosen by."""

from __future__ import annotations

from dataclasses import dataclass

from cpufree.machine import Machine, of_gpu

ARRAYS = 3
"""That a sweep over memory reads and writes, about."""


@dataclass(frozen=True)
class Rates:
    """Of one GPU of some. Times are in microseconds, sizes in bytes, rates in a microsecond.

    Attributes
    ----------
    cycles : float
        Of a multiprocessor.
    cached : float
        Bytes that stay in the L2 cache.
    near, far : float
        Bytes from there, and from memory.
    exchange, field, group : float
        Time of an exchange among blocks, of a field in it, of a group beside its points.
    barrier : float
        Time of a barrier, and of the last blocks that it waits for.
    round : float
        Time of a barrier between rounds of streams, of the last warps, and of the first rows.
    """

    cycles: float
    cached: float
    near: float
    far: float
    exchange: float
    field: float
    group: float
    barrier: float
    round: float

    @classmethod
    def of(cls, known: Machine | None, pes: int) -> Rates:
        """Return those of a machine where N GPUs run a program; None: nothing is known."""
        there = of_gpu("") if known is None else known

        def seconds(name: str) -> float:
            return 1e6 * there.at(name, "s", pes)

        def rate(name: str, unit: str = "B/s") -> float:
            return 1e-6 * there.number(f"program.{name}", unit)

        exchange = seconds("exchange.packets")
        barrier = seconds("program.barrier")
        if pes > 1:
            # For a fence, and a flag behind it.
            barrier += max(0.0, seconds("exchange.stores") - exchange)
            exchange += seconds("stencil.exchange_between")
        return cls(
            rate("clock", "1/s"),
            there.number("gpu.cache_bytes", "B"),
            rate("cache_rate"),
            1e-6 * there.at("loop.memory_rate", "B/s", ARRAYS),
            exchange,
            seconds("program.field"),
            seconds("program.group"),
            barrier,
            seconds("program.round"),
        )

    def read(self, moved: float, size: float) -> float:
        """Return the time in which bytes are moved, of arrays that have `size`."""
        return moved / (self.near if size < self.cached else self.far)
