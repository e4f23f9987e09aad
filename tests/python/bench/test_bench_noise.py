"""Statistics of benchmarks: spreads, who is faster, and how often none is said to be."""

from __future__ import annotations

import numpy as np
import pytest

from cpufree.bench.core.noise import Spread, compare, geometric_mean, winner


def test_spread_has_median_quartiles_and_range() -> None:
    assert Spread.of([5.0, 1.0, 4.0, 2.0, 3.0]) == Spread(5, 3.0, 2.0, 4.0, 1.0, 5.0)


def test_quartiles_are_interpolated() -> None:
    spread = Spread.of([1.0, 2.0, 3.0, 4.0])
    assert (spread.low, spread.median, spread.high) == (1.75, 2.5, 3.25)


def test_geometric_mean_of_a_ratio_and_its_inverse_is_one() -> None:
    assert geometric_mean([4.0, 0.25]) == pytest.approx(1.0)
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)


def test_separate_ranges_of_five_are_a_difference() -> None:
    assert compare([1.0, 1.1, 1.2, 1.3, 1.4], [1.5, 1.6, 1.7, 1.8, 1.9]) == "faster"
    assert compare([1.5, 1.6, 1.7, 1.8, 1.9], [1.0, 1.1, 1.2, 1.3, 1.4]) == "slower"


def test_overlapping_ranges_of_five_are_noise() -> None:
    # The exact two-sided p of one exchange among five and five is 4/252 = 0.016.
    assert compare([1.0, 1.1, 1.2, 1.3, 1.55], [1.5, 1.6, 1.7, 1.8, 1.9]) == "within noise"


def test_an_outlier_among_many_is_forgiven() -> None:
    ours = [1.0 + 0.01 * k for k in range(9)] + [9.0]
    assert compare(ours, [2.0 + 0.01 * k for k in range(10)]) == "faster"


def test_a_difference_below_two_per_cent_is_noise_however_certain() -> None:
    rng = np.random.default_rng(1)
    ours = 1.000 + 1e-6 * rng.random(30)
    assert compare(ours, 1.019 * ours) == "within noise"
    assert compare(ours, 1.025 * ours) == "faster"


def test_four_repeats_are_too_few_to_tell() -> None:
    assert compare([1.0, 1.1, 1.2, 1.3], [2.0, 2.1, 2.2, 2.3]) == "too few repeats"


def test_equal_measurements_are_noise() -> None:
    assert compare([1.0] * 5, [1.0] * 5) == "within noise"


def test_planted_difference_is_found_in_noise() -> None:
    rng = np.random.default_rng(2)
    found = 0
    for _ in range(200):
        ours, theirs = np.exp(0.03 * rng.standard_normal((2, 7)))
        found += compare(ours, 1.15 * theirs) == "faster"
    assert found >= 190


def test_equals_are_told_apart_in_at_most_one_of_a_hundred_cases() -> None:
    rng = np.random.default_rng(3)
    words = [compare(*np.exp(0.1 * rng.standard_normal((2, 7)))) for _ in range(1000)]
    # 10 expected at p = 0.01; 20 would come by chance once in 300 runs, and the seed is fixed.
    assert sum(word != "within noise" for word in words) <= 20


def test_nobody_wins_among_equals() -> None:
    rng = np.random.default_rng(4)
    wins = 0
    for _ in range(300):
        times = {name: list(np.exp(0.1 * rng.standard_normal(7))) for name in "abcde"}
        wins += winner(times)[1] == "wins"
    assert wins <= 3


def test_winner_is_faster_than_every_other() -> None:
    times = {"a": [2.0, 2.1, 2.2, 2.3, 2.4], "b": [1.0, 1.1, 1.2, 1.3, 1.4]}
    assert winner(times) == ("b", "wins")
    times["c"] = [1.15, 1.25, 1.35, 1.45, 1.55]
    assert winner(times) == ("b", "within noise")


def test_winner_alone_is_said_to_be_alone() -> None:
    assert winner({"a": [1.0, 2.0, 3.0, 4.0, 5.0]}) == ("a", "alone")
