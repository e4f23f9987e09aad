"""Order of rows: bands and lengths, and when auto reorders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from grid_matrices import grid, shuffled

from cpufree.engines.partition_gain import gain_on
from cpufree.errors import InvalidInputError
from cpufree.matrix.load import as_csr
from cpufree.matrix.problem import CsrMatrix
from cpufree.partition import methods as partition_module
from cpufree.partition.cost import Gain
from cpufree.partition.methods import (
    WINDOW,
    by_length,
    choose_order,
    mean_distance,
    padding,
    partition,
    rcm,
    starts_of,
)


def gain(search: float = 1e-6, ghost: float = 1e-8, cut: float = 1e-8) -> Gain:
    """Return costs of a partition and of the search for one."""
    return Gain(ghost, cut, search, 1000.0)


def test_rcm_recovers_the_band_of_a_shuffled_chain() -> None:
    chain = as_csr(sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(500, 500)).tocsr())
    A = shuffled(chain)
    assert mean_distance(A, None, None) > 50
    assert mean_distance(A, None, rcm(A)) == pytest.approx(mean_distance(chain, None, None))


def test_rcm_order_is_a_permutation_grouped_by_part() -> None:
    A = shuffled(grid(20, 20))
    part = partition(A, 3, "metis").part
    order = rcm(A, part)
    assert order.dtype == np.int32
    assert np.array_equal(np.sort(order), np.arange(400))
    assert np.all(np.diff(part[order]) >= 0)


def test_rcm_inside_parts_ignores_couplings_between_parts() -> None:
    # Even and odd rows belong to different PEs; inside each the chain is i, i + 2, i + 4 ...
    A = as_csr(sp.diags([1.0, 1.0, 4.0, 1.0, 1.0], range(-2, 3), shape=(100, 100)).tocsr())
    A = shuffled(A, seed=5)
    part = partition(A, 2, "metis").part
    inside = A.to_scipy().tocoo()
    place = np.empty(100, int)
    place[rcm(A, part)] = np.arange(100)
    keep = part[inside.row] == part[inside.col]
    apart = np.abs(place[inside.row] - place[inside.col])[keep]
    assert apart.max() <= 4


def test_mean_distance_counts_places_inside_parts_only() -> None:
    # Rows 0 2 | 1 3 of a full 4 × 4 matrix: in each part 4 entries, two of them 1 apart.
    A = as_csr(np.ones((4, 4)))
    assert mean_distance(A, np.array([0, 1, 0, 1], np.int32), None) == pytest.approx(0.5)
    assert mean_distance(A, None, None) == pytest.approx(20 / 16)


def test_auto_keeps_a_small_matrix_as_it_is() -> None:
    ordering = choose_order(shuffled(grid(20, 20)), None)
    assert ordering.order is None
    assert "cache" in ordering.why


def test_auto_reorders_a_large_shuffled_matrix() -> None:
    A = shuffled(grid(500, 400))
    ordering = choose_order(A, None)
    assert ordering.order is not None
    assert mean_distance(A, None, ordering.order) < 0.05 * mean_distance(A, None, None)


def test_auto_reorders_where_that_can_save_what_it_takes() -> None:
    A = shuffled(grid(500, 400))
    few = gain_on("cuda_p2p", expected=400)
    ordering = choose_order(A, None, "auto", few)
    assert ordering.order is None
    assert "RCM takes longer than it can save in 400 iterations" in ordering.why
    assert choose_order(A, None, "rcm", few).order is not None
    for gain in (
        gain_on("cuda_p2p", solves=100, expected=400),
        gain_on("cpu_threads", expected=400),
    ):
        assert choose_order(A, None, "auto", gain).order is not None


def test_auto_keeps_a_large_matrix_with_a_good_order() -> None:
    ordering = choose_order(grid(500, 400), None)
    assert ordering.order is None
    assert "natural" in ordering.why


def test_auto_keeps_an_order_that_rcm_does_not_improve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_module, "NEAR_DIAGONAL", 3)
    ordering = choose_order(grid(20, 20), None)
    assert ordering.order is None
    assert "RCM" in ordering.why


def uneven(n: int) -> CsrMatrix:
    """Return a matrix near the diagonal, every third row of which has 9 entries, the others 3."""
    reach = np.where(np.arange(n) % 3 == 0, 4, 1)
    rows = np.repeat(np.arange(n), 2 * reach + 1)
    steps = np.concatenate([np.arange(-k, k + 1) for k in reach])
    columns = np.clip(rows + steps, 0, n - 1)
    a = sp.csr_array((np.ones(rows.size), (rows, columns)), shape=(n, n))
    a.sum_duplicates()
    return as_csr(a)


def test_padding_is_what_slices_hold_over_the_rows() -> None:
    assert padding(starts_of(np.full(64, 7))) == 1.0
    assert padding(starts_of(np.array([8] + 31 * [4]))) == pytest.approx(32 * 8 / 132)
    assert padding(starts_of(np.zeros(40, np.int64))) == 1.0


def test_rows_of_equal_lengths_come_together_within_windows() -> None:
    A = uneven(2000)
    order = by_length(A, None, None)
    assert order is not None
    assert np.array_equal(np.sort(order), np.arange(2000))
    assert np.abs(order - np.arange(2000)).max() < WINDOW
    lengths = np.diff(A.indptr)
    assert padding(starts_of(lengths[order])) < 1.1 < 1.4 < padding(A.indptr)
    first = order[: WINDOW // 3 - 1]  # long rows of the first window, in sequence
    assert np.all(np.diff(first) > 0)


def test_rows_that_come_together_stay_in_their_parts() -> None:
    part = (np.arange(2000) // 700).astype(np.int32)
    order = by_length(uneven(2000), part, None)
    assert order is not None
    assert np.all(np.diff(part[order]) >= 0)


def test_long_rows_stay_where_they_are() -> None:
    n = 300
    a = sp.csr_array(np.tril(np.ones((n, n))))  # rows of 1 to n entries
    assert by_length(as_csr(a[np.random.default_rng(1).permutation(n)]), None, None) is None


def test_rows_of_even_lengths_stay_where_they_are() -> None:
    assert by_length(grid(100, 100), None, None) is None


def test_auto_brings_rows_of_a_large_uneven_matrix_together() -> None:
    ordering = choose_order(uneven(40_000), None)
    assert ordering.order is not None
    assert "equal lengths" in ordering.why


@pytest.mark.parametrize("reorder", [True, "rcm"])
def test_rcm_asked_for_is_done(reorder: Any) -> None:
    assert choose_order(grid(5, 5), None, reorder).order is not None


@pytest.mark.parametrize("reorder", [False, "natural"])
def test_natural_order_asked_for_is_kept(reorder: Any) -> None:
    assert choose_order(shuffled(grid(500, 100)), None, reorder).order is None


@pytest.mark.parametrize("reorder", ["amd", None, 2])
def test_rejects_an_unknown_order(reorder: Any) -> None:
    with pytest.raises(InvalidInputError, match="unknown reorder"):
        choose_order(grid(3, 3), None, reorder)
