"""The time of an iteration of a solver, from what a matrix asks for and what a machine gives.

An iteration waits for its sums and for its exchange of rows, and reads its matrix and vectors, some
of them on chip. Each part is a measured constant of the machine file or bytes over a measured rate:
nothing is fitted to times of iterations of large systems. What the constants are, and how far
predictions are from records, is in docs/model.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cpufree.errors import InvalidInputError
from cpufree.machine import Machine
from cpufree.model.streams import Share, gathered_estimate, stream_seconds

ENTRY_BYTES = {8: 10.0, 4: 6.0}
"""Of a value with its column in our formats, by the bytes of a value, where no plan tells."""


@dataclass(frozen=True)
class Loops:
    """What a method does in an iteration, by its recurrences (`cpufree/solvers/`)."""

    sums: tuple[int, ...]
    """The values of each reduction."""
    streams: float
    """Vectors read or written in all loops, the product's operand and result among them."""
    vectors: int
    """Those that are there from one iteration to the next."""
    together: int
    """Those that its longest loop reads and writes."""
    ends: float
    """What a solve does besides its iterations and its launch, in iterations: first and true
    residual, by slower code. Measured on one system that is in no record of solves
    (consolidation_tet, 31 M entries, one and two H100: bench/results/iterations-2x-2026-11-25)."""
    hidden: float = 0.0
    """The share of a reduction that passes during the product: until the sums of all blocks have
    come. To add them up takes each block's own time."""
    products: int = 1
    """With A, each after an exchange."""
    like: str = ""
    """The method whose constants stand in, as this one has none; "": its own.
    Records of such methods are of one GPU."""


UNMEASURED = 2.0
"""By how much both ends of an interval are further away without a record. A guess."""

LOOPS: Mapping[str, Loops] = {
    # x, r, p read and written, s written and read, p and r read once more.
    "cg": Loops((1, 2), 10, 4, 6, 2.6),
    "prcg": Loops((5,), 10, 4, 7, 3.6),
    # n, z, s, p, w, r, x read, six of them and n written, w the operand.
    "pipecg": Loops((4,), 17, 8, 15, 4.5, hidden=0.5),
    # Passes and vectors as the headers of the methods count them.
    "minres": Loops((5,), 12.5, 9, 14, 3.6, like="prcg"),
    "bicgstab": Loops((2, 5), 21, 7, 9, 1.8, products=2, like="cg"),
}
METHODS = tuple(LOOPS)


@dataclass(frozen=True)
class SystemFacts:
    """A system on some PEs, as far as the time of an iteration depends on it."""

    rows: int
    nnz: int
    pes: int
    matrix_bytes: float
    """In the format of the engine, all PEs."""
    halo_values: int = 0
    """That all PEs receive in an exchange."""
    packets: bool = True
    """Whether halos travel as packets, instead of stores with a flag behind them."""
    imbalance: float = 1.0
    """Largest share of nonzeros over the mean."""
    value_bytes: int = 8
    block_packets: bool = False
    """Whether what blocks of a GPU read of one another comes as packets, and lies on chip then."""
    resident_vectors: int | None = None
    """That stay on chip, as a plan says. None: as many as find room."""
    resident_matrix: bool | None = None
    """Whether the matrix stays there, too. None: where it finds room."""
    gathered_bytes: float | None = None
    """Of the operand, from the L2 cache, all PEs (`cpufree.model.gathers`). None: by the rows."""


@dataclass(frozen=True)
class IterationTime:
    """The predicted time of an iteration [s]."""

    seconds: float
    low: float
    high: float
    """Of the interval in which 95 % of committed records lie."""
    parts: Mapping[str, float]
    """Seconds of sums, exchange, halo, matrix, vectors, loops; they add up to `seconds`."""

    @property
    def bound(self) -> str:
        """What takes the largest part."""
        return max(self.parts, key=lambda name: self.parts[name])


def estimate(rows: int, nnz: int, pes: int, value_bytes: int = 8) -> SystemFacts:
    """Return facts of a system of which its size alone is known, without halos."""
    return SystemFacts(rows, nnz, pes, ENTRY_BYTES[value_bytes] * nnz, value_bytes=value_bytes)


