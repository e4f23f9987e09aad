"""Known identities of the generated operators and of the element matrices they are made of."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
import scipy.sparse as sp

from cpufree import generate as g
from cpufree.generate.bonds import bond_stiffness
from cpufree.generate.graph import laplacian, permute
from cpufree.generate.simplex_fem import (
    assemble,
    node_graph,
    p1_elasticity,
    p1_scalar,
    p2_elasticity,
    with_midsides,
)
from cpufree.generate.simplices import body_centred_mesh, delaunay, face_connected, jittered_lattice
from cpufree.generate.voxels import (
    CORNERS,
    VoxelNodes,
    held_piece,
    hex8_stiffness,
    voxel_elasticity,
)

# Unit cube cut into the six tetrahedra along its diagonal (Kuhn).
CUBE = np.array(list(product((0, 1), repeat=3)), dtype=float)
CUBE_TETS = np.array(
    [np.cumsum([0] + [(4, 2, 1)[axis] for axis in order]) for order in permutations(range(3))],
    dtype=np.int32,
)


def rigid_motions(points):
    """The six rigid body motions of points (n, 3) as columns, (3n, 6), node-major."""
    x, y, z = points.T
    zero, one = np.zeros(len(x)), np.ones(len(x))
    fields = [
        (one, zero, zero),
        (zero, one, zero),
        (zero, zero, one),
        (-y, x, zero),
        (zero, -z, y),
        (z, zero, -x),
    ]
    return np.stack([np.stack(field, axis=1).ravel() for field in fields], axis=1)


def lame(poisson_ratio):
    nu = poisson_ratio
    return nu / ((1 + nu) * (1 - 2 * nu)), 1 / (2 * (1 + nu))


def strain_energy(strain, poisson_ratio):
    """lambda (tr e)^2 + 2 mu e : e, twice the energy density for Young's modulus 1."""
    lam, mu = lame(poisson_ratio)
    return lam * np.trace(strain) ** 2 + 2 * mu * np.sum(strain * strain)


def grid_eigenvalues(*axes):
    """Sorted sums of 4 w sin^2(k pi / (2(m+1))) over axes given as (m, w)."""
    total = np.zeros(1)
    for m, weight in axes:
        k = np.arange(1, m + 1)
        total = np.add.outer(total, 4 * weight * np.sin(k * np.pi / (2 * (m + 1))) ** 2).ravel()
    return np.sort(total)


@pytest.mark.parametrize(
    ("matrix", "axes"),
    [
        (g.poisson1d(30), [(30, 1)]),
        (g.poisson2d(9, 12), [(9, 1), (12, 1)]),
        (g.poisson2d(9, 12, (5.0, 0.1)), [(12, 5), (9, 0.1)]),
        (g.poisson3d(5, 6, 7, (1.0, 2.0, 3.0)), [(7, 1), (6, 2), (5, 3)]),
    ],
)
def test_poisson_eigenvalues_are_those_of_the_closed_form(matrix, axes):
    eigenvalues = np.linalg.eigvalsh(matrix.toarray())
    np.testing.assert_allclose(eigenvalues, grid_eigenvalues(*axes), rtol=1e-11)


@pytest.mark.parametrize("m", [1, 2, 5])
def test_poisson_nonzeros_follow_the_formula(m):
    a, b, c = m, m + 1, m + 3
    assert g.poisson1d(a).nnz == 3 * a - 2
    assert g.poisson2d(a, b).nnz == 5 * a * b - 2 * a - 2 * b
    assert g.poisson3d(a, b, c).nnz == 7 * a * b * c - 2 * (a * b + b * c + a * c)


def test_stencil27_is_26_and_minus_one_per_neighbour():
    matrix = g.stencil27(4, 5, 6)
    assert matrix.nnz == 10 * 13 * 16
    assert set(np.unique(matrix.data)) == {26.0, -1.0}
    row_sum = np.asarray(matrix.sum(axis=1)).reshape(6, 5, 4)
    assert (row_sum[1:-1, 1:-1, 1:-1] == 0).all()
    assert row_sum[0, 0, 0] == 26 - 7


@pytest.mark.parametrize("m", [3, 4, 10, 31])
def test_ecology2_rows_and_nonzeros_follow_the_formula(m):
    matrix = g.ecology2(m)
    assert (matrix.shape[0], matrix.nnz) == (m * m - 1, 5 * m * m - 4 * m - 9)


def test_ecology2_at_full_size_has_the_numbers_of_the_collection():
    m = 1000
    assert (m * m - 1, 5 * m * m - 4 * m - 9) == (999999, 4995991)
    matrix = g.ecology2(20)
    assert (matrix.data.min(), matrix.data.max()) == (-10, 40)


