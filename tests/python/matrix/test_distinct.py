"""Distinct values are counted exactly, however many there are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from cpufree.matrix.distinct import distinct_values
from cpufree.matrix.info import matrix_info
from cpufree.matrix.load import as_csr


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("most", [1 << 26, 1000, 7])
def test_count_is_that_of_a_set_in_shares_of_any_size(dtype, most):
    values = np.random.default_rng(3).integers(0, 700, 5000).astype(dtype) / 7
    assert distinct_values(values, most) == len(set(values.tolist()))


def test_values_are_told_apart_by_their_bits():
    assert distinct_values(np.array([0.0, -0.0, np.nan, np.nan, 1.0])) == 4


def test_empty_array_has_none():
    assert distinct_values(np.empty(0)) == 0


def test_facts_of_a_matrix_count_its_stored_zeros():
    matrix = sp.csr_array(np.array([[4.0, 1.0, 0.0], [1.0, 4.0, 2.0], [0.0, 2.0, 5.0]]))
    assert matrix_info(as_csr(matrix))["stored_zeros"] == 0
    matrix.data[[1, 2]] = 0.0  # of (0, 1) and (1, 0): 1 becomes 0
    assert matrix_info(as_csr(matrix))["stored_zeros"] == 2


def test_facts_of_a_matrix_tell_its_distinct_values():
    matrix = np.array([[4.0, 1.0, 0.0], [1.0, 4.0, 2.0], [0.0, 2.0, 5.0]])
    assert matrix_info(as_csr(matrix))["distinct_values"] == 4
