"""Matrix Market files: every kind that can hold a real matrix, and a reason for every other."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cpufree.errors import CpufreeError, DiagonalError, FileFormatError, MatrixError
from cpufree.matrix.io.matrix_market import read_matrix_market
from cpufree.matrix.load import load_matrix

GENERAL = "%%MatrixMarket matrix coordinate real general\n"
SYMMETRIC = "%%MatrixMarket matrix coordinate real symmetric\n"
ARRAY = "%%MatrixMarket matrix array real general\n"
Load = Callable[[str | bytes], np.ndarray]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Write a text to a file and load it as a dense matrix."""

    def load_text(text: str | bytes) -> np.ndarray:
        (tmp_path / "a.mtx").write_bytes(text.encode() if isinstance(text, str) else text)
        return load_matrix(tmp_path / "a.mtx").toarray()  # type: ignore[no-any-return]

    return load_text


def message(load: Load, text: str | bytes, kind: type[CpufreeError] = FileFormatError) -> str:
    """Return the message with which a text is refused, without the path in front."""
    with pytest.raises(kind) as caught:
        load(text)
    path, _, rest = str(caught.value).partition("a.mtx: ")
    assert path.startswith("/")
    return rest


# What is read


@pytest.mark.parametrize("field", ["real", "double", "integer", "unsigned-integer"])
def test_general(load: Load, field: str) -> None:
    text = f"%%MatrixMarket matrix coordinate {field} general\n2 2 3\n1 1 4\n1 2 1\n2 2 3\n"
    assert load(text).tolist() == [[4.0, 1.0], [0.0, 3.0]]


@pytest.mark.parametrize("symmetry", ["symmetric", "hermitian"])
def test_symmetric_lower_triangle_is_mirrored(load: Load, symmetry: str) -> None:
    text = f"%%MatrixMarket matrix coordinate real {symmetry}\n2 2 3\n1 1 4\n2 1 1\n2 2 3\n"
    assert load(text).tolist() == [[4.0, 1.0], [1.0, 3.0]]


def test_symmetric_upper_triangle_is_mirrored(load: Load) -> None:
    assert load(SYMMETRIC + "2 2 3\n1 1 4\n1 2 1\n2 2 3\n").tolist() == [[4.0, 1.0], [1.0, 3.0]]


def test_pattern_has_ones(load: Load) -> None:
    text = "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 3\n1 1\n2 1\n2 2\n"
    assert load(text).tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_array_is_column_by_column(load: Load) -> None:
    assert load(ARRAY + "2 2\n1\n2\n3\n4\n").tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_array_with_several_numbers_on_a_line(load: Load) -> None:
    assert load(ARRAY + "2 2\n1 2\n3\t4\n").tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_symmetric_array_is_the_lower_triangle(load: Load) -> None:
    text = ARRAY.replace("general", "symmetric") + "2 2\n1\n2\n3\n"
    assert load(text).tolist() == [[1.0, 2.0], [2.0, 3.0]]


@pytest.mark.parametrize(
    "banner", [GENERAL.upper(), GENERAL.lower(), GENERAL[1:], "%" + GENERAL[1:]]
)
def test_banner_in_any_case(load: Load, banner: str) -> None:
    assert load(banner + "1 1 1\n1 1 5\n").tolist() == [[5.0]]


@pytest.mark.parametrize(
    "body",
    [
        "1 1 1\n1 1 5",
        "1 1 1\r\n1 1 5\r\n",
        "% a comment\n%another\n1 1 1\n1 1 5\n",
        "\n1 1 1\n\n1 1 5\n\n \n",
        "  1\t1  1 \n\t1 1   5 \t\n",
    ],
)
def test_layout_does_not_matter(load: Load, body: str) -> None:
    assert load(GENERAL + body).tolist() == [[5.0]]


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("-2.5", -2.5),
        ("+2.5", 2.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1e3),
        ("1E-3", 1e-3),
        ("+1.0D+02", 100.0),
        ("1.5d-1", 0.15),
        ("0.1000-100", 0.1e-100),
        ("-.25+101", -0.25e101),
        ("0.1", 0.1),
        ("1e-400", 0.0),
        ("9007199254740993", 9007199254740992.0),
        ("1e999", np.inf),
        ("-inf", -np.inf),
        ("-Infinity", -np.inf),
    ],
)
def test_spelling_of_numbers(load: Load, word: str, value: float) -> None:
    assert load(GENERAL + f"1 1 1\n1 1 {word}\n").tolist() == [[value]]


