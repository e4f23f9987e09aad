"""Matrices that lie on a GPU and are laid out there, with fakes of the extension and libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from fake_core import FakeCore, GivenSystem, gpu
from fake_gpu_arrays import CupyMatrix, TorchMatrix, install

import cpufree
from cpufree import Solver
from cpufree.errors import MatrixError, NotSymmetricError
from cpufree.matrix.gpu_csr import gpu_csr
from cpufree.matrix.load import as_csr
from cpufree.partition.methods import NEAR_DIAGONAL
from cpufree.solvers.setup import setup

A = cpufree.generate.poisson1d(5)
Make = Callable[..., Any]
both = pytest.mark.parametrize("make", [CupyMatrix, TorchMatrix], ids=["cupy", "torch"])


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    """A machine with four GPUs and both libraries, on which every matrix is a large one."""
    fake = FakeCore(4)
    fake.most_block_halo_nonzeros = fake.least_gpu_layout_nonzeros = 0
    monkeypatch.setattr("cpufree._core", fake)
    monkeypatch.delenv("CPUFREE_ENGINE", raising=False)
    monkeypatch.delenv("CPUFREE_GPUS", raising=False)
    install(monkeypatch, [])
    return fake


def given(machine: FakeCore) -> GivenSystem:
    """Return the system that was made of a matrix on a GPU."""
    system = machine.systems[-1]
    assert isinstance(system, GivenSystem)
    return system


@both
def test_matrix_on_a_gpu_is_laid_out_there(make: Make, machine: FakeCore) -> None:
    matrix = make(A, 2)
    with Solver(matrix) as solver:
        system = given(machine)
        assert solver.gpus == (2,)
        assert solver.shape == (5, 5)
        assert solver.dtype == np.float64
    _, indptr, wide, indices, data, singles, device = system.given_as
    assert device == 2
    assert wide == (make is TorchMatrix)
    assert not singles
    assert system.tuning["inspect"] is True
    assert getattr(matrix, "downloads", 0) == 0
    if make is CupyMatrix:
        assert indptr == matrix.indptr.values.ctypes.data
        assert indices == matrix.indices.values.ctypes.data
        assert data == matrix.data.values.ctypes.data


def test_entries_are_not_looked_at_where_that_is_not_wanted(machine: FakeCore) -> None:
    Solver(CupyMatrix(A), check=False, pc="fsai").close()  # whose level 1 is made there, too
    assert given(machine).tuning.items() >= {"inspect": False, "pc": "fsai"}.items()


def test_small_matrices_are_laid_out_by_the_host(machine: FakeCore) -> None:
    machine.least_gpu_layout_nonzeros = 100
    matrix = CupyMatrix(A)
    Solver(matrix, engine="cuda_p2p").close()
    assert matrix.downloads == 1


@pytest.mark.parametrize(
    "options",
    [
        {"reorder": "rcm"},
        {"pes": 2},
        {"pc": "fsai", "pc_level": 2},
        {"engine": "cpu_threads"},
        {"dtype": np.float32},
    ],
)
def test_what_only_the_host_can_do_is_left_to_it(
    machine: FakeCore, options: dict[str, Any]
) -> None:
    matrix = CupyMatrix(A)
    Solver(matrix, **{"engine": "cuda_p2p", **options}).close()
    assert matrix.downloads == 1
    assert not isinstance(machine.systems[-1], GivenSystem)


@pytest.mark.parametrize(
    ("options", "devices"),
    [
        ({"gpus": [0, 1]}, (0, 1)),
        ({"gpus": "all"}, (0, 1, 2, 3)),
        ({"gpus": "all", "pes": 2}, (0, 1)),
        ({"partition": [0, 0, 1, 1, 1], "engine": "cuda_p2p"}, (0, 1)),
        ({"partition": [0, 0, 1, 1, 1], "gpus": [3, 2]}, (3, 2)),
    ],
)
def test_matrix_for_several_gpus_goes_to_them_through_the_host(
    options: dict[str, Any], devices: tuple[int, ...]
) -> None:
    matrix = CupyMatrix(A, 2)
    with Solver(matrix, **options) as solver:
        assert solver.gpus == devices
    assert matrix.downloads == 1


@pytest.mark.parametrize("options", [{"pes": 5}, {"partition": [0, 1, 2, 3, 4]}])
def test_matrix_for_more_pes_than_gpus_goes_to_the_cpu(options: dict[str, Any]) -> None:
    matrix = CupyMatrix(A, 2)
    with Solver(matrix, **options) as solver:
        assert (solver.engine, len(solver.plan["rows"])) == ("cpu_threads", 5)
    assert matrix.downloads == 1


@pytest.mark.parametrize("options", [{"gpus": [3]}, {"gpus": "3", "pes": 1}])
def test_matrix_on_a_gpu_is_laid_out_on_the_one_that_is_named(
    machine: FakeCore, options: dict[str, Any]
) -> None:
    Solver(CupyMatrix(A, 2), **options).close()
    assert given(machine).gpus == [3]


def test_matrix_on_the_one_gpu_that_there_is_stays_there_for_all_gpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = FakeCore(1)
    alone.most_block_halo_nonzeros = alone.least_gpu_layout_nonzeros = 0
    monkeypatch.setattr("cpufree._core", alone)
    Solver(CupyMatrix(A, 0), gpus="all").close()
    assert given(alone).gpus == [0]


def test_matrix_on_a_gpu_that_cannot_be_used_goes_to_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = FakeCore([gpu(0, "Tesla T4", capability=(7, 5))])
    old.most_block_halo_nonzeros = old.least_gpu_layout_nonzeros = 0
    monkeypatch.setattr("cpufree._core", old)
    matrix = CupyMatrix(A, 0)
    with Solver(matrix) as solver:
        assert solver.engine == "cpu_threads"
    assert matrix.downloads == 1


def test_why_a_matrix_is_copied_to_the_host_is_logged(
    machine: FakeCore, caplog: pytest.LogCaptureFixture
) -> None:
    machine.refuses_given = "indptr decreases"
    with caplog.at_level("DEBUG", "cpufree"):
        Solver(CupyMatrix(A), engine="cuda_p2p").close()
    assert "copied to the host: indptr decreases" in caplog.text


def test_refused_matrices_are_looked_at_by_the_host_which_says_more(machine: FakeCore) -> None:
    machine.refuses_given = "the pattern of the matrix is not symmetric"
    wrong = A.copy()
    wrong[0, 1] = 7.0
    with pytest.raises(NotSymmetricError, match=r"row 0, column 1"):
        Solver(CupyMatrix(wrong))
    with pytest.raises(MatrixError):
        Solver(CupyMatrix(wrong))


def test_asymmetry_beyond_rounding_is_refused_by_the_host(machine: FakeCore) -> None:
    machine.found = {"symmetric": False, "asymmetry": 0.1}
    matrix = CupyMatrix(A)
    Solver(matrix).close()  # it finds none here
    assert matrix.downloads == 1


def test_asymmetry_of_rounding_is_told(machine: FakeCore) -> None:
    machine.found = {"symmetric": False, "asymmetry": 1e-14}
    with Solver(CupyMatrix(A)) as solver:
        assert any("symmetric only to within 1.0e-14" in warning for warning in solver.warnings)
        assert "entries" not in solver.plan


def test_entries_far_from_the_diagonal_go_to_the_host_which_may_reorder(machine: FakeCore) -> None:
    machine.found = {"mean_distance": 2.0 * NEAR_DIAGONAL}
    matrix = CupyMatrix(A)
    Solver(matrix).close()
    assert matrix.downloads == 1
    other = CupyMatrix(A)
    Solver(other, reorder="natural").close()
    assert other.downloads == 0


def test_other_matrices_are_none_that_a_gpu_lays_out() -> None:
    assert gpu_csr(A) is None
    assert gpu_csr(np.eye(3)) is None
    assert gpu_csr(CupyMatrix(A.astype(np.int32))) is None
    wide = CupyMatrix(A)
    wide.shape = (5, 6)
    assert gpu_csr(wide) is None
    other = CupyMatrix(A)
    other.format = "csc"
    assert gpu_csr(other) is None
    short = CupyMatrix(A)
    short.data = short.data[:3]
    assert gpu_csr(short) is None


def test_matrix_of_a_name_is_made_and_laid_out_like_any_other(machine: FakeCore) -> None:
    Solver("gen:poisson1d?n=5", engine="cuda_p2p").close()
    system = machine.systems[-1]
    assert not isinstance(system, GivenSystem)
    assert (system.matrix != A).nnz == 0


class Looking(FakeCore):
    """GPUs that look at the entries of matrices from the host, and find what is said."""

    def System(self, *arguments: Any) -> Any:
        system = super().System(*arguments)
        self.looked, system.inspects = system.inspects, False
        entries = {
            "mirrored": True,
            "symmetric": True,
            "asymmetry": 0.0,
            "finite": True,
            "positive_diagonal": True,
            **self.found,
        }
        plan = system.plan
        if self.looked and not all(entries[key] for key in SOUND):
            system.plan = lambda: {"refused": "entries cannot be"}
        elif self.looked:
            system.plan = lambda: {**plan(), "entries": entries}
        return system


SOUND = ("mirrored", "finite", "positive_diagonal")


@pytest.fixture
def looking(monkeypatch: pytest.MonkeyPatch) -> Looking:
    fake = Looking(1)
    fake.most_block_halo_nonzeros = fake.least_gpu_layout_nonzeros = 0
    monkeypatch.setattr("cpufree._core", fake)
    return fake


def inspections(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows with every look of the host at entries."""
    seen: list[int] = []
    inspect = cpufree.matrix.problem.CsrMatrix.inspect

    def counted(self: Any) -> Any:
        seen.append(self.nnz)
        return inspect(self)

    monkeypatch.setattr(cpufree.matrix.problem.CsrMatrix, "inspect", counted)
    return seen


