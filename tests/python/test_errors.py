"""The tree of errors: what catches what, and what the errors carry."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from paths import ROOT

import cpufree
from cpufree import errors
from cpufree.errors import (
    CpufreeError,
    DiagonalError,
    EngineError,
    FileFormatError,
    InvalidInputError,
    MatrixError,
    MissingFileError,
    NonFiniteError,
    NotEnoughGpusError,
    NotSymmetricError,
    OutOfMemoryError,
    RankFailedError,
    UnknownOptionError,
    UnreadableFileError,
    UnsupportedError,
    VectorError,
    WaitTimeoutError,
)

ALL = [
    error
    for error in vars(errors).values()
    if isinstance(error, type) and issubclass(error, Exception) and not issubclass(error, Warning)
]


def test_the_module_holds_the_whole_tree() -> None:
    assert len(ALL) == 22


@pytest.mark.parametrize("error", ALL)
def test_every_error_is_a_cpufree_error(error: type[Exception]) -> None:
    assert issubclass(error, CpufreeError)


@pytest.mark.parametrize("error", ALL)
def test_every_error_can_be_made_from_a_message_alone(error: type[Exception]) -> None:
    # The extension raises them so.
    assert str(error("what, where, what to do")) == "what, where, what to do"


@pytest.mark.parametrize(
    ("error", "base"),
    [
        (InvalidInputError, ValueError),
        (MatrixError, InvalidInputError),
        (NotSymmetricError, MatrixError),
        (NonFiniteError, MatrixError),
        (DiagonalError, MatrixError),
        (FileFormatError, InvalidInputError),
        (UnknownOptionError, TypeError),
        (UnreadableFileError, FileFormatError),
        (UnreadableFileError, OSError),
        (MissingFileError, UnreadableFileError),
        (MissingFileError, FileNotFoundError),
        (VectorError, InvalidInputError),
        (WaitTimeoutError, EngineError),
        (RankFailedError, EngineError),
        (NotEnoughGpusError, UnsupportedError),
        (OutOfMemoryError, MemoryError),
    ],
)
def test_error_is_caught_as(error: type[Exception], base: type[Exception]) -> None:
    assert issubclass(error, base)


@pytest.mark.parametrize("error", [UnsupportedError, EngineError, OutOfMemoryError])
def test_failures_of_the_machine_are_not_invalid_input(error: type[Exception]) -> None:
    assert not issubclass(error, ValueError)


def test_matrix_error_keeps_its_place_when_pickled() -> None:
    error = pickle.loads(pickle.dumps(DiagonalError("row 3 is empty", 3, 3)))
    assert (str(error), error.row, error.column) == ("row 3 is empty", 3, 3)


def test_wait_timeout_keeps_its_waits_when_pickled() -> None:
    waits = [{"pe": 1, "waits_for_pe": 0, "epoch": 7, "seen": 6}]
    assert pickle.loads(pickle.dumps(WaitTimeoutError("PE 1 waited", waits))).waits == waits


def test_wait_timeout_without_records_has_an_empty_list() -> None:
    assert WaitTimeoutError("PE 1 waited").waits == []


def test_warnings_can_be_filtered_by_category() -> None:
    with pytest.warns(UserWarning):
        import warnings

        warnings.warn("x", errors.CpufreeWarning, stacklevel=1)


@pytest.mark.parametrize("name", ["A.mtx", "A.npz", "A.cpufree"])
def test_missing_file_is_an_error_of_the_system_too(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match="no such file") as missing:
        cpufree.load_matrix(tmp_path / name)
    assert isinstance(missing.value, FileFormatError)
    assert missing.value.path == tmp_path / name


def test_damaged_file_is_no_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "A.npz").write_text("no archive")
    with pytest.raises(FileFormatError) as damaged:
        cpufree.load_matrix(tmp_path / "A.npz")
    assert not isinstance(damaged.value, OSError)


def test_errors_of_files_show_the_message_alone() -> None:
    error = MissingFileError("A.mtx: no such file", "A.mtx")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.path) == (str(error), "A.mtx") == ("A.mtx: no such file", "A.mtx")


def test_table_of_errors_names_all_of_them() -> None:
    text = (ROOT / "docs/api.md").read_text().partition("## Errors")[2]
    kinds = ALL[1:]  # all but the root
    assert [one.__name__ for one in kinds if f"`{one.__name__}`" not in text] == []
