"""Reductions over parts with few points, or none, whose values stay on chip."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from grid_on_cpu import call_on_chip

import cpufree


@cpufree.program
def totals(u: Any, v: Any) -> Any:
    part = np.sum(u[1:2] * v[1:2])
    u += part
    return part, np.max(v[0]), np.sum(u[:, 1:2])


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (1, 3, 4)])
def test_parts_smaller_than_a_tile_are_reduced(shape: tuple[int, ...]) -> None:
    u, v = np.ones(shape), np.full(shape, 2.0)
    plain = u.copy()
    expected = totals.function(plain, v)
    found, _ = call_on_chip(totals, (u, v), 1, 2)
    assert tuple(found) == tuple(expected)
    assert np.array_equal(u, plain)
