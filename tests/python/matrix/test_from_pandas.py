"""Tables of pandas as matrices and right-hand sides; a table of our own stands in for pandas."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import cpufree
from cpufree.errors import MatrixError, VectorError
from cpufree.matrix.load import as_csr
from cpufree.matrix.vector import as_vector

DENSE = np.array([[4.0, -1.0, 0.0], [-1.0, 4.25, -2.0], [0.0, -2.0, 5.0]])


class Table:
    """What is used of a DataFrame."""

    __module__ = "pandas.core.frame"

    def __init__(self, values: np.ndarray, sparse: bool = False) -> None:
        self._values, self.ndim, self.shape = values, values.ndim, values.shape
        kind = SimpleNamespace(fill_value=0.0) if sparse else values.dtype
        self.dtypes = [kind] * values.shape[-1]
        self.sparse = SimpleNamespace(to_coo=lambda: sp.coo_matrix(values))

    def to_numpy(self) -> np.ndarray:
        assert not hasattr(self.dtypes[0], "fill_value"), "a sparse table was filled"
        return self._values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self._values, dtype)


@pytest.mark.parametrize("sparse", [False, True])
def test_table_is_a_matrix(sparse: bool) -> None:
    assert np.array_equal(as_csr(Table(DENSE, sparse)).to_scipy().toarray(), DENSE)


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_tables_are_solved_with(shape: tuple[int, ...]) -> None:
    b = Table(np.array([1.0, 2.0, 3.0]).reshape(shape))
    result = cpufree.solve(Table(DENSE), b, rtol=1e-12)
    assert result.x.shape == shape
    assert np.allclose(DENSE @ result.x.ravel(), [1.0, 2.0, 3.0])


def test_table_of_other_things_than_numbers_is_refused() -> None:
    with pytest.raises(MatrixError, match="dtype object"):
        as_csr(Table(DENSE.astype(object)))
    with pytest.raises(VectorError, match="dtype object"):
        as_vector(Table(np.array([1.0, None])), 2, np.float64)


def test_tables_of_pandas_itself() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(DENSE, index=list("abc"), columns=list("xyz"))
    for table in (frame, frame.astype(pandas.SparseDtype(float, 0.0)), frame.astype("float32")):
        assert np.array_equal(as_csr(table).to_scipy().toarray(), DENSE)
    for b in (frame["x"], frame[["x"]], frame["x"].astype(pandas.SparseDtype(float, 0.0))):
        x, info = cpufree.cg(frame, b, rtol=1e-12)
        assert info == 0
        assert np.allclose(DENSE @ x, DENSE[:, 0])
    with pytest.raises(MatrixError, match="two dimensions"):
        as_csr(frame["x"])
