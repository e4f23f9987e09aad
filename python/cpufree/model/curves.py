"""Curves of time over size, and their fits by least squares on the relative error.

Forms: `pieces`, linear with breakpoints, which an information criterion chooses; `power`, a power
law up to where the gap takes over, max(scale m^(1 + exponent), G m) (Groves et al. 2020, table II);
`softplus`, a smooth knee, base + knee ln(1 + exp(G m / knee - 1)) (NVIDIA's NCCL has one of this
form in the tuner of its symmetric kernels). Times in seconds, sizes in bytes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares, nnls

Array = NDArray[np.float64]
FORMS = ("pieces", "power", "softplus")
MOST_BREAKS = 3
LEAST_PER_PIECE = 2
"""Steps from size to size that a piece must have; with one, it would follow any outlier."""


@dataclass(frozen=True)
class Curve:
    """A curve of one of FORMS; `values` are its parameters in the order of `names`.

    `breaks` are the sizes at which the pieces of the form `pieces` meet.
    """

    form: str
    values: tuple[float, ...]
    breaks: tuple[float, ...] = ()

    @property
    def units(self) -> dict[str, str]:
        """The unit of each parameter by its name."""
        if self.form == "power":
            return {"scale": "s/B", "exponent": "1", "G": "s/B"}
        if self.form == "softplus":
            return {"base": "s", "knee": "s", "G": "s/B"}
        return {"start": "s", **{f"slope{k}": "s/B" for k in range(len(self.breaks) + 1)}}

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters by name."""
        return dict(zip(self.units, self.values, strict=True))

    def __call__(self, size: ArrayLike) -> Array:
        """Return the time for messages of so many bytes, 0 included."""
        m = np.asarray(size, dtype=np.float64)
        if self.form == "power":
            scale, exponent, gap = self.values
            return np.maximum(scale * m ** (1.0 + exponent), gap * m)
        if self.form == "softplus":
            base, knee, gap = self.values
            return base + knee * np.logaddexp(0.0, gap * m / knee - 1.0)
        return np.asarray(_columns(m, self.breaks) @ np.asarray(self.values))


def _columns(m: Array, breaks: Sequence[float]) -> Array:
    """Return what multiplies start and slopes, as the last axis."""
    starts, ends = (0.0, *breaks), (*breaks, math.inf)
    pieces = [np.clip(m - a, 0.0, b - a) for a, b in zip(starts, ends, strict=True)]
    return np.stack([np.ones_like(m), *pieces], axis=-1)


def relative_errors(curve: Curve, m: Array, t: Array) -> Array:
    """Return predicted over measured, less 1."""
    return curve(m) / t - 1.0


def fit_pieces(m: Array, t: Array, breaks: tuple[float, ...] = ()) -> Curve:
    """Return the line in pieces that meet at `breaks`; start and slopes are not negative.

    Errors are relative to the curve: relative to what was measured, times that are too short by
    chance would count for more than those that are too long. The curve of a first pass serves.
    """
    columns = _columns(m, breaks)
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


def fit_power(m: Array, t: Array) -> Curve:
    """Return the power law with the gap that follows it where the data have one."""
    best, least = Curve("power", (float(t[0] / m[0]), 0.0, 0.0)), math.inf
    for count in range(2, len(m) + 1):
        slope, level = np.polyfit(np.log(m[:count]), np.log(t[:count]), 1)
        rates = m[count:] / t[count:]
        # Least squares of G m / t - 1.
        gap = float(rates.sum() / (rates**2).sum()) if len(rates) else 0.0
        curve = Curve("power", (float(np.exp(level)), float(slope) - 1.0, gap))
        error = float(np.sum(relative_errors(curve, m, t) ** 2))
        if error < least:
            best, least = curve, error
    return best


def fit_softplus(m: Array, t: Array, first: Curve | None = None) -> Curve:
    """Return the curve with a smooth knee; `first` is where the search begins."""
    guess = first.values if first else (0.7 * t[0], t[0], t[-1] / m[-1])
    begin = np.log(np.maximum(guess, 1e-18))

    def curve(logs: Array) -> Curve:
        return Curve("softplus", tuple(map(float, np.exp(logs))))

    # Beyond e^30 of either side nothing changes that a double could tell.
    bounds = (begin - 30, begin + 30)
    found = least_squares(lambda logs: np.log(curve(logs)(m) / t), begin, bounds=bounds)
    return curve(found.x)


def fit_form(form: str, m: Array, t: Array) -> Curve:
    """Return the best curve of a form."""
    if form == "pieces":
        return fit_best_pieces(m, t)
    return fit_power(m, t) if form == "power" else fit_softplus(m, t)


def refit(curve: Curve, m: Array, t: Array) -> Curve:
    """Return the best curve of the same form, with the same breakpoints."""
    if curve.form == "pieces":
        return fit_pieces(m, t, curve.breaks)
    return fit_power(m, t) if curve.form == "power" else fit_softplus(m, t, curve)


def curve_of(form: str, breaks: Sequence[float], parameters: Mapping[str, float]) -> Curve:
    """Return a curve out of its parameters by name.

    Raises:
        KeyError: one is missing.
    """
    empty = Curve(form, (), tuple(breaks))
    return Curve(form, tuple(float(parameters[name]) for name in empty.units), tuple(breaks))