def test_nan_is_read_for_the_checks_to_name(load: Load) -> None:
    assert np.isnan(load(GENERAL + "1 1 1\n1 1 nan\n")[0, 0])


def test_plus_signs_before_indices(load: Load) -> None:
    assert load(GENERAL + "1 1 1\n+1 +1 +5\n").tolist() == [[5.0]]


def test_entries_given_twice_are_summed(load: Load) -> None:
    assert load(GENERAL + "1 1 2\n1 1 5\n1 1 2\n").tolist() == [[7.0]]


@pytest.mark.parametrize(("open_file", "suffix"), [(gzip.open, ".gz"), (bz2.open, ".bz2")])
def test_large_compressed_file_is_read_block_by_block(
    tmp_path: Path, open_file: Callable, suffix: str
) -> None:
    n = 60_000
    lines = "".join(f"{i} {i} {i}.{i}\n" for i in range(1, n + 1))
    assert len(lines) > 4 * 2**18
    with open_file(tmp_path / f"a.mtx{suffix}", "wt") as file:
        file.write(f"{SYMMETRIC}{n} {n} {n}\n{lines}")
    expected = np.array([float(f"{i}.{i}") for i in range(1, n + 1)])
    assert np.array_equal(load_matrix(tmp_path / f"a.mtx{suffix}").diagonal(), expected)


# What cannot be solved


def test_complex_entries_are_read(load: Load) -> None:
    lines = "2 2 3\n1 1 2.5 0\n2 1 +1.D0 -3e0\n2 2 4 0\n"
    half = load(f"%%MatrixMarket matrix coordinate complex hermitian\n{lines}")
    assert half.tolist() == [[2.5, 1 + 3j], [1 - 3j, 4]]
    same = load(f"%%MatrixMarket matrix coordinate complex symmetric\n{lines}")
    assert same.tolist() == [[2.5, 1 - 3j], [1 - 3j, 4]]
    numbers = "2 2\n2.5 0 1 -3\n4\n0\n"
    full = load(f"%%MatrixMarket matrix array complex hermitian\n{numbers}")
    assert full.tolist() == half.tolist()


@pytest.mark.parametrize("line", ["1 1 1", "1 1 1 0 0", "1.5 1 1 0", "1 1.0 1 0", "1 1 1 0 2 1"])
def test_lines_that_are_no_complex_entries_are_named(load: Load, line: str) -> None:
    text = f"%%MatrixMarket matrix coordinate complex general\n1 1 1\n{line}\n"
    found = message(load, text, FileFormatError)
    assert "line 3: row, column, real and imaginary part expected" in found


def test_rejects_skew_symmetric_matrix(load: Load) -> None:
    text = "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 3\n"
    assert message(load, text, MatrixError).startswith("skew-symmetric (A = -A.T)")


def test_rejects_rectangular_matrix(load: Load) -> None:
    text = GENERAL + "2 3 1\n2 1 3\n"
    assert message(load, text, MatrixError).startswith("the matrix is rectangular, 2 x 3")


def test_rejects_empty_matrix(load: Load) -> None:
    assert "0 x 0" in message(load, GENERAL + "0 0 0\n", MatrixError)


def test_rejects_more_rows_than_can_be_numbered(load: Load) -> None:
    text = GENERAL + "1000000000000 1000000000000 1\n1 1 1\n"
    assert message(load, text, MatrixError).startswith("index overflow: the matrix has 1000000000")


def test_rejects_more_rows_than_entries_before_allocating_rows(load: Load) -> None:
    text = GENERAL + "2000000000 2000000000 1\n1 1 1\n"
    assert "only 1 entries" in message(load, text, DiagonalError)