def iteration_seconds(facts: SystemFacts, method: str, machine: Machine) -> IterationTime:
    """Predict the time of an iteration.

    Args:
        facts: of the system on its PEs, from a plan or from `estimate`. method: of LOOPS,
        without a preconditioner or with Jacobi. machine: with the entries that begin with "sum.",
        "exchange.", "product.", "loop.", "iteration.", "link.", "solver." and "gpu.".

    Raises:
        InvalidInputError: the method has another name, or there are no rows.

    >>> from cpufree.machine import load
    >>> found = iteration_seconds(estimate(4096, 20224, 1), "prcg", load("h200"))
    >>> f"{found.seconds * 1e6:.1f} us, bound by {found.bound}"
    '4.8 us, bound by sums'
    """
    if method not in LOOPS:
        raise InvalidInputError(f"method '{method}': predictions are for {', '.join(METHODS)}")
    if facts.rows < 1 or facts.pes < 1:
        raise InvalidInputError(f"{facts.rows} rows on {facts.pes} PEs: both must be 1 or more")
    loops = LOOPS[method]
    matrix, vectors = stream_seconds(_share(facts, loops), machine)
    matrix *= loops.products
    sums = sum(sum_seconds(values, facts.pes, machine) for values in loops.sums)
    sums = max((1.0 - loops.hidden) * sums, sums - matrix if loops.hidden else sums)
    stores = facts.pes > 1 and not facts.packets
    # A packet has the flag of its value, as long as that.
    halo_bytes = (1 if stores else 2) * facts.value_bytes * facts.halo_values / facts.pes
    exchange = machine.at("exchange.stores" if stores else "exchange.packets", "s", facts.pes)
    parts = {
        "sums": sums,
        "exchange": loops.products * exchange,
        "halo": loops.products * halo_bytes / machine.number("link.store_rate", "B/s"),
        "matrix": matrix,
        "vectors": vectors,
        "loops": machine.number(f"iteration.beside_{loops.like or method}", "s"),
    }
    seconds = sum(parts.values())
    wider = UNMEASURED if loops.like and facts.pes > 1 else 1.0
    low = machine.number("iteration.least", "1") / wider
    high = machine.number("iteration.most", "1") * wider
    return IterationTime(seconds, low * seconds, high * seconds, parts)


def solve_seconds(
    facts: SystemFacts, method: str, machine: Machine, iterations: int
) -> IterationTime:
    """Predict the time of the kernels of a solve, from the launch to the end.

    A solve begins and ends with products, for its first and its true residual (`Loops.ends`). The
    parts have the launch, too. See `iteration_seconds` for the rest.
    """
    one = iteration_seconds(facts, method, machine)
    count = iterations + LOOPS[method].ends
    parts = {name: count * part for name, part in one.parts.items()}
    parts["launch"] = machine.at("solver.launch", "s", facts.pes)
    seconds = sum(parts.values())
    return IterationTime(
        seconds, seconds * one.low / one.seconds, seconds * one.high / one.seconds, parts
    )


def sum_seconds(values: int, pes: int, machine: Machine) -> float:
    """Return the time of an all-reduce of all blocks of all PEs, with the result in each block.

    Beyond 8 GPUs, which were not measured, it grows as the logarithm of their number does from 4 to
    8.
    """
    found = machine.at("sum.one_gpu" if pes == 1 else "sum.two_gpus", "s", values)
    if pes <= 2:
        return found
    more, size = machine.table("sum.more_gpus", "s"), 2
    extra = 0.0
    while size < pes:
        step = more[min(2 * size, 8)] - more[min(size, 4)]
        extra += step * min(1.0, (pes - size) / size)
        size *= 2
    return found + extra


def _share(facts: SystemFacts, loops: Loops) -> Share:
    rows = facts.rows / facts.pes
    gathered = facts.gathered_bytes
    if gathered is None:
        gathered = gathered_estimate(facts.rows, facts.nnz)
    return Share(
        rows=rows,
        entries=facts.nnz / facts.pes * facts.imbalance,
        matrix_bytes=facts.matrix_bytes / facts.pes * facts.imbalance,
        vector_bytes=float(facts.value_bytes) * rows,
        vectors=loops.vectors,
        accesses=loops.streams,
        loop_vectors=loops.together,
        resident_vectors=facts.resident_vectors,
        resident_matrix=facts.resident_matrix,
        gathered_bytes=None if facts.block_packets else gathered / facts.pes,
        gpus=facts.pes,
    )
