"""Bricks whose corners were moved: their stiffness, their validity, and matrices made of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from cpufree.generate import from_spec
from cpufree.generate.hexahedra import (
    CORNERS,
    hex8_stiffness,
    hexahedra_stiffness,
    jittered_nodes,
)
from cpufree.matrix.distinct import distinct_values

BRICKS = [
    "flange_hex?r_out=8,t=2,pipe=3,wall=2",
    "geomodel_hex?ex=6,ey=5,ez=7,penalty=1.0",
    "plate_hex?ex=14,ey=9",
    "porous_hex?m=9",
    "spheres_hex?m=9,penalty=1.0",
]


def corners_of(points):
    """The corners (cells, 8, 3) of all bricks of a grid of points (z, y, x, 3)."""
    nz, ny, nx = points.shape[:3]
    shifted = [points[z : nz - 1 + z, y : ny - 1 + y, x : nx - 1 + x] for z, y, x in CORNERS]
    return np.stack(shifted, axis=3).reshape(-1, 8, 3)


def as_matrix(stiffness):
    """Element matrices (cells, 24, 24), node-major."""
    return np.moveaxis(stiffness, (2, 3, 0, 4, 1), (0, 1, 2, 3, 4)).reshape(-1, 24, 24)


def test_brick_that_was_not_moved_has_the_stiffness_of_equal_bricks():
    spacing = (1.0, 0.5, 0.2)
    corners = corners_of(jittered_nodes((2, 2, 2), spacing, 0.0, 0))
    found = as_matrix(hexahedra_stiffness(corners))[0]
    np.testing.assert_allclose(found, hex8_stiffness(spacing=spacing), atol=1e-14)


def test_moved_bricks_resist_all_but_rigid_motions():
    corners = corners_of(jittered_nodes((3, 3, 3), (1.0, 1.0, 0.2), 0.16, 1))
    for matrix, (x, y, z) in zip(
        as_matrix(hexahedra_stiffness(corners)), np.moveaxis(corners, 2, 1), strict=True
    ):
        zero, one = np.zeros(8), np.ones(8)
        rigid = [(one, zero, zero), (zero, one, zero), (zero, zero, one)]
        rigid += [(-y, x, zero), (zero, -z, y), (z, zero, -x)]
        motions = np.stack([np.stack(field, axis=1).ravel() for field in rigid], axis=1)
        np.testing.assert_allclose(matrix @ motions, 0, atol=1e-13)
        assert np.linalg.eigvalsh(matrix)[6] > 1e-4


def test_bricks_stay_valid_up_to_the_limit_of_the_jitter():
    # The worst moves of the corners by the limit: each along each axis to one side or the other.
    corners = corners_of(jittered_nodes((2, 2, 2), (1.0, 1.0, 1.0), 0.0, 0))[0]
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (20_000, 8, 3))
    for a, b, c in product((0.0, 1.0), repeat=3):  # at the corners, where the determinant is least
        at = np.array([[x, y, z] for z, y, x in CORNERS])
        weight = 1 - np.abs(at - np.array([a, b, c]))
        side = 2 * at - 1
        slopes = [side[:, d] * np.delete(weight, d, axis=1).prod(axis=1) for d in range(3)]
        moved = corners + 0.999 / 6 * signs
        assert (np.linalg.det(np.stack(slopes) @ moved) > 0).all()


@pytest.mark.parametrize("spec", BRICKS)
def test_jitter_keeps_the_stored_entries_and_makes_values_distinct(spec):
    plain, moved = from_spec(spec), from_spec(f"{spec},jitter=0.1")
    np.testing.assert_array_equal(plain.indptr, moved.indptr)
    np.testing.assert_array_equal(plain.indices, moved.indices)
    once = (moved.nnz + moved.shape[0]) // 2  # each value stands on both sides of the diagonal
    penalties = np.count_nonzero(moved.data == 1.0) + np.count_nonzero(moved.data == 0.0)
    assert distinct_values(moved.data) > 0.85 * (once - penalties)
    assert distinct_values(plain.data) < 0.6 * distinct_values(moved.data)


@pytest.mark.parametrize("spec", BRICKS)
def test_small_jitter_changes_values_by_little(spec):
    plain, moved = from_spec(spec), from_spec(f"{spec},jitter=1e-6")
    assert abs(plain - moved).max() < 1e-4 * abs(plain).max()
