"""A matrix is converted, checked and inspected once on its way into a system."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from cli_runner import runner

import cpufree
from cpufree.errors import NonFiniteError
from cpufree.matrix import entries, problem
from cpufree.matrix.load import as_csr, canonical_csr
from cpufree.matrix.problem import CsrMatrix

POISSON = "gen:poisson2d?nx=12,ny=11"
ONCE = {"are_rows": 1, "statistics": 1}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count passes over all entries: of the check of rows, of statistics, of conversions."""
    counts: Counter[str] = Counter()

    def counted(home: Any, name: str, label: str) -> None:
        original = getattr(home, name)

        def call(*arguments: Any, **named: Any) -> Any:
            counts[label] += 1
            return original(*arguments, **named)

        monkeypatch.setattr(home, name, call)

    counted(problem, "are_rows", "are_rows")
    counted(problem, "columns_increase", "columns_increase")
    counted(entries.EntryStatistics, "of", "statistics")
    counted(problem.CsrMatrix, "to_scipy", "to_scipy")
    yield counts


def sources() -> dict[str, Any]:
    A = cpufree.generate.from_spec(POISSON)
    return {"SciPy": A, "COO": A.tocoo(), "dense": A.toarray(), "gen": POISSON}


@pytest.mark.parametrize("kind", ["SciPy", "COO", "dense", "gen"])
def test_a_matrix_is_checked_and_inspected_once(calls: Counter[str], kind: str) -> None:
    source = sources()[kind]
    calls.clear()
    assert cpufree.solve(source, np.ones(132), pes=2).converged
    assert calls == ONCE


def test_a_file_is_checked_and_inspected_once(calls: Counter[str], tmp_path: Path) -> None:
    for name in ("A.mtx", "A.npz", "A.cpufree"):
        cpufree.save_matrix(tmp_path / name, cpufree.generate.from_spec(POISSON))
        calls.clear()
        assert cpufree.solve(tmp_path / name, np.ones(132), pes=2).converged
        assert calls == ONCE, name


@pytest.mark.parametrize("partition", ["auto", "metis"])
def test_the_solve_command_checks_and_inspects_once(
    calls: Counter[str],
    partition: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = runner(capsys, monkeypatch)
    ended = run("solve", POISSON, "--pes", 2, "--partition", partition)
    assert ended.code == 0, ended.err
    calls.pop("to_scipy", None)  # to verify the answer
    assert calls == ONCE


def test_a_loaded_matrix_carries_its_proof(calls: Counter[str]) -> None:
    A = cpufree.load_matrix(POISSON)
    assert calls == {"are_rows": 1, "to_scipy": 1}
    with cpufree.Solver(A) as solver:
        solver.solve(np.ones(132))
    cpufree.cg(A, np.ones(132))
    assert calls == {"are_rows": 1, "to_scipy": 1, "statistics": 1}


def test_a_matrix_that_shares_arrays_with_the_caller_is_inspected_anew(calls: Counter[str]) -> None:
    A = cpufree.generate.from_spec(POISSON)
    matrix = as_csr(A)
    A.data[0] = np.nan
    calls.clear()
    with pytest.raises(NonFiniteError):
        cpufree.solve(matrix, np.ones(132))
    assert calls["are_rows"] == 0


def test_a_checked_matrix_is_returned_as_it_is(calls: Counter[str]) -> None:
    matrix = as_csr(POISSON)
    calls.clear()
    assert as_csr(matrix) is matrix and canonical_csr(matrix) is matrix
    assert as_csr(matrix.to_scipy()) is matrix
    assert not calls.keys() & ONCE.keys()


def test_a_loaded_matrix_cannot_be_changed_unnoticed() -> None:
    A = cpufree.load_matrix(POISSON)
    for array in (A.data, A.indices, A.indptr):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    A.data = A.data.copy()
    A.data[0] = np.nan
    with pytest.raises(NonFiniteError):
        cpufree.solve(A, np.ones(132))


def test_a_loaded_matrix_made_writeable_is_checked_anew() -> None:
    A = cpufree.load_matrix(POISSON)
    A.indices.flags.writeable = True
    A.indices[:2] = A.indices[1], A.indices[0]  # not sorted any more: they are sorted again
    found = as_csr(A)
    assert found.indices[:2].tolist() == [0, 1]


def test_copies_and_pickles_are_matrices_of_their_own() -> None:
    A = cpufree.load_matrix(POISSON)
    for other in (A.copy(), pickle.loads(pickle.dumps(A)), 2 * A):
        assert isinstance(other, sp.csr_array)
        other.data[0] = 7.0
        assert canonical_csr(other).data[0] == 7.0


def test_well_formed_arrays_need_the_right_types() -> None:
    with pytest.raises(cpufree.MatrixError, match="dtype int64"):
        CsrMatrix.well_formed(np.array([0, 1]), np.array([0], np.int64), np.ones(1))