def test_ecology2_is_grounded_through_the_removed_node_only():
    row_sum = np.asarray(g.ecology2(9).sum(axis=1)).ravel()
    assert sorted(row_sum[row_sum != 0]) == [10, 10, 10, 10]


@pytest.mark.parametrize("level", [1, 2, 3, 5])
def test_parabolic_fem_rows_and_nonzeros_follow_the_formula(level):
    n = 2**level
    matrix = g.parabolic_fem(level)
    assert (matrix.shape[0], matrix.nnz) == ((n + 1) * (2 * n + 1), 14 * n * n + 9 * n + 1)


def test_parabolic_fem_formula_at_level_9_has_the_numbers_of_the_collection():
    n = 2**9
    assert ((n + 1) * (2 * n + 1), 14 * n * n + 9 * n + 1) == (525825, 3674625)


def test_parabolic_fem_stiffness_is_the_five_point_stencil():
    level, n = 3, 2**3
    difference = g.parabolic_fem(level, 2.0) - g.parabolic_fem(level, 1.0)
    middle = (n + 1) * n + n // 2
    row = difference[[middle]].toarray().ravel()
    expected = np.zeros_like(row)
    expected[middle] = 4
    expected[[middle - 1, middle + 1, middle - n - 1, middle + n + 1]] = -1
    np.testing.assert_allclose(row, expected, atol=1e-14)


def test_parabolic_fem_mass_sums_to_the_area():
    assert g.parabolic_fem(4).sum() == pytest.approx(2.0)  # the stiffness part sums to zero


def test_apache2_rows_and_nonzeros_follow_the_formula():
    for a, b, c in ((8, 20, 30), (3, 4, 5)):
        matrix = g.apache2((a, b, c))
        assert matrix.shape[0] == a * b * c
        assert matrix.nnz == 7 * a * b * c - 2 * (a * b + b * c + a * c)
    a, b, c = 8, 297, 301
    assert (a * b * c, 7 * a * b * c - 2 * (a * b + b * c + a * c)) == (715176, 4817870)


def test_apache2_values_have_the_range_of_the_collection():
    matrix = g.apache2((4, 6, 6))
    assert (matrix.data.min(), matrix.data.max()) == (-30000, 60048)


@pytest.mark.parametrize(("ex", "ey", "ez"), [(2, 2, 2), (4, 5, 6)])
def test_geomodel_rows_and_nonzeros_follow_the_formula(ex, ey, ez):
    matrix = g.geomodel_hex(ex, ey, ez)
    assert matrix.shape[0] == 3 * (ex - 1) * (ey - 1) * ez
    assert matrix.nnz == 9 * (3 * ex - 5) * (3 * ey - 5) * (3 * ez - 2)


def test_laplacian_is_the_sum_of_its_edges():
    matrix = laplacian(3, np.array([0, 1]), np.array([1, 2]), np.array([2.0, 5.0])).toarray()
    np.testing.assert_array_equal(matrix, [[2, -2, 0], [-2, 7, -5], [0, -5, 5]])


def test_permute_moves_rows_and_columns_together():
    matrix = sp.csr_array(np.array([[4.0, 1.0, 0.0], [1.0, 5.0, 2.0], [0.0, 2.0, 6.0]]))
    order = np.array([2, 0, 1], dtype=np.int32)
    moved = permute(matrix, order).toarray()
    np.testing.assert_array_equal(moved, matrix.toarray()[np.ix_(order, order)])


@pytest.mark.parametrize("spacing", [(1.0, 1.0, 1.0), (1.0, 2.0, 0.2)])
def test_hex8_has_exactly_the_six_rigid_body_motions(spacing):
    element = hex8_stiffness(0.3, spacing)
    points = np.array([[i, j, k] for k, j, i in CORNERS]) * np.array(spacing)
    np.testing.assert_allclose(element @ rigid_motions(points), 0, atol=1e-13)
    eigenvalues = np.linalg.eigvalsh(element)
    assert (np.abs(eigenvalues[:6]) < 1e-13).all()
    assert eigenvalues[6] > 1e-4


def test_hex8_energy_of_uniform_strain_is_exact():
    spacing, nu = (1.0, 2.0, 0.5), 0.2
    gradient = np.array([[0.3, 0.1, -0.2], [0.4, -0.5, 0.6], [0.0, 0.7, 0.9]])
    points = np.array([[i, j, k] for k, j, i in CORNERS]) * np.array(spacing)
    u = (points @ gradient.T).ravel()
    strain = (gradient + gradient.T) / 2
    energy = u @ hex8_stiffness(nu, spacing) @ u
    assert energy == pytest.approx(np.prod(spacing) * strain_energy(strain, nu))


def free_voxels(shape):
    return np.ones(shape), np.zeros([s + 1 for s in shape], dtype=bool)


def voxel_points(shape):
    """(x, y, z) of the nodes of a full voxel grid, in the numbering of its matrix."""
    return np.argwhere(np.ones([s + 1 for s in shape]))[:, ::-1].astype(float)


