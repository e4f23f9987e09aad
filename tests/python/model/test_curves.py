"""Fits of curves: what they recover, how intervals cover, and which form is chosen."""

from __future__ import annotations

import numpy as np
import pytest

from cpufree.model.curves import (
    Curve,
    fit_best_pieces,
    fit_form,
    fit_pieces,
    fit_power,
    fit_softplus,
)
from cpufree.model.fit import Medians, bootstrap, fit_curve, left_out_errors

SIZES = 2.0 ** np.arange(3, 24)
LINE = Curve("pieces", (5e-6, 0.4e-9))
BENT = Curve("pieces", (5e-6, 1.5e-9, 0.2e-9), (65536.0,))
POWER = Curve("power", (600e-9, -0.8, 0.08e-9))
KNEE = Curve("softplus", (4e-6, 20e-6, 0.3e-9))


def noisy(curve: Curve, noise: float, seed: int) -> np.ndarray:
    """Return times of a curve with lognormal noise."""
    return curve(SIZES) * np.exp(noise * np.random.default_rng(seed).standard_normal(len(SIZES)))


@pytest.mark.parametrize("curve", [LINE, BENT, POWER, KNEE], ids=lambda c: c.form)
def test_fit_without_noise_is_the_curve(curve: Curve) -> None:
    found = fit_form(curve.form, SIZES, curve(SIZES))
    assert found.breaks == curve.breaks
    np.testing.assert_allclose(found.values, curve.values, rtol=1e-5)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [0.01, 0.05])
@pytest.mark.parametrize("curve", [LINE, BENT, KNEE], ids=["line", "bent", "softplus"])
def test_fit_recovers_the_curve_within_the_noise(curve: Curve, noise: float, seed: int) -> None:
    found = fit_form(curve.form, SIZES, noisy(curve, noise, seed))
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


@pytest.mark.parametrize(
    ("curve", "name"), [(BENT, "single"), (KNEE, "single"), (POWER, "pipelined")],
    ids=lambda value: value if isinstance(value, str) else value.form,
)  # fmt: skip
def test_wrong_forms_are_rejected_by_their_error_at_sizes_left_out(curve: Curve, name: str) -> None:
    t = noisy(curve, 0.01, 3)
    found = fit_curve(name, Medians(SIZES, t, 1), "a test")
    assert found.curve.form == curve.form
    others = [error for form, error in found.errors.items() if form != curve.form]
    assert others and all(error > 1.05 * found.errors[curve.form] for error in others)


def test_sizes_left_out_are_not_seen_by_the_fit() -> None:
    t = LINE(SIZES)
    t[10] *= 3.0  # nothing else says so: the error there is that of the line
    errors = left_out_errors("pieces", SIZES, t)
    assert errors[9] == pytest.approx(1 / 3 - 1, rel=0.05)


def test_power_law_gives_way_to_the_gap() -> None:
    found = fit_power(SIZES, POWER(SIZES))
    large = SIZES[-1]
    assert float(found(large)) == pytest.approx(found.values[2] * large)
    assert float(found(8.0)) == pytest.approx(600e-9 * 8**0.2)


def test_knee_begins_at_its_base_and_ends_in_the_gap() -> None:
    found = fit_softplus(SIZES, KNEE(SIZES))
    slope = float(found(2.0**26) - found(2.0**25)) / 2**25
    assert slope == pytest.approx(0.3e-9, rel=1e-3)


def test_no_curve_says_that_messages_take_no_time() -> None:
    m = np.array([8.0, 64, 512, 1024, 4096, 32768])
    falling = np.array([1.2e-4, 5.3e-5, 7.0e-6, 1.5e-9, 1.6e-6, 3.3e-5])
    curve = fit_best_pieces(m, falling)
    assert (curve(m) > 0.0).all()
    assert all(np.isfinite(drawn(m)).all() for drawn in bootstrap(curve, m, falling))
