"""Fits of curves: what they recover, and how intervals cover."""

from __future__ import annotations

import numpy as np
import pytest

from cpufree.machine.communication import Curve
from cpufree.model.curves import fit_best_pieces, fit_pieces
from cpufree.model.fit import bootstrap, left_out_errors

SIZES = 2.0 ** np.arange(3, 24)
LINE = Curve("pieces", (5e-6, 0.4e-9))
BENT = Curve("pieces", (5e-6, 1.5e-9, 0.2e-9), (65536.0,))
POWER = Curve("power", (600e-9, -0.8, 0.08e-9))


def noisy(curve: Curve, noise: float, seed: int) -> np.ndarray:
    """Return times of a curve with lognormal noise."""
    return curve(SIZES) * np.exp(noise * np.random.default_rng(seed).standard_normal(len(SIZES)))


@pytest.mark.parametrize("curve", [LINE, BENT], ids=["line", "bent"])
def test_fit_without_noise_is_the_curve(curve: Curve) -> None:
    found = fit_best_pieces(SIZES, curve(SIZES))
    assert found.breaks == curve.breaks
    np.testing.assert_allclose(found.values, curve.values, rtol=1e-5)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [0.01, 0.05])
@pytest.mark.parametrize("curve", [LINE, BENT], ids=["line", "bent"])
def test_fit_recovers_the_curve_within_the_noise(curve: Curve, noise: float, seed: int) -> None:
    found = fit_best_pieces(SIZES, noisy(curve, noise, seed))
    assert np.max(np.abs(found(SIZES) / curve(SIZES) - 1.0)) < 3 * noise


@pytest.mark.parametrize("seed", range(6))
def test_information_criterion_finds_no_break_in_a_line(seed: int) -> None:
    assert len(fit_best_pieces(SIZES, noisy(LINE, 0.02, seed)).breaks) <= 1


def test_information_criterion_finds_the_break() -> None:
    assert fit_best_pieces(SIZES, noisy(BENT, 0.02, 1)).breaks == (65536.0,)


@pytest.mark.parametrize("noise", [0.02, pytest.param(0.1, marks=pytest.mark.slow)])
@pytest.mark.thorough
def test_intervals_cover_in_about_95_of_100_cases(noise: float) -> None:
    covered = np.zeros(2)
    cases = 150
    for seed in range(cases):
        t = noisy(LINE, noise, seed)
        found = fit_pieces(SIZES, t)
        values = np.array([one.values for one in bootstrap(found, SIZES, t, seed)])
        low, high = np.quantile(values, (0.025, 0.975), axis=0)
        covered += (low <= LINE.values) & (np.array(LINE.values) <= high)
    assert np.all(covered / cases > 0.90) and np.all(covered / cases < 0.99)


def test_sizes_left_out_are_not_seen_by_the_fit() -> None:
    t = LINE(SIZES)
    t[10] *= 3.0  # nothing else says so: the error there is that of the line
    errors = left_out_errors(SIZES, t)
    assert errors[9] == pytest.approx(1 / 3 - 1, rel=0.05)


def test_power_law_gives_way_to_the_gap() -> None:
    assert float(POWER(2.0**23)) == pytest.approx(0.08e-9 * 2.0**23)
    assert float(POWER(8.0)) == pytest.approx(600e-9 * 8**0.2)


def test_no_curve_says_that_messages_take_no_time() -> None:
    m = np.array([8.0, 64, 512, 1024, 4096, 32768])
    falling = np.array([1.2e-4, 5.3e-5, 7.0e-6, 1.5e-9, 1.6e-6, 3.3e-5])
    curve = fit_best_pieces(m, falling)
    assert (curve(m) > 0.0).all()
    assert all(np.isfinite(drawn(m)).all() for drawn in bootstrap(curve, m, falling))
