"""A machine file held against sizes that no fit has seen, and where two ways cross."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cpufree.errors import InvalidInputError
from cpufree.machine.communication import Array, Communication, WayRecord
from cpufree.model.fit import medians
from cpufree.model.patterns.validate import BesideMeasured, PatternCheck, check_patterns
from cpufree.model.samples import Samples
from cpufree.model.use import by_equation, pipelined, predict, single

LARGEST_ERROR = 0.10
LEAST_R2 = 0.95
LARGEST_FACTOR = 1.5
LEAST_SIZES = 3
SMALL = 8192
"""Bytes up to which the equations of LogGOP are held against an error of LARGEST_ERROR."""
LARGEST_ERROR_ABOVE = 0.25


@dataclass(frozen=True)
class Check(BesideMeasured):
    """Predicted against measured, at sizes held out."""

    way: str
    kind: str
    """single or pipelined; or equation, of small or of large messages."""
    sizes: Array
    measured: Array
    predicted: Array
    limit: float = LARGEST_ERROR
    least_r2: float | None = LEAST_R2
    """None: R² is none of the limits."""
    inside: int | None = None
    """How many measured times lie in the 95 % interval of a prediction; None: it has none."""

    @property
    def passed(self) -> bool:
        """Whether error and R² are within their limits."""
        return self.error <= self.limit and (self.least_r2 is None or self.r2 >= self.least_r2)


@dataclass(frozen=True)
class Crossing:
    """The size from which the other one of two ways is the faster one; None: no such size."""

    ways: tuple[str, str]
    measured: float | None
    predicted: float | None

    @property
    def passed(self) -> bool:
        """Whether both are within a factor, or agree that there is none."""
        if self.measured is None or self.predicted is None:
            return self.measured is self.predicted
        larger = max(self.measured, self.predicted)
        return larger / min(self.measured, self.predicted) <= LARGEST_FACTOR


@dataclass(frozen=True)
class Validation:
    """All checks of a machine file."""

    checks: tuple[Check, ...]
    """Of curves."""
    crossings: tuple[Crossing, ...]
    patterns: tuple[PatternCheck, ...] = ()
    equations: tuple[Check, ...] = ()
    """Of the ways whose parameters are all known."""

    @property
    def passed(self) -> bool:
        """Whether all have passed."""
        return all(self.verdicts)

    @property
    def verdicts(self) -> list[bool]:
        """Whether each check has passed; patterns that are no test of the model are left out."""
        return [passed for group in self.groups.values() for passed in group]

    @property
    def groups(self) -> dict[str, list[bool]]:
        """The verdicts by what is checked."""
        crossing = [one for one in self.crossings if one.measured is not None]
        apart = [one for one in self.crossings if one.measured is None]
        return {
            "curves": [one.passed for one in self.checks],
            "equations": [one.passed for one in self.equations],
            "crossings": [one.passed for one in crossing],
            "pairs that do not cross": [one.passed for one in apart],
            "patterns": [one.passed for one in self.patterns if not one.aside],
        }

    @property
    def coverage(self) -> float | None:
        """The share of measured times that lie in 95 % intervals; None: there are no intervals."""
        known = [one for one in self.checks if one.inside is not None]
        if not known:
            return None
        return sum(one.inside or 0 for one in known) / sum(len(one.sizes) for one in known)

    @property
    def told(self) -> str:
        """How many of each group have passed, in words, and what intervals have."""
        groups = self.groups.items()
        found = [f"{sum(group)} of {len(group)} {name}" for name, group in groups if group]
        if self.coverage is not None:
            found.append(f"95 % intervals have {self.coverage:.0%} of the times")
        return ", ".join(found)


def validate(found: Communication, samples: Samples) -> Validation:
    """Hold a machine file against the sizes of samples that are held out.

    Raises:
        InvalidInputError: no way is in both, or too few sizes are held out.
    """
    checks = []
    ways = [way for way in samples.ways() if way in found.ways]
    if not ways:
        raise InvalidInputError(
            f"{samples.origin}: none of its ways ({', '.join(samples.ways()) or 'none'}) is in "
            f"{found.origin or 'the machine file'}"
        )
    same_run = found.provenance.get("sha256", "") == samples.digest
    for way in ways:
        record = found.ways[way]
        for kind, mode, curve in (("single", "single", single), ("pipelined", "window", pipelined)):
            messages = record.curves[kind].messages if kind in record.curves else 0
            there = medians(samples, way, mode, True, messages if mode == "window" else 0)
            predicted = None if there is None else curve(record, there.sizes)
            if there is None or predicted is None:
                continue
            if len(there.sizes) < LEAST_SIZES:
                raise InvalidInputError(
                    f"{samples.origin}: way {way}, mode {mode}: {len(there.sizes)} sizes are held "
                    f"out, and validation needs {LEAST_SIZES}: measure more sizes"
                )
            told = predict(found, way, there.sizes, kind == "pipelined", same_run)
            inside = None
            if told.low is not None and told.high is not None:
                those = (told.low <= there.seconds) & (there.seconds <= told.high)
                inside = int(np.count_nonzero(those))
            one = Check(way, kind, there.sizes, there.seconds, predicted, inside=inside)
            checks.append(one)
    if not checks:
        raise InvalidInputError(f"{samples.origin}: no size of a known way is held out")
    pairs = itertools.combinations(ways, 2)
    crossings = tuple(_crossing(found, samples, *pair) for pair in pairs)
    equations = tuple(one for way in ways for one in _equations(found.ways[way], way, samples))
    return Validation(tuple(checks), crossings, check_patterns(found, samples), equations)


def _equations(record: WayRecord, way: str, samples: Samples) -> Iterator[Check]:
    """Yield the checks of the equation of a way: of small and of large messages."""
    there = medians(samples, way, "single", True)
    if there is None or (found := by_equation(record, there.sizes)) is None:
        return
    for name, limit, those in (
        ("equation, small", LARGEST_ERROR, there.sizes <= SMALL),
        ("equation, large", LARGEST_ERROR_ABOVE, there.sizes > SMALL),
    ):
        if np.count_nonzero(those) >= LEAST_SIZES:
            sizes, measured = there.sizes[those], there.seconds[those]
            yield Check(way, name, sizes, measured, found[those], limit, None)


def _crossing(found: Communication, samples: Samples, one: str, other: str) -> Crossing:
    both = [medians(samples, way, "single", None) for way in (one, other)]
    if both[0] is None or both[1] is None:
        return Crossing((one, other), None, None)
    sizes, a, b = np.intersect1d(both[0].sizes, both[1].sizes, return_indices=True)
    measured = crossing(sizes, both[0].seconds[a] / both[1].seconds[b])
    dense = np.geomspace(sizes[0], sizes[-1], 2000)
    times = [single(found.ways[way], dense) for way in (one, other)]
    predicted = None
    if times[0] is not None and times[1] is not None:
        predicted = crossing(dense, times[0] / times[1])
    return Crossing((one, other), measured, predicted)


def crossing(sizes: Array, ratio: Array) -> float | None:
    """Return the size at which a ratio passes 1, once and for all; None where it does not.

    Where noise has it pass several times, it is the size that puts the fewest sizes on the wrong
    side, by the logarithm of their ratios.

    >>> sizes = np.array([8.0, 16.0, 32.0, 64.0])
    >>> round(float(crossing(sizes, np.array([0.5, 0.5, 2.0, 2.0]))), 3)
    22.627
    """
    logs = np.log(ratio)
    # sides[k]: what speaks for a change of sign between sizes k - 1 and k; k = 0 or n for none.
    before = np.concatenate([[0.0], np.cumsum(logs)])
    sides = np.abs((before[-1] - before) - before)
    k = int(np.argmax(sides))
    if k in (0, len(sizes)):
        return None
    left, right = logs[k - 1], logs[k]
    share = left / (left - right) if left * right < 0 else 0.5
    x, y = np.log(sizes[k - 1]), np.log(sizes[k])
    return float(np.exp(x + share * (y - x)))
