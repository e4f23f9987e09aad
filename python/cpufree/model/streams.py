"""How long a GPU moves its matrix and its vectors in an iteration: bytes over measured rates.

What a block does is fixed before it begins, and a phase ends with its slowest block: rates are
those of whole phases, measured so (`bench/machine/memory_rates.cu`). Vectors stay on chip first,
then the matrix where all of it fits; what is left comes from the L2 cache where that holds it from
one iteration to the next, else from memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from cpufree.machine import Machine

SECTOR_BYTES, LANES = 32, 32


def gathered_estimate(rows: float, entries: float) -> float:
    """Return what a product gathers of its operand from the L2 cache where no matrix is at hand.

    Neighbouring rows read the same values, which the L1 cache holds meanwhile: what is gathered
    does not grow with the entries of long rows. Counted (`cpufree.model.gathers`) on six matrices
    of 5 to 200 entries a row: half a value for each entry of short rows, about five values for long
    ones (39 to 67 bytes).

    >>> gathered_estimate(1e6, 5e6) / 1e6, gathered_estimate(1e6, 50e6) / 1e6
    (20.0, 40.0)
    """
    return min(40.0 * rows, 4.0 * entries)


@dataclass(frozen=True)
class Share:
    """What a PE has of a system, and what it does with it in an iteration."""

    rows: float
    entries: float
    matrix_bytes: float
    vector_bytes: float
    """Of one vector."""
    vectors: int
    """That are there from one iteration to the next."""
    accesses: float
    """To a vector, all loops together."""
    loop_vectors: int
    """That the longest loop reads and writes."""
    gathered_bytes: float | None
    """By a product, from the L2 cache; None where the operand lies on chip."""
    resident_vectors: int | None = None
    """That stay on chip; None: as many as find room."""
    resident_matrix: bool | None = None
    """Whether the matrix stays there, too; None: where it finds room."""
    gpus: int = 1
    """That have shares like this one."""


RING_BYTES = 82_000
"""Of a block's shared memory, where the matrix comes through rings: 16 warps, two slots."""
MOST_RESIDENT = 5
"""Vectors that a solver keeps on chip: r, s, x, its own rows of the operand, and what is read."""
PASSES = (3, 2, 2, 2, 1)
"""Accesses that each of them saves where an iteration has ten, in the order in which they stay."""


def stream_seconds(share: Share, machine: Machine) -> tuple[float, float]:
    """Return the seconds in which a PE reads its matrix, and moves its vectors."""
    chip = machine.number("solver.chip_bandwidth", "B/s")
    on_chip, kept = _residents(share, machine)
    streamed = 0.0 if on_chip else share.matrix_bytes
    beside = share.vector_bytes * max(1, share.vectors - kept)  # others read the operand
    held = vectors_held = machine.at("product.held", "1", (streamed + beside) / 1e6)
    if (
        machine.at("product.held", "1", streamed / 1e6) == 0.0
    ):  # through rings, its copies marked evict-first
        vectors_held = machine.at("loop.held", "1", beside / 1e6)
        held = _kept_on_purpose(share, machine)
    done = share.entries / machine.number("solver.entry_rate", "1/s")
    if not on_chip:  # to begin a slice of rows: its head, its first entries, their operands
        done += (1.0 - held) * share.rows * machine.number("solver.row_seconds", "s")
    read = streamed / _product_rate(share, held, machine) + (share.matrix_bytes - streamed) / chip
    if not on_chip:
        read, done = (part * (1.0 + _wait(share, machine)) for part in (read, done))
    rate = _rate(vectors_held, machine, "loop", share.loop_vectors)
    saved = min(share.accesses, sum(PASSES[:kept]))
    vectors = saved / chip + (share.accesses - saved) / rate
    return max(read, done), share.vector_bytes * vectors


def _wait(share: Share, machine: Machine) -> float:
    """Return the share of a product by which the slowest block of all GPUs takes longer."""
    what = "flags" if share.gathered_bytes is not None else "packets"
    return machine.at(f"product.wait_{what}", "1", share.gpus)


def _residents(share: Share, machine: Machine) -> tuple[bool, int]:
    """Return whether the matrix stays on chip, and how many vectors do."""
    blocks = machine.number("gpu.multiprocessors", "1")
    room = blocks * machine.number("solver.block_bytes", "B")
    if share.resident_vectors is not None and share.resident_matrix is not None:
        return share.resident_matrix, share.resident_vectors
    kept = min(MOST_RESIDENT, int(room / share.vector_bytes))
    if share.matrix_bytes <= room - kept * share.vector_bytes:
        return True, kept
    if machine.at("product.held", "1", share.matrix_bytes / 1e6) == 0.0:
        room -= blocks * RING_BYTES
    return False, min(MOST_RESIDENT, int(room / share.vector_bytes))


def _kept_on_purpose(share: Share, machine: Machine) -> float:
    """Return the share of a matrix that the L2 cache is made to keep, where it is the only one."""
    if share.gathered_bytes is not None or share.matrix_bytes < machine.number(
        "solver.least_kept_of", "B"
    ):
        return 0.0
    return min(1.0, machine.number("solver.kept_bytes", "B") / share.matrix_bytes)


def _product_rate(share: Share, held: float, machine: Machine) -> float:
    sectors = (share.gathered_bytes or 0.0) / SECTOR_BYTES
    gathers = share.entries / LANES
    return _rate(held, machine, "product", 10.0 * sectors / gathers)


def _rate(held: float, machine: Machine, what: str, at: float) -> float:
    """Return the bytes a second of which the cache delivers a share."""
    memory, cache = (machine.at(f"{what}.{k}_rate", "B/s", at) for k in ("memory", "cache"))
    return 1.0 / (held / cache + (1.0 - held) / memory)
