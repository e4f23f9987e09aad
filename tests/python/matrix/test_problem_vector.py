"""as_vector: what is a right-hand side, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from cpufree.errors import VectorError
from cpufree.matrix.vector import as_vector


@pytest.mark.parametrize(
    "v",
    [
        np.array([1.0, 2.0, 3.0]),
        np.array([[1.0], [2.0], [3.0]]),
        [1, 2, 3],
        (1.0, 2.0, 3.0),
        np.array([1, 2, 3], dtype=np.int16),
        np.array([1, 2, 3], dtype=np.longdouble),
        np.array([1, 2, 3], dtype=">f8"),
        np.array([1.0, 0.0, 2.0, 0.0, 3.0])[::2],
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_takes_real_numbers_of_any_kind(v: Any, dtype: Any) -> None:
    result = as_vector(v, 3, dtype, "b")
    assert (type(result), result.shape, result.dtype) == (np.ndarray, (3,), dtype)
    assert result.flags.c_contiguous
    assert result.tolist() == [1.0, 2.0, 3.0]


def test_booleans_count_as_zero_and_one() -> None:
    assert as_vector([True, False], 2, np.float64).tolist() == [1.0, 0.0]


def test_shares_memory_where_nothing_is_converted() -> None:
    v = np.ones(3)
    assert np.shares_memory(as_vector(v, 3, np.float64), v)


@pytest.mark.parametrize("shape", [(4,), (2,), (0,), (1, 3), (3, 2), (3, 1, 1), ()])
def test_rejects_wrong_shape_with_both_sizes(shape: tuple[int, ...]) -> None:
    with pytest.raises(VectorError) as caught:
        as_vector(np.ones(shape), 3, np.float64, "b")
    assert f"b has shape {shape}, but the matrix has 3 rows" in str(caught.value)


@pytest.mark.parametrize(
    ("v", "message"),
    [
        (np.array([1j, 0, 0]), r"b is complex \(complex128\).*b\.real"),
        (np.array([1, None, 2]), "b has dtype object"),
        (None, "b is None; it must be 3 real numbers$"),
        ("b.npy", r"b is 'b\.npy'; .*cpufree\.load_vector reads files"),
        (np.array(["1", "2", "3"]), "b has dtype <U1"),
        (np.array(["2020", "2021", "2022"], dtype="M8[Y]"), "b has dtype datetime64"),
        ([[1.0], [2.0, 3.0], 1.0], "b is no array"),
        (sp.csr_array(np.ones((3, 1))), r"b is sparse; pass b\.toarray\(\)\.ravel\(\)"),
        (np.ma.masked_equal([1.0, 2.0, 3.0], 2.0), r"masked array; pass b\.filled"),
        ([1.0, np.nan, 3.0], r"b\[1\] = nan is not a finite number"),
        ([1.0, 2.0, -np.inf], r"b\[2\] = -inf is not a finite number"),
    ],
)
def test_rejects_with_reason(v: Any, message: str) -> None:
    with pytest.raises(VectorError, match=message):
        as_vector(v, 3, np.float64, "b")


def test_rejects_number_too_large_for_float32() -> None:
    with pytest.raises(VectorError, match=r"b\[1\] = 1e\+300 is too large for float32"):
        as_vector([1.0, 1e300], 2, np.float32, "b")


def test_error_calls_the_vector_by_its_name() -> None:
    with pytest.raises(VectorError, match=r"^x0 has shape"):
        as_vector([1.0], 2, np.float64, "x0")
