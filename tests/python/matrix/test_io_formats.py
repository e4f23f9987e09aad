"""Formats of others: archives of collections, Harwell-Boeing, standard input, tables."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from cpufree.errors import FileFormatError, MatrixError, VectorError
from cpufree.matrix.io.vectors import load_vector
from cpufree.matrix.load import as_csr, load_matrix

DENSE = np.array([[4.0, -1.0, 0.0], [-1.0, 4.25, -2.0], [0.0, -2.0, 5.0]])
SYMMETRIC = b"""%%MatrixMarket matrix coordinate real symmetric
3 3 5
1 1 4
2 1 -1
2 2 4.25
3 2 -2
3 3 5
"""
RIGHT = b"%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n"


def archive(path: Path, **files: bytes) -> Path:
    """Write an archive; `__` in a name stands for a slash, `_dot_` for a dot."""
    with tarfile.open(path, "w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name.replace("__", "/").replace("_dot_", "."))
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def refused(path: Path | str, kind: type[Exception] = FileFormatError) -> str:
    with pytest.raises(kind) as caught:
        load_matrix(path)
    return str(caught.value)


# Archives of the SuiteSparse collection


@pytest.mark.parametrize("suffix", [".tar.gz", ".tgz", ".TAR.GZ"])
def test_archive_gives_its_matrix_and_right_hand_side(tmp_path: Path, suffix: str) -> None:
    file = archive(
        tmp_path / f"pipe{suffix}",
        pipe__readme_dot_txt=b"about",
        pipe__pipe_coord_dot_mtx=RIGHT,
        pipe__pipe_b_dot_mtx=RIGHT,
        pipe__pipe_dot_mtx=SYMMETRIC,
    )
    assert np.array_equal(load_matrix(file).toarray(), DENSE)
    assert load_vector(file, 3).tolist() == [1.0, 2.0, 3.0]


def test_file_in_an_archive_can_be_named(tmp_path: Path) -> None:
    file = archive(tmp_path / "a.tar.gz", a__one_dot_mtx=SYMMETRIC, a__two_dot_mtx=RIGHT)
    message = refused(file)
    assert "no single NAME/NAME.mtx, a matrix; it holds a/one.mtx, a/two.mtx" in message
    assert "a.tar.gz#FILE" in message
    assert np.array_equal(load_matrix(f"{file}#a/one.mtx").toarray(), DENSE)
    assert load_vector(f"{file}#a/two.mtx", 3).tolist() == [1.0, 2.0, 3.0]
    assert "there is no 'a/three.mtx'" in refused(f"{file}#a/three.mtx")


def test_archive_without_a_right_hand_side_says_so(tmp_path: Path) -> None:
    file = archive(tmp_path / "a.tar.gz", a__a_dot_mtx=SYMMETRIC)
    with pytest.raises(FileFormatError, match=r"no single NAME/NAME_b\.mtx, a right-hand side"):
        load_vector(file, 3)


def test_errors_in_an_archive_name_the_file_in_it(tmp_path: Path) -> None:
    file = archive(tmp_path / "a.tar.gz", a__a_dot_mtx=SYMMETRIC[:-4] + b"x\n")
    assert "a.tar.gz#a/a.mtx: line 7: row, column and a real number expected" in refused(file)


def test_header_of_an_archive_that_wants_much_memory_is_refused(tmp_path: Path) -> None:
    member = tarfile.TarInfo("a/a.mtx")
    member.type, member.size = tarfile.GNUTYPE_LONGNAME, 1 << 30
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(member.tobuf() + bytes(1 << 20)))
    refused(tmp_path / "a.tar.gz")


def test_archive_of_many_files_is_refused(tmp_path: Path) -> None:
    file = archive(tmp_path / "a.tar.gz", **{f"f{k}": b"" for k in range(1100)})
    assert "holds more than 1000 files" in refused(file)


# Harwell-Boeing and Rutherford-Boeing

TITLE = "A pipe".ljust(72) + "PIPE    \n"


def rutherford(
    kind: str = "rsa",
    formats: str = "(4I2)           (5I2)           (1P,3D9.2)          ",
    pointers: str = " 1 3 5 6\n",
    indices: str = " 1 2 2 3 3\n",
    values: str = " 4.00D+00-1.00D+00 4.25D+00\n-2.00D+00 5.00D+00\n",
    sizes: str = "             3             3             5             0",
) -> str:
    counts = (pointers.count("\n"), indices.count("\n"), values.count("\n"))
    numbers = "".join(f"{count:14}" for count in (sum(counts), *counts))
    return f"{TITLE}{numbers}\n{kind:14}{sizes}\n{formats}\n{pointers}{indices}{values}"


@pytest.mark.parametrize("suffix", [".rb", ".hb", ".rsa"])
def test_symmetric_matrix_whose_numbers_touch(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"a{suffix}").write_text(rutherford())
    assert np.array_equal(load_matrix(tmp_path / f"a{suffix}").toarray(), DENSE)


def test_line_ends_of_dos_and_a_header_for_right_hand_sides(tmp_path: Path) -> None:
    lines = rutherford("RSA").split("\n")
    lines[1] += "             1"
    lines.insert(4, "F                          1             0")
    (tmp_path / "a.rsa").write_text("\r\n".join(lines))
    assert np.array_equal(load_matrix(tmp_path / "a.rsa").toarray(), DENSE)


@pytest.mark.parametrize(
    "changes",
    [
        {
            "formats": "(1X,4I2)        (1X,5I1)",
            "pointers": "  1 3 5 6\n",
            "indices": " 12233\n",
        },
        {"formats": "(4(1X,I1))      (5(1X,I1))"},
        {"formats": "(2(1X,I1),2I2)  (5I2)"},
        {"formats": "(*)             (*)"},
        {"formats": "(*)             (5I2)", "pointers": "1 3\n5   6\n"},
        {
            "formats": "(1X,2(I1))      (5I2)",  # goes on with the group, without the blank
            "pointers": "x13\n56\n".replace("x", " "),
        },
    ],
)
def test_formats_with_blanks_groups_and_none(tmp_path: Path, changes: dict[str, str]) -> None:
    formats = changes["formats"].ljust(32) + "(1P,3D9.2)"
    (tmp_path / "a.rb").write_text(rutherford(**{**changes, "formats": formats}))
    assert np.array_equal(load_matrix(tmp_path / "a.rb").toarray(), DENSE)


def test_exponents_of_three_digits_have_no_letter(tmp_path: Path) -> None:
    values = " 4.0-100-1.0-1004.25-100\n-2.0-100 5.0-100\n"
    (tmp_path / "a.rb").write_text(rutherford(formats="(4I2) (5I2) (3E8.2)", values=values))
    found = load_matrix(tmp_path / "a.rb").toarray()
    assert np.allclose(found * 1e100, DENSE, rtol=1e-15)


def test_what_scipy_writes_is_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    A = sp.random_array((40, 40), density=0.1, rng=rng, format="csc") + sp.eye_array(40)
    scipy.io.hb_write(tmp_path / "a.rua", sp.csc_matrix(A))
    assert np.array_equal(load_matrix(tmp_path / "a.rua").toarray(), A.toarray())


def test_pattern_has_ones(tmp_path: Path) -> None:
    text = rutherford("psa", formats="(4I2)           (5I2)", values="")
    (tmp_path / "a.rb").write_text(text)
    assert np.array_equal(load_matrix(tmp_path / "a.rb").toarray(), DENSE != 0)


@pytest.mark.parametrize(
    ("changes", "error", "why"),
    [
        ({"kind": "csa"}, MatrixError, "complex.*mmwrite"),
        ({"kind": "rza"}, MatrixError, "skew-symmetric"),
        ({"kind": "rse"}, FileFormatError, "stored by elements"),
        ({"kind": "xyz"}, FileFormatError, "'XYZ' is no type of matrix"),
        ({"kind": "rra", "sizes": " 3 4 5 0"}, MatrixError, "rectangular"),
        ({"pointers": " 1 5 3 6\n"}, FileFormatError, "column pointers do not rise"),
        ({"indices": " 1 2 2 3 9\n"}, FileFormatError, "row numbers are not all from 1 to 3"),
        ({"pointers": " 0 2 4 5\n"}, FileFormatError, "seems to count from 0: add 1 to both"),
        ({"indices": " 0 1 1 2 2\n"}, FileFormatError, "seems to count from 0: add 1 to both"),
        ({"formats": "(4(I2) (5I2) (3D9.2)"}, FileFormatError, "3 Fortran formats expected"),
        ({"formats": "(4(),I2) (5I2) (3D9.2)"}, FileFormatError, "a group of it is empty"),
        ({"formats": "(9(9999(9999I9))) (5I2) (3D9.2)"}, FileFormatError, "empty, or too long"),
        ({"formats": "(4I2/) (5I2) (3D9.2)"}, FileFormatError, r"'/\)' in it is not understood"),
        ({"formats": "(4I2) (5I2) (3I9)"}, FileFormatError, "real numbers are expected"),
        ({"indices": " 1 2 2 3\n"}, FileFormatError, "line 6: truncated: 5 numbers expected"),
        ({"values": " 4.00D+00\n"}, FileFormatError, "do not take the 1 lines"),
        (
            {"values": "     4D+0" * 3 + "\n" + "    -2D+0" * 2 + "\n"},
            FileFormatError,
            "no decimal",
        ),
        (
            {"values": "      nan" * 3 + "\n" + "      nan" * 2 + "\n"},
            FileFormatError,
            "numbers exp",
        ),
        ({"formats": "(4I2) (5I2) (3A9)"}, FileFormatError, r"Fortran format \(3A9\)"),
        ({"formats": "(4I2) (5I2) (1P,3F9.2)"}, FileFormatError, "scale factor"),
        ({"formats": "(4I2) (5I0) (3D9.2)"}, FileFormatError, "Fortran format"),
        ({"sizes": " 3 3 99999999999 0"}, FileFormatError, "do not take the 1 lines"),
    ],
)
def test_boeing_files_that_cannot_be_used(
    tmp_path: Path, changes: dict[str, str], error: type[Exception], why: str
) -> None:
    (tmp_path / "a.rb").write_text(rutherford(**changes))
    with pytest.raises(error, match=rf"a\.rb: .*{why}"):
        load_matrix(tmp_path / "a.rb")


# Standard input


class Input:
    """What `sys.stdin` is, with these bytes."""

    def __init__(self, data: bytes, terminal: bool = False) -> None:
        self.buffer = io.BytesIO(data)
        self.buffer.isatty = lambda: terminal  # type: ignore[method-assign]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_minus_is_matrix_market_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr("sys.stdin", Input(pack(SYMMETRIC)))
    assert np.array_equal(load_matrix("-").toarray(), DENSE)


@pytest.mark.parametrize(
    ("data", "terminal", "why"),
    [
        (b"", False, "-: standard input is empty"),
        (SYMMETRIC, True, "-: standard input is a terminal"),
        (SYMMETRIC[:-4] + b"x\n", False, "-: line 7: row, column and a real number expected"),
        (SYMMETRIC.replace(b" 5\n", b" 99999\n", 1), False, "-: truncated, or the header is wrong"),
    ],
)
def test_standard_input_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, data: bytes, terminal: bool, why: str
) -> None:
    monkeypatch.setattr("sys.stdin", Input(data, terminal))
    assert why in refused("-")


# Tables


@pytest.mark.parametrize(
    "text", ["1\n2.5\n-3\n", "b\n1\n2.5\n-3", "1, 2.5, -3\n", "\ufeff1\r\n2.5\r\n\r\n-3e0\r\n"]
)
def test_table_of_one_column_or_row_is_a_vector(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.csv").write_text(text, newline="")
    assert load_vector(tmp_path / "b.csv", 3).tolist() == [1.0, 2.5, -3.0]


@pytest.mark.parametrize(
    ("text", "error", "why"),
    [
        ("0,1\n1,2\n2,3\n", FileFormatError, "line 1: 2 columns, but a vector has one"),
        ("1\nx\n3\n", FileFormatError, "line 2: 'x': numbers expected"),
        ("1\n2\n", VectorError, "the matrix has 3 rows"),
        ("1\n2\n3\n4\nx", VectorError, "holds more numbers than the matrix has rows, 3"),
        ("b\n", VectorError, "the matrix has 3 rows"),
    ],
)
def test_table_that_is_no_vector(
    tmp_path: Path, text: str, error: type[Exception], why: str
) -> None:
    (tmp_path / "b.csv").write_text(text)
    with pytest.raises(error, match=why):
        load_vector(tmp_path / "b.csv", 3)


def test_table_as_a_matrix_is_refused_with_advice(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1")
    assert "is taken as a vector only" in refused(tmp_path / "a.csv")


def test_name_with_a_number_sign_is_a_file_where_there_is_one(tmp_path: Path) -> None:
    scipy.io.savemat(tmp_path / "a.mat", {"A": sp.csc_array(DENSE)})
    (tmp_path / "a.mat").rename(tmp_path / "a.mat#x.mtx")
    (tmp_path / "a.mat#x.mtx").write_bytes(SYMMETRIC)
    assert np.array_equal(as_csr(tmp_path / "a.mat#x.mtx").to_scipy().toarray(), DENSE)
