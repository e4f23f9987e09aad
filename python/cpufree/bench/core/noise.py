"""How far measurements spread, and whether one contender is faster than another.

The rule, after Mann and Whitney 1947 ("On a test of whether one of two random variables is
stochastically larger than the other"): *faster* is said where the exact two-sided test of the two
samples gives p ≤ 0.01, and the medians differ by 2 % or more. With five repeats each the first
means that the ranges do not overlap; with more it forgives as many outliers as chance would make.
The test sees the noise within one run of the processes. Where memory lies differs from run to run,
and makes some per cent of difference by itself: hence the second condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

SIGNIFICANCE = 0.01
LEAST_DIFFERENCE = 0.02
FEWEST = 5
FASTER, SLOWER, NOISE, FEW = "faster", "slower", "within noise", "too few repeats"


@dataclass(frozen=True)
class Spread:
    """Median, quartiles and range of repeated measurements."""

    count: int
    median: float
    low: float
    high: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of one value or more; quartiles are interpolated linearly."""
        least, low, median, high, most = np.percentile(values, (0, 25, 50, 75, 100)).tolist()
        return cls(len(values), median, low, high, least, most)


def compare(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Return whether our times are FASTER or SLOWER than theirs, NOISE, or FEW to tell."""
    from scipy.stats import mannwhitneyu

    if min(len(ours), len(theirs)) < FEWEST:
        return FEW
    mine, other = float(np.median(ours)), float(np.median(theirs))
    if abs(mine - other) < LEAST_DIFFERENCE * max(mine, other):
        return NOISE
    p = mannwhitneyu(ours, theirs, alternative="two-sided", method="exact").pvalue
    if p > SIGNIFICANCE:
        return NOISE
    return FASTER if mine < other else SLOWER


def winner(times: Mapping[str, Sequence[float]]) -> tuple[str, str]:
    """Return who has the smallest median, and "wins" if it is faster than every other.

    Else the second word says why not.

    Raises ValueError where there is none.
    """
    first = min(times, key=lambda name: float(np.median(times[name])))
    verdicts = {compare(times[first], times[name]) for name in times if name != first}
    if not verdicts:
        return first, "alone"
    if FEW in verdicts:
        return first, FEW
    return first, "wins" if verdicts == {FASTER} else NOISE


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive values."""
    return float(np.exp(np.mean(np.log(values))))