def test_unsupported_voxel_body_has_the_rigid_body_motions():
    shape = (2, 3, 4)
    matrix = voxel_elasticity(*free_voxels(shape))
    product = matrix @ rigid_motions(voxel_points(shape))
    np.testing.assert_allclose(product, 0, atol=1e-12)


def test_linear_displacement_is_in_equilibrium_inside_a_voxel_body():
    shape = (3, 4, 3)
    points = voxel_points(shape)
    gradient = np.array([[0.3, 0.1, -0.2], [0.4, -0.5, 0.6], [0.0, 0.7, 0.9]])
    force = (voxel_elasticity(*free_voxels(shape)) @ (points @ gradient.T).ravel()).reshape(-1, 3)
    upper = np.array(shape)[::-1]
    inside = ((points > 0) & (points < upper)).all(axis=1)
    assert inside.sum() == 2 * 3 * 2
    np.testing.assert_allclose(force[inside], 0, atol=1e-13)
    assert np.abs(force[~inside]).max() > 0.1  # the tractions at the surface


def test_voxel_count_equals_what_is_assembled():
    rng = np.random.default_rng(0)
    young = (rng.random((4, 5, 6)) < 0.6) * (1 + rng.random((4, 5, 6)))
    fixed = np.zeros((5, 6, 7), dtype=bool)
    fixed[0] = True
    for penalty in (None, 3.0):
        nodes = VoxelNodes(young, fixed, keep_fixed=penalty is not None)
        matrix = voxel_elasticity(young, fixed, penalty=penalty)
        assert (nodes.rows, nodes.nnz) == (matrix.shape[0], matrix.nnz)


def test_held_piece_drops_voxels_that_hang_on_an_edge():
    young = np.zeros((2, 3, 3))
    young[0, :2, :2] = 2.0
    young[0, 2, 2] = 1.0  # shares an edge
    young[1, 2, 2] = 1.0
    kept = held_piece(young, (0,))
    assert kept.sum() == 8.0
    assert kept[0, 2, 2] == 0


def test_held_piece_prefers_what_reaches_the_support():
    young = np.zeros((4, 1, 2))
    young[0, 0, 0] = 1.0
    young[2:, 0, :] = 1.0  # larger, but in the air
    assert held_piece(young, (0,)).sum() == 1.0


def test_face_connected_drops_a_tetrahedron_that_hangs_on_an_edge():
    cells = np.array([[0, 1, 2, 3], [1, 2, 3, 4], [0, 4, 5, 6], [3, 4, 7, 8]], dtype=np.int32)
    np.testing.assert_array_equal(face_connected(cells), cells[:2])


@pytest.mark.parametrize("dimension", [2, 3])
def test_p1_energy_of_a_linear_field_is_exact(dimension):
    shape = (6,) * dimension
    points, cells = delaunay(jittered_lattice(shape, 0.3, 5), 9.0)
    slope = np.arange(1.0, dimension + 1)
    stiffness = p1_scalar(points, cells)
    area = p1_scalar(points, cells, stiffness=0.0, mass=1.0).sum()
    u = points @ slope + 7
    assert u @ stiffness @ u == pytest.approx(area * slope @ slope)
    np.testing.assert_allclose(stiffness @ np.ones(len(points)), 0, atol=1e-12)


def test_p1_mass_integrates_products_of_linear_fields():
    mass = p1_scalar(CUBE, CUBE_TETS, stiffness=0.0, mass=1.0)
    x, y, _ = CUBE.T
    assert mass.sum() == pytest.approx(1)
    assert x @ mass @ x == pytest.approx(1 / 3)
    assert x @ mass @ y == pytest.approx(1 / 4)


def test_p1_linear_field_is_in_equilibrium_inside():
    points, cells = body_centred_mesh((4, 4, 4), seed=2)
    flux = p1_scalar(points, cells) @ (points @ np.array([1.0, 2.0, 3.0]))
    inside = ((points > 0.3) & (points < 0.7)).all(axis=1)
    assert inside.sum() > 5
    np.testing.assert_allclose(flux[inside], 0, atol=1e-13)


def test_p1_tensor_energy_is_the_tensor_of_the_slope():
    tensor = np.array([[2.0, 0.5, 0.1], [0.5, 3.0, 0.2], [0.1, 0.2, 1.0]])
    matrix = p1_scalar(CUBE, CUBE_TETS, tensor=lambda c: np.broadcast_to(tensor, (len(c), 3, 3)))
    slope = np.array([1.0, -2.0, 0.5])
    u = CUBE @ slope
    assert u @ matrix @ u == pytest.approx(slope @ tensor @ slope)