def test_rejects_more_entries_than_the_file_can_hold_before_allocating_them(load: Load) -> None:
    text = GENERAL + "2 2 1000000000000\n1 1 1\n"
    assert "promises 1000000000000 entries, which a file of" in message(load, text)


def test_rejects_array_larger_than_the_file(load: Load) -> None:
    text = ARRAY + "1000000 1000000\n1\n"
    assert "promises 1000000000000 entries" in message(load, text)


def test_rejects_symmetric_file_with_both_triangles(load: Load) -> None:
    found = message(load, SYMMETRIC + "2 2 4\n1 1 4\n1 2 1\n2 1 1\n2 2 3\n")
    assert "both entry (row 1, column 0) and entry (row 0, column 1)" in found
    assert "write 'general' for 'symmetric'" in found


# What is no Matrix Market file


@pytest.mark.parametrize("text", ["hello\n", "\0" * 100, " \ufeff" + GENERAL, "%%MatrixMarket\n"])
def test_rejects_file_without_banner(load: Load, text: str) -> None:
    assert message(load, text).startswith("not a Matrix Market file: the first line must read")


@pytest.mark.parametrize(
    ("banner", "what"),
    [
        ("%%MatrixMarket vector coordinate real general", "unknown object 'vector'"),
        ("%%MatrixMarket matrix sparse real general", "unknown format 'sparse'"),
        ("%%MatrixMarket matrix coordinate quaternion general", "unknown field 'quaternion'"),
        ("%%MatrixMarket matrix coordinate real upper", "unknown symmetry 'upper'"),
        ("%%MatrixMarket matrix array pattern general", "an array cannot be a pattern"),
    ],
)
def test_rejects_unknown_word_in_the_banner(load: Load, banner: str, what: str) -> None:
    assert message(load, banner + "\n1 1 1\n1 1 1\n").startswith(f"line 1: {what}")


def test_rejects_file_that_ends_before_the_sizes(load: Load) -> None:
    assert "truncated: there is no line with the sizes" in message(load, GENERAL + "% comment\n")


@pytest.mark.parametrize(
    "sizes", ["2 2", "2 2 2 2", "2 2 -2", "2.0 2 2", "a b c", "9" * 20 + " 1 1"]
)
def test_rejects_bad_sizes_with_their_line(load: Load, sizes: str) -> None:
    found = message(load, GENERAL + f"%\n{sizes}\n1 1 1\n")
    assert found.startswith(
        f"line 3: rows columns entries expected, all whole numbers, found '{sizes}"
    )


def test_rejects_symmetric_array_that_is_not_square(tmp_path: Path) -> None:
    file = tmp_path / "a.mtx"
    file.write_text("%%MatrixMarket matrix array real symmetric\n2 3\n1\n2\n3\n4\n5\n6\n")
    with pytest.raises(FileFormatError, match="says symmetric, but 2 x 3 is not square"):
        read_matrix_market(file, square=False)


# What the body may not hold


@pytest.mark.parametrize(
    "entry",
    [
        "1 1 2,5",
        "1 1 1 1",
        "1 1",
        "1 1 2;",
        "1 1 two",
        "1 1 2\0",
        "1.0 1 2",
        "1 1e0 2",
        "1 1 1-5",
        "1 1 1.2.3",
        "1 1 1e5e5",
        "1 1 1e",
        "1 1 --1",
        "1 1 0x10",
        "1 1 1_000",
        "% 1 1 2",
        "1 1 fiat",
        "1 1 infinit",
        "1 1 nannan",
    ],
)
def test_rejects_bad_entry_with_its_line(load: Load, entry: str) -> None:
    found = message(load, GENERAL + f"%\n2 2 3\n1 1 1\n2 2 1\n{entry}\n")
    assert found.startswith("line 6: row, column and a real number expected")
    assert repr(entry) in found


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("3 1 1", "Line 6: Row index out of bounds"),
        ("1 3 1", "Line 6: Column index out of bounds"),
        ("0 1 1", "line 6: row 0, column 1: rows and columns count from 1 in this format"),
        ("1\t00 1", "line 6: row 1, column 00: rows and columns count from 1 in this format"),
        ("-1 1 1", "Line 6: Row index out of bounds"),
        ("99999999999999999999 1 1", "Line 6: Integer out of range"),
        ("1 1 .", "Line 6: Invalid floating-point value"),
    ],
)
def test_rejects_entry_out_of_range_with_its_line(load: Load, entry: str, why: str) -> None:
    assert why in message(load, GENERAL + f"%\n2 2 3\n1 1 1\n2 2 1\n{entry}\n")


