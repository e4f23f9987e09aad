"""From a few solves on a machine to the numbers by which engine and number of GPUs are chosen.

Systems of two sizes tell latency and bandwidth of an iteration, a straight line through both; the
first set-up of a process tells what the start of CUDA takes, later ones what set-ups take. All
other choices are those of a machine that is like this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpufree.errors import InvalidInputError


@dataclass(frozen=True)
class Solve:
    """What a solve on a place took [s]."""

    gpus: int
    """0: the CPU."""
    nnz: int
    moved: float
    """Bytes that an iteration moves on all PEs."""
    setup: float
    """Without the start of CUDA."""
    start: float
    """Of CUDA, 0 where it ran already."""
    iteration: float


Values = Callable[[Sequence[Solve]], float]


def choices_of(solves: Sequence[Solve], cores: int) -> dict[str, dict[str, Any]]:
    """Return the section `choices` of a machine file, with 95 % intervals of a bootstrap.

    Args:
        solves: of two sizes at least on each place, several times; of the CPU, and of 1, 2, ...
        GPUs if there are any. cores: that the CPU engine had.

    Raises:
        InvalidInputError: the solves of a place have one size only.
    """
    said = f"cpufree model calibrate, {len(solves)} solves"

    def entry(value: Values, unit: str, chosen: Sequence[Solve]) -> dict[str, Any]:
        found, low, high = _with_interval(value, chosen)
        return {"value": found, "unit": unit, "low": low, "high": high, "provenance": said}

    def table(value: Callable[[int, Sequence[Solve]], float]) -> dict[str, Any]:
        found = {str(count): value(count, _on(solves, count)) for count in counts}
        return {"value": found, "unit": "s", "provenance": said}

    cpu, counts = _on(solves, 0), sorted({one.gpus for one in solves if one.gpus})
    choices = {
        "cpu.core_bandwidth": entry(lambda s: _line(s)[1] / cores, "B/s", cpu),
        "cpu.most_cores": {"value": cores, "unit": "1", "provenance": said},
        "cpu.latency": entry(lambda s: _line(s)[0], "s", cpu),
        "setup.cpu_nonzero": entry(lambda s: cores * _setup_of_nonzero(s), "s", cpu),
    }
    if counts:
        started = [max(one.start for one in _on(solves, count)) for count in counts]
        starts = dict(zip(counts, np.cumsum(started).tolist(), strict=True))
        choices |= {
            "setup.context": table(lambda count, _: max(starts[count], 1e-3)),
            "setup.gpu": table(lambda _, s: _small_setup(s)),
            "solver.memory_bandwidth": entry(lambda s: _line(s)[1], "B/s", _on(solves, 1)),
        }
    if 2 in counts:
        choices["system.least_share"] = {
            "value": _least_share(_on(solves, 1), _on(solves, 2)), "unit": "B", "provenance": said,
        }  # fmt: skip
    return choices


def _on(solves: Sequence[Solve], gpus: int) -> list[Solve]:
    return [one for one in solves if one.gpus == gpus]


def _medians(solves: Sequence[Solve]) -> tuple[Solve, Solve]:
    """Return what the smallest and the largest systems took, each in the median."""
    sizes = sorted({one.nnz for one in solves})
    if len(sizes) < 2:
        raise InvalidInputError("solves of one size: latency and bandwidth need two")
    found = []
    for nnz in (sizes[0], sizes[-1]):
        group = [one for one in solves if one.nnz == nnz]
        setup, iteration = (
            float(np.median([getattr(one, name) for one in group]))
            for name in ("setup", "iteration")
        )
        found.append(Solve(group[0].gpus, nnz, group[0].moved, setup, 0.0, iteration))
    return found[0], found[1]


def _line(solves: Sequence[Solve]) -> tuple[float, float]:
    """Return latency [s] and bandwidth [B/s] of an iteration."""
    small, large = _medians(solves)
    slope = max((large.iteration - small.iteration) / (large.moved - small.moved), 1e-15)
    return max(small.iteration - slope * small.moved, 1e-9), 1.0 / slope


def _setup_of_nonzero(solves: Sequence[Solve]) -> float:
    large = _medians(solves)[1]
    return large.setup / large.nnz


def _small_setup(solves: Sequence[Solve]) -> float:
    return _medians(solves)[0].setup


def _least_share(one: Sequence[Solve], two: Sequence[Solve]) -> float:
    """Return the bytes of an iteration on one GPU from which two shorten it by a tenth."""
    (latency, bandwidth), (further, both) = _line(one), _line(two)
    # latency + m / bandwidth = (further + m / both) / 0.9
    gain = 0.9 / bandwidth - 1.0 / both
    return max(1e6, (further - 0.9 * latency) / gain) if gain > 0 else 1e15


def _with_interval(value: Values, solves: Sequence[Solve]) -> tuple[float, float, float]:
    """Return a number, and the middle 95 % of those of solves drawn anew within each size."""
    random = np.random.default_rng(0)
    groups = [[one for one in solves if one.nnz == nnz] for nnz in {one.nnz for one in solves}]
    drawn = [
        value([group[k] for group in groups for k in random.integers(len(group), size=len(group))])
        for _ in range(200)
    ]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return value(solves), float(low), float(high)
