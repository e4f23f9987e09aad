"""How to measure: interleaved in random order, warm-up first.

Who is faster, and what is noise, `cpufree.bench.core.noise` says.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict, TypeVar

T = TypeVar("T")
FEWEST_ROUNDS = 5


class Spread(TypedDict):
    """Median, smallest and largest of repeated measurements."""

    median: float
    min: float
    max: float


def spread(values: Sequence[float]) -> Spread:
    """Return median, smallest and largest."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def interleave(
    tasks: Mapping[str, Callable[[], T]], rounds: int, rng: random.Random, pause: float
) -> dict[str, list[T]]:
    """Call every task once to warm up, then once per round, in a new random order each round.

    Returns what the calls of the rounds returned; element k of each list is of round k, so that
    ratios of the same round compare what was measured at nearly the same time. Each call comes
    `pause` seconds after the one before.
    """
    if rounds < FEWEST_ROUNDS:
        raise ValueError(f"{rounds} rounds are too few to tell noise: give {FEWEST_ROUNDS} or more")
    for task in tasks.values():
        task()
    results: dict[str, list[T]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name in rng.sample(list(tasks), len(tasks)):
            time.sleep(pause)
            results[name].append(tasks[name]())
    return results


def seconds(call: Callable[[], object], loops: int = 1) -> float:
    """Return the seconds of one call, the mean of `loops` in a row."""
    begin = time.perf_counter()
    for _ in range(loops):
        call()
    return (time.perf_counter() - begin) / loops


def paired(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Return the ratio of each round."""
    return [a / b for a, b in zip(numerators, denominators, strict=True)]


def judge(ratios: Sequence[float], *, at_most: float | None = None, at_least: float = 0.0) -> str:
    """Return "met" where all rounds keep the bound, "missed" where none does, else "unclear"."""
    kept = [ratio >= at_least and (at_most is None or ratio <= at_most) for ratio in ratios]
    return "met" if all(kept) else "unclear" if any(kept) else "missed"