def test_rejects_fraction_in_an_integer_file(load: Load) -> None:
    text = GENERAL.replace("real", "integer") + "1 1 1\n1 1 1.5\n"
    assert message(load, text).startswith("line 3: row, column and a whole number expected")


def test_rejects_values_in_a_pattern_file(load: Load) -> None:
    text = GENERAL.replace("real", "pattern") + "1 1 1\n1 1 1\n"
    assert message(load, text).startswith("line 3: row and column expected")


def test_rejects_too_few_entries(load: Load) -> None:
    assert "Truncated file" in message(load, GENERAL + "2 2 3\n1 1 2\n2 2 3\n")


def test_rejects_too_many_entries_and_counts_them_as_the_header_does(load: Load) -> None:
    found = message(load, GENERAL + "2 2 1\n1 1 2\n2 2 3\n")
    assert "too long: the header promises 1 entry, and there are more" in found


def test_rejects_two_entries_on_one_line(load: Load) -> None:
    assert message(load, GENERAL + "2 2 2\n1 1 2 2 2 3\n").startswith("line 3:")


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_rejects_array_that_is_too_short(load: Load, symmetry: str) -> None:
    text = ARRAY.replace("general", symmetry) + "2 2\n1\n2\n"
    assert "truncated" in message(load, text).lower()


def test_rejects_array_that_is_too_long(load: Load) -> None:
    assert "too long" in message(load, ARRAY + "2 2\n1\n2\n3\n4\n5\n")


@pytest.mark.parametrize("word", ["1-100", "1.5-10", "1.5-1000", "1.5e5-100", "1.5-+100"])
def test_rejects_exponents_without_letter_that_fortran_does_not_print(
    load: Load, word: str
) -> None:
    found = message(load, GENERAL + f"1 1 1\n1 1 {word}\n")
    assert found.startswith("line 3: row, column and a real number expected")
    assert repr(f"1 1 {word}") in found


def test_mark_of_utf_8_before_the_banner_is_no_part_of_it(load: Load) -> None:
    assert load("\ufeff" + GENERAL + "1 1 1\n1 1 5\n").tolist() == [[5.0]]


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz", ".mtx.bz2"])
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, bytes])
def test_what_is_compressed_the_bytes_tell_and_not_the_name(
    tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]
) -> None:
    (tmp_path / f"a{suffix}").write_bytes(pack(f"{GENERAL}1 1 1\n1 1 5\n".encode()))
    assert load_matrix(tmp_path / f"a{suffix}").toarray().tolist() == [[5.0]]


def test_rejects_endless_comments(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.mtx.gz", "wb") as file:
        file.write(GENERAL.encode() + (b"%" + b"x" * 1000 + b"\n") * (17 << 10))
    with pytest.raises(FileFormatError, match="there is no line with the sizes"):
        load_matrix(tmp_path / "a.mtx.gz")


def test_rejects_endless_line(load: Load) -> None:
    text = ARRAY + "2000 2000\n" + "1 " * 4_000_000
    assert "longer than 1048576 characters" in message(load, text)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("filler", ["1", " ", "1 ", "1.", "n", "- "])
def test_long_bad_lines_are_refused_at_once(load: Load, filler: str) -> None:
    line = filler * (900_000 // len(filler)) + "x"
    assert message(load, f"{ARRAY}1000 1000\n{line}\n" + "1\n" * 10**6).startswith("line 3:")


# The check of lines, against the same rules number by number
