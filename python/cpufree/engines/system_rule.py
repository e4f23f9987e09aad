"""CPU or GPUs, and how many of them, for a system: a rule of a few lines.

The CPU has it where its cores are done before GPUs would be set up. Else it gets the fewest GPUs,
and twice as many as long as they save more than it takes to start and to set them up. How long an
iteration takes is predicted as by `cpufree predict`; docs/gpus.md has how the rule does beside the
best choice.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cpufree.engines.expected import Expected
from cpufree.engines.gpu_choice import GAIN, Size, candidates
from cpufree.machine import Machine
from cpufree.partition.cost import Gain, Spread
from cpufree.text import counted, time_text


@dataclass(frozen=True)
class Forecast:
    """What is known of a system before it is solved, besides its size."""

    expected: Expected
    spread: Spread
    """Of the entries, from which halos are guessed."""
    gain: Gain
    """What a halo costs a GPU in an iteration, and a search for a better partition."""

    def halos(self, gpus: int) -> float:
        """Return the seconds of all halos of N GPUs, or of a search for shorter ones."""
        each = self.gain.of_halo(self.spread.ghosts(gpus), self.spread.cut(gpus))
        search = self.gain.search_seconds * self.spread.graph_entries
        return min(self.expected.total * each, search)


@dataclass(frozen=True)
class Chosen:
    """A number of GPUs, 0 for the CPU, and why."""

    gpus: int
    why: str


def cpu_seconds(size: Size, blocks: int, expected: Expected, known: Machine) -> float:
    """Return how long N blocks take to the last answer, each a thread on its own core."""
    cores = min(float(blocks), known.number("cpu.most_cores", "1"))
    moved = expected.total * size.moved / known.number("cpu.core_bandwidth", "B/s")
    waits = expected.total * known.number("cpu.latency", "s")
    return (known.number("setup.cpu_nonzero", "s") * size.nnz + moved) / cores + waits


def start_seconds(gpus: int, idle: int, known: Machine) -> float:
    """Return how long it takes to start CUDA on `idle` GPUs, and to set a system up on `gpus`."""
    start = known.at("setup.context", "s", idle) if idle else 0.0
    return start + known.at("setup.gpu", "s", gpus)


def choose_place(
    size: Size,
    running: Sequence[bool],
    blocks: int | None,
    forecast: Forecast,
    known: Machine,
    iteration: Callable[[int], float],
) -> Chosen:
    """Return how many GPUs to take.

    Args:
        size: of the system.
        running: for each GPU, in the order in which they are taken: whether CUDA runs there.
        blocks: of the CPU engine; None: it is not to be used.
        forecast: of the system. known: the machine.
        iteration: seconds of an iteration on N GPUs.
    """
    expected = forecast.expected
    starts = {
        count: start_seconds(count, sum(not runs for runs in running[:count]), known)
        for count in candidates(len(running))
    }
    if blocks is not None:
        cpu = cpu_seconds(size, blocks, expected, known)
        if cpu < starts[1]:
            told = f"{time_text(cpu)} on {counted(blocks, 'block')} of the CPU"
            return Chosen(0, f"{_told(expected)}: {told}, {time_text(starts[1])} to set a GPU up")
    each = {count: iteration(count) for count in starts}
    gpus, why = 1, _told(expected)
    for few, more in itertools.pairwise(starts):
        saved = expected.total * (each[few] - each[more])
        takes = starts[more] - starts[few] + forecast.halos(more) - forecast.halos(few)
        why = f"{_told(expected)}: {more} GPUs save {time_text(max(saved, 0.0))}, and take "
        why += time_text(takes)
        if saved <= takes or each[more] > (1 - GAIN) * each[few]:
            return Chosen(gpus, why)
        gpus = more
    return Chosen(gpus, why)


def _told(expected: Expected) -> str:
    return ", ".join(filter(None, [expected.told, expected.why]))
