"""Partition and order: every row once, work balanced, costs counted right."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from grid_matrices import grid, shuffled

import cpufree
from cpufree.errors import InvalidInputError, UnsupportedError
from cpufree.matrix.load import as_csr
from cpufree.matrix.problem import CsrMatrix
from cpufree.partition import methods as partition_module
from cpufree.partition.cost import Gain, graph_entries
from cpufree.partition.methods import (
    contiguous,
    fill_empty_parts,
    partition,
    report,
)


def random_pattern(n: int, entries: int, seed: int) -> CsrMatrix:
    """Return a matrix with a random symmetric pattern, uneven rows and a full diagonal."""
    rng = np.random.default_rng(seed)
    rows = (n * rng.random(entries) ** 2).astype(int)  # low rows get more
    half = sp.coo_matrix((np.ones(entries), (rows, rng.integers(0, n, entries))), shape=(n, n))
    return as_csr((half + half.T + sp.eye(n)).tocsr())


def counted_by_hand(A: CsrMatrix, part: np.ndarray, pes: int) -> dict[str, Any]:
    """Return the report's numbers, counted entry by entry."""
    ghosts: list[set[int]] = [set() for _ in range(pes)]
    boundary: list[set[int]] = [set() for _ in range(pes)]
    cut = 0
    nnz = [0] * pes
    for i in range(A.shape[0]):
        for j in A.indices[A.indptr[i] : A.indptr[i + 1]]:
            nnz[part[i]] += 1
            if part[i] != part[j]:
                ghosts[part[i]].add(int(j))
                boundary[part[i]].add(i)
                cut += i < j
    return {
        "rows": tuple(int(np.sum(part == pe)) for pe in range(pes)),
        "nnz": tuple(nnz),
        "ghosts": tuple(len(s) for s in ghosts),
        "boundary_rows": tuple(len(s) for s in boundary),
        "neighbours": tuple(tuple(sorted({int(part[j]) for j in s})) for s in ghosts),
        "edge_cut": cut,
        "halo_values": sum(len(s) for s in ghosts),
        "imbalance": max(nnz) * pes / sum(nnz),
    }


@pytest.mark.parametrize("method", ["metis", "contiguous", "rows"])
@pytest.mark.parametrize("pes", [1, 2, 3, 8, 13])
def test_every_row_has_exactly_one_pe(method: str, pes: int) -> None:
    A = random_pattern(300, 900, seed=pes)
    parts = partition(A, pes, method)
    assert parts.part.shape == (300,)
    assert parts.part.dtype == np.int32
    assert set(np.unique(parts.part)) == set(range(pes))
    assert sum(parts.report.rows) == 300


@pytest.mark.parametrize("pes", [1, 2, 3, 5, 8, 31])
def test_contiguous_parts_exceed_the_mean_by_less_than_one_row(pes: int) -> None:
    A = random_pattern(400, 3000, seed=7)
    part = contiguous(A, pes)
    assert np.all(np.diff(part) >= 0)
    share = np.bincount(part, weights=np.diff(A.indptr), minlength=pes)
    assert np.max(share) <= A.nnz / pes + np.max(np.diff(A.indptr))


@pytest.mark.parametrize("pes", [2, 3, 8, 16])
def test_metis_balances_nonzeros_within_5_percent_on_a_grid(pes: int) -> None:
    assert partition(grid(60, 60), pes, "metis").report.imbalance <= 1.05


def test_metis_balances_nonzeros_rather_than_rows() -> None:
    # Half of the rows are tridiagonal, half have 21 entries.
    light = sp.diags([1.0, 1.0, 1.0], [-1, 0, 1], shape=(2000, 2000))
    heavy = sp.diags([1.0] * 21, range(-10, 11), shape=(2000, 2000))
    parts = partition(as_csr(sp.block_diag([light, heavy], format="csr")), 4, "metis")
    assert parts.report.imbalance <= 1.05
    assert max(parts.report.rows) > 1.5 * min(parts.report.rows)


@pytest.mark.parametrize("method", ["metis", "contiguous"])
@pytest.mark.parametrize("pes", [1, 2, 5])
def test_report_agrees_with_counting_by_hand(method: str, pes: int) -> None:
    A = random_pattern(60, 100, seed=3)
    parts = partition(A, pes, method)
    expected = counted_by_hand(A, parts.part, pes)
    for name, value in expected.items():
        found = getattr(parts.report, name)
        assert found == (pytest.approx(value) if name == "imbalance" else value), name


