"""How far the times of one message vary from repeat to repeat, beside what curves say of medians.

Groves et al. 2020 (section IV-d) saw a roughly fixed difference of best and worst, tens of
microseconds, and left a term for it to later work. Here the difference of the slowest repeat and
the median is a line over the median: what is the same for all sizes, and what grows with the time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from cpufree.machine.communication import Array
from cpufree.model.samples import Samples

LEAST_SIZES = 5
HELD_ENOUGH = 0.95
"""Of the repeats at sizes of the fit, the share that lies within the term."""


@dataclass(frozen=True)
class Variability:
    """By how much a repeat exceeds the median of its size at most: fixed + share × median."""

    fixed: float
    """Seconds, the same for all sizes."""
    share: float
    """Of the median."""
    sizes: int
    """Of the fit."""
    inside: float
    """Share of the repeats at sizes held out that lie within the term."""
    held_out: int
    """Repeats at those sizes."""

    def above(self, median: float) -> float:
        """Return the time that 95 % of the repeats of such a median do not exceed, in seconds."""
        return self.fixed + (1.0 + self.share) * median


def variability(samples: Samples, way: str, mode: str = "single") -> Variability | None:
    """Return how far times of a way vary, None where too few sizes were measured.

    The line is fitted to what 95 % of the repeats of a size do not exceed, by least squares on the
    relative error, both parts not negative; sizes held out take no part in it, and say how often it
    holds.

    Examples:
        >>> from cpufree.model.samples import Kind, Sample, Samples
        >>> kind, m = Kind("host", "host", "host", "put"), [2**k for k in range(3, 10)]
        >>> rows = [Sample("w", kind, "single", 1, n, tuple(1e-6 + 1e-9 * n + 1e-7 * j
        ...         for j in range(11))) for n in m]
        >>> found = variability(Samples("", "", {}, (), tuple(rows)), "w")
        >>> round(found.fixed * 1e9), round(found.share, 3)
        (450, 0.0)
    """
    inside: list[tuple[float, float]] = []
    outside: list[tuple[float, tuple[float, ...]]] = []
    for row in samples.rows:
        if row.way != way or row.mode != mode:
            continue
        median = float(np.median(row.seconds))
        if row.bytes in samples.held_out:
            outside.append((median, row.seconds))
        else:
            inside.append((median, float(np.quantile(row.seconds, HELD_ENOUGH)) - median))
    if len(inside) < LEAST_SIZES:
        return None
    t, above = (np.array(column) for column in zip(*inside, strict=True))
    fixed, share = _line(t, above)
    within = [v <= fixed + (1.0 + share) * median for median, times in outside for v in times]
    held = float(np.mean(within)) if within else float("nan")
    return Variability(fixed, share, len(inside), held, len(within))


def _line(t: Array, above: Array) -> tuple[float, float]:
    """Return the fixed part and the share of t that describe `above` best, none negative."""
    columns = np.column_stack((np.ones_like(t), t)) / t[:, None]
    fixed, share = nnls(columns, above / t)[0]
    return float(fixed), float(share)
