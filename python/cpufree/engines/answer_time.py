"""How long it takes from a matrix to the answer, on each engine and number of GPUs.

Seconds = start of CUDA, where it does not run yet, + set-up + iterations of all solves x seconds of
an iteration. The numbers of the machine are in `cpufree.machine`; `cpufree.engines.gpu_choice` has
the seconds of an iteration on GPUs, `cpufree.engines.expected` the number of iterations. What all
candidates have in common is left out: reading, checks, the order of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from cpufree import machine
from cpufree.engines.expected import Expected
from cpufree.engines.gpu_choice import MODEL, Model, Size, candidates, interpolated, predict
from cpufree.partition.cost import Gain, Spread

# A candidate with fewer resources is taken unless another one saves this share of its time.
LEAST_SAVING = 0.05


@dataclass(frozen=True)
class Costs:
    """What set-ups and iterations on the CPU cost: in seconds, and bytes per second."""

    context: dict[int, float]
    """By the number of GPUs on which CUDA does not run yet."""
    gpu_fixed: dict[int, float]
    """Of a set-up, by the number of GPUs."""
    gpu_nonzero: float
    gpu_row: float
    report: float
    """Of finding out what a partition into consecutive rows costs, for each nonzero."""
    cpu_nonzero: float
    """Of a set-up on the CPU, for each nonzero and core."""
    cpu_most_cores: float
    """Cores beyond these do not make set-up or iterations faster."""
    core_bandwidth: float
    cpu_latency: float
    there_least: float = math.inf
    """Nonzeros beyond which GPUs lay a matrix out by themselves; what that costs:"""
    there_fixed: dict[int, float] = field(default_factory=dict)
    there_nonzero: float = 0.0
    there_row: float = 0.0

    def setup_on_gpus(self, size: Size, count: int) -> float:
        """Return the seconds of a set-up on so many GPUs, partition and start of CUDA apart."""
        if size.nnz > self.there_least:
            each = self.there_nonzero * size.nnz + self.there_row * size.rows
            return interpolated(self.there_fixed, count) + each
        each = self.gpu_nonzero * size.nnz + self.gpu_row * size.rows
        return interpolated(self.gpu_fixed, count) + each

    @classmethod
    def of(cls, known: machine.Machine, cores: int) -> Costs:
        """Return those of a machine with so many cores for this process."""
        searching = min(max(1, cores), known.number("partition.most_cores", "1"))
        return cls(
            context=known.table("setup.context", "s"),
            gpu_fixed=known.table("setup.gpu", "s"),
            gpu_nonzero=known.number("setup.gpu_nonzero", "s"),
            gpu_row=known.number("setup.gpu_row", "s"),
            report=known.number("partition.report", "s") / searching,
            cpu_nonzero=known.number("setup.cpu_nonzero", "s"),
            cpu_most_cores=known.number("cpu.most_cores", "1"),
            core_bandwidth=known.number("cpu.core_bandwidth", "B/s"),
            cpu_latency=known.number("cpu.latency", "s"),
            there_least=known.number("setup.there_least", "1"),
            there_fixed=known.table("setup.there", "s"),
            there_nonzero=known.number("setup.there_nonzero", "s"),
            there_row=known.number("setup.there_row", "s"),
        )


@dataclass(frozen=True)
class Candidate:
    """One way to the answer, and what it takes."""

    name: str
    """Such as "the CPU with 16 blocks", "2 GPUs"."""
    gpus: int
    """0: the CPU engine."""
    start: float
    """Seconds until CUDA runs."""
    setup: float
    iteration: float

    def seconds(self, expected: Expected) -> float:
        """Return the seconds to the last answer."""
        return self.start + self.setup + expected.total * self.iteration


@dataclass(frozen=True)
class Forecast:
    """What is known of a system before it is solved, besides its size."""

    expected: Expected
    spread: Spread
    """Of the entries, from which halos are guessed."""
    gain: Gain
    """What a halo costs a GPU in an iteration, and a search for a better partition."""

    @property
    def search_seconds(self) -> float:
        """Seconds that METIS is expected to take."""
        return self.gain.search_seconds * self.spread.graph_entries

    def halo_seconds(self, gpus: int) -> float:
        """Return the seconds of an iteration that the halo of consecutive rows takes."""
        return self.gain.of_halo(self.spread.ghosts(gpus), self.spread.cut(gpus))

    def searches(self, gpus: int) -> bool:
        """Return whether METIS will run for so many GPUs."""
        saved = self.halo_seconds(gpus) * self.expected.total
        return not self.spread.is_good(gpus) and self.search_seconds < saved


def on_cpu(size: Size, blocks: int, costs: Costs, model: Model = MODEL) -> Candidate:
    """Return the CPU engine with so many blocks, each a thread with a core of its own."""
    cores = min(float(blocks), costs.cpu_most_cores)
    each = model.bytes_of[size.value_bytes]
    moved = each.moved_per_nonzero * size.nnz + each.moved_per_row * size.rows
    return Candidate(
        name=f"the CPU with {blocks} block{'' if blocks == 1 else 's'}",
        gpus=0,
        start=0.0,
        setup=costs.cpu_nonzero * size.nnz / cores,
        iteration=moved / (costs.core_bandwidth * cores) + costs.cpu_latency,
    )


def on_gpus(
    size: Size, count: int, idle: int, known: Forecast, costs: Costs, model: Model = MODEL
) -> Candidate:
    """Return so many GPUs.

    Args:
        size: of the system. count: of the GPUs.
        idle: of them, on which CUDA does not run yet.
        known: of the system.
        costs: of set-ups. model: of iterations.
    """
    searches = count > 1 and known.searches(count)
    iteration = predict(size, count, model)
    setup = costs.setup_on_gpus(size, count) + (costs.report * size.nnz if count > 1 else 0.0)
    if searches:  # which leaves a halo that is small beside that of rows in turn
        setup += known.search_seconds
    elif count > 1:
        iteration += known.halo_seconds(count)
    start = interpolated(costs.context, idle) if idle else 0.0
    return Candidate(f"{count} GPU{'' if count == 1 else 's'}", count, start, setup, iteration)


def all_candidates(
    size: Size,
    running: Sequence[bool],
    blocks: int | None,
    known: Forecast,
    costs: Costs,
    model: Model = MODEL,
) -> list[Candidate]:
    """Return all ways that are compared, those with the fewest resources first.

    Args:
        running: for each GPU, in the order in which they are taken: whether CUDA runs there.
        blocks: of the CPU engine; None: it is not to be used.
        size, known, costs, model: as `on_gpus` takes them.
    """
    ways = [] if blocks is None else [on_cpu(size, blocks, costs, model)]
    for count in candidates(len(running)) if running else []:
        idle = sum(not runs for runs in running[:count])
        ways.append(on_gpus(size, count, idle, known, costs, model))
    return ways


def best(ways: Sequence[Candidate], expected: Expected) -> Candidate:
    """Return the first one from which no other saves LEAST_SAVING of the time."""
    least = min(way.seconds(expected) for way in ways)
    return next(way for way in ways if least > (1.0 - LEAST_SAVING) * way.seconds(expected))


def comparison(ways: Sequence[Candidate], chosen: Candidate, expected: Expected) -> str:
    """Return the numbers that were compared, those of the chosen one first."""
    others = [
        f"{told_time(way.seconds(expected))} on {way.name}" for way in ways if way is not chosen
    ]
    parts = [
        *([f"CUDA's start {told_time(chosen.start)}"] if chosen.start else []),
        f"set-up {told_time(chosen.setup)}",
        f"{expected.told} of {told_time(chosen.iteration)}",
        *([expected.why] if expected.why else []),
    ]
    own = f"predicted {told_time(chosen.seconds(expected))} to the answer ({', '.join(parts)})"
    return ", ".join([own, *others])


def told_time(value: float) -> str:
    """Return seconds in words."""
    if value < 1e-3:
        return f"{value * 1e6:.3g} µs"
    return f"{value * 1e3:.3g} ms" if value < 1.0 else f"{value:.3g} s"