def test_report_of_a_small_chain_is_as_on_paper() -> None:
    # 0-1-2 | 3-4 | 5: two couplings cut, the middle PE reads both neighbours.
    A = as_csr(sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(6, 6)).tocsr())
    counts = report(A, np.array([0, 0, 0, 1, 1, 2], np.int32), 3)
    assert counts.edge_cut == 2
    assert counts.ghosts == (1, 2, 1)
    assert counts.boundary_rows == (1, 2, 1)
    assert counts.neighbours == ((1,), (0, 2), (1,))
    assert counts.nnz == (8, 6, 2)
    assert counts.imbalance == pytest.approx(8 / (16 / 3))


def test_equal_rows_show_the_imbalance_that_balanced_nonzeros_avoid() -> None:
    A = random_pattern(300, 900, seed=5)  # low rows have more
    rows, nonzeros = (partition(A, 4, method).report for method in ("rows", "contiguous"))
    assert rows.rows == (75, 75, 75, 75)
    first = int(np.diff(A.indptr)[:75].sum())
    assert rows.imbalance == pytest.approx(first * 4 / A.nnz)
    assert rows.imbalance > 1.3 > nonzeros.imbalance


@pytest.mark.parametrize(("n", "pes"), [(10, 3), (3, 5), (1, 1)])
def test_equal_rows_differ_by_one_at_most(n: int, pes: int) -> None:
    counts = np.bincount(partition_module.equal_rows(n, pes), minlength=pes)
    assert counts.sum() == n
    assert np.ptp(counts) <= 1


def test_metis_beats_contiguous_on_a_shuffled_grid() -> None:
    A = shuffled(grid(50, 50))
    metis, blocks = (partition(A, 4, method).report for method in ("metis", "contiguous"))
    assert metis.edge_cut < 0.1 * blocks.edge_cut
    assert metis.halo_values < 0.1 * blocks.halo_values


@pytest.mark.parametrize("pes", [2, 4, 7])
def test_dense_blocks_are_shared_out_by_rows(capfd: pytest.CaptureFixture[str], pes: int) -> None:
    blocks = as_csr(sp.block_diag([np.ones((100, 100))] * 5, format="csr"))
    for A in (blocks, as_csr(sp.csr_array(np.ones((400, 400))))):
        assert partition(A, pes, "metis").report.imbalance <= 1.05
    assert capfd.readouterr().out == ""  # METIS complains there


def test_metis_gives_the_same_partition_every_time() -> None:
    A = shuffled(grid(40, 40))
    first = partition(A, 8, "metis").part
    assert all(np.array_equal(first, partition(A, 8, "metis").part) for _ in range(3))


def test_auto_takes_metis_where_it_has_the_smaller_halo() -> None:
    A = shuffled(grid(40, 40))
    parts = partition(A, 4)
    assert parts.method == "metis"
    assert str(parts.report.halo_values) in parts.why


def test_auto_spares_metis_where_blocks_hardly_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("METIS ran")

    monkeypatch.setattr(partition_module, "metis_parts", fail)
    chain = as_csr(sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(5000, 5000)).tocsr())
    parts = partition(chain, 4)
    assert parts.method == "contiguous"
    assert not parts.fallback


def test_auto_takes_blocks_where_metis_is_no_better() -> None:
    # Two halves of a long strip: the cut between blocks is the best there is.
    parts = partition(grid(30, 10), 2)
    assert parts.method == "contiguous"
    assert parts.report.halo_values == 20


def gain(search: float = 1e-6, ghost: float = 1e-8, cut: float = 1e-8) -> Gain:
    """Return costs of a partition and of the search for one."""
    return Gain(ghost, cut, search, 1000.0)


