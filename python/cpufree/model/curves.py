"""Fits of lines in pieces to times over sizes, by least squares on the relative error.

Smooth knees and power laws of windows were fitted beside them: on two H100 and four H200 they met
no size held out that pieces did not, and took four fifths of the time of a fit.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.optimize import nnls

from cpufree.machine.communication import Array, Curve, columns_of

MOST_BREAKS = 3
LEAST_PER_PIECE = 2
"""Steps from size to size that a piece must have; with one, it would follow any outlier."""


def relative_errors(curve: Curve, m: Array, t: Array) -> Array:
    """Return predicted over measured, less 1."""
    return curve(m) / t - 1.0


def fit_pieces(m: Array, t: Array, breaks: tuple[float, ...] = ()) -> Curve:
    """Return the line in pieces that meet at `breaks`; start and slopes are not negative.

    Errors are relative to the curve: relative to what was measured, times that are too short by
    chance would count for more than those that are too long. The curve of a first pass serves.
    """
    columns = columns_of(m, breaks)
    weights, values = 1.0 / t, np.zeros(columns.shape[1])
    for _ in range(2):
        weighted = columns * weights[:, None]
        scale = np.maximum(np.linalg.norm(weighted, axis=0), 1e-300)
        values = nnls(weighted / scale, t * weights)[0] / scale
        fitted = columns @ values
        weights = 1.0 / np.where(fitted > 0.0, fitted, t)
    return Curve("pieces", tuple(map(float, values)), tuple(breaks))


def fit_best_pieces(m: Array, t: Array) -> Curve:
    """Return the line in pieces with the least BIC among the sizes as breakpoints.

    Breakpoints are added one after another, each where it serves best, and moved once more when the
    next one is there. Source of the criterion: Schwarz 1978, Estimating the Dimension of a Model.
    """
    places: tuple[int, ...] = ()
    best = fit_pieces(m, t)
    least = bic(best, m, t, 2)
    for count in range(1, MOST_BREAKS + 1):
        for moved in (None, *places):
            kept = tuple(place for place in places if place != moved)
            places = _best_added(m, t, kept) or places
        if len(places) < count:
            break
        curve = fit_pieces(m, t, tuple(float(m[k]) for k in places))
        score = bic(curve, m, t, 2 + 2 * count)
        if score < least:
            best, least = curve, score
    return best


def _best_added(m: Array, t: Array, kept: tuple[int, ...]) -> tuple[int, ...]:
    """Return the places of breakpoints with the best one more, () where there is room for none."""
    best: tuple[int, ...] = ()
    least = math.inf
    for place in range(1, len(m) - 1):
        places = tuple(sorted({*kept, place}))
        edges = (0, *places, len(m) - 1)
        close = any(b - a < LEAST_PER_PIECE for a, b in itertools.pairwise(edges))
        if len(places) == len(kept) or close:
            continue
        curve = fit_pieces(m, t, tuple(float(m[k]) for k in places))
        # Where times fall, pieces of no time at all would be nearest.
        if not (curve(m) > 0.0).all():
            continue
        error = float(np.sum(relative_errors(curve, m, t) ** 2))
        if error < least:
            best, least = places, error
    return best


def bic(curve: Curve, m: Array, t: Array, parameters: int) -> float:
    """Return the Bayesian information criterion of a fit, for relative errors that are normal."""
    n = len(m)
    mean = float(np.mean(relative_errors(curve, m, t) ** 2))
    return n * math.log(max(mean, 1e-24)) + parameters * math.log(n)
