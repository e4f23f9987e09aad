"""Solver.update: new values of the same pattern, laid out as the first ones."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from fake_core import FakeCore
from fake_gpu_arrays import CupyArray, install, nothing_downloaded
from ranks_here import ROWS_PROGRAM, all_say, team

import cpufree
from cpufree import Solver
from cpufree.engines import system_rule
from cpufree.engines.digests import Pattern
from cpufree.errors import (
    CpufreeError,
    FileFormatError,
    InvalidInputError,
    MatrixError,
    NonFiniteError,
    NotSymmetricError,
)
from cpufree.matrix.load import as_csr
from cpufree.solvers import vectors
from cpufree.solvers.setup import layout, setup

N = 600


def shuffled() -> sp.csr_array:
    """Return a grid whose rows are in no good order, so that "auto" takes another one."""
    order = np.random.default_rng(4).permutation(N)
    return sp.csr_array(cpufree.generate.poisson2d(30, 20)[order][:, order]).sorted_indices()


A = shuffled()
B = np.sin(np.arange(float(N)))


def scaled(matrix: Any, seed: int = 1) -> sp.csr_array:
    """Return D A D: other values of the same pattern, symmetric positive definite too."""
    factors = 1.0 + np.random.default_rng(seed).random(matrix.shape[0])
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    product = factors[rows] * factors[matrix.indices]  # before the value: symmetric to the bit
    arrays = (matrix.data * product, matrix.indices.copy(), matrix.indptr.copy())
    return sp.csr_array(arrays, matrix.shape)


NEW = scaled(A)
NEIGHBOUR = int(next(column for column in A.indices[: A.indptr[1]] if column != 0))


def moved() -> sp.csr_array:
    """Return a matrix with as many entries as A in each row, two pairs of them at other places."""
    dense = NEW.toarray()
    pairs = np.argwhere(np.triu(dense, 1))
    i, j = pairs[0]
    free = [not (dense[i, m] or dense[k, j] or {i, j} & {k, m}) for k, m in pairs]
    k, m = pairs[free.index(True)]
    for row, column, value in ((i, j, 0.0), (k, m, 0.0), (i, m, -0.1), (k, j, -0.1)):
        dense[row, column] = dense[column, row] = value
    return sp.csr_array(dense)


# What is solved after an update


@pytest.mark.parametrize("reorder", [True, "auto"])
@pytest.mark.parametrize("pes", [1, 3])
@pytest.mark.parametrize("partition", ["contiguous", "metis"])
def test_update_gives_the_bits_of_a_new_solver(
    partition: str, pes: int, reorder: str | bool
) -> None:
    options: dict[str, Any] = {"partition": partition, "pes": pes, "reorder": reorder}
    with Solver(A, **options) as updated, Solver(NEW, **options) as new:
        updated.solve(B)
        updated.update(NEW)
        found, expected = updated.solve(B, rtol=1e-9), new.solve(B, rtol=1e-9)
        assert found.converged
        assert found.x.tobytes() == expected.x.tobytes()
        assert found.history.tobytes() == expected.history.tobytes()
        assert found.why == expected.why
        assert updated.plan == new.plan


def test_partition_order_and_placement_are_not_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with Solver(A, pes=3, partition="metis", reorder="auto") as updated:

        def again(*_: Any, **__: Any) -> None:
            raise AssertionError("again")

        for module, name in (
            (layout, "partition"),
            (layout, "choose_order"),
            (setup, "place"),
        ):
            monkeypatch.setattr(module, name, again)
        updated.update(NEW)
        assert np.linalg.norm(B - NEW @ updated.solve(B, rtol=1e-9).x) <= 1e-8 * np.linalg.norm(B)


def test_update_returns_nothing_and_leaves_the_matrix_as_it_is() -> None:
    new = NEW.copy()
    with Solver(A) as updated:
        assert updated.update(new) is None  # type: ignore[func-returns-value]
    assert np.array_equal(new.data, NEW.data)


def test_later_changes_of_the_new_matrix_have_no_effect() -> None:
    new = NEW.copy()
    with Solver(A) as updated:
        updated.update(new)
        expected = updated.solve(B).x
        new.data[:] = 1e6
        assert np.array_equal(updated.solve(B).x, expected)


@pytest.mark.parametrize("kind", ["dense", "coo", "CsrMatrix", "file"])
def test_update_takes_matrices_as_solver_does(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "A.cpufree"
    cpufree.save_matrix(file, NEW)
    given = {"dense": NEW.toarray(), "coo": NEW.tocoo(), "CsrMatrix": as_csr(NEW), "file": file}
    with Solver(A) as updated, Solver(NEW) as new:
        updated.update(given[kind])
        assert np.array_equal(updated.solve(B).x, new.solve(B).x)


def test_values_are_converted_to_the_type_of_the_solver() -> None:
    with Solver(A, dtype=np.float32) as updated, Solver(NEW, dtype=np.float32) as new:
        updated.update(NEW)
        found = updated.solve(B.astype(np.float32))
        assert updated.dtype == found.x.dtype == np.float32
        assert np.array_equal(found.x, new.solve(B.astype(np.float32)).x)


def test_float32_values_do_not_narrow_a_float64_solver() -> None:
    with Solver(A) as updated:
        updated.update(A.astype(np.float32))
        assert updated.solve(B).x.dtype == np.float64


def test_stored_zeros_belong_to_the_pattern() -> None:
    new = NEW.copy()
    new[0, NEIGHBOUR] = new[NEIGHBOUR, 0] = 0.0
    assert new.nnz == NEW.nnz
    with Solver(A) as updated:
        updated.update(new)
        assert np.linalg.norm(B - new @ updated.solve(B, rtol=1e-9).x) <= 1e-8 * np.linalg.norm(B)


# What is told of it


def test_timings_are_those_of_the_update() -> None:
    with Solver(A, pes=2, partition="metis") as updated:
        first = updated.setup_seconds
        updated.update(NEW)
        timings = updated.solve(B).timings
    parts = [name for name in timings if name.startswith("setup_")]
    assert [name for name in parts if "system_" not in name] == ["setup_check", "setup_system"]
    assert timings["setup"] == updated.setup_seconds != first


def test_warnings_are_those_of_the_new_values() -> None:
    noisy = NEW.copy()
    noisy.data[0 if noisy.indices[0] else 1] *= 1 + 4e-15
    with Solver(A) as updated:
        for matrix, told in ((noisy, True), (NEW, False)):
            updated.update(matrix)
            for notes in (updated.warnings, updated.solve(B).warnings):
                assert any("symmetric only to within" in note for note in notes) == told


# What is refused


def with_entry(row: int, column: int, value: float) -> sp.csr_array:
    """Return NEW with one entry changed."""
    changed = NEW.copy()
    changed[row, column] = value
    return changed


REFUSED: dict[str, tuple[Any, type[CpufreeError], str]] = {
    "fewer rows": (
        A[:500, :500],
        MatrixError,
        "A has 500 rows, but this Solver's matrix has 600 rows: .* make a new Solver",
    ),
    "not square": (A[:500], MatrixError, "square"),
    "more entries": (NEW @ NEW, MatrixError, "nonzeros, but this Solver's matrix has 2 900"),
    "moved entries": (moved(), MatrixError, "A has entries at other places.*make a new Solver"),
    "not symmetric": (with_entry(0, NEIGHBOUR, -0.1), NotSymmetricError, "not symmetric"),
    "one triangle": (sp.triu(NEW).tocsr(), NotSymmetricError, "Only the upper triangle"),
    "not finite": (with_entry(5, 5, np.nan), NonFiniteError, "row 5, column 5"),
    "negative diagonal": (with_entry(5, 5, -1.0), MatrixError, "diagonal entry of row 5"),
    "complex": (NEW * 1j, MatrixError, "complex"),
    "no matrix": ([1.0], MatrixError, "a matrix has two dimensions"),
    "no file": ("nowhere.mtx", FileFormatError, "nowhere.mtx"),
    "own rows": (cpufree.RowSlab(0, NEW), InvalidInputError, "own rows, make a new Solver"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_matrix_that_does_not_fit_is_refused_and_the_old_values_stay(what: str) -> None:
    given, kind, message = REFUSED[what]
    with Solver(A, pes=2) as updated:
        before, notes = updated.solve(B), updated.warnings
        with pytest.raises(kind, match=message):
            updated.update(given)
        after = updated.solve(B)
        assert np.array_equal(after.x, before.x)
        assert updated.warnings == notes
        assert after.timings["setup"] == before.timings["setup"]


def test_values_too_large_for_the_type_are_refused_and_the_old_ones_stay() -> None:
    b = B.astype(np.float32)
    with Solver(A, dtype=np.float32) as updated:
        before = updated.solve(b).x
        with pytest.raises(InvalidInputError, match="too large for float32"):
            updated.update(1e300 * A)
        assert np.array_equal(updated.solve(b).x, before)


def test_an_unchecked_solver_does_not_check_new_values() -> None:
    bad = with_entry(5, 5, np.nan)
    with Solver(A, check=False) as updated:
        updated.update(bad)
        assert updated.solve(B).reason is cpufree.Reason.DIVERGED_NANORINF


def test_a_closed_solver_takes_no_new_values() -> None:
    closed = Solver(A)
    closed.close()
    with pytest.raises(InvalidInputError, match="this Solver is closed: make a new one"):
        closed.update(NEW)


def test_patterns_differ_by_a_single_entry() -> None:
    matrix = as_csr(sp.diags_array([1.0, 3.0, 1.0], offsets=[-9, 0, 9], shape=(99, 99)))
    indices = matrix.indices.copy()
    indices[0:2] = [0, 8]  # were 0, 9
    other = cpufree.matrix.problem.CsrMatrix(matrix.indptr, indices, matrix.data)
    assert Pattern.of(matrix) == Pattern.of(as_csr(matrix.to_scipy() * 2.0))
    assert Pattern.of(matrix) != Pattern.of(other)


# Threads


def test_update_waits_for_a_solve_in_another_thread() -> None:
    inside, go, order = threading.Event(), threading.Event(), []
    results: list[Any] = []

    def progress(iteration: int, residual: float) -> None:
        inside.set()
        go.wait(120)

    def solve() -> None:
        results.append(long.solve(b, pc="none", rtol=1e-12, progress=progress, time_limit=0.3))
        order.append("solved")

    def update() -> None:
        long.update(2.0 * chain)
        order.append("updated")

    chain = cpufree.generate.poisson1d(100_000)
    b = np.ones(100_000)
    with Solver(chain) as long:
        threads = [threading.Thread(target=solve), threading.Thread(target=update)]
        threads[0].start()
        assert inside.wait(120)
        threads[1].start()
        threads[1].join(0.1)
        assert order == []
        go.set()
        for thread in threads:
            thread.join(120)
        assert order == ["solved", "updated"]
        true_residual = np.linalg.norm(b - chain @ results[0].x)
        assert results[0].true_residual == pytest.approx(true_residual, rel=1e-6)


def test_a_solve_that_has_waited_for_an_update_is_with_the_new_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Solver(A) as updated, Solver(NEW) as new:
        prepare = vectors.prepare_vectors

        def update_meanwhile(matrix: Any, *given: Any, **how: Any) -> Any:  # no lock is held
            if matrix is updated._matrix:
                updated.update(NEW)
            return prepare(matrix, *given, **how)

        monkeypatch.setattr(vectors, "prepare_vectors", update_meanwhile)
        assert np.array_equal(updated.solve(B).x, new.solve(B).x)


# GPUs, with fakes of the extension and of CuPy


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    """A machine with four GPUs; no engine is preset."""
    fake = FakeCore(4)
    monkeypatch.setattr("cpufree._core", fake)
    monkeypatch.delenv("CPUFREE_ENGINE", raising=False)
    monkeypatch.delenv("CPUFREE_GPUS", raising=False)
    install(monkeypatch, [])
    return fake


def test_new_values_go_to_the_gpus_of_the_old_ones(machine: FakeCore) -> None:
    with Solver(A, gpus=[1, 3]) as updated:
        looked = machine.looked_at_gpus
        updated.update(NEW)
        assert machine.looked_at_gpus == looked
        assert updated.solve(B).x == pytest.approx(np.linalg.solve(NEW.toarray(), B))
    assert [system.gpus for system in machine.systems] == [[1, 3]]


def test_a_small_system_takes_b_on_a_gpu_with_the_new_values_too(machine: FakeCore) -> None:
    new = NEW.copy()
    with Solver(A) as updated:
        assert updated.engine == "cpu_threads"
        updated.solve(CupyArray(B))
        updated.update(new)
        new.data[:] = 1e6
        with nothing_downloaded():
            result = updated.solve(CupyArray(B))
        assert result.engine == "cuda_p2p"
        assert result.x.values == pytest.approx(np.linalg.solve(NEW.toarray(), B))


POISSON = cpufree.generate.poisson2d(80, 80)  # 31 680 nonzeros


def test_a_system_on_the_cpu_by_its_time_takes_b_on_a_gpu_too(machine: FakeCore) -> None:
    b = np.ones(6400)
    with Solver(POISSON) as solver:
        assert solver.engine == "cpu_threads"
        assert solver.solve(CupyArray(b)).engine == "cuda_p2p"


def test_gpus_that_are_set_up_anew_are_chosen_by_the_solves_until_now(
    machine: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system_rule, "start_seconds", lambda *_: 2.5e-3)
    takes = lambda size, blocks, expected, known: 20e-6 * expected.total  # noqa: E731
    monkeypatch.setattr(system_rule, "cpu_seconds", takes)
    with Solver(POISSON) as solver:  # some 200 iterations are expected
        assert (solver.engine, solver.gpus) == ("cuda_p2p", (0,))
        solver.solve(np.ones(6400))  # 3, as this machine says
        machine.systems[0].update = lambda *_: False  # type: ignore[method-assign]
        solver.update(2.0 * POISSON)
        assert (solver.engine, solver.gpus) == ("cpu_threads", ())
        assert "by 1 solve until now" in solver.solve(np.ones(6400)).why


@pytest.mark.parametrize("pes", [1, 3])
def test_method_follows_the_spread_of_the_diagonal_on_cpus(pes: int) -> None:
    A = cpufree.generate.poisson2d(12, 12)
    wide = sp.diags_array(np.logspace(0, 8, 144))
    with Solver(A, pes=pes, engine="cpu_threads", pc="none") as solver:
        b = np.ones(144)
        assert solver.solve(b, maxiter=1).method == "prcg"
        solver.update(A + wide)
        assert solver.solve(b, maxiter=1).method == "cg"


# Several processes


def test_ranks_take_new_values_together(place: str) -> None:
    assert [end.out for end in team("update", place, 2)] == ["the same bits\n"] * 2


def test_ranks_with_different_new_values_are_told(place: str) -> None:
    words = "rank 1 has another values of entries than rank 0"
    all_say(team("other_update", place, 2), words, [0, 1])


def test_a_solver_of_own_rows_takes_no_new_values(place: str) -> None:
    ended = team("update_own_rows", place, 2, ROWS_PROGRAM)
    assert all("own rows, make a new Solver" in end.out for end in ended), ended
