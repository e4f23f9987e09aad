"""Jacobi iterations with triggered halos: the bits of the other stencils."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import cpufree
from cpufree.errors import InvalidInputError


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("pes", "blocks"), [(1, 1), (2, 2), (3, 1)])
def test_bits_are_those_of_the_stencils(dtype: type, pes: int, blocks: int) -> None:
    u0: npt.NDArray[Any] = np.random.default_rng(5).random((23, 37)).astype(dtype)
    expected = cpufree.stencil.jacobi(u0, 25, engine="cpu_threads", pes=1).u
    u = cpufree.triggered.jacobi(u0, 25, pes=pes, blocks=blocks)
    assert u.dtype == dtype
    assert np.array_equal(u, expected)


def test_libfabric_gives_the_same_bits() -> None:
    missing = cpufree.triggered.missing_back_ends()
    if missing:
        pytest.skip(missing["libfabric"])
    u0 = np.random.default_rng(5).random((12, 9))
    expected = cpufree.triggered.jacobi(u0, 12)
    for back_end in ("libfabric", "libfabric_queue"):
        assert np.array_equal(cpufree.triggered.jacobi(u0, 12, back_end=back_end), expected)


def test_input_is_left_alone() -> None:
    u0 = np.ones((5, 5))
    u0[0] = 3.0
    before = u0.copy()
    cpufree.triggered.jacobi(u0, 3)
    assert np.array_equal(u0, before)


def test_grid_with_too_few_rows_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="has 3 inner rows for 4 blocks"):
        cpufree.triggered.jacobi(np.zeros((5, 9)), 1, pes=2, blocks=2)
    with pytest.raises(InvalidInputError, match="3 dimensions"):
        cpufree.triggered.jacobi(np.zeros((5, 9, 2)), 1)
