"""Patterns of messages held against what the curves of messages between two PEs predict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cpufree.machine.communication import Array, Communication
from cpufree.model.patterns.predict import predict_pattern
from cpufree.model.samples import HOST_DRIVEN, PatternSample, Samples

LEAST_R2 = 0.95
"""Of the logarithms, over all sizes and numbers of PEs."""
LARGEST_ERROR = 0.25
"""Median; of what overlaps, of its best round."""


class BesideMeasured:
    """Predicted times beside measured ones."""

    measured: Array
    predicted: Array

    @property
    def error(self) -> float:
        """The median of the relative errors."""
        return float(np.median(np.abs(self.predicted / self.measured - 1.0)))

    @property
    def r2(self) -> float:
        """The coefficient of determination of the logarithms."""
        logs, residuals = np.log(self.measured), np.log(self.predicted / self.measured)
        total = float(np.sum((logs - logs.mean()) ** 2))
        return 1.0 - float(np.sum(residuals**2)) / total if total > 0 else 0.0


@dataclass(frozen=True)
class PatternCheck(BesideMeasured):
    """A pattern on all numbers of PEs and sizes that were measured."""

    pattern: str
    where: str
    """threads, GPUs, or shared GPUs."""
    pes: tuple[int, ...]
    sizes: tuple[int, ...]
    measured: Array
    predicted: Array
    aside: str = ""
    """Why it is no test of the model; "" where it is."""

    @property
    def passed(self) -> bool:
        """Whether it is within its limits: of the error, and where nothing overlaps, of R²."""
        if self.pattern.startswith("product") and "overlapped" not in self.pattern:
            return self.r2 >= LEAST_R2
        return self.error <= LARGEST_ERROR


def check_patterns(found: Communication, samples: Samples) -> tuple[PatternCheck, ...]:
    """Return the patterns of samples beside their predictions, those that can be predicted."""
    groups: dict[tuple[str, str, str], list[tuple[PatternSample, float]]] = {}
    for sample in samples.patterns:
        predicted = predict_pattern(found, sample)
        if predicted is not None and predicted > 0.0:
            key = (sample.pattern, _where(sample), _aside(sample, samples.machine))
            groups.setdefault(key, []).append((sample, predicted))
    return tuple(
        PatternCheck(
            pattern,
            where,
            tuple(sample.pes for sample, _ in group),
            tuple(sample.bytes for sample, _ in group),
            np.array([_measured(sample) for sample, _ in group]),
            np.array([predicted for _, predicted in group]),
            aside,
        )
        for (pattern, where, aside), group in groups.items()
    )


def _measured(sample: PatternSample) -> float:
    overlapped = "overlapped" in sample.pattern
    return float(min(sample.seconds) if overlapped else np.median(sample.seconds))


def _where(sample: PatternSample) -> str:
    if sample.engine == "threads":
        return "threads"
    return "GPUs" if len(set(sample.gpus)) == sample.pes else "shared GPUs"


def _aside(sample: PatternSample, machine: Mapping[str, object]) -> str:
    """Return why the curves of two PEs cannot be held against a pattern.

    Curves are of PEs that have a core each. Where PEs take turns on a core, a message waits until
    its receiver has its turn, and data may be in the cache of the core that both are on.
    """
    cores = machine.get("cores")
    driven = sample.pattern.endswith(HOST_DRIVEN)
    threads = sample.pes * (2 if "overlapped" in sample.pattern and not driven else 1)
    on_cores = driven or sample.engine == "threads"
    if on_cores and isinstance(cores, int) and threads > cores:
        return f"threads take turns on {cores} cores"
    return ""