def test_auto_spares_metis_where_it_takes_longer_than_it_can_save(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("METIS ran")

    monkeypatch.setattr(partition_module, "metis_parts", fail)
    parts = partition(shuffled(grid(40, 40)), 4, "auto", gain(search=1.0))
    assert parts.method == "contiguous"
    assert not parts.fallback
    assert "METIS would take 7.8e+03 s, and save at most" in parts.why


def test_auto_searches_where_that_takes_less_than_it_can_save() -> None:
    A = shuffled(grid(40, 40))
    found = partition(A, 4, "auto", gain(search=1e-9))
    assert found.method == "metis"
    assert np.array_equal(found.part, partition(A, 4).part)


def test_metis_asked_for_is_not_weighed() -> None:
    assert partition(grid(40, 40), 4, "metis", gain(search=1.0)).method == "metis"


def test_what_can_be_saved_is_the_halo_of_all_iterations() -> None:
    A = grid(100, 10)  # 1000 iterations are expected
    plain = report(A, contiguous(A, 2), 2)
    assert plain.ghosts == (100, 100) or plain.ghosts == (10, 10)
    each = plain.ghosts[0]
    assert gain(ghost=1e-6, cut=0.0).most(plain) == pytest.approx(each * 1e-6 * 1000)
    assert gain(ghost=0.0, cut=1e-6).most(plain) == pytest.approx(plain.edge_cut * 1e-6 * 1000)
    assert gain().iterations(10**8) == pytest.approx(20000)


def test_rows_with_the_same_columns_count_once_in_the_graph() -> None:
    A = grid(60, 60)
    three = as_csr(sp.kron(A.to_scipy(), np.ones((3, 3)), format="csr"))
    assert graph_entries(A) == A.nnz
    assert graph_entries(three) == pytest.approx(three.nnz / 9, rel=0.15)
    assert graph_entries(as_csr(np.array([[2.0]]))) == 1.0


def test_a_solver_weighs_metis() -> None:
    A = grid(400, 250)
    with cpufree.Solver(A, pes=4, engine="cpu_threads") as solver:
        assert any("METIS would take" in why for why in solver._matrix.layout.why)


@pytest.fixture
def without_pymetis(monkeypatch: pytest.MonkeyPatch) -> None:
    original = importlib.import_module

    def missing(name: str, package: str | None = None) -> ModuleType:
        if name == "pymetis":
            raise ImportError(name)
        return original(name, package)

    monkeypatch.setattr(partition_module.importlib, "import_module", missing)


@pytest.mark.usefixtures("without_pymetis")
def test_auto_falls_back_to_blocks_without_pymetis_and_says_so() -> None:
    parts = partition(shuffled(grid(40, 40)), 4)
    assert parts.method == "contiguous"
    assert parts.fallback
    assert "pip install pymetis" in parts.why


@pytest.mark.usefixtures("without_pymetis")
def test_metis_asked_for_without_pymetis_is_an_error_that_says_how_to_get_it() -> None:
    with pytest.raises(UnsupportedError, match="pip install pymetis"):
        partition(grid(10, 10), 2, "metis")


@pytest.mark.parametrize("method", ["auto", "metis", "contiguous"])
def test_more_pes_than_rows_leaves_some_without_rows(method: str) -> None:
    A = grid(1, 3)
    parts = partition(A, 8, method)
    assert sorted(parts.report.rows) == [0, 0, 0, 0, 0, 1, 1, 1]
    assert parts.report.neighbours[int(parts.part[1])] != ()


@pytest.mark.parametrize("method", ["auto", "metis", "contiguous"])
@pytest.mark.parametrize("pes", [1, 4])
def test_one_row_has_one_owner(method: str, pes: int) -> None:
    parts = partition(as_csr(np.array([[2.0]])), pes, method)
    assert sum(parts.report.rows) == 1
    assert parts.report.halo_values == 0


def test_metis_shares_out_a_matrix_without_couplings() -> None:
    parts = partition(as_csr(sp.eye(100, format="csr")), 6, "metis")
    assert min(parts.report.rows) >= 1
    assert parts.report.edge_cut == 0
    assert parts.report.imbalance < 1.3


def test_metis_shares_out_a_disconnected_matrix() -> None:
    piece = grid(9, 9).to_scipy()
    parts = partition(as_csr(sp.block_diag([piece] * 5, format="csr")), 7, "metis")
    assert min(parts.report.rows) >= 1
    assert parts.report.imbalance < 1.3


def test_empty_parts_get_rows_of_the_heaviest_part() -> None:
    part = np.array([0, 0, 0, 0, 2, 2], np.int32)
    fill_empty_parts(part, np.array([1, 1, 1, 1, 1, 1]), 4)
    assert set(part) == {0, 1, 2, 3}
    assert np.bincount(part).max() <= 2


def test_empty_parts_stay_empty_when_rows_run_out() -> None:
    part = np.array([0, 1], np.int32)
    fill_empty_parts(part, np.array([1, 1]), 4)
    assert list(part) == [0, 1]


def test_partition_of_rows_without_entries_covers_them_all() -> None:
    empty = CsrMatrix(np.zeros(11, np.int64), np.zeros(0, np.int32), np.zeros(0))
    parts = partition(empty, 2, "contiguous")
    assert parts.report.rows == (5, 5)
    assert parts.report.imbalance == 1.0


@pytest.mark.parametrize("pes", [0, -1, 2.5, True, "2"])
def test_rejects_a_number_of_pes_that_is_none(pes: Any) -> None:
    with pytest.raises(InvalidInputError, match="number of PEs"):
        partition(grid(3, 3), pes)


def test_rejects_an_unknown_method_and_lists_the_known() -> None:
    with pytest.raises(InvalidInputError, match=r"'scotch'.*auto, metis, contiguous"):
        partition(grid(3, 3), 2, "scotch")


# Order inside parts
