"""What is known of matrices on grids without making them, against the matrices."""

from __future__ import annotations

import numpy as np
import pytest

from cpufree.engines.expected import by_parts, part
from cpufree.matrix.gpu_csr import GridCsr
from cpufree.matrix.load import as_csr, grid_csr
from cpufree.partition import methods
from cpufree.partition.cost import Spread, report

GRIDS = [
    "gen:poisson1d?n=37",
    "gen:poisson2d?nx=11,ny=9",
    "gen:poisson2d?nx=1,ny=30",
    "gen:poisson3d?nx=5,ny=6,nz=7",
    "gen:poisson3d?nx=9,ny=8,nz=40",
    "gen:stencil27?nx=6,ny=5,nz=9",
]


def grid(spec: str) -> GridCsr:
    found = grid_csr(spec)
    assert found is not None
    return found


@pytest.mark.parametrize("pes", [1, 2, 3, 8])
@pytest.mark.parametrize("spec", GRIDS)
def test_grids_are_cut_where_matrices_in_memory_are(spec: str, pes: int) -> None:
    cuts = grid(spec).cuts(pes)
    part = np.repeat(np.arange(pes), np.diff(cuts))
    assert (part == methods.contiguous(as_csr(spec), pes)).all()


@pytest.mark.parametrize("spec", GRIDS)
def test_single_rows_of_a_grid_are_those_of_the_matrix(spec: str) -> None:
    A = as_csr(spec)
    rows = np.array([0, 3, 17, A.shape[0] - 1])
    lengths, columns, values = grid(spec).entries.entries_of(rows)
    picked = A.to_scipy()[rows]
    assert (lengths == np.diff(picked.indptr)).all()
    assert (columns == picked.indices).all()
    assert (values == picked.data).all()


@pytest.mark.parametrize("spec", ["gen:poisson2d?nx=90,ny=70", "gen:poisson3d?nx=20,ny=30,nz=25"])
def test_iterations_of_a_grid_are_expected_as_of_its_matrix(spec: str) -> None:
    A = as_csr(spec)
    for mine, other in zip(part(grid(spec), 1000, 90), part(A, 1000, 90), strict=True):
        assert (mine == other).all()
    assert by_parts(grid(spec), 1e-8, None, 3) == by_parts(A, 1e-8, None, 3)


@pytest.mark.parametrize("spec", GRIDS)
def test_distances_of_a_grid_are_those_of_the_matrix(spec: str) -> None:
    A = as_csr(spec)
    assert grid(spec).mean_distance() == pytest.approx(methods.mean_distance(A, None, None))


def test_halos_of_slabs_are_known() -> None:
    spec, pes = "gen:poisson3d?nx=9,ny=8,nz=40", 4
    A = as_csr(spec)
    cost = report(A, methods.contiguous(A, pes), pes)
    spread = Spread.of_grid(grid(spec))
    assert spread.ghosts(pes) == max(cost.ghosts) == 2 * 72
    each = cost.edge_cut / (pes - 1)  # cuts are at ends of planes, where fewest entries cross
    assert 2 * each <= spread.cut(pes) <= 1.05 * 2 * each
    oblique = Spread.of_grid(grid("gen:stencil27?nx=9,ny=8,nz=40"))
    B = as_csr("gen:stencil27?nx=9,ny=8,nz=40")
    ghosts = max(report(B, methods.contiguous(B, pes), pes).ghosts)
    assert ghosts <= oblique.ghosts(pes) <= ghosts + 2 * (9 + 1)
