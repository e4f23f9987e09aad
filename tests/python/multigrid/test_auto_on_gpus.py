"""Multigrid on GPUs that is asked for, or chosen, with fakes of the extension and libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from fake_core import FakeCore, FakeSystem, GivenSystem
from fake_gpu_arrays import CupyMatrix, TorchMatrix, install

from cpufree import Solver
from cpufree.engines.gpus import Gpu
from cpufree.engines.placement import Placement
from cpufree.errors import OutOfMemoryError
from cpufree.generate import generate, with_coordinates
from cpufree.matrix.gpu_csr import gpu_csr
from cpufree.matrix.load import as_csr
from cpufree.matrix.samples import sample, unknowns_of_a_node
from cpufree.multigrid.gain import TRIAL, Cost, positive_part

A = generate("poisson2d", nx=60, ny=50)
BODY, POINTS = with_coordinates("geomodel_hex", ex=7, ey=7, ez=20)
Make = Callable[..., Any]
both = pytest.mark.parametrize("make", [CupyMatrix, TorchMatrix], ids=["cupy", "torch"])


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    """A machine with four GPUs and both libraries, on which every matrix is a large one."""
    fake = FakeCore(4)
    fake.most_block_halo_nonzeros = fake.least_gpu_layout_nonzeros = 0
    monkeypatch.setattr("cpufree._core", fake)
    for variable in ("CPUFREE_ENGINE", "CPUFREE_GPUS", "CPUFREE_MACHINE"):
        monkeypatch.delenv(variable, raising=False)
    install(monkeypatch, [])
    return fake


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Iterations with Jacobi gain a digit in 100 000; returns the options of trials."""
    solve = FakeSystem.solve
    asked: list[dict[str, Any]] = []

    def slowly(self: FakeSystem, b: Any, x0: Any, out: Any, options: Any, progress: Any) -> Any:
        found = solve(self, b, x0, out, options, progress)
        if options["maxiter"] == TRIAL and options["rtol"] == 0.0:
            asked.append(options)
            found["history"] = 10.0 ** -(np.arange(TRIAL + 1) / 1e5)
        return found

    monkeypatch.setattr(FakeSystem, "solve", slowly)
    return asked


def kinds(machine: FakeCore) -> list[str]:
    """Return what has been set up, one after the other."""
    return [system.tuning.get("pc", "jacobi") for system in machine.systems]


@both
def test_a_matrix_on_a_gpu_gets_multigrid_there(
    make: Make, machine: FakeCore, slow: list[dict[str, Any]]
) -> None:
    matrix = make(A, 2)
    with Solver(matrix) as solver:
        assert kinds(machine) == ["jacobi", "amg"]
        assert solver.gpus == (2,)
        assert "by the first 50 iterations" in str(solver)
    assert all(isinstance(system, GivenSystem) for system in machine.systems)
    assert machine.systems[-1].tuning["first_pc"] == "amg"
    assert getattr(matrix, "downloads", 0) == 0
    assert len(slow) == 1


@both
def test_a_matrix_on_a_gpu_keeps_jacobi_where_that_is_sooner(make: Make, machine: FakeCore) -> None:
    Solver(make(A)).close()
    assert kinds(machine) == ["jacobi"]


def test_the_trial_is_by_the_method_of_the_first_solve(slow: list[dict[str, Any]]) -> None:
    Solver(CupyMatrix(A)).close()
    Solver(CupyMatrix(A), pc="jacobi").close()
    assert [options["method"] for options in slow] == ["prcg"]


@both
def test_multigrid_that_is_asked_for_is_made_where_the_matrix_lies(
    make: Make, machine: FakeCore
) -> None:
    matrix = make(A, 1)
    Solver(matrix, pc="amg").close()
    assert kinds(machine) == ["amg"]
    assert isinstance(machine.systems[-1], GivenSystem)
    assert getattr(matrix, "downloads", 0) == 0


@pytest.mark.parametrize(
    ("matrix", "options"),
    [(BODY, {}), (BODY, {"coordinates": POINTS}), (A, {"near_nullspace": np.ones((3000, 1))})],
)
def test_the_host_makes_levels_of_several_unknowns_and_of_given_vectors(
    machine: FakeCore, matrix: Any, options: dict[str, Any]
) -> None:
    given = CupyMatrix(matrix)
    Solver(given, pc="amg", engine="cuda_p2p", **options).close()
    assert given.downloads == 1
    assert kinds(machine)[-1] == "amg" and not isinstance(machine.systems[-1], GivenSystem)


