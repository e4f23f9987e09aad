"""The quick reader of Matrix Market bodies: the same matrices and errors as the careful one."""

from __future__ import annotations

import gzip
import io
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from cpufree.errors import FileFormatError
from cpufree.matrix.io import entry_lines, matrix_market
from cpufree.matrix.io.entry_lines import blocks_ahead
from cpufree.matrix.load import load_matrix
from cpufree.matrix.problem import CsrMatrix

HEAD = "%%MatrixMarket matrix coordinate {}\n"


def random_matrix(n: int = 300) -> sp.coo_array:
    """Return a symmetric matrix with values of many digits, in no order."""
    half = sp.random_array((n, n), density=0.05, rng=np.random.default_rng(4))
    whole = sp.coo_array(half + half.T)
    order = np.random.default_rng(5).permutation(whole.nnz)
    where = (whole.row[order], whole.col[order])
    return sp.coo_array((whole.data[order] * 1e5, where), shape=(n, n))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_lines, "BLOCK", 100)


def slowly(path: Path, monkeypatch: pytest.MonkeyPatch) -> sp.csr_array:
    """Return what the careful reader reads."""
    with monkeypatch.context() as context:
        context.setattr(matrix_market, "read_entries", lambda *_: None)
        return load_matrix(path)


def same(one: sp.csr_array, two: sp.csr_array) -> bool:
    """Return whether matrices have the same bits."""
    pairs = ((one.indptr, two.indptr), (one.indices, two.indices), (one.data, two.data))
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
@pytest.mark.usefixtures("small_blocks")
def test_both_readers_read_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, symmetry: str, field: str
) -> None:
    A = random_matrix()
    A.data = A.data if field == "real" else np.round(A.data)
    for name in ("a.mtx", "a.mtx.gz"):
        scipy.io.mmwrite(tmp_path / "a.mtx", A, field=field, symmetry=symmetry, precision=17)
        (tmp_path / "a.mtx.gz").write_bytes(gzip.compress((tmp_path / "a.mtx").read_bytes()))
        careful = slowly(tmp_path / name, monkeypatch)
        with monkeypatch.context() as context:
            context.setattr(matrix_market, "_Body", None)  # the careful one is not asked
            assert same(load_matrix(tmp_path / name), careful)
        assert careful.nnz > 1000


@pytest.mark.parametrize(
    "body",
    [
        "1 1 1.5D0\n2 2 2\n",
        "1 1 +1\n2 2 -2e+0\n",
        "\n1 1 1\n\n2 2 2\n\n",
        "1 1 1\r\n2 2 2\r\n",
        "1 1 1\n2 2 2",
        "1 1 1\n1 1 2\n",
        "2 1 1e-310\n1 2 1e-999\n",
    ],
)
def test_unusual_spellings_mean_what_they_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    (tmp_path / "a.mtx").write_bytes((HEAD.format("real general") + "2 2 2\n" + body).encode())
    assert same(load_matrix(tmp_path / "a.mtx"), slowly(tmp_path / "a.mtx", monkeypatch))


@pytest.mark.parametrize(
    "body",
    ["1 1 1\n2 2\n", "1 1 1\n3 2 1\n", "1 1 1\n", "1 1 1\n2 2 2\n1 2 3\n", "1 1 1\n2 2 x\n"],
)
@pytest.mark.usefixtures("small_blocks")
def test_errors_are_those_of_the_careful_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    (tmp_path / "a.mtx").write_text(HEAD.format("real general") + "2 2 2\n" + body)
    with pytest.raises(FileFormatError) as quick:
        load_matrix(tmp_path / "a.mtx")
    with pytest.raises(FileFormatError) as careful:
        slowly(tmp_path / "a.mtx", monkeypatch)
    assert str(quick.value) == str(careful.value)


@pytest.mark.usefixtures("small_blocks")
def test_a_damaged_gzip_file_is_named(tmp_path: Path) -> None:
    text = HEAD.format("real general") + "2000 2000 2000\n"
    text += "".join(f"{k} {k} {k / 7}\n" for k in range(1, 2001))
    whole = gzip.compress(text.encode())
    (tmp_path / "a.mtx.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileFormatError, match=r"a\.mtx\.gz"):
        load_matrix(tmp_path / "a.mtx.gz")


def test_entries_out_of_order_become_rows_at_once(tmp_path: Path) -> None:
    A = random_matrix()
    scipy.io.mmwrite(tmp_path / "a.mtx", A, symmetry="general", precision=17)
    found = matrix_market.read_matrix_market(tmp_path / "a.mtx")
    assert isinstance(found, CsrMatrix)
    rows = sp.csr_array(A)
    rows.sort_indices()
    assert np.array_equal(found.indptr, rows.indptr)
    assert np.array_equal(found.indices, rows.indices)
    assert np.array_equal(found.data, rows.data)


@pytest.mark.usefixtures("small_blocks")
def test_blocks_are_whole_lines_and_nothing_is_lost() -> None:
    text = b"".join(b"%d %d\n" % (k, k * k) for k in range(500)) + b"the last"
    blocks = list(blocks_ahead(io.BytesIO(text)))
    assert len(blocks) > 10
    assert all(block.endswith(b"\n") for block in blocks)
    assert b"".join(blocks) == text + b"\n"


@pytest.mark.usefixtures("small_blocks")
def test_a_block_is_read_by_a_thread_while_another_is_used() -> None:
    readers: set[Any] = set()

    class Watched(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            readers.add(threading.current_thread())
            return super().read(size)

    with_threads = list(blocks_ahead(Watched(b"1 2 3\n" * 100)))
    assert len(with_threads) > 3
    assert len(readers) > 2
    assert threading.active_count() < 20
    assert not any(thread.is_alive() for thread in readers - {threading.main_thread()})


@pytest.mark.usefixtures("small_blocks")
def test_who_stops_early_leaves_no_thread_with_the_file() -> None:
    file = io.BytesIO(b"1 2 3\n" * 1000)
    blocks = blocks_ahead(file)
    next(blocks)
    blocks.close()
    place = file.tell()
    assert file.tell() == place <= 300


def test_a_file_that_cannot_be_wound_back_is_read_carefully() -> None:
    class Stream(io.BytesIO):
        def seekable(self) -> bool:
            return False

    text = (HEAD.format("real general") + "1 1 1\n1 1 2.5\n").encode()
    found = matrix_market.parse_matrix_market("a.mtx", Stream(text), len(text))
    assert isinstance(found, sp.coo_array)
    assert found.toarray() == [[2.5]]
