"""What every generator promises: its form, its symmetry, its definiteness, its statistics."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

import cpufree.generate as generators
from cpufree.generate import from_spec, generate, names, parse_spec

# One small matrix (below 1800 rows) per generator and variant.
SMALL = [
    "poisson1d?n=50",
    "poisson1d?n=1",
    "poisson2d?nx=9,ny=12",
    "poisson3d?nx=5,ny=6,nz=7,weights=1x2x30",
    "stencil27?nx=6,ny=7,nz=5",
    "ecology2?m=20",
    "parabolic_fem?level=3",
    "parabolic_fem?level=3,seed=1",
    "apache2?shape=4x8x9",
    "powergrid?width=20,height=40",
    "thermal2d?m=30",
    "thermal2d?m=30,kind=mass,shuffle=false",
    "lognormal3d?nx=7,ny=6,nz=5",
    "stochflow3d?m=9",
    "stochflow3d?m=7,mesh=bcc",
    "heart?m=16",
    "heart?m=16,kind=laplace,numbering=random",
    "heart?m=14,kind=laplace,mesh=bcc,numbering=mesh",
    "geomech_tet?shape=8x7x9",
    "geomech_tet?shape=7,penalty=2.5",
    "geomech_tet?shape=6x5x6,mesh=bcc",
    "consolidation_tet?shape=3x4x3",
    "flange_hex?r_out=7,t=1,pipe=2,wall=2",
    "flange_hex?r_out=7,t=1,pipe=2,wall=2,jitter=0.1",
    "geomodel_hex?ex=7,ey=8,ez=6",
    "geomodel_hex?ex=6,ey=5,ez=5,penalty=1.0,free_top=false",
    "geomodel_hex?ex=6,ey=5,ez=5,jitter=0.16",
    "plate_hex?ex=16,ey=12",
    "plate_hex?ex=10,ey=8,layers=2",
    "plate_hex?ex=10,ey=8,jitter=0.1",
    "porous_hex?m=8",
    "spheres_hex?m=8",
    "spheres_hex?m=8,penalty=1.0",
    "spheres_hex?m=8,penalty=1.0,jitter=0.1",
    "crank_p2?shape=5x4x4",
    "crank_bonds?shape=10x7x6",
    "social?n=300",
    "delaunay3d?m=8",
    "delaunay3d?m=7,jitter=0.3,shuffle=false",
]
SEEDED = [
    name for name in names() if "seed" in inspect.signature(getattr(generators, name)).parameters
]
# Parameters that keep the seeded ones small.
SEEDED_SPECS = {parse_spec(spec)[0]: spec for spec in reversed(SMALL)}


def transpose(matrix: sp.csr_array) -> sp.csr_array:
    flipped = matrix.T.tocsr()
    flipped.sort_indices()
    return flipped


def is_positive_definite_beyond(matrix: sp.csr_array, shift: float) -> bool:
    """Whether all eigenvalues of D^-1/2 A D^-1/2 are above shift, D the diagonal of A."""
    scale = 1 / np.sqrt(matrix.diagonal())
    dense = matrix.toarray() * scale[:, None] * scale[None]
    dense[np.diag_indices_from(dense)] -= shift
    try:  # a tenth of the time of an eigenvalue
        scipy.linalg.cholesky(dense, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return False
    return True


def test_every_generator_has_a_small_specification():
    assert {parse_spec(spec)[0] for spec in SMALL} == set(names())


@pytest.mark.parametrize("spec", SMALL)
def test_is_canonical_csr(spec):
    matrix = from_spec(spec)
    assert isinstance(matrix, sp.csr_array)
    assert (matrix.data.dtype, matrix.indices.dtype, matrix.indptr.dtype) == (
        np.float64,
        np.int32,
        np.int32,
    )
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    assert (np.diff(row * matrix.shape[0] + matrix.indices) > 0).all()  # sorted, no duplicates
    assert np.isfinite(matrix.data).all()


@pytest.mark.parametrize("spec", SMALL)
def test_is_symmetric_to_the_bit(spec):
    matrix = from_spec(spec)
    other = transpose(matrix)
    np.testing.assert_array_equal(matrix.indptr, other.indptr)
    np.testing.assert_array_equal(matrix.indices, other.indices)
    np.testing.assert_array_equal(matrix.data, other.data)


@pytest.mark.parametrize("spec", SMALL)
def test_is_positive_definite(spec):
    matrix = from_spec(spec)
    assert 1 <= matrix.shape[0] < 1800
    assert (matrix.diagonal() > 0).all()
    assert is_positive_definite_beyond(matrix, 1e-10)
    assert not is_positive_definite_beyond(matrix, 2.0)  # the mean of all is 1


# Voxels or cells that hang on an edge only would leave a free rotation: these parameters made
# such structures before pieces had to be joined face to face.
@pytest.mark.parametrize(
    "spec",
    [
        "porous_hex?m=9,seed=0",
        "porous_hex?m=12,seed=2,fraction=0.3",
        "plate_hex?ex=40,ey=30,holes=60",
    ],
)
def test_has_no_hinge(spec):
    matrix = from_spec(spec).tocsc()
    lu = sp.linalg.splu(
        matrix,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    pivots = lu.U.diagonal()
    assert (lu.perm_r == lu.perm_c).all()
    assert pivots.min() > 1e-8 * matrix.diagonal().max()


@pytest.mark.parametrize("spec", SMALL)
def test_same_parameters_give_the_same_matrix(spec):
    one, two = from_spec(spec), from_spec(spec)
    np.testing.assert_array_equal(one.indptr, two.indptr)
    np.testing.assert_array_equal(one.indices, two.indices)
    np.testing.assert_array_equal(one.data, two.data)


@pytest.mark.parametrize("name", SEEDED)
def test_another_seed_gives_another_matrix(name):
    params = parse_spec(SEEDED_SPECS[name])[1]
    if name == "plate_hex":
        params["holes"] = 200  # so that the holes, which are all that is random, have bricks
    if name in ("flange_hex", "spheres_hex"):
        params["jitter"] = 0.1  # nothing else is random
    one = generate(name, **{**params, "seed": 3})
    two = generate(name, **{**params, "seed": 4})
    assert one.shape != two.shape or (one != two).nnz > 0


# specification, rows about, nonzeros per row (from, to), fewest and most nonzeros in a row
STATISTICS = [
    ("powergrid?width=60,height=100", 9516, (4.8, 4.9), 2, 11),
    ("thermal2d?m=60", 3240, (6.8, 7.0), 3, 12),
    ("stochflow3d?m=16", 3890, (15, 16), 4, 36),
    ("stochflow3d?m=12,mesh=bcc", 3456, (13, 15), 4, 15),
    ("heart?m=30", 5400, (15, 16), 4, 36),
    ("heart?m=24,mesh=bcc", 5530, (12, 15), 3, 15),
    ("geomech_tet?shape=14x14x14", 3 * (14**3 - 3 * 14**2), (44, 49), 6, 110),
    ("geomech_tet?shape=12,mesh=bcc", 6 * 12**3, (40, 45), 9, 45),
    ("flange_hex?r_out=20,t=4,pipe=10", 24168, (65, 77), 24, 81),
    ("plate_hex?ex=60,ey=40", 14400, (51, 54), 12, 54),
    ("porous_hex?m=16", 2.3 * 16**3, (49, 61), 12, 81),
    ("spheres_hex?m=20", 1.6 * 21**3, (68, 78), 24, 81),
    ("crank_p2?shape=12x8x6", 23 * 576, (81, 88), 9, 600),
    ("consolidation_tet?shape=14", 4 * (15**3 + 14**3 - 8), (54, 59), 20, 60),
    ("crank_bonds?shape=20x12x8", 2.7 * 1920, (140, 3 * (1 + 4.2 * 2.6**3)), 9, 400),
    ("social?n=3000", 3000, (8, 9), 1, 1500),
    ("delaunay3d?m=18", 16**3, (13, 17), 2, 40),
]


@pytest.mark.parametrize(("spec", "rows", "mean", "fewest", "most"), STATISTICS)
def test_row_statistics_are_as_documented(spec, rows, mean, fewest, most):
    matrix = from_spec(spec)
    per_row = np.diff(matrix.indptr)
    assert matrix.shape[0] == pytest.approx(rows, rel=0.2)
    assert mean[0] <= per_row.mean() <= mean[1]
    assert fewest <= per_row.min()
    assert per_row.max() <= most


def test_random_points_have_as_many_values_as_edges():
    matrix = from_spec("delaunay3d?m=10")
    assert matrix.shape[0] == 8**3
    upper = sp.triu(matrix, 1).data
    assert np.unique(upper).size == upper.size
    assert np.unique(matrix.diagonal()).size == matrix.shape[0]


def test_random_points_come_in_no_order_unless_asked_for():
    def both(m):
        return [from_spec(f"delaunay3d?m={m},shuffle={word}") for word in ("true", "false")]

    distance = [np.abs(np.subtract(*matrix.nonzero())).mean() for matrix in both(12)]
    assert distance[0] > 5 * distance[1]
    spectra = [np.linalg.eigvalsh(matrix.toarray()) for matrix in both(7)]
    assert spectra[0] == pytest.approx(spectra[1])


def test_social_graph_has_hubs():
    per_row = np.diff(from_spec("social?n=3000").indptr)
    assert per_row.max() > 30 * np.median(per_row)


def test_powergrid_is_grounded_only_at_its_pads():
    matrix = from_spec("powergrid?width=40,height=80")
    row_sum = np.asarray(matrix.sum(axis=1)).ravel()
    grounded = np.abs(row_sum) > 1e-6
    np.testing.assert_allclose(row_sum[grounded], 21724.962)
    margin = int(0.18 * 40)
    assert grounded.sum() == 2 * 2 * (40 - 2 * margin)


def test_penalty_keeps_held_rows_decoupled_and_leaves_the_rest_alone():
    removed = from_spec("geomech_tet?shape=7")
    kept = from_spec("geomech_tet?shape=7,penalty=2.5")
    single = np.diff(kept.indptr) == 1
    np.testing.assert_array_equal(kept.diagonal()[single], 2.5)
    free = np.flatnonzero(~single)
    assert (kept[free][:, free] != removed).nnz == 0
    assert single.sum() == kept.shape[0] - removed.shape[0] > 0


def test_voxel_penalty_keeps_held_rows_decoupled_and_leaves_the_rest_alone():
    removed = from_spec("geomodel_hex?ex=4,ey=5,ez=3")
    kept = from_spec("geomodel_hex?ex=4,ey=5,ez=3,penalty=7.0")
    kept.eliminate_zeros()
    single = np.diff(kept.indptr) == 1
    np.testing.assert_array_equal(kept.diagonal()[single], 7.0)
    free = np.flatnonzero(~single)
    assert (kept[free][:, free] != removed).nnz == 0
    assert kept.shape[0] == 3 * 5 * 6 * 4


def test_mass_matrix_has_positive_entries_only():
    assert from_spec("thermal2d?m=20,kind=mass").data.min() > 0


def test_shuffled_numbering_is_a_permutation_of_the_mesh_numbering():
    shuffled, plain = from_spec("heart?m=16"), from_spec("heart?m=16,numbering=mesh")
    assert (shuffled != plain).nnz > 0
    np.testing.assert_array_equal(np.sort(shuffled.data), np.sort(plain.data))
    np.testing.assert_array_equal(np.sort(shuffled.diagonal()), np.sort(plain.diagonal()))