def test_p1_coefficient_is_taken_at_the_centroid():
    matrix = p1_scalar(CUBE, CUBE_TETS, lambda centroid: 1 + 2 * centroid[:, 0])
    u = CUBE[:, 1]
    assert u @ matrix @ u == pytest.approx(2.0)  # integral of 1 + 2x over the cube


@pytest.mark.parametrize("order", [1, 2])
def test_tetrahedral_elasticity_has_exactly_the_rigid_body_motions(order):
    points, cells = CUBE, CUBE_TETS
    if order == 2:
        points, cells = with_midsides(points, cells)
    matrix = (p1_elasticity if order == 1 else p2_elasticity)(points, cells)
    np.testing.assert_allclose(matrix @ rigid_motions(points), 0, atol=1e-13)
    eigenvalues = np.linalg.eigvalsh(matrix.toarray())
    assert (np.abs(eigenvalues[:6]) < 1e-13).all()
    assert eigenvalues[6] > 1e-3


@pytest.mark.parametrize("order", [1, 2])
def test_tetrahedral_energy_of_uniform_strain_is_exact(order):
    points, cells = CUBE, CUBE_TETS
    if order == 2:
        points, cells = with_midsides(points, cells)
    gradient = np.array([[0.3, 0.1, -0.2], [0.4, -0.5, 0.6], [0.0, 0.7, 0.9]])
    u = (points @ gradient.T).ravel()
    elasticity = p1_elasticity if order == 1 else p2_elasticity
    energy = u @ elasticity(points, cells, poisson_ratio=0.2) @ u
    assert energy == pytest.approx(strain_energy((gradient + gradient.T) / 2, 0.2))


def test_p2_energy_of_a_quadratic_field_is_exact():
    points, cells = with_midsides(CUBE, CUBE_TETS)
    u = np.zeros_like(points)
    u[:, 0] = points[:, 0] ** 2  # strain_xx = 2x, whose square integrates to 4/3
    lam, mu = lame(0.3)
    energy = u.ravel() @ p2_elasticity(points, cells) @ u.ravel()
    assert energy == pytest.approx((lam + 2 * mu) * 4 / 3)


def test_node_graph_does_not_depend_on_the_chunk():
    cells = body_centred_mesh((3, 3, 3), seed=0)[1]
    whole, parts = node_graph(100, cells), node_graph(100, cells, chunk=5)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)


def test_assembly_in_chunks_is_symmetric_to_the_bit_and_equal_to_rounding():
    points, cells = body_centred_mesh((3, 3, 3), seed=0)
    rng = np.random.default_rng(0)
    values = rng.random((len(cells), 2, 2, 4, 4))
    values += values.transpose(0, 2, 1, 4, 3)

    def element(some):
        number = {tuple(cell): k for k, cell in enumerate(cells)}
        chosen = [number[tuple(cell)] for cell in some]
        return values[chosen].transpose(1, 2, 0, 3, 4)

    whole = assemble(len(points), cells, element, block=2, chunk=10**6)
    parts = assemble(len(points), cells, element, block=2, chunk=7)
    dense = np.zeros((2 * len(points), 2 * len(points)))
    for cell, value in zip(cells, values, strict=True):
        dof = 2 * cell[:, None] + np.arange(2)  # (4, 2)
        index = np.ix_(dof.T.ravel(), dof.T.ravel())
        dense[index] += value.transpose(0, 2, 1, 3).reshape(8, 8)
    np.testing.assert_allclose(whole.toarray(), dense, rtol=1e-14)
    np.testing.assert_allclose(parts.toarray(), dense, rtol=1e-14)
    np.testing.assert_array_equal(parts.toarray(), parts.toarray().T)


def test_midsides_lie_between_their_corners_and_are_shared():
    points, cells = with_midsides(CUBE, CUBE_TETS)
    assert len(points) == 27  # 8 corners, 12 edges, 6 face diagonals, 1 diagonal
    for midside, (i, j) in enumerate([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], start=4):
        between = (points[cells[:, i]] + points[cells[:, j]]) / 2
        np.testing.assert_array_equal(points[cells[:, midside]], between)


def test_bond_stiffness_has_the_rigid_body_motions():
    points = np.random.default_rng(1).random((12, 3))
    pairs = np.array([(i, j) for j in range(12) for i in range(j)], dtype=np.int32)
    matrix = bond_stiffness(points, pairs)
    np.testing.assert_allclose(matrix @ rigid_motions(points), 0, atol=1e-11)
    assert np.linalg.eigvalsh(matrix.toarray())[6] > 1e-3


def test_body_centred_lattice_has_fourteen_neighbours_inside():
    points, cells = body_centred_mesh((5, 5, 5), seed=0)
    matrix = p1_scalar(points, cells)
    inside = ((points > 0.3) & (points < 0.7)).all(axis=1)
    assert set(np.diff(matrix.indptr)[inside]) == {15}
