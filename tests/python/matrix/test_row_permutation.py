"""Files in which the rows of a part lie together: `cpufree convert`, and ranks that read them."""

from __future__ import annotations

import struct
import zlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from cli_runner import Run, runner
from ranks_here import launched, team, team_of

import cpufree
from cpufree.cli.distributed_input import DistributedInput, standard_normal_at
from cpufree.errors import FileFormatError, VectorError
from cpufree.matrix.cache import CachedRows, read_cache, read_parts, write_cache
from cpufree.matrix.load import as_csr
from cpufree.matrix.problem import CsrMatrix
from cpufree.matrix.row_permutation import RowPermutation
from cpufree.partition.files import load_partition
from cpufree.partition.methods import choose_order

ROWS = 90
PART = np.random.default_rng(5).integers(0, 3, ROWS).astype(np.int32)

FIRST = int(np.flatnonzero(PART == 0)[0])  # the row that lies first


def scattered() -> sp.csr_array:
    """Return a Poisson matrix whose rows are numbered in a random order."""
    order = np.random.default_rng(4).permutation(ROWS)
    return cpufree.generate.poisson2d(10, 9)[order][:, order]


@pytest.fixture(scope="module")
def matrix() -> CsrMatrix:
    return as_csr(scattered())


@pytest.fixture
def file(tmp_path: Path, matrix: CsrMatrix) -> Path:
    """A file in which the rows of three parts lie together."""
    write_cache(tmp_path / "A3.cpufree", matrix, RowPermutation.of(PART, 3, None))
    return tmp_path / "A3.cpufree"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line with given words."""
    return runner(capsys, monkeypatch)


def same(A: CsrMatrix, B: CsrMatrix) -> bool:
    """Whether two matrices have the same arrays."""
    names = ("indptr", "indices", "data")
    return all(np.array_equal(getattr(A, name), getattr(B, name)) for name in names)


# -- the order --


@pytest.mark.parametrize("reorder", ["natural", "rcm"])
def test_rows_of_a_part_follow_one_another_in_their_order(matrix: CsrMatrix, reorder: str) -> None:
    order = choose_order(matrix, PART, reorder).order
    found = RowPermutation.of(PART, 4, order)
    assert found.starts.tolist() == [0, *np.cumsum(np.bincount(PART, minlength=4))]
    sequence = np.arange(ROWS) if order is None else order
    expected = [row for part in range(3) for row in sequence if PART[row] == part]
    assert found.numbers.tolist() == expected
    assert np.array_equal(found.part(), PART)


def test_an_arranged_matrix_is_the_permuted_one_and_comes_back(matrix: CsrMatrix) -> None:
    permutation = RowPermutation.of(PART, 3, None)
    permuted = permutation.permuted(matrix)
    dense, numbers = matrix.to_scipy().toarray(), permutation.numbers
    assert np.array_equal(permuted.to_scipy().toarray(), dense[numbers][:, numbers])
    assert same(permutation.restored(permuted), matrix)


# -- the file --


def test_a_file_gives_matrix_and_parts_as_rows_are_numbered(file: Path, matrix: CsrMatrix) -> None:
    assert same(read_cache(file), matrix)
    assert np.array_equal(read_parts(file), PART)
    assert np.array_equal(load_partition(file, 3), PART)


def test_file_with_parts_is_laid_out_as_specified(file: Path, matrix: CsrMatrix) -> None:
    # Written from docs/input.md, not from the code.
    data = file.read_bytes()
    version, size = struct.unpack_from("<I", data, 8)[0], struct.unpack_from("<Q", data, 64)[0]
    indptr, indices, values = struct.unpack_from("<QQQ", data, 40)
    crc_starts, crc_numbers, parts, starts, numbers = struct.unpack_from("<IIIQQ", data, 84)
    assert (version, parts, size) == (2, 3, len(data))
    assert 128 == indptr < indices < values < starts < numbers
    assert all(offset % 64 == 0 for offset in (starts, numbers, size))
    assert data[112:124] == bytes(12)
    first = np.frombuffer(data, "<i8", 4, starts)
    lies = np.frombuffer(data, "<i4", ROWS, numbers)
    assert zlib.crc32(first.tobytes()) == crc_starts
    assert zlib.crc32(lies.tobytes()) == crc_numbers
    assert first.tolist() == [0, *np.cumsum(np.bincount(PART))]
    assert np.array_equal(PART[lies], np.sort(PART))
    row = np.frombuffer(data, "<i8", 2, indptr)
    columns = np.frombuffer(data, "<i4", row[1], indices)
    assert sorted(lies[columns]) == matrix.to_scipy()[[lies[0]]].indices.tolist()


def forge(file: Path, array: int, place: int, value: bytes) -> None:
    """Change starts (3) or numbers (4) of a file, and make the checksums right."""
    data = bytearray(file.read_bytes())
    offset = struct.unpack_from("<QQ", data, 96)[array - 3]
    data[offset + place : offset + place + len(value)] = value
    size = 8 * 4 if array == 3 else 4 * ROWS
    crc = zlib.crc32(bytes(data[offset : offset + size]))
    data[84 + 4 * (array - 3) : 88 + 4 * (array - 3)] = struct.pack("<I", crc)
    data[124:128] = struct.pack("<I", zlib.crc32(bytes(data[:124])))
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("array", "place", "value", "complaint"),
    [
        (3, 0, 1, "its parts do not run from row 0 to row 90"),
        (3, 8, 91, "its parts do not run from row 0 to row 90"),
        (4, 0, -1, "a row has a number that is not from 0 to 89"),
        (4, 4, 90, "a row has a number that is not from 0 to 89"),
        (4, 4, FIRST, "a row is there twice"),
    ],
)
def test_parts_that_cannot_be_are_refused(
    file: Path, array: int, place: int, value: int, complaint: str
) -> None:
    forge(file, array, place, value.to_bytes(8 if array == 3 else 4, "little", signed=True))
    with pytest.raises(FileFormatError, match=complaint):
        read_cache(file)


@pytest.mark.parametrize(("array", "name"), [(3, "starts"), (4, "numbers")])
def test_damaged_parts_are_named(file: Path, array: int, name: str) -> None:
    data = bytearray(file.read_bytes())
    data[struct.unpack_from("<QQ", data, 96)[array - 3]] ^= 4
    file.write_bytes(data)
    with pytest.raises(FileFormatError, match=f"the checksum of {name} does not match"):
        read_cache(file)


def test_a_file_without_parts_is_no_partition(tmp_path: Path, matrix: CsrMatrix) -> None:
    write_cache(tmp_path / "A.cpufree", matrix)
    with pytest.raises(FileFormatError, match="holds no partition: 'cpufree convert --parts N'"):
        load_partition(tmp_path / "A.cpufree")


# -- rows of a file --


def test_ranks_take_the_parts_where_their_number_fits(file: Path) -> None:
    rows = CachedRows(file)
    starts = [0, *np.cumsum(np.bincount(PART)).tolist()]
    assert [rows.range_of(part, 3) for part in range(3)] == [*pairwise(starts)]
    assert rows.note(3) == ""
    assert rows.numbers(*rows.range_of(1, 3)).tolist() == np.flatnonzero(PART == 1).tolist()


def test_other_numbers_of_ranks_cut_anew_and_say_so(file: Path, matrix: CsrMatrix) -> None:
    rows = CachedRows(file)
    (first, cut), (again, last) = rows.range_of(0, 2), rows.range_of(1, 2)
    assert (first, again, last) == (0, cut, ROWS)
    assert abs(rows.entries_before(cut) - matrix.nnz / 2) <= 5
    assert "has its rows in 3 parts, not in 2" in rows.note(2)


def test_wrong_numbers_of_own_rows_are_refused(file: Path) -> None:
    forge(file, 4, 4, struct.pack("<i", FIRST))
    with pytest.raises(FileFormatError, match="rows 0 to 9 have wrong numbers"):
        CachedRows(file).numbers(0, 10)


def test_vectors_of_own_rows_are_taken_from_their_places(file: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", np.arange(float(ROWS)))
    own = DistributedInput(CachedRows(file), team_of(1, ("here",) * 3))
    numbers = np.flatnonzero(PART == 1)
    assert own.vector(str(tmp_path / "b.npy")).tolist() == numbers.tolist()
    stream = np.random.default_rng(0).standard_normal(ROWS)
    assert np.array_equal(own.right_hand_side("random"), stream[numbers])
    where, values = own.places(2.0 * numbers)
    assert np.array_equal(values, 2.0 * where)


def test_an_entry_that_is_not_finite_has_its_number_in_the_file(file: Path, tmp_path: Path) -> None:
    numbers = np.flatnonzero(PART == 1)
    v = np.ones(ROWS)
    v[numbers[3]] = np.inf
    np.save(tmp_path / "b.npy", v)
    own = DistributedInput(CachedRows(file), team_of(1, ("here",) * 3))
    with pytest.raises(VectorError, match=rf"b\.npy\[{numbers[3]}\] = inf is not a finite number"):
        own.vector(str(tmp_path / "b.npy"))


def test_scattered_entries_of_the_random_vector_are_those_of_all_of_it() -> None:
    whole = np.random.default_rng(0).standard_normal(2_200_000)
    numbers = np.array([0, 5, 1_048_575, 1_048_576, 2_199_999])
    assert np.array_equal(standard_normal_at(numbers), whole[numbers])
    assert standard_normal_at(numbers[:0]).size == 0


# -- processes --


def test_own_rows_by_parts_give_the_bits_of_the_whole_matrix(place: str, tmp_path: Path) -> None:
    ended = team("rows_by_parts", place, TEST_FOLDER=str(tmp_path))
    assert [end.out for end in ended] == ["the same bits\n"] * 3, ended


def test_solve_takes_and_gives_vectors_in_the_order_of_the_matrix(
    run: Run, file: Path, tmp_path: Path
) -> None:
    b, x0 = tmp_path / "b.npy", tmp_path / "x0.npy"
    np.save(b, np.sin(np.arange(float(ROWS))))
    np.save(x0, np.cos(np.arange(float(ROWS))))
    words = ["solve", file, "--rhs", b, "--x0", x0, "--rtol", "1e-9", "--blocks", 1, "--no-check"]
    words = [*map(str, words), "--out"]
    own = [*words, str(tmp_path / "own.npy"), "--input", "rows", "--engine", "cpu_processes"]
    assert launched(*own).code == 0
    whole = [*words, tmp_path / "whole.npy", "--partition", file, "--engine", "cpu_threads"]
    assert run(*whole).code == 0
    x = np.load(tmp_path / "own.npy")
    assert x.tobytes() == np.load(tmp_path / "whole.npy").tobytes()
    assert np.linalg.norm(np.load(b) - scattered() @ x) <= 1e-8


def test_ranks_that_do_not_fit_the_parts_solve_and_say_so(file: Path, tmp_path: Path) -> None:
    words = ("--input", "rows", "--engine", "cpu_processes", "--out", str(tmp_path / "x.npy"))
    ended = launched("solve", str(file), *words, ranks=2)
    assert ended.code == 0, ended
    assert "has its rows in 3 parts, not in 2" in " ".join(ended.out.split())
    x = np.load(tmp_path / "x.npy")
    assert np.linalg.norm(1.0 - scattered() @ x) <= 1e-4 * np.sqrt(ROWS)


# -- cpufree convert --


@pytest.mark.parametrize("suffix", [".mtx.gz", ".npz", ".cpufree"])
def test_convert_writes_the_same_matrix_in_another_format(
    run: Run, tmp_path: Path, matrix: CsrMatrix, suffix: str
) -> None:
    scipy.io.mmwrite(tmp_path / "A.mtx", scattered())
    ended = run("convert", tmp_path / "A.mtx", "--out", tmp_path / f"B{suffix}")
    assert ended.code == 0, ended
    assert "90 rows" in ended.out
    assert same(as_csr(cpufree.load_matrix(tmp_path / f"B{suffix}")), matrix)


def test_convert_brings_the_rows_of_parts_together(run: Run, tmp_path: Path) -> None:
    scipy.io.mmwrite(tmp_path / "A.mtx", scattered())
    ended = run("convert", tmp_path / "A.mtx", "--parts", 4, "--out", tmp_path / "A4.cpufree")
    assert ended.code == 0, ended
    assert "4 parts" in ended.out
    assert "halo volume" in ended.out
    part = load_partition(tmp_path / "A4.cpufree")
    with cpufree.Solver(scattered(), pes=4, engine="cpu_threads") as solver:
        assert solver.plan["rows"] == np.bincount(part).tolist()


def test_convert_takes_a_partition_and_an_order(
    run: Run, tmp_path: Path, matrix: CsrMatrix
) -> None:
    scipy.io.mmwrite(tmp_path / "A.mtx", scattered())
    np.savetxt(tmp_path / "A.part.3", PART, fmt="%d")
    words = ("--partition", tmp_path / "A.part.3", "--reorder", "rcm")
    assert run("convert", tmp_path / "A.mtx", *words, "--out", tmp_path / "A.cpufree").code == 0
    order = RowPermutation.of(PART, 3, choose_order(matrix, PART, "rcm").order).numbers
    assert np.array_equal(CachedRows(tmp_path / "A.cpufree").numbers(0, ROWS), order)


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (("--parts", "2", "--out", "B.npz"), 3, ".cpufree files alone have them"),
        (("--partition", "metis", "--out", "B.cpufree"), 2, "give the number of parts, too"),
        (("--out", "A.npz"), 3, "'A.npz' holds what is to be read"),
        (("--out", "B.mat"), 3, "the name must end in one of"),
        (("--partition", "short.npy", "--out", "B.cpufree"), 3, "short.npy has 89 part numbers"),
    ],
)
def test_convert_refuses_before_it_writes(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    code: int,
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    sp.save_npz("A.npz", scattered())
    np.save("short.npy", PART[1:])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    ended = run("convert", "A.npz", *words)
    assert ended.code == code, ended
    assert complaint in " ".join(ended.err.split())
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_convert_refuses_parts_of_what_solve_refuses(run: Run, tmp_path: Path) -> None:
    sp.save_npz(tmp_path / "A.npz", sp.csr_array([[1.0, 2.0], [3.0, 4.0]]))
    words = (tmp_path / "A.npz", "--parts", 1, "--out", tmp_path / "B.cpufree")
    ended = run("convert", *words)
    assert ended.code == 3
    assert "not symmetric" in ended.err
    assert run("convert", *words, "--no-check").code == 0
