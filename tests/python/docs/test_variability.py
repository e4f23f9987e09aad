"""How far repeats vary: the term out of samples of which it is known."""

from __future__ import annotations

import numpy as np
import pytest
from paths import ROOT

from cpufree.model.samples import Kind, Sample, Samples, read_samples
from tools.results.papers.variability import variability

KIND = Kind("host", "host", "host", "put")
SIZES = [2**k for k in range(3, 21)]


def made(fixed: float, share: float, seed: int = 1, held: tuple[int, ...] = ()) -> Samples:
    """Return samples whose repeats are even between the median and the term above it."""
    random, rows = np.random.default_rng(seed), []
    for size in SIZES:
        base = 2e-6 + 1e-10 * size
        extra = (fixed + share * base) * random.uniform(-1.0, 1.0, 400)
        rows.append(Sample("w", KIND, "single", 1, size, tuple(base + extra)))
    return Samples("", "", {}, held, tuple(rows))


@pytest.mark.parametrize(("fixed", "share"), [(1e-6, 0.0), (0.0, 0.2), (1e-6, 0.1)])
def test_the_term_is_that_of_the_samples(fixed: float, share: float) -> None:
    held = (64, 4096)
    found = variability(made(fixed, share, held=held), "w")
    assert found is not None
    assert (found.sizes, found.held_out) == (len(SIZES) - 2, 800)
    for median in (2e-6, 1e-4):  # 95 % of the repeats: nine tenths of the way up
        expected = median + 0.9 * (fixed + share * median)
        assert found.above(median) == pytest.approx(expected, rel=0.1)
    assert found.inside == pytest.approx(0.95, abs=0.03)


def test_few_sizes_tell_nothing() -> None:
    few = made(1e-6, 0.0)
    assert variability(few, "another way") is None
    assert variability(Samples("", "", {}, (), few.rows[:4]), "w") is None


def test_the_term_of_the_host_is_fixed_and_that_of_a_device_small() -> None:
    file = ROOT / "bench/results/model-2x-2026-11-26/samples.jsonl"
    samples = read_samples(file)
    host, device = (variability(samples, way) for way in ("host-copy", "device-store-block"))
    assert host is not None
    assert device is not None
    assert host.fixed > 50 * device.fixed
    assert min(host.inside, device.inside) > 0.8
