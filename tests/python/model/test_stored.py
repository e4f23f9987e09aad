"""Bytes of a matrix as GPUs store it, and how it would lie on them, by samples of its rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from cpufree import generate
from cpufree.cli.model.system_facts import facts_of
from cpufree.machine import load
from cpufree.matrix.load import as_csr
from cpufree.matrix.problem import CsrMatrix
from cpufree.model.stored import block_reads, has_block_packets, stored_bytes

# Bytes per nonzero in bench/results/cg-1x-2026-11-24.jsonl and cg-1x-2026-11-25.jsonl, one GPU.
RECORDED = {"ecology2-like": 3.41, "consph-like": 9.25, "thermomech_dM-like": 10.56}


def banded(rows: int, width: int, values: int, step: int = 1) -> CsrMatrix:
    """Return a matrix of rows with `width` entries above the diagonal, `values` distinct ones."""
    offsets = [step * k for k in range(width)]
    data = 1.0 + np.random.default_rng(0).integers(values, size=(width, rows))
    return as_csr(sp.diags_array(list(data), offsets=offsets, shape=(rows, rows)).tocsr())


@pytest.mark.parametrize("name", sorted(RECORDED))
@pytest.mark.few(1)
def test_bytes_are_those_that_records_have(name: str) -> None:
    one = next(entry for entry in generate.suite("paper18") if entry.name == name)
    A = as_csr(generate.generate(one.generator, **one.params))
    assert stored_bytes(A, 132, own_numbers=True) / A.nnz == pytest.approx(RECORDED[name], rel=0.08)


def test_few_distinct_values_take_a_byte_each() -> None:
    few, many = (banded(20_000, 16, values) for values in (100, 10_000))
    assert stored_bytes(many) - stored_bytes(few) == pytest.approx(7.0 * few.nnz, rel=0.05)


def test_values_are_few_where_each_block_has_few() -> None:
    diagonal = 1.0 + np.arange(20_480) // 10  # 2048 values in all
    A = as_csr(sp.diags_array(diagonal).tocsr())
    assert stored_bytes(A, 2) - stored_bytes(A, 80) == pytest.approx(7.0 * A.nnz)


def test_blocks_rarely_fill_their_last_slice() -> None:
    A = as_csr(generate.poisson2d(96, 96))
    full, half = (stored_bytes(A, blocks) for blocks in (96 * 96 // 64, 96 * 96 // 48))
    assert half / full == pytest.approx(1.0 + 0.5 * (64 / 48 - 1.0), rel=0.02)


def test_columns_in_runs_of_three_share_a_distance() -> None:
    runs = as_csr(sp.kron(sp.eye_array(8000), np.ones((3, 3))).tocsr())
    singles = as_csr(sp.kron(sp.eye_array(6000), np.ones((4, 4))).tocsr())
    assert stored_bytes(runs, 75) / runs.nnz == pytest.approx(1 + 2 / 3 + 40 / 96, rel=0.02)
    assert stored_bytes(singles, 75) / singles.nnz == pytest.approx(1 + 2 + 40 / 128, rel=0.02)


def test_columns_far_apart_take_four_bytes_unless_blocks_number_them() -> None:
    A = banded(2_000_000, 8, 1, step=240_000)
    assert stored_bytes(A) - stored_bytes(A, own_numbers=True) == pytest.approx(
        2.0 * A.nnz, rel=0.25
    )


def test_blocks_read_the_rows_beside_their_own() -> None:
    grid = as_csr(generate.poisson2d(100, 100))
    assert block_reads(grid, 10) / 10 == pytest.approx(2 * 100, rel=0.1)


def test_small_matrices_have_packets_and_large_ones_none() -> None:
    grid = as_csr(generate.poisson2d(300, 300))
    assert has_block_packets(grid, 132, room=132 * 200_000.0)
    assert has_block_packets(grid, 132, room=0.0)  # 600 values a block
    scattered = banded(90_000, 4, 1, step=20_000)
    assert not has_block_packets(scattered, 9, room=0.0)


def test_facts_are_those_of_the_partition() -> None:
    one, two = facts_of(as_csr(generate.poisson2d(60, 60)), [1, 2], load("h200"))
    assert (one.halo_values, two.halo_values) == (0, 120)
    assert one.rows == two.rows == 3600
    assert 2.5 < one.matrix_bytes / one.nnz < 4.5  # a byte a value, two a column
