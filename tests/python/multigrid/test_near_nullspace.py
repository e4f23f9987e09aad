"""What multigrid is told of systems of several unknowns a node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_runner import Run, runner

import cpufree
from cpufree import InvalidInputError, Solver
from cpufree.errors import VectorError
from cpufree.generate import generate, with_coordinates

BEAM, POINTS = with_coordinates("geomodel_hex", ex=8, ey=8, ez=24, contrast=1.0)
B = np.random.default_rng(5).standard_normal(BEAM.shape[0])


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)


def iterations(A: Any = BEAM, b: Any = B, **options: Any) -> int:
    result = cpufree.solve(A, b, pc="amg", rtol=1e-8, engine="cpu_threads", **options)
    assert result.converged
    assert np.linalg.norm(b - A @ result.x) <= 1.01e-8 * np.linalg.norm(b)
    return result.iterations


def rigid_body_modes(points: Any) -> Any:
    x, y, z = points.T
    zero, one = np.zeros_like(x), np.ones_like(x)
    columns = [
        *((one, zero, zero), (zero, one, zero), (zero, zero, one)),
        *((-y, x, zero), (zero, -z, y), (z, zero, -x)),
    ]
    return np.stack([np.stack(column, axis=1).ravel() for column in columns], axis=1)


def test_generators_tell_where_the_nodes_of_their_unknowns_are() -> None:
    free, points = with_coordinates("plate_hex", ex=5, ey=4, holes=0, thickness=0.5)
    assert points.shape == (free.shape[0] // 3, 3)
    inside = np.abs(free @ rigid_body_modes(points)).max(axis=1).reshape(-1, 3).max(axis=1)
    assert (inside[points[:, 0] > 1.5] < 1e-9).all()  # away from the edge that is held
    with pytest.raises(InvalidInputError, match="poisson2d gives no coordinates"):
        with_coordinates("poisson2d")


def test_rigid_body_modes_take_fewer_iterations_than_translations() -> None:
    assert iterations(coordinates=POINTS) <= 25
    assert iterations(coordinates=POINTS) < iterations()


def test_near_null_space_of_rigid_body_modes_is_as_good_as_coordinates() -> None:
    modes = rigid_body_modes(POINTS)
    assert abs(iterations(near_nullspace=modes) - iterations(coordinates=POINTS)) <= 1


@pytest.mark.parametrize("pes", [2, 3])
def test_iterations_are_as_many_on_several_pes(pes: int) -> None:
    assert abs(iterations(coordinates=POINTS, pes=pes) - iterations(coordinates=POINTS)) <= 2


def test_unknowns_by_component() -> None:
    n = BEAM.shape[0]
    order = np.arange(n).reshape(-1, 3).T.ravel()
    other = BEAM[order][:, order].tocsr()
    found = iterations(other, B[order], coordinates=POINTS, unknowns="by component")
    assert abs(found - iterations(coordinates=POINTS)) <= 2
    assert iterations(other, B[order], unknowns="by component") <= iterations() + 5


def test_without_coordinates_a_note_says_what_would_serve_better() -> None:
    with Solver(BEAM, pc="amg") as solver:
        why = solver.solve(B).why
    assert "amg represents 3 translations, for A has 3 unknowns a node" in why
    assert "coordinates" in why


def test_held_nodes_that_are_kept_as_rows_change_no_iterations() -> None:
    A, points = with_coordinates("geomodel_hex", ex=8, ey=8, ez=12, penalty=1e10)
    free, inner = with_coordinates("geomodel_hex", ex=8, ey=8, ez=12)
    b = np.zeros(A.shape[0])
    moves = np.flatnonzero(A.diagonal() != 1e10)
    b[moves] = np.random.default_rng(1).standard_normal(len(moves))
    kept = iterations(A, b, coordinates=points)
    assert abs(kept - iterations(free, b[moves], coordinates=inner)) <= 1


def test_plane_elasticity_has_three_modes() -> None:
    # A grid of springs along edges and diagonals, two displacements a node, the left side held.
    points = np.stack(np.meshgrid(np.arange(30.0), np.arange(12.0)), axis=-1).reshape(-1, 2)
    from cpufree.generate.bonds import bond_stiffness

    flat = np.column_stack([points, np.zeros(len(points))])
    near = np.linalg.norm(points[:, None] - points[None], axis=2) < 1.5
    pairs = np.argwhere(np.triu(near, 1)).astype(np.int64)
    whole = bond_stiffness(flat, pairs).tocsr()
    rows = (3 * np.flatnonzero(points[:, 0] > 0)[:, None] + [0, 1]).ravel()
    A = whole[rows][:, rows].tocsr()
    b = np.random.default_rng(2).standard_normal(len(rows))
    assert iterations(A, b, coordinates=points[points[:, 0] > 0]) <= 40


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"coordinates": POINTS[:-1]}, "give the modes themselves as near_nullspace"),
        ({"coordinates": np.where(POINTS > 7, np.nan, POINTS)}, "all must be finite"),
        ({"near_nullspace": np.ones((BEAM.shape[0], 7))}, "give 1 to 6 vectors"),
        ({"near_nullspace": np.ones((BEAM.shape[0], 2))}, "vector 1 is a combination"),
        ({"near_nullspace": np.full((BEAM.shape[0], 1), np.inf)}, "all must be finite"),
        ({"near_nullspace": np.ones(4), "coordinates": POINTS}, "leave one of them out"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(given: Any, message: str) -> None:
    with pytest.raises(VectorError, match=message):
        Solver(BEAM, pc="amg", **given)


def test_other_preconditioners_refuse_it() -> None:
    with pytest.raises(InvalidInputError, match="are for pc='amg'"):
        Solver(BEAM, coordinates=POINTS, pc="jacobi")


def test_scalar_systems_may_have_a_near_null_space() -> None:
    A = generate("poisson2d", nx=60, ny=50)
    b = np.random.default_rng(3).standard_normal(3000)
    assert iterations(A, b, near_nullspace=np.ones(3000)) == iterations(A, b)


def test_the_command_line_takes_coordinates_from_a_file(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "points.npy", POINTS)
    system = "gen:geomodel_hex?ex=8,ey=8,ez=24,contrast=1.0"
    done = run("solve", system, "--pc", "amg", "--coordinates", tmp_path / "points.npy")
    assert done.code == 0, done.err
    assert "6 rigid body modes" in done.out