def test_entries_of_large_matrices_are_looked_at_by_the_gpus(
    looking: Looking, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = inspections(monkeypatch)
    with Solver(A.copy(), engine="cuda_p2p") as solver:
        assert looking.looked
        assert solver.warnings == []
        assert "entries" not in solver.plan
    assert looks == []
    looking.found = {"symmetric": False, "asymmetry": 1e-14}
    with Solver(A.copy(), engine="cuda_p2p") as solver:
        assert any("symmetric only to within 1.0e-14" in warning for warning in solver.warnings)


def test_gpus_that_have_refused_a_matrix_are_not_asked_again(machine: FakeCore) -> None:
    Solver(A, engine="cuda_p2p", pes=1).close()
    asked, made = machine.systems[-2:]
    assert asked.tuning["inspect"] is True
    assert made.tuning["layout"] == 0


@pytest.mark.parametrize(
    "found", [{"mirrored": False}, {"finite": False}, {"positive_diagonal": False}]
)
def test_what_gpus_refuse_the_host_looks_at(
    looking: Looking, monkeypatch: pytest.MonkeyPatch, found: dict[str, Any]
) -> None:
    looking.found = found
    looks = inspections(monkeypatch)
    Solver(A.copy(), engine="cuda_p2p").close()  # nothing is wrong with it here
    assert looks != []
    assert not looking.looked
    wrong = A.copy()
    wrong[2, 2] = np.nan
    with pytest.raises(MatrixError, match=r"row 2, column 2"):
        Solver(wrong, engine="cuda_p2p")


def test_small_matrices_for_one_pe_are_offered_to_the_gpu_before_the_host_looks(
    looking: Looking, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking.most_block_halo_nonzeros = 100
    looks = inspections(monkeypatch)
    Solver(A.copy(), engine="cuda_p2p").close()
    assert (looking.looked, looks) == (True, [])
    Solver(A.copy(), gpus=[0, 0]).close()  # of whose rows a graph may be made
    assert (looking.looked, looks) == (False, [A.nnz])


@pytest.mark.parametrize("given", [False, True], ids=["host", "gpu"])
def test_gpus_are_told_of_the_solve_that_comes_first(looking: Looking, given: bool) -> None:
    matrix = CupyMatrix(A) if given else A.copy()
    cpufree.solve(matrix, np.ones(5), engine="cuda_p2p", method="cg", pc="chebyshev")
    told = looking.systems[-1].tuning
    assert (told["first_method"], told["first_pc"]) == ("cg", "chebyshev")
    with Solver(matrix, engine="cuda_p2p", pc="none"):
        told = looking.systems[-1].tuning
    assert (told["first_method"], told["first_pc"]) == ("prcg", "none")


@pytest.mark.parametrize("given", [False, True], ids=["host", "gpu"])
def test_gpus_take_an_automatic_preconditioner_for_jacobi(looking: Looking, given: bool) -> None:
    matrix = CupyMatrix(A) if given else A.copy()
    result = cpufree.solve(matrix, np.ones(5), engine="cuda_p2p", pc="auto")
    told = looking.systems[-1].tuning
    assert (told["first_method"], told["first_pc"], result.pc) == ("prcg", "jacobi", "jacobi")
    assert not {"pc", "workload", "modes"} & set(told)  # which the core does not know, or need


def test_zeros_without_mirror_images_are_dropped_by_the_host(looking: Looking) -> None:
    looking.found = {"mirrored": False}
    entries = A.tocoo()
    rows, columns = np.append(entries.row, 0), np.append(entries.col, 4)
    odd = sp.csr_array((np.append(entries.data, 0.0), (rows, columns)), shape=A.shape)
    assert odd.nnz == A.nnz + 1
    Solver(odd, engine="cuda_p2p").close()
    assert looking.systems[-1].matrix.nnz == A.nnz


def test_matrices_that_the_host_lays_out_are_looked_at_by_it(
    machine: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = inspections(monkeypatch)
    Solver(A.copy(), engine="cuda_p2p").close()  # these GPUs lay none out
    assert looks == [A.nnz]


def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Any]:
    """Return a list that grows with every call of a function of setup.py."""
    calls: list[Any] = []
    function = getattr(setup, name)

    def noted(*arguments: Any, **named: Any) -> Any:
        calls.append(arguments)
        return function(*arguments, **named)

    monkeypatch.setattr(setup, name, noted)
    return calls


@pytest.mark.parametrize("gpus", [0, 1])
def test_a_matrix_is_placed_and_prepared_once_whoever_looks_at_it(
    monkeypatch: pytest.MonkeyPatch, gpus: int
) -> None:
    fake = FakeCore(gpus)
    fake.most_block_halo_nonzeros = fake.least_gpu_layout_nonzeros = 0
    monkeypatch.setattr("cpufree._core", fake)
    placed, prepared = counted(monkeypatch, "place"), counted(monkeypatch, "prepare")
    looks = inspections(monkeypatch)
    with Solver(A.copy()) as solver:
        assert solver.engine == "cpu_threads"
    assert (len(placed), len(prepared), looks) == (1, 1, [A.nnz])


@pytest.mark.parametrize(
    ("options", "systems"),
    [({"reorder": "rcm"}, 1), ({"partition": [1, 0, 1, 0, 1]}, 1), ({"gpus": [0, 0]}, 1)],
)
def test_gpus_are_asked_only_for_rows_in_the_order_of_the_matrix(
    looking: Looking, options: dict[str, Any], systems: int
) -> None:
    gpus = [0, 0] if "partition" in options else [0]
    Solver(A.copy(), **{"gpus": gpus, **options}).close()
    assert len(looking.systems) == systems
    assert looking.looked == ("gpus" in options)


def test_known_entries_are_not_looked_at_again(
    looking: Looking, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = as_csr(A).private()
    known.inspect()
    looks = inspections(monkeypatch)
    Solver(known, engine="cuda_p2p").close()
    assert not looking.looked
    assert looks == []