@pytest.mark.usefixtures("slow")
def test_what_multigrid_is_not_sooner_for_keeps_jacobi(machine: FakeCore) -> None:
    mass = abs(A)
    for matrix, said in ((BODY, "several unknowns a node"), (mass, "both signs")):
        with Solver(CupyMatrix(matrix)) as solver:
            assert said in str(solver)
    with Solver(CupyMatrix(generate("poisson2d", nx=9, ny=9))) as solver:
        assert "below 2 000 rows" in str(solver)
    assert kinds(machine) == ["jacobi"] * 3


@pytest.mark.usefixtures("slow")
def test_a_gpu_without_room_for_levels_keeps_jacobi(
    machine: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = GivenSystem.plan
    no_room = {"refused": "the GPU has no room"}
    monkeypatch.setattr(
        GivenSystem,
        "plan",
        lambda self: no_room if self.tuning.get("pc") == "amg" else plan(self),
    )
    with Solver(CupyMatrix(A)) as solver:
        assert kinds(machine) == ["jacobi", "amg", "jacobi"]
        assert "jacobi: the GPU has no room" in str(solver)


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("make", [CupyMatrix, lambda matrix: matrix], ids=["gpu", "host"])
def test_levels_that_find_no_room_while_they_are_made_leave_jacobi(
    machine: FakeCore, monkeypatch: pytest.MonkeyPatch, make: Make
) -> None:
    system = FakeCore.System

    def full(self: FakeCore, *arguments: Any) -> Any:
        made = system(self, *arguments)
        if getattr(made, "tuning", {}).get("pc") == "amg":
            raise OutOfMemoryError("GPU 0 has no room for 8 bytes more")
        return made

    monkeypatch.setattr(FakeCore, "System", full)
    with Solver(make(A), engine="cuda_p2p") as solver:
        assert kinds(machine)[-3:] == ["jacobi", "amg", "jacobi"]
        assert "jacobi: GPU 0 has no room for 8 bytes more" in str(solver)


@pytest.mark.usefixtures("slow")
def test_a_gpu_that_has_become_full_leaves_the_matrix_to_the_host(
    machine: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = GivenSystem.plan

    def refused(self: GivenSystem) -> dict[str, Any]:
        return plan(self) if len(machine.systems) == 1 else {"refused": "the GPU has no room"}

    monkeypatch.setattr(GivenSystem, "plan", refused)
    matrix = CupyMatrix(A)
    with Solver(matrix, engine="cuda_p2p") as solver:
        assert solver.engine == "cuda_p2p"
    assert matrix.downloads == 1
    assert not isinstance(machine.systems[-1], GivenSystem)


def test_several_gpus_have_multigrid_where_that_is_sooner(
    machine: FakeCore, slow: list[dict[str, Any]]
) -> None:
    Solver(A, engine="cuda_p2p", pes=2).close()
    assert kinds(machine)[-2:] == ["jacobi", "amg"]
    assert len(slow) == 1


def test_levels_of_several_gpus_take_longer() -> None:
    h200 = Gpu(0, "NVIDIA H200", 0, (9, 0))
    placed = [Placement("cuda_p2p", pes, 0, gpus=[h200] * pes) for pes in (1, 2)]
    one, two = (Cost.on(where, 10_000_000, 1) for where in placed)
    assert two.setup > 2.0 * one.setup and two.cycle > one.cycle


@both
def test_samples_are_the_same_on_the_host_and_on_a_gpu(make: Make) -> None:
    host, given = sample(as_csr(A)), gpu_csr(make(A))
    assert given is not None
    for mine, other in zip(host, sample(given), strict=True):
        assert mine.first == other.first
        for name in ("indptr", "indices", "data", "numbers"):
            assert np.array_equal(getattr(mine, name), getattr(other, name))
    assert positive_part(host) == positive_part(sample(given)) == 0.0


def test_samples_tell_the_unknowns_of_a_node() -> None:
    two = sp.csr_array(sp.kron(A, np.array([[2.0, 1.0], [1.0, 2.0]])))
    for matrix, expected in ((A, 1), (BODY, 3), (two, 2), (sp.csr_array(sp.eye_array(6)), 1)):
        assert unknowns_of_a_node(sample(as_csr(matrix)), matrix.shape[0]) == expected
