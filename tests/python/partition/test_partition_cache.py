"""METIS's partitions in a folder: taken from there, told apart, and never believed if damaged."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import cpufree
from cpufree.engines.digests import Pattern
from cpufree.matrix.load import as_csr
from cpufree.matrix.problem import CsrMatrix
from cpufree.partition import methods
from cpufree.partition.cache import PartitionCache
from cpufree.partition.cost import Gain
from cpufree.partition.methods import partition

pytest.importorskip("pymetis")


def shuffled(seed: int) -> CsrMatrix:
    """Return the matrix of a grid in random order, for which METIS pays."""
    order = np.random.default_rng(seed).permutation(900)
    return as_csr(sp.csr_array(cpufree.generate.poisson2d(30, 30)[order][:, order]))


A = shuffled(1)


def cache(folder: Path, matrix: CsrMatrix = A) -> PartitionCache:
    return PartitionCache(folder, Pattern.of(matrix).numbers)


def refuse(*_: object) -> None:
    raise AssertionError("METIS is not to run")


@pytest.mark.parametrize("method", ["metis", "auto"])
def test_partition_is_taken_from_the_folder(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = partition(A, 3, method, cache=cache(tmp_path / "new"))
    monkeypatch.setattr(methods, "metis_parts", refuse)
    again = partition(A, 3, method, cache=cache(tmp_path / "new"))
    assert (again.part == found.part).all()
    assert again.method == "metis"
    assert again.notes == ()


def test_kept_partition_is_taken_where_a_search_would_not_pay(tmp_path: Path) -> None:
    slow = Gain(1e-12, 1e-12, 1.0, 1.0)
    assert partition(A, 3, "auto", slow, cache(tmp_path)).method == "contiguous"
    partition(A, 3, "metis", cache=cache(tmp_path))
    assert partition(A, 3, "auto", slow, cache(tmp_path)).method == "metis"


def test_another_pattern_or_number_of_parts_is_another_file(tmp_path: Path) -> None:
    B = shuffled(2)
    for matrix, pes in ((A, 2), (A, 3), (B, 3)):
        part = partition(matrix, pes, "metis", cache=cache(tmp_path, matrix)).part
        assert part.max() == pes - 1
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("where", ["flip", "cut", "empty", "head"])
def test_damaged_file_is_told_and_made_anew(where: str, tmp_path: Path) -> None:
    found = partition(A, 3, "metis", cache=cache(tmp_path))
    (file,) = tmp_path.iterdir()
    good = file.read_bytes()
    flipped = bytearray(good)
    flipped[-5] ^= 1
    damaged = {"flip": bytes(flipped), "cut": good[:-8], "empty": b"", "head": b"{" + good}
    file.write_bytes(damaged[where])
    again = partition(A, 3, "metis", cache=cache(tmp_path))
    assert (again.part == found.part).all()
    assert [note for note in again.notes if "is damaged: it is made again" in note]
    assert len(again.notes) == 1
    assert file.read_bytes() == good


def test_folder_that_cannot_be_written_is_told_and_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    found = partition(A, 3, "metis", cache=cache(tmp_path / "file"))
    assert found.method == "metis"
    assert "cannot be " in found.notes[0]


def fill(folder: Path) -> None:
    for pes in (2, 3, 4):
        partition(A, pes, "metis", cache=cache(folder))


def test_processes_that_write_the_same_files_leave_whole_ones(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    team = [context.Process(target=fill, args=(tmp_path,)) for _ in range(2)]
    for process in team:
        process.start()
    for process in team:
        process.join(120)
    assert [process.exitcode for process in team] == [0, 0]
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".parts"] * 3
    for pes in (2, 3, 4):
        assert partition(A, pes, "metis", cache=cache(tmp_path)).notes == ()


def test_solver_keeps_partitions_and_warns_of_damaged_ones(tmp_path: Path) -> None:
    def solve() -> cpufree.Result:
        return cpufree.solve(
            A.to_scipy(), np.ones(900), pes=2, partition="metis", partition_cache=tmp_path
        )

    first = solve()
    (file,) = tmp_path.iterdir()
    assert solve().x.tobytes() == first.x.tobytes()
    file.write_bytes(b"nothing")
    assert any("is damaged" in warning for warning in solve().warnings)
